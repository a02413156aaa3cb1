"""One `RagEvaluator` per judge, shared by the evaluator objects of LangChain and LlamaIndex."""

from __future__ import annotations

import threading
from collections.abc import Callable
from weakref import WeakValueDictionary

from rag_eval_integrations.evaluator import RagEvaluator


class SharedEvaluator:
    """A judge and the evaluator that asks it.

    It keeps the judge alive: another object cannot get the `id` that it is found by.
    """

    def __init__(self, judge: object, evaluator: RagEvaluator) -> None:
        self.judge = judge
        self.evaluator = evaluator


_shared: WeakValueDictionary[str | int, SharedEvaluator] = WeakValueDictionary()
_lock = threading.Lock()


def shared_evaluator(judge: object, make: Callable[[], RagEvaluator]) -> SharedEvaluator:
    """Return the evaluator of a judge; make it when no evaluator object holds one.

    Five evaluator objects made with one judge ask it once per call, whichever scores they return.

    Args:
        judge: the name of a judge, shared by everyone who uses the name, or any object, shared by
            identity.
        make: makes the evaluator when there is none.

    Returns:
        The judge and its evaluator; shared for as long as somebody holds the result.

    Raises:
        ConfigurationError: whatever `make` raises.
    """
    key = judge if isinstance(judge, str) else id(judge)
    with _lock:
        found = _shared.get(key)
        if found is None:
            found = _shared[key] = SharedEvaluator(judge, make())
        return found
