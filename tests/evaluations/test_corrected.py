"""Corrected means: the arithmetic beside numpy's, and what the interval promises."""

from __future__ import annotations

import random
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rag_eval_integrations.evaluations._corrected import LabelledCall, corrected
from rag_eval_integrations.records.mean import Interval, t_975

Array = np.ndarray[tuple[int, ...], np.dtype[Any]]

SHARES = st.floats(0, 1).map(lambda value: round(value, 3))
CALLS = st.builds(LabelledCall, SHARES, SHARES, st.integers(0, 12))
BINARY = st.builds(
    LabelledCall, st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0]), st.integers()
)


def ppi(labels: Array, said: Array, others: float, unlabelled: int) -> float:
    """Compute PPI++'s power-tuned mean as the paper has it: of labelled and of unlabelled calls."""
    spread = np.var(said)
    tuned = np.cov(labels, said, ddof=0)[0, 1] / spread if spread > 1e-12 else 0.0
    whole = float(np.clip(tuned, 0, 1))  # the weight where all calls are the unlabelled ones
    weight = whole * unlabelled / (unlabelled + len(labels))
    return float(weight * others + np.mean(labels - weight * said))


@given(st.lists(CALLS, min_size=3, max_size=40), st.lists(SHARES, min_size=1, max_size=60))
def test_the_mean_and_its_variance_are_numpys(
    labelled: list[LabelledCall], rest: list[float]
) -> None:
    """PPI++ over labelled and unlabelled calls; leaving each conversation out, by deletion."""
    said, labels = (np.array([call[at] for call in labelled]) for at in (0, 1))
    names = np.array([call.conversation for call in labelled])
    calls = len(labelled) + len(rest)
    judge = (sum(said) + sum(rest)) / calls
    units = [names == name for name in sorted(set(names))]
    assume(len(units) > 1)
    estimate = ppi(labels, said, float(np.mean(rest)), len(rest))

    figures = corrected(float(judge), calls, labelled)

    assert figures.mean == pytest.approx(np.clip(estimate, 0, 1), abs=1e-9)

    def without(unit: Array) -> float:
        """Estimate by the other conversations, the judge's mean over all calls being known."""
        left = ~unit
        spread = np.var(said[left])
        tuned = np.cov(labels[left], said[left], ddof=0)[0, 1] / spread if spread > 1e-12 else 0.0
        weight = np.clip(tuned, 0, 1)
        return float(np.mean(labels[left]) + weight * (judge - np.mean(said[left])))

    def jackknife(estimates: list[float], whole: float) -> float:
        k = len(estimates)
        return (k - 1) / k * float(np.sum((np.array(estimates) - whole) ** 2))

    variance = jackknife([without(unit) for unit in units], estimate)
    if not np.isin([labels, said], (0, 1)).all() and np.sum(np.abs(labels - said) > 1e-12) < 10:
        alone = jackknife([float(np.mean(labels[~unit])) for unit in units], float(np.mean(labels)))
        variance = max(variance, alone)
    spread = figures.mean * (1 - figures.mean)
    assume(variance > 1e-9 and spread > 1e-9)
    sizes = np.array([np.sum(unit) for unit in units])
    reach = t_975(max(1.0, float(np.sum(sizes) ** 2 / np.sum(sizes**2) - 1)))
    variance *= 1 - len(labelled) / calls
    # Wilson's interval: the shares that lie `reach` standard errors away, each by its own error.
    ratio = variance / spread
    roots = np.roots(
        [1 + reach**2 * ratio, -(2 * figures.mean + reach**2 * ratio), figures.mean**2]
    )
    interval = figures.interval
    assert sorted(roots.real) == pytest.approx([interval.low, interval.high], abs=1e-6)


@given(st.lists(CALLS | BINARY, min_size=1, max_size=30), SHARES, st.integers(0, 500))
def test_the_interval_is_within_0_and_1_and_around_the_mean(
    labelled: list[LabelledCall], judge: float, rest: int
) -> None:
    """It has a width unless all calls are labelled, and does not depend on the order."""
    figures = corrected(judge, len(labelled) + rest, labelled)
    again = corrected(judge, len(labelled) + rest, labelled[::-1])
    assert again.mean == pytest.approx(figures.mean)
    assert 0 <= figures.weight <= 1
    assert len(labelled) <= figures.labels_to_halve <= figures.calls
    low, high = figures.interval.low, figures.interval.high
    assert 0 <= low <= figures.mean + 1e-12
    assert figures.mean - 1e-12 <= high <= 1
    assert (low < high) == bool(rest)


