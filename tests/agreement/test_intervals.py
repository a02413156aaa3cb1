"""Bootstrap and influence: determinism, coverage of the value, agreement with brute force."""

from __future__ import annotations

import random
import statistics as moments
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rag_eval_integrations.agreement import _resampled as resampled
from rag_eval_integrations.agreement import _statistics as statistics
from rag_eval_integrations.agreement import _summing
from rag_eval_integrations.agreement._bootstrap import (
    MIN_ROWS,
    Draws,
    Figure,
    Linear,
    Packed,
    Statistic,
    bootstrap,
    counted,
    interval,
    mean_figure,
    percentile,
)
from rag_eval_integrations.agreement._statistics import (
    Counts,
    auroc_contributions,
    kendall_contributions,
    spearman_contributions,
)

draws = st.lists(st.integers(0, 11), min_size=12, max_size=12)
quarters = st.integers(0, 4).map(lambda value: value / 4)
twelve = st.lists(st.tuples(quarters, quarters, st.booleans()), min_size=12, max_size=12)


def _correlated(n: int, seed: int = 1) -> tuple[list[float], list[float]]:
    generator = random.Random(seed)
    xs = [generator.random() for _ in range(n)]
    return xs, [x + generator.gauss(0, 0.3) for x in xs]


def _replicate(statistic: Statistic, drawn: Sequence[int]) -> Any:
    """The statistic on a draw of as many rows as its group has."""
    packed = Packed(len(drawn))
    places = packed.add(statistic.columns)
    totals = packed.totals(drawn)
    return statistic.light().replicate([totals[at] for at in places], partial(counted, drawn))


def _only(statistic: Statistic, rows: int, **options: int) -> Any:
    return bootstrap({"it": statistic}, rows=rows, **options)["it"]


def _of_counts(counts: dict[int, Counts], size: int, name: str) -> dict[str, Statistic]:
    cells = [[0.0] * size for _ in range(4)]
    for row, one in counts.items():
        for column, count in zip(cells, (one.tp, one.fp, one.fn, one.tn), strict=True):
            column[row] = count
    return resampled.of_cells(cells, len(counts), name)


@given(rows=twelve, drawn=draws)
def test_a_replicate_is_the_statistic_of_the_drawn_rows(
    rows: list[tuple[float, float, bool]], drawn: Sequence[int]
) -> None:
    """What is computed from sums and sorted ranks equals a fresh computation on the draw."""
    xs, ys, positive = zip(*rows, strict=True)
    at, size = range(12), 12
    picked = [rows[row] for row in drawn]
    picked_xs, picked_ys, picked_positive = zip(*picked, strict=True)
    both = {row: Counts.of([x > 0.5], [p]) for row, (x, _, p) in enumerate(rows)}

    pairs = {
        "rmse": (resampled.rmse(xs, ys, at, size), statistics.rmse(picked_xs, picked_ys)),
        "pearson": (
            resampled.correlations(xs, ys, at, size)["pearson"],
            statistics.pearson(picked_xs, picked_ys),
        ),
        "auroc": (
            resampled.auroc(xs, positive, at),
            statistics.auroc(picked_xs, picked_positive),
        ),
        "kappa": (
            _of_counts(both, size, "kappa")["kappa"],
            statistics.cohen_kappa([x > 0.5 for x in picked_xs], picked_positive),
        ),
    }

    for name, (statistic, expected) in pairs.items():
        found = _replicate(statistic, drawn)
        assert found == (None if expected is None else pytest.approx(expected, abs=1e-9)), name


@given(
    columns=st.lists(
        st.lists(st.floats(-1e6, 1e6), min_size=12, max_size=12), min_size=1, max_size=5
    ),
    drawn=draws,
)
def test_packed_columns_sum_like_single_ones(
    columns: list[list[float]], drawn: Sequence[int]
) -> None:
    """All columns of a group are summed at once, each to 14 digits of its largest number."""
    packed = Packed(12)
    places = packed.add(columns[:2]) + packed.add(columns[2:])
    totals = packed.totals(drawn)

    for at, column in zip(places, columns, strict=True):
        expected = sum(column[row] for row in drawn)
        assert totals[at] == pytest.approx(expected, abs=1e-12 * max(map(abs, column)))


@given(
    column=st.lists(st.integers(0, 2**40), min_size=12, max_size=12),
    drawn=draws,
)
def test_packed_counts_are_exact(column: list[int], drawn: Sequence[int]) -> None:
    """Integers lose nothing."""
    packed = Packed(12)
    (at,) = packed.add([column])
    assert packed.totals(drawn)[at] == sum(column[row] for row in drawn)


