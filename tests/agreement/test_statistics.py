"""Pure statistics: hand-worked values, definitions by brute force, properties, empty cases."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from itertools import combinations, product
from typing import Any, TypeVar

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rag_eval_integrations.agreement._statistics import (
    Counts,
    auroc,
    cohen_kappa,
    concordance,
    kendall,
    midranks,
    pearson,
    rmse,
    spearman,
)

First = TypeVar("First")
Second = TypeVar("Second")

# Quarters make ties common and arithmetic exact.
quarters = st.integers(0, 4).map(lambda value: value / 4)
columns = st.lists(st.tuples(quarters, quarters), max_size=30)
scored = st.lists(st.tuples(quarters, st.booleans()), max_size=30)
answers = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=30)


def _split(rows: Sequence[tuple[First, Second]]) -> tuple[list[First], list[Second]]:
    return [x for x, _ in rows], [y for _, y in rows]


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _auroc_by_pairs(scores: list[float], positive: list[bool]) -> float | None:
    ones = [s for s, p in zip(scores, positive, strict=True) if p]
    zeros = [s for s, p in zip(scores, positive, strict=True) if not p]
    won = [1.0 if a > b else 0.5 if a == b else 0.0 for a, b in product(ones, zeros)]
    return sum(won) / len(won) if won else None


def _tau_b_by_pairs(xs: list[float], ys: list[float]) -> float | None:
    pairs = list(combinations(zip(xs, ys, strict=True), 2))
    surplus = sum(_sign(a[0] - b[0]) * _sign(a[1] - b[1]) for a, b in pairs)
    untied_x = sum(a[0] != b[0] for a, b in pairs)
    untied_y = sum(a[1] != b[1] for a, b in pairs)
    return surplus / math.sqrt(untied_x * untied_y) if untied_x and untied_y else None


def test_rmse_is_worked_by_hand() -> None:
    """Errors .3 and .4 have a root mean square of √(.25/2)."""
    assert rmse([0.5, 0.4], [0.2, 0.8]) == pytest.approx(math.sqrt(0.125))


def test_auroc_is_worked_by_hand() -> None:
    """Positives .9 and .4 over negatives .4 and .1 win 2, 1 and tie 1 of 4 pairs: 3.5/4."""
    assert auroc([0.9, 0.4, 0.4, 0.1], [True, True, False, False]) == 0.875


def test_midranks_share_the_mean_of_tied_places() -> None:
    """Two values in the places 2 and 3 both rank 2.5."""
    assert midranks([5, 7, 5, 1]) == [2.5, 4, 2.5, 1]


def test_correlations_are_worked_by_hand() -> None:
    """For 1 2 3 4 against 1 3 2 5: Pearson 5.5/√(5·8.75), Spearman .8, Kendall (5 - 1)/6."""
    xs, ys = [1, 2, 3, 4], [1, 3, 2, 5]

    assert pearson(xs, ys) == pytest.approx(5.5 / math.sqrt(5 * 8.75))
    assert spearman(xs, ys) == pytest.approx(0.8)
    assert kendall(xs, ys) == pytest.approx(4 / 6)


def test_kendall_takes_ties_out_of_both_columns() -> None:
    """1 1 2 against 1 2 3: 2 concordant pairs, one tied in x, so 2/√(2·3)."""
    assert kendall([1, 1, 2], [1, 2, 3]) == pytest.approx(2 / math.sqrt(6))


def test_counts_are_worked_by_hand() -> None:
    """20, 5, 10, 15 give precision .8, recall 2/3, F1 40/55 and Cohen's textbook kappa .4."""
    counts = Counts(tp=20, fp=5, fn=10, tn=15)

    assert counts.precision == 0.8
    assert counts.recall == pytest.approx(2 / 3)
    assert counts.f1 == pytest.approx(40 / 55)
    assert counts.kappa == pytest.approx(0.4)


@pytest.mark.parametrize("statistic", [rmse, pearson, spearman, kendall, auroc, cohen_kappa])
def test_no_rows_give_no_figure(statistic: Callable[..., Any]) -> None:
    """An empty comparison is None, not 0 and not NaN."""
    assert statistic([], []) is None


@pytest.mark.parametrize("statistic", [pearson, spearman, kendall])
@pytest.mark.parametrize("constant", [[0.1, 0.1, 0.1], [1e9 / 3] * 3])
def test_a_constant_correlates_with_nothing(
    statistic: Callable[..., Any], constant: list[float]
) -> None:
    """A constant column has no correlation, whatever rounding its mean leaves."""
    assert statistic(constant, [1, 2, 3]) is None
    assert statistic([1, 2, 3], constant) is None


def test_one_row_has_no_correlation() -> None:
    """A single row cannot vary."""
    assert pearson([1], [2]) is None
    assert kendall([1], [2]) is None


def test_differences_below_a_floats_reach_have_no_correlation() -> None:
    """Where the product of the spreads underflows, nothing is divided by 0."""
    assert pearson([0, 1e-300], [0, 1e-300]) is None


