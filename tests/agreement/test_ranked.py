"""Rank statistics by numpy are those of plain Python, to the last digit."""

from __future__ import annotations

from array import array
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_eval_integrations.agreement import _keys as keys
from rag_eval_integrations.agreement import _ranked, _summing
from rag_eval_integrations.agreement import _resampled as resampled
from rag_eval_integrations.agreement import _statistics as statistics
from rag_eval_integrations.agreement._marks import Items
from rag_eval_integrations.agreement._ranked import Ranked

numpy = pytest.importorskip("numpy")

numbers = st.one_of(
    st.integers(0, 4).map(lambda one: one / 4),
    st.floats(0, 1),
    st.floats(-1e6, 1e6),
)
columns = st.lists(st.tuples(numbers, numbers), min_size=2, max_size=40)


@settings(max_examples=300, deadline=None)
@given(rows=columns, few=st.sampled_from([0, _ranked._FEW_LEVELS]))
def test_every_figure_is_the_same(rows: list[tuple[float, float]], few: int) -> None:
    """With ties in either column and in both, for constant columns, and however few levels."""
    xs, ys = [x for x, _ in rows], [y for _, y in rows]
    ranked = Ranked(numpy, xs, ys)

    assert ranked.spearman() == statistics.spearman(xs, ys)
    with patch.object(_ranked, "_FEW_LEVELS", few):
        surplus = ranked.concordance()
    assert surplus.tolist() == statistics.concordance(xs, ys)
    assert ranked.kendall(surplus) == statistics.kendall(xs, ys)
    for found, expected in (
        (ranked.kendall_contributions(surplus), statistics.kendall_contributions(xs, ys)),
        (ranked.spearman_contributions(), statistics.spearman_contributions(xs, ys)),
    ):
        assert (None if found is None else found.tolist()) == expected


def test_few_rows_are_ranked_without_numpy() -> None:
    """Its import would take longer."""
    assert Ranked.of([1.0, 2.0], [1.0, 2.0]) is None


items = st.lists(
    st.lists(st.tuples(st.integers(0, 9) | st.integers(0, 1_000_000), st.booleans()), max_size=4),
    min_size=1,
    max_size=9,
)


@settings(max_examples=200, deadline=None)
@given(
    of=items, whole=st.booleans(), swapped=st.booleans(), backwards=st.booleans(),
    step=st.sampled_from([3, _ranked._STEP]),
)  # fmt: skip
def test_items_are_ranked_the_same(
    of: list[list[tuple[int, bool]]], *, whole: bool, swapped: bool, backwards: bool, step: int
) -> None:
    """The AUROC over sentences and each row's contribution; of some rows, in any order and steps."""
    held = Items()
    for row in of:
        bits = sum(positive << at for at, (_, positive) in enumerate(row))
        levels = [level for level, _ in row]
        found = array("I", levels) if whole else array("d", [one / 7e6 for one in levels])
        held.add(found, range(len(row)), bits)
    rows = [at for at in range(len(of)) if at % 3 != 1]
    rows = rows[::-1] if backwards else rows
    scores, positive, owners = held.columns(rows)
    if not scores:
        return
    if swapped:
        scores = array("d", [1 - score for score in scores])
        positive = [not one for one in positive]

    with patch.object(_ranked, "_STEP", step):
        found_ = keys._by_numpy(numpy, held, rows, swapped=swapped)

    expected = resampled.clustered_auroc(scores, positive, owners, len(rows))
    assert found_ is not None
    assert (found_.value, found_.rows) == (expected.value, expected.rows)
    assert list(found_.contributions) == list(expected.contributions)


def test_the_auroc_of_many_rows_is_that_of_few() -> None:
    """Replicates, too; the rows are many enough for numpy, and half of them are ties."""
    scores = [(at * 7919 % 1000) / 1000 if at % 2 else 0.5 for at in range(3000)]
    positive = [at % 3 == 0 for at in range(3000)]
    drawn = [at * 31 % 4 for at in range(3000)]

    by_numpy = resampled.auroc(scores, positive, range(3000))
    with patch.object(_summing, "find_spec", lambda _: None):
        plain = resampled.auroc(scores, positive, range(3000))

    assert by_numpy.value == plain.value == statistics.auroc(scores, positive)
    assert by_numpy.replicate((), lambda: drawn) == plain.replicate((), lambda: drawn)
    assert (by_numpy.below, by_numpy.negatives) == (plain.below, plain.negatives)