def test_numpy_gives_the_same_figures_to_the_last_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where numpy is installed large groups are summed by it, and nobody can tell."""
    pytest.importorskip("numpy")
    xs, ys = _correlated(300)
    xs = [round(x, 2) for x in xs]
    positive = [y > 0.6 for y in ys]
    statistics_of_all: dict[str, Statistic] = {
        "rmse": resampled.rmse(xs, ys, range(300), 300),
        "auroc": resampled.auroc(xs, positive, range(300)),
        "clustered": resampled.clustered_auroc(xs, positive, [n // 3 for n in range(300)], 300),
        **resampled.correlations(xs, ys, range(300), 300),
        **resampled.kappa([x > 0.5 for x in xs], positive, range(300), 300),
    }
    plain = bootstrap(statistics_of_all, rows=300, resamples=50)
    assert Draws(300, 50, 0)._summed is None
    monkeypatch.setattr(_summing, "LEAST_ROWS", 100)
    assert Draws(300, 50, 0)._summed is not None

    assert bootstrap(statistics_of_all, rows=300, resamples=50) == plain


def test_a_row_may_be_drawn_more_often_than_a_byte_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row out of one is drawn every time."""
    pytest.importorskip("numpy")
    monkeypatch.setattr(_summing, "LEAST_ROWS", 1)

    class Thousand(random.Random):
        def randbytes(self, n: int) -> bytes:
            return bytes(n)

    monkeypatch.setattr(random, "Random", Thousand)
    summed = _summing.summing(1000, 2, 0)

    assert summed is not None
    assert summed.totals([[0.5] + [0.0] * 999]) == [[500.0, 500.0]]


def test_rows_without_a_value_take_part_in_no_replicate() -> None:
    """A score on rows 0 and 2 of 3 counts only the draws of these rows."""
    statistic = resampled.rmse([1.0, 0.5], [0.0, 0.5], [0, 2], 3)

    assert statistic.rows == 2
    assert _replicate(statistic, [0, 1, 1]) == 1.0
    assert _replicate(statistic, [1, 1, 1]) is None


def test_an_interval_holds_its_value_and_is_the_same_every_time() -> None:
    """The same seed gives the same interval; another seed another one nearby."""
    xs, ys = _correlated(200)
    statistic = resampled.rmse(xs, ys, range(200), 200)

    first, again = (_only(statistic, 200, seed=1) for _ in range(2))
    other = _only(statistic, 200, seed=2)

    assert first == again
    assert first.interval[0] < first.value < first.interval[1]
    assert first.interval != other.interval
    assert first.interval == pytest.approx(other.interval, abs=0.02)


def test_a_mean_has_the_width_that_theory_gives() -> None:
    """The interval of an error rate of .5 over 400 rows is about ± 1.96·.025."""
    counts = {row: Counts(tp=row % 2, fn=1 - row % 2) for row in range(400)}

    low, high = _only(_of_counts(counts, 400, "recall")["recall"], 400).interval

    assert (low, high) == (pytest.approx(0.451, abs=0.012), pytest.approx(0.549, abs=0.012))


def test_no_interval_for_few_rows() -> None:
    """Fewer than ten rows have a value but no interval."""
    xs, ys = _correlated(MIN_ROWS - 1)

    few = _only(resampled.rmse(xs, ys, range(9), 9), 9)

    assert few.value is not None
    assert few.interval is None


def test_no_interval_for_an_undefined_statistic() -> None:
    """A constant has no correlation and no interval of it."""
    for statistic in resampled.correlations([0.5] * 20, list(range(20)), range(20), 20).values():
        assert _only(statistic, 20) == Figure(None)


def test_no_interval_where_resamples_often_lose_a_class() -> None:
    """With one positive, a third of the draws have no AUROC: an interval would hide that."""
    scores, positive = list(range(20)), [row == 12 for row in range(20)]

    figure = _only(resampled.auroc(scores, positive, range(20)), 20)

    assert figure.value == pytest.approx(12 / 19)
    assert figure.interval is None


def test_no_resamples_give_values_alone() -> None:
    """`resamples=0` switches intervals off."""
    xs, ys = _correlated(20)

    assert _only(resampled.rmse(xs, ys, range(20), 20), 20, resamples=0).interval is None


@pytest.mark.parametrize(("share", "expected"), [(0, 1), (0.25, 2), (0.6, 3.4), (1, 5)])
def test_percentile_lies_between_neighbours(share: float, expected: float) -> None:
    """Of 1 to 5 the 60th percentile is 3.4."""
    assert percentile([1, 2, 3, 4, 5], share) == pytest.approx(expected)


def test_an_interval_tolerates_a_few_undefined_replicates() -> None:
    """1 in 20 may be undefined; more may not; none at all is no interval."""
    assert interval([1.0] * 19 + [None]) == (1.0, 1.0)
    assert interval([1.0] * 18 + [None] * 2) is None
    assert interval([]) is None


def test_a_mean_over_groups_leaves_out_undefined_ones() -> None:
    """The mean of .4, .8 and nothing is .6; its interval comes from the replicates' means."""
    groups = [Figure(0.4, None, (0.3, 0.5)), Figure(None), Figure(0.8, None, (0.8, 0.8))]

    mean = mean_figure(groups)

    assert mean.value == pytest.approx(0.6)
    assert mean.replicates == pytest.approx((0.55, 0.65))


