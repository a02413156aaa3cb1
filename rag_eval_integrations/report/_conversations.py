"""Conversations as a page shows them: turn by turn, and from which turn on they went wrong."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from rag_eval_integrations._visible import one_line
from rag_eval_integrations.evaluations._filters import values_of
from rag_eval_integrations.records import Evaluation, Means
from rag_eval_integrations.records.mean import Made, RunningMean
from rag_eval_integrations.sentences import document_number

View = dict[str, Any]

_MOST = 10_000
_QUESTION = 160
_NAME = 80
_WRONG = {"hallucination", "nothing_relevant_retrieved"}


class Conversations:
    """The conversations of the first 10,000 calls that name one."""

    def __init__(self) -> None:
        self.calls = 0
        self.per_call = Means()
        self._turns: dict[str, list[View]] = defaultdict(list)
        self._means: dict[str, Means] = defaultdict(Means)

    def add(self, evaluation: Evaluation) -> None:
        """Add a call to its conversation; one that names none is left out."""
        for name in values_of(evaluation, "conversation") if self.calls < _MOST else ():
            self.calls += 1
            self._turns[name].append(_turn(evaluation))
            self._means[name].add(evaluation)
            self.per_call.add(evaluation)

    def views(self) -> list[View]:
        """List the conversations of several turns, those that went wrong first."""
        views = [_view(name, turns) for name, turns in self._turns.items() if turns[1:]]
        return sorted(views, key=lambda view: not view["first"])

    def means(self) -> dict[Made, RunningMean]:
        """Average the means of the conversations, so that each counts once."""
        over: dict[Made, RunningMean] = defaultdict(RunningMean)
        for means in self._means.values():
            for maker, mean in means.made.items():
                over[maker].add(mean.mean or 0.0)
        return over


def _turn(evaluation: Evaluation) -> View:
    """Return what the page shows of a turn, with the documents that it retrieved itself."""
    labels, began = evaluation.labels, evaluation.started_at
    relevant = set(map(document_number, labels.all_relevant_sentence_keys if labels else ()))
    return {
        "began": began and began.timestamp(),
        "question": one_line(evaluation.question, _QUESTION),
        "patterns": [diagnosis.pattern for diagnosis in evaluation.diagnosis],
        "documents": [
            (one_line(name or f"document {number}", _NAME), number in relevant)
            for number, name in enumerate(evaluation.document_ids)
            if number not in evaluation.earlier
        ],
    }


def _view(name: str, turns: list[View]) -> View:
    """Return a conversation; `first` is its first wrong turn, from 1, and 0 for none."""
    if all(turn["began"] is not None for turn in turns):
        turns = sorted(turns, key=lambda turn: turn["began"])
    wrong = (number for number, turn in enumerate(turns, 1) if _WRONG & {*turn["patterns"]})
    return {"name": one_line(name, _NAME), "first": next(wrong, 0), "turns": turns}
