"""`shared_evaluator`: LangChain and LlamaIndex evaluator objects with one judge ask it once."""

from __future__ import annotations

import gc
import weakref

from by_hand import ScriptedJudge, labels_of

from rag_eval_integrations import RagEvaluator
from rag_eval_integrations._shared_evaluator import shared_evaluator

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