def test_a_mean_over_groups_has_no_interval_when_one_is_too_small() -> None:
    """A group without replicates counts in the mean, so nothing is claimed about its spread."""
    mean = mean_figure([Figure(0.4, None, (0.3, 0.5)), Figure(0.8)])

    assert mean == Figure(pytest.approx(0.6))  # type: ignore[arg-type]
    assert mean_figure([]) == Figure(None)


def test_a_mean_is_undefined_on_draws_where_a_group_is() -> None:
    """A draw that lacks one group's figure has no mean."""
    mean = mean_figure([Figure(0.4, None, (0.3, None)), Figure(0.8, None, (0.8, 0.8))])

    assert mean.replicates[1] is None


# Influence: the derivative of the statistic by the weight of a row, which duplication of all rows
# but one shows to any precision.


def _weighted_change(
    statistic: Callable[..., float], xs: list[float], ys: list[float], row: int
) -> float:
    copies = 400
    heavy_x = [*xs * copies, xs[row]]
    heavy_y = [*ys * copies, ys[row]]
    change: float = statistic(heavy_x, heavy_y) - statistic(xs, ys)
    return change * copies  # one more row of `copies` · n is a weight of 1 / copies


@pytest.mark.parametrize(
    ("statistic", "contributions"),
    [
        (statistics.spearman, spearman_contributions),
        (statistics.kendall, kendall_contributions),
    ],
)
def test_contributions_are_derivatives(
    statistic: Callable[..., float], contributions: Callable[..., list[float]]
) -> None:
    """A row's contribution is how the correlation moves when the row weighs a little more."""
    xs, ys = [0.1, 0.4, 0.4, 0.7, 0.9, 0.2], [0.2, 0.1, 0.6, 0.6, 0.8, 0.3]

    found = contributions(xs, ys)

    for row in range(6):
        assert found[row] == pytest.approx(_weighted_change(statistic, xs, ys, row), abs=2e-3)


@given(twelve)
def test_contributions_sum_to_nothing(rows: list[tuple[float, float, bool]]) -> None:
    """Making every row heavier alike changes no statistic."""
    xs, ys, positive = zip(*rows, strict=True)

    for found in (
        spearman_contributions(xs, ys),
        kendall_contributions(xs, ys),
        auroc_contributions(xs, positive, range(12), 12),
    ):
        assert found is None or sum(found) == pytest.approx(0, abs=1e-9)


def test_contributions_are_undefined_with_the_statistic() -> None:
    """No rows, a constant column or a single class move nothing."""
    assert spearman_contributions([], []) is None
    assert kendall_contributions([1, 1], [1, 2]) is None
    assert auroc_contributions([1, 2], [True, True], [0, 1], 2) is None


@pytest.mark.parametrize("name", ["spearman", "kendall"])
def test_linear_intervals_are_as_wide_as_the_spread_of_fresh_samples(name: str) -> None:
    """Over 300 samples of 150 rows the statistic spreads as its contributions say."""
    values = [getattr(statistics, name)(*_correlated(150, seed)) for seed in range(300)]
    xs, ys = _correlated(150, seed=1000)
    figure = _only(resampled.correlations(xs, ys, range(150), 150)[name], 150)

    spread = moments.stdev(value for value in figure.replicates if value is not None)

    assert spread == pytest.approx(moments.stdev(values), rel=0.25)


def test_sentences_of_one_row_are_drawn_together() -> None:
    """Copying every sentence five times within its row adds no certainty; ranking rows does."""
    generator = random.Random(3)
    positive = [generator.random() < 0.3 for _ in range(100)]
    scores = [generator.random() + 0.3 * one for one in positive]
    copies = [row for row in range(100) for _ in range(5)]

    single = _only(resampled.clustered_auroc(scores, positive, range(100), 100), 100)
    five = _only(
        resampled.clustered_auroc(
            [scores[row] for row in copies], [positive[row] for row in copies], copies, 100
        ),
        100,
    )
    exact = _only(resampled.auroc(scores, positive, range(100)), 100)

    assert five.interval == pytest.approx(single.interval)
    assert single.interval == pytest.approx(exact.interval, abs=0.02)


@given(value=st.floats(0, 1), low=st.sampled_from([-1.0, 0.0]), moves=st.lists(st.floats(-9, 9)))
def test_a_linear_replicate_stays_in_range(value: float, low: float, moves: list[float]) -> None:
    """However far the contributions reach, an AUROC stays in [0, 1], a correlation in [-1, 1]."""
    assume(len(moves) > 1)

    moved = _replicate(Linear(value, len(moves), moves, low), range(len(moves)))

    assert low - 1e-12 <= moved <= 1 + 1e-12


def test_a_linear_replicate_without_moves_is_its_value() -> None:
    """Contributions of 0 leave the value; at the end of the range nothing moves it."""
    assert _replicate(Linear(0.7, 2, [0, 0], 0.0), [0, 1]) == pytest.approx(0.7)
    assert _replicate(Linear(1.0, 2, [5, 5]), [0, 1]) == 1.0
    assert _replicate(Linear(None, 2, [0, 0]), [0, 1]) is None
