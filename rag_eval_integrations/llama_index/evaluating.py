"""Stage 1, LlamaIndex's own evaluators: what they ask is no user's question.

`FaithfulnessEvaluator` and others build an index over the contexts and query it with the answer, by
the same dispatcher as the app, and open no span of their own. So the code that is running is
looked at, when a query begins: `aevaluate` of an evaluator awaits its query itself, few frames
away. What an evaluator asks in a task or thread of its own is not seen; for that there is
`suppress_capture`.
"""

from __future__ import annotations

import sys

from rag_eval_integrations._suppress import suppress_capture

__all__ = ["asked_by_evaluator", "suppress_capture"]

_FARTHEST = 24  # frames from the query up to the evaluator: 11 in LlamaIndex, more with wrappers
_BASE = ("llama_index.core.evaluation.base", "BaseEvaluator")


def asked_by_evaluator() -> bool:
    """Whether the calling code runs inside of an evaluator's `aevaluate` (1 µs)."""
    frame = sys._getframe(1)
    for _ in range(_FARTHEST):
        if frame.f_code.co_name == "aevaluate" and _is_evaluator(frame.f_locals.get("self")):
            return True
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False


def _is_evaluator(value: object) -> bool:
    return any((kind.__module__, kind.__name__) == _BASE for kind in type(value).__mro__)