@pytest.mark.parametrize("positive", [[True, True], [False, False]])
def test_one_class_has_no_auroc(positive: list[bool]) -> None:
    """Ranking needs a positive and a negative."""
    assert auroc([0.1, 0.9], positive) is None


def test_counts_of_nothing_have_no_figures() -> None:
    """F1, precision, recall and kappa are None where nobody said yes; kappa also where all did."""
    nobody, everybody = Counts(tn=9), Counts(tp=9)

    assert (nobody.f1, nobody.precision, nobody.recall, nobody.kappa) == (None,) * 4
    assert everybody.f1 == 1
    assert everybody.kappa is None


@pytest.mark.parametrize("statistic", [rmse, pearson, spearman, kendall, auroc, cohen_kappa])
def test_columns_of_different_length_are_refused(statistic: Callable[..., Any]) -> None:
    """No row is dropped without a word."""
    with pytest.raises(ValueError, match=r"columns|zip"):
        statistic([1, 0], [1, 0, 1])


@given(scored)
def test_auroc_equals_its_definition(rows: list[tuple[float, bool]]) -> None:
    """Midranks give the share of pairs won, ties counting half."""
    scores, positive = _split(rows)

    expected = _auroc_by_pairs(scores, positive)
    assert auroc(scores, positive) == (None if expected is None else pytest.approx(expected))


@given(scored)
def test_auroc_of_the_negation_is_its_complement(rows: list[tuple[float, bool]]) -> None:
    """Ranking the other way round wins what was lost."""
    scores, positive = _split(rows)
    value: Any = auroc(scores, positive)
    assume(value is not None)

    assert auroc([-s for s in scores], positive) == pytest.approx(1 - value)
    assert auroc(scores, [not p for p in positive]) == pytest.approx(1 - value)


@given(st.lists(st.booleans(), min_size=2))
def test_a_constant_score_ranks_at_chance(positive: list[bool]) -> None:
    """Ties count half, so a constant is .5 wherever an AUROC is defined."""
    assume(any(positive) and not all(positive))

    assert auroc([0.3] * len(positive), positive) == 0.5


@given(columns)
def test_kendall_equals_its_definition(rows: list[tuple[float, float]]) -> None:
    """The O(n log n) count agrees with a look at every pair."""
    xs, ys = _split(rows)

    expected = _tau_b_by_pairs(xs, ys)
    assert kendall(xs, ys) == (None if expected is None else pytest.approx(expected))


@given(columns)
def test_concordance_equals_its_definition(rows: list[tuple[float, float]]) -> None:
    """Each row's surplus is its own sum over all other rows."""
    expected = [sum(_sign(a - c) * _sign(b - d) for c, d in rows) for a, b in rows]

    assert concordance(*_split(rows)) == expected


@pytest.mark.parametrize("statistic", [pearson, spearman, kendall])
@given(rows=columns)
def test_correlations_are_symmetric_and_turn_with_a_column(
    statistic: Callable[..., Any], rows: list[tuple[float, float]]
) -> None:
    """In [-1, 1]; exchanging columns changes nothing, negating one changes the sign."""
    xs, ys = _split(rows)
    value = statistic(xs, ys)
    assume(value is not None)

    assert -1 <= value <= 1
    assert statistic(ys, xs) == pytest.approx(value, abs=1e-12)
    assert statistic(xs, [-y for y in ys]) == pytest.approx(-value, abs=1e-12)
    assert statistic(xs, xs) == pytest.approx(1)


@pytest.mark.parametrize("statistic", [rmse, pearson, spearman, kendall])
@given(rows=columns, shuffle=st.randoms())
def test_row_order_does_not_matter(
    statistic: Callable[..., Any], rows: list[tuple[float, float]], shuffle: random.Random
) -> None:
    """Statistics belong to the set of rows."""
    value = statistic(*_split(rows))
    shuffle.shuffle(rows)

    again = statistic(*_split(rows))
    assert again == (None if value is None else pytest.approx(value, abs=1e-12))


@pytest.mark.parametrize("statistic", [spearman, kendall])
@given(rows=columns)
def test_rank_correlations_see_order_only(
    statistic: Callable[..., Any], rows: list[tuple[float, float]]
) -> None:
    """A growing transformation changes nothing."""
    xs, ys = _split(rows)
    value = statistic(xs, ys)

    again = statistic([x**3 + 7 for x in xs], ys)
    assert again == (None if value is None else pytest.approx(value, abs=1e-12))


@given(answers)
def test_kappa_equals_its_definition(rows: list[tuple[bool, bool]]) -> None:
    """Observed agreement beyond chance, over what is left above chance."""
    predicted, gold = _split(rows)
    assume(rows)
    n = len(rows)
    observed = sum(p == g for p, g in rows) / n
    yes, gold_yes = sum(predicted) / n, sum(gold) / n
    chance = yes * gold_yes + (1 - yes) * (1 - gold_yes)

    value = cohen_kappa(predicted, gold)

    if value is None:
        assert chance == 1
    else:
        assert -1 <= value <= 1
        assert value == pytest.approx((observed - chance) / (1 - chance))
