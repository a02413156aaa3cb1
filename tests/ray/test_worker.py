"""One actor's work: a call that kills its process costs one row, whatever is around it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest

from rag_eval_integrations import RagEvaluator
from rag_eval_integrations.dataset import read_calls
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges import EmbeddedJudge
from rag_eval_integrations.ray._cluster import cpus_per_actor
from rag_eval_integrations.ray._worker import Attempts, Worker
from rag_eval_integrations.records import Evaluation, Labelling, SentencizedCall


class Died(BaseException):
    """Stands for the end of the process: nothing after it runs there."""


class Deadly(EmbeddedJudge):
    """Ends its process with calls that say so."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def label(self, call: SentencizedCall) -> Labelling:
        self.asked.append(call.call.question)
        return await super().label(call)


class Process(Worker):
    """A worker whose process ends when a deadly call comes."""

    def _all(self, items: Sequence[Any]) -> list[Evaluation]:
        if any(item.value is not None and "deadly" in item.value.question for item in items):
            raise Died
        return super()._all(items)


def rows(*questions: str | None) -> list[Any]:
    return list(
        read_calls(
            {"question": question, "documents": ["It leaves."], "response": "It leaves."}
            if question is not None
            else {"question": "no documents"}
            for question in questions
        )
    )


def evaluated(items: list[Any], attempts: Attempts, judge: Deadly) -> tuple[list[Evaluation], int]:
    """Evaluate in process after process until one is through, as Ray does."""
    for died in range(20):
        worker = Process(RagEvaluator(judge, max_remembered=0), 4, attempts)
        try:
            return worker.evaluate(copy.deepcopy(items), "task"), died
        except Died:
            continue
    raise AssertionError("no process was through")


def test_a_call_that_kills_its_process_is_tried_twice_and_is_an_error() -> None:
    """All others have their scores, and are not evaluated once per death."""
    judge, attempts = Deadly(), Attempts()
    items = rows("first", "deadly 1", None, "between", "deadly 2", "last")

    found, died = evaluated(items, attempts, judge)

    kinds = [None if one.error is None else one.error.type for one in found]
    assert kinds == [None, "BrokenProcessPool", "InputError", None, "BrokenProcessPool", None]
    assert [one.question for one in found if one.error is None] == ["first", "between", "last"]
    assert died == 3  # with the batch, and with each of the two
    assert judge.asked == ["first", "between", "last"]
    assert attempts._open == {}  # the batch is forgotten


def test_batches_without_a_death_are_evaluated_at_once_and_forgotten() -> None:
    """Also the same batch again."""
    judge, attempts = Deadly(), Attempts()
    for _ in range(2):
        found, died = evaluated(rows("one", "two"), attempts, judge)
        assert [one.error for one in found] == [None, None]
        assert died == 0
    assert attempts._open == {}


def test_a_death_that_no_call_is_to_blame_for_loses_nothing() -> None:
    """A machine that goes down as a batch ends: its calls are evaluated once more, elsewhere."""

    class Lost(Attempts):
        def end(self, batch: str) -> None:
            """The machine is gone, and does not say it."""

    attempts, items = Lost(), rows("one", "two")
    first, again = (Worker(RagEvaluator(), 4, attempts).evaluate(items, "t") for _ in range(2))

    assert [one.scores for one in again] == [one.scores for one in first]
    assert [one.error for one in again] == [None, None]


@pytest.mark.parametrize(
    ("actors", "available", "spare", "reserved"),
    [(1, 2, 1, 1.0), (2, 2, 1, 0.0), (3, 8, 1, 1.0), (1, 1, 1, 0.0), (2, 2, 0, 1.0)],
)
def test_actors_leave_a_cpu_to_the_tasks_that_read(
    actors: int, available: int, spare: int, reserved: float
) -> None:
    """Where there is no room they reserve none.

    On two machines of one CPU each, any fraction would leave no whole one.
    """
    assert cpus_per_actor(actors, available, spare=spare) == reserved


def test_actors_that_would_starve_the_reading_are_refused() -> None:
    """With the reason, instead of a run that stands still."""
    with pytest.raises(ConfigurationError, match=r"`num_cpus`.*wait for each other"):
        cpus_per_actor(2, 2, spare=1, wanted=1)
    with pytest.raises(ConfigurationError, match="`num_cpus`"):
        cpus_per_actor(1, 2, spare=1, wanted=float("nan"))
    assert cpus_per_actor(2, 2, spare=1, wanted=0.5) == 0.5