def test_equal_labels_tell_no_certainty() -> None:
    """50 of 50 supported, of 1,000 calls: with t(49) = 2.0096, n / (n + t² · .95), and 1."""
    labelled = [LabelledCall(float(place % 2), 1.0, place) for place in range(50)]
    interval = corrected(0.5, 1_000, labelled).interval
    assert interval.high == 1
    assert interval.low == pytest.approx(50 / (50 + 2.00958**2 * 0.95), abs=1e-5)


def test_a_judge_that_was_always_right_is_not_believed_without_end() -> None:
    """No label differs from the judge's: the interval is that of 50 labels around its mean."""
    labelled = [LabelledCall(float(place < 40), float(place < 40), place) for place in range(50)]
    figures = corrected(0.7, 1_000, labelled)
    assert figures.mean == pytest.approx(0.7)
    assert figures.interval.high - figures.interval.low > 0.2


def test_a_judge_that_tells_nothing_leaves_the_labels() -> None:
    """Its value is the same for every call: the weight is 0, the mean that of the labels."""
    labelled = [LabelledCall(0.9, float(place % 5 > 0), place) for place in range(50)]
    figures = corrected(0.9, 1_000, labelled)
    assert (figures.mean, figures.weight) == (0.8, 0.0)


def test_a_good_judge_narrows_the_interval() -> None:
    """It says the same as people of 90 of 100 calls, and then counts much and adds much."""
    labelled = [
        LabelledCall(float((place % 3 > 0) != (place % 10 == 0)), float(place % 3 > 0), place)
        for place in range(100)
    ]
    unaided = [call._replace(judge=0.0) for call in labelled]
    helped, alone = (
        corrected(judge, 10_000, calls).interval
        for judge, calls in ((0.6, labelled), (0.0, unaided))
    )
    assert helped.high - helped.low < 0.7 * (alone.high - alone.low)


def test_calls_of_a_conversation_count_as_one() -> None:
    """Each conversation's ten calls are alike: 50 calls tell as much as 5."""
    labelled = [LabelledCall(0.0, float(place < 30), place // 10) for place in range(50)]
    few = [LabelledCall(0.0, float(place < 3), place) for place in range(5)]
    assert corrected(0.0, 10**9, labelled).interval.low == pytest.approx(
        corrected(0.0, 10**9, few).interval.low, abs=1e-6
    )


def test_one_name_for_all_calls_is_not_a_conversation() -> None:
    """It would leave nothing to learn a spread from."""
    apart = [LabelledCall(0.0, float(place % 3 > 0), place) for place in range(30)]
    named = [call._replace(conversation="run") for call in apart]
    assert corrected(0.0, 100, named) == corrected(0.0, 100, apart)


def test_all_calls_labelled_leave_no_doubt() -> None:
    """Of these calls, nothing is left to be known."""
    labelled = [LabelledCall(1.0, float(place < 8), place) for place in range(10)]
    figures = corrected(1.0, 10, labelled)
    assert figures.interval == Interval(0.8, 0.8, "all calls labelled")
    assert figures.labels_to_halve == 10


@pytest.mark.parametrize("calls", [200, 100_000])
def test_so_many_labels_halve_the_interval(calls: int) -> None:
    """The labels that are named, of the same kind, give half the width."""

    def labelled(count: int) -> list[LabelledCall]:
        return [LabelledCall(0.0, float(place % 2), place) for place in range(count)]

    before = corrected(0.0, calls, labelled(50))
    after = corrected(0.0, calls, labelled(before.labels_to_halve))
    widths = [each.interval.high - each.interval.low for each in (before, after)]
    assert widths[1] == pytest.approx(widths[0] / 2, rel=0.06)


def test_intervals_cover_what_they_should() -> None:
    """Of 92 % adherent answers that a strict judge has at 63 %: 93 to 98 % of 400 draws of 50."""
    generator = random.Random(5)
    population = []
    for place in range(300):
        people = float(place % 12 > 0)
        judge = float(people and generator.random() < 0.67)
        population.append(LabelledCall(judge, people, place))
    truth, judge = fmean(call.people for call in population), fmean(call[0] for call in population)
    drawn = (generator.sample(population, 50) for _ in range(400))
    intervals = [corrected(judge, 300, labelled).interval for labelled in drawn]
    covered = sum(interval.low <= truth <= interval.high for interval in intervals) / 400
    assert 0.93 <= covered <= 0.98
