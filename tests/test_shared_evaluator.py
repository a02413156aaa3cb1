"""`shared_evaluator`: LangChain and LlamaIndex evaluator objects with one judge ask it once."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from by_hand import ScriptedJudge, labels_of

from rag_eval_integrations import GEval, RagEvaluator, Trace, langchain, llama_index
from rag_eval_integrations._shared_evaluator import shared_evaluator
from rag_eval_integrations.errors import ConfigurationError

LABELS = labels_of(["0a"], ["0a"], {"a": (["0a"], True)})


def test_one_judge_has_one_evaluator_while_anybody_holds_it() -> None:
    """Found by name or identity, made once, kept with its judge, dropped with its last user."""
    judge = ScriptedJudge(LABELS)

    first, second = shared_evaluator(judge), shared_evaluator(judge)
    other = shared_evaluator(ScriptedJudge(LABELS))
    named, again = shared_evaluator("embedded"), shared_evaluator("".join(list("embedded")))
    own = RagEvaluator(judge)

    assert first is second
    assert first.judge is judge
    assert other.evaluator is not first.evaluator
    assert named is again
    assert shared_evaluator(own).evaluator is own
    dropped = weakref.ref(first)
    del first, second
    gc.collect()
    assert dropped() is None
    assert shared_evaluator(judge).judge is judge


@pytest.mark.parametrize("host", [langchain, llama_index], ids=["langchain", "llama_index"])
@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda host: host.TraceEvaluator("no such judge"), "judge"),
        (lambda host: host.TraceEvaluator(metric="adherance"), "metric"),
        (lambda host: host.TraceEvaluator(threshold=70), "threshold"),
        (lambda host: host.TraceEvaluator(threshold=True), "threshold"),
        (lambda host: host.TraceEvaluator(threshold="high"), "threshold"),
        (lambda host: host.GEvalEvaluator(GEval.preset("coherence")), "metrics"),
        (lambda host: host.GEvalEvaluator(Trace()), "metric"),
        (lambda host: host.as_evaluators("embedded"), "rag_evaluator"),
        (lambda host: host.as_evaluators(RagEvaluator(), thresholds={"f1": 1}), "thresholds"),
    ],
)
def test_user_mistakes_are_named(make: Callable[[Any], object], host: Any, field: str) -> None:
    """With the argument, when the object is made, alike in both frameworks."""
    with pytest.raises(ConfigurationError) as raised:
        make(host)

    assert raised.value.field == field
