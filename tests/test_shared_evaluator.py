"""`shared_evaluator`: LangChain and LlamaIndex evaluator objects with one judge ask it once."""

from __future__ import annotations

import gc

from by_hand import ScriptedJudge, labels_of

from rag_eval_integrations import RagEvaluator
from rag_eval_integrations._shared_evaluator import shared_evaluator

LABELS = labels_of(["0a"], ["0a"], {"a": (["0a"], True)})


def test_one_judge_has_one_evaluator_while_anybody_holds_it() -> None:
    """Found by name or identity, made once, kept with its judge, dropped with its last user."""
    judge = ScriptedJudge(LABELS)
    made: list[RagEvaluator] = []

    def make() -> RagEvaluator:
        made.append(RagEvaluator(judge))
        return made[-1]

    first, second = shared_evaluator(judge, make), shared_evaluator(judge, make)
    other = shared_evaluator(ScriptedJudge(LABELS), make)
    name = "a name that nobody else uses"
    named, again = shared_evaluator(name, make), shared_evaluator("".join(list(name)), make)

    assert first is second
    assert (first.judge, first.evaluator) == (judge, made[0])
    assert other.evaluator is made[1]
    assert named is again
    assert len(made) == 3
    del named, again
    gc.collect()
    assert shared_evaluator(name, make).evaluator is made[3]
