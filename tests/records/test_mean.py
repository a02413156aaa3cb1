"""Means in constant memory: exact where values agree, with intervals that keep what they promise."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.records.mean import Interval, RunningMean, t_975, wilson


def mean_of(*values: float) -> RunningMean:
    mean = RunningMean()
    for value in values:
        mean.add(value)
    return mean


def interval_of(*values: float) -> Interval:
    interval = mean_of(*values).interval
    assert interval is not None
    return interval


def bounds(*values: float) -> tuple[float, float]:
    interval = interval_of(*values)
    return interval.low, interval.high


def test_a_small_sample_has_students_interval() -> None:
    """By hand: 0.2, 0.4, 0.9: mean 0.5, s² = 0.13, t(2) = 4.3027, half width 0.8957: all of [0, 1].

    0.4, 0.5, 0.5, 0.6: s² = 0.02/3, t(3) = 3.1824, half width 3.1824*0.08165/2 = 0.12992.
    """
    wide = mean_of(0.2, 0.4, 0.9)
    assert wide.deviation == pytest.approx(0.13**0.5)
    assert wide.interval == Interval(0.0, 1.0, "Student's t")
    assert bounds(0.4, 0.5, 0.5, 0.6) == pytest.approx((0.37008, 0.62992), abs=1e-5)


def test_0_and_1_have_wilsons_interval() -> None:
    """9 of 10: (0.5958, 0.9821), a published example."""
    assert interval_of(*[1.0] * 9, 0.0) == wilson(0.9, 10)
    assert bounds(*[1.0] * 9, 0.0) == pytest.approx((0.5958, 0.9821), abs=1e-4)


@pytest.mark.parametrize("value", [0.3, 0.75, 1 / 3])
def test_equal_values_have_an_interval_with_a_width(value: float) -> None:
    """No spread was seen in ten values: 27.75 % may have others, wherever they lie in [0, 1]."""
    mean = mean_of(*[value] * 10)

    assert mean.mean == value
    assert mean.deviation == 0
    assert interval_of(*[value] * 10).method == "Wilson, one value seen"
    (low, high), (wide_low, wide_high), (narrow_low, narrow_high) = (
        bounds(*[value] * n) for n in (10, 2, 1000)
    )
    assert high - low == pytest.approx(0.27753, abs=1e-5)
    assert low < value < high
    assert wide_high - wide_low > 0.5
    assert narrow_high - narrow_low < 0.004


def test_equal_values_near_1_have_nearly_the_interval_of_1() -> None:
    """One rule passes into the other: 0.999999 ten times is hardly another finding than 1."""
    assert bounds(*[0.999999] * 10) == pytest.approx(bounds(*[1.0] * 10), abs=1e-5)


def test_values_that_differ_in_their_last_bits_are_equal() -> None:
    """0.1 + 0.2 is not 0.3 to a computer, which is no spread."""
    assert interval_of(0.3, 0.1 + 0.2, 0.3).method == "Wilson, one value seen"


def test_one_value_has_neither_interval_nor_deviation() -> None:
    """Nor have none; and nothing has a mean of nothing."""
    assert (mean_of(0.4).interval, mean_of(0.4).deviation, mean_of(0.4).ci95) == (None, None, None)
    assert (mean_of().mean, mean_of().interval, mean_of().deviation) == (None, None, None)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=50))
def test_any_values_have_their_mean_inside_an_interval_inside_0_and_1(values: list[float]) -> None:
    """Mean and deviation are those of the statistics module."""
    mean, middle = mean_of(*values), statistics.fmean(values)

    assert mean.mean == pytest.approx(middle, abs=1e-12)
    assert mean.deviation == pytest.approx(statistics.stdev(values), abs=1e-7)
    low, high = bounds(*values)
    assert 0 <= low <= middle + 1e-12
    assert middle - 1e-12 <= high <= 1
    assert low < high


def test_the_mean_of_many_values_is_exact_to_nine_digits() -> None:
    """Sums neither drift nor lose the variance of values that are close together."""
    mean = RunningMean()
    for number in range(99_999):
        mean.add(0.9 + 1e-6 * (number % 3))

    assert mean.mean == pytest.approx(0.9 + 1e-6, abs=1e-12)
    assert mean.deviation == pytest.approx(1e-6 * (2 / 3) ** 0.5, rel=1e-4)


@pytest.mark.parametrize(("n", "good"), [(20, 0.9), (10, 0.5)])
def test_intervals_of_small_samples_cover(n: int, good: float) -> None:
    """Shares, continuous scores, and scores that are nearly always the same."""
    chance = random.Random(7)
    # Two values of which one is rare are what t is bad at; a width of 0 would cover 65 %.
    kinds: list[tuple[Callable[[float], float], float, float]] = [
        (lambda value: value, 0.5, 0.9), (lambda value: value < good, good, 0.9),
        (lambda value: 0.8 * (value < good), 0.8 * good, 0.85),
    ]  # fmt: skip
    for made_of, truth, least in kinds:
        covered = 0
        for _ in range(400):
            low, high = bounds(*(made_of(chance.random()) for _ in range(n)))
            covered += low <= truth <= high
        assert covered / 400 > least


@given(st.lists(st.lists(st.tuples(st.floats(0, 1), st.floats(0.1, 10)), max_size=20), max_size=5))
def test_the_mean_of_parts_is_that_of_the_whole(parts: list[list[tuple[float, float]]]) -> None:
    """With its spread and its interval, up to rounding; values that are all equal have none."""
    whole, merged = RunningMean(), RunningMean()
    for part in parts:
        mean = RunningMean()
        for value, weight in part:
            whole.add(value, weight)
            mean.add(value, weight)
        merged.merge(mean)

    assert merged.n == whole.n
    assert merged.mean == pytest.approx(whole.mean)
    assert merged.deviation == pytest.approx(whole.deviation, abs=1e-6)
    if len({value for part in parts for value, _ in part}) == 1:
        assert merged.deviation in (None, 0)


# --- Student's t


@pytest.mark.parametrize(
    ("freedom", "point"),
    [
        (1, 12.7062047362), (2, 4.3026527297), (3, 3.1824463053), (10, 2.2281388520),
        (100, 1.9839715185), (1e9, 1.9599639845),
    ],
)  # fmt: skip
def test_students_t_has_its_published_points(freedom: float, point: float) -> None:
    """To ten digits, of few and of many degrees of freedom."""
    assert t_975(freedom) == pytest.approx(point, abs=6e-10)


def test_students_t_falls_steadily() -> None:
    """Also between whole numbers, which effective sizes are; a sample of one has no freedom left."""
    points = [t_975(number / 7) for number in range(2, 3000)]
    assert points == sorted(points, reverse=True)
    with pytest.raises(ValueError, match="= 0: use a number above 0"):
        t_975(0)
