"""`Latest`: the last evaluations of a process, small until they are read, and equal when they are."""

from __future__ import annotations

import pytest
from own_rows import made_rows

from rag_eval_integrations import Evaluation, Trace
from rag_eval_integrations.dataset import labelled_from, score_labelled
from rag_eval_integrations.report.evaluations import Latest
from rag_eval_integrations.sentences import Punkt


@pytest.fixture(scope="module")
def made() -> list[Evaluation]:
    splitter = Punkt()
    rows = (labelled_from(dict(row), splitter) for row in made_rows(12))
    return [score_labelled(row, [Trace()]) for row in rows]


def test_they_are_equal_to_what_was_added(made: list[Evaluation]) -> None:
    """Oldest first, the latest only; read twice, they are the same objects."""
    latest = Latest(5)
    for one in made:
        latest.add(one)

    assert latest.evaluations() == made[-5:]
    assert latest.evaluations()[0] is latest.evaluations()[0]
    assert len(latest.evaluations().summary().scores) == 6


def test_of_0_none_is_kept(made: list[Evaluation]) -> None:
    """Nor packed for nothing."""
    latest = Latest(0)
    latest.add(made[0])
    assert latest.evaluations() == []


def test_what_no_file_could_hold_is_kept_as_it_is(made: list[Evaluation]) -> None:
    """A user's judge may give records that were never checked: no reason to fail the evaluation."""
    odd = made[0].model_copy(update={"metadata": {"what": object()}})
    latest = Latest(2)
    latest.add(odd)
    assert latest.evaluations()[0] is odd


def test_their_number_is_known_without_unpacking(made: list[Evaluation]) -> None:
    """For a repr in a log line."""
    latest = Latest(3)
    for one in made:
        latest.add(one)
    assert len(latest) == 3
