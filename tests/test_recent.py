"""Memories of users' texts belong to an object: they are bounded, and gone with it."""

from __future__ import annotations

import copy
import gc
import pickle

from rag_eval_integrations import EmbeddedJudge, RagCall, RagEvaluator
from rag_eval_integrations._recent import Recent
from rag_eval_integrations.sentences import Punkt

MARK = "quixotic zeppelin"


def texts_in_memory() -> list[str]:
    """All strings with the mark that any object holds, the constants of this module aside."""
    texts = {
        text
        for holder in gc.get_objects()
        for text in gc.get_referents(holder)
        if isinstance(text, str) and MARK in text and text != MARK
    }
    return sorted(texts)


def evaluate(evaluator: RagEvaluator) -> None:
    """Evaluate a call whose texts have the mark, made at run time so that no code holds them."""
    texts = [f"Dr. {name} flew a {MARK}. It cost 5 coins, No. {name} says." for name in "AB"]
    evaluation = evaluator.evaluate_sync(RagCall(f"Who flew a {MARK}?", texts, texts[0]))
    assert evaluation.error is None
    assert evaluation.scores["adherence"].value is not None


def test_texts_go_with_the_evaluator() -> None:
    """While it lives it remembers them; no cache of a module keeps them afterwards."""
    evaluator = RagEvaluator()
    evaluate(evaluator)
    gc.collect()
    assert texts_in_memory()

    del evaluator
    gc.collect()

    assert texts_in_memory() == []


def test_texts_go_with_the_splitter_and_the_judge() -> None:
    """Without an evaluator, whose remembered labellings are dropped here, each holds its own."""
    punkt, judge = Punkt(), EmbeddedJudge()
    evaluate(RagEvaluator(judge, splitter=punkt))
    gc.collect()
    held_by_both = len(texts_in_memory())

    del judge
    gc.collect()
    assert 0 < len(texts_in_memory()) < held_by_both
    del punkt
    gc.collect()

    assert texts_in_memory() == []


def test_the_latest_short_texts_are_answered_once() -> None:
    """A text beyond the length is answered anew each time, an old one after others came."""
    asked: list[str] = []

    def answer(text: str) -> int:
        asked.append(text)
        return len(text)

    recent = Recent(answer, size=2, longest=3)

    texts = ("a", "a", "abcd", "abcd", "b", "c", "a")
    assert [recent(text) for text in texts] == [len(text) for text in texts]
    assert asked == ["a", "abcd", "abcd", "b", "c", "a"]


def test_copies_remember_nothing_and_work() -> None:
    """Splitters and judges are sent to other processes, without the texts they have seen."""
    punkt, judge = Punkt(), EmbeddedJudge()
    text = f"One {MARK}. Two."
    assert len(punkt.spans(text)) == 2

    for other in (pickle.loads(pickle.dumps(punkt)), copy.deepcopy(punkt)):
        assert other == punkt
        assert hash(other) == hash(punkt)
        assert other.spans(text) == punkt.spans(text)
    assert MARK.encode() not in pickle.dumps(punkt)
    assert pickle.loads(pickle.dumps(judge)).version == judge.version
