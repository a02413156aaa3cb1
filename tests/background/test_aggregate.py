"""Means over sampled traffic: weights, intervals, and what is never mixed."""

from __future__ import annotations

import random
from typing import Any

import pytest
from runs import MAKER, call

from rag_eval_integrations.background.counters import Aggregate, WeightedMean
from rag_eval_integrations.records import Evaluation


def made(value: float | str, **more: Any) -> Evaluation:
    """With the score `s`, or why it has none."""
    return call("1", {"s": value}, **more)


def mean_of(aggregate: Aggregate) -> WeightedMean:
    """The only mean of the score `s`."""
    (mean,) = aggregate.summary().means
    return mean


def test_the_mean_is_weighted_by_inverse_probability() -> None:
    """By hand: 0.2 twice at 1/2 and 0.5 twice at 1/8: (4*0.2 + 16*0.5) / 20 = 0.44.

    Its variance is (8*0.24² + 128*0.06²) / 20² * 4/3 = 0.003072, of effective size 20²/136 = 2.941:
    t(1.941) = 4.430, half width 4.430*0.05543 = 0.2455.
    """
    aggregate = Aggregate()
    for value, probability in ((0.2, 0.5), (0.5, 0.125), (0.2, 0.5), (0.5, 0.125)):
        aggregate.add(made(value), probability)
    aggregate.add(made("refusal"), 0.5)

    summary, mean = aggregate.summary(), mean_of(aggregate)

    assert mean.mean == pytest.approx(0.44)
    assert mean.ci95 == pytest.approx((0.1945, 0.6855), abs=1e-4)
    assert (mean.scored, mean.total) == (4, 5)
    assert summary.unscored == {"s": {"refusal": 1}}
    assert summary.mean("other") is None


def test_the_weighted_mean_is_unbiased_and_the_interval_covers() -> None:
    """Bad calls (0) are sampled always, good ones (1) rarely: the plain mean would be far off."""
    chance, bad, good = random.Random(7), (made(0.0), 0.9), (made(1.0), 0.2)
    covered, total = 0, 0.0
    for _ in range(100):
        aggregate = Aggregate()
        for _ in range(80):
            evaluation, probability = good if chance.random() < 0.7 else bad
            if chance.random() < probability:
                aggregate.add(evaluation, probability)
        mean = mean_of(aggregate)
        low, high = mean.ci95 or (1.0, 0.0)
        total += mean.mean
        covered += low <= 0.7 <= high

    assert total / 100 == pytest.approx(0.7, abs=0.02)
    assert covered / 100 > 0.88


@pytest.mark.parametrize(
    "change", [{"judge": "other"}, {"formulas": "ragbench"}, {"prompt_version": "2"}, {}]
)
def test_scores_made_differently_are_not_mixed(change: dict[str, str]) -> None:
    """By another maker or by expectation: asking for one mean over both raises; each has its own."""
    aggregate, method = Aggregate(), "labels" if change else "expected"
    aggregate.add(made(1.0), 1.0)
    aggregate.add(made(0.0, by=MAKER.model_copy(update=change), method=method), 1.0)

    summary = aggregate.summary()
    assert [mean.mean for mean in summary.means] == [1.0, 0.0]
    with pytest.raises(ValueError, match="2 different"):
        summary.mean("s")


def test_splitting_does_not_keep_scores_apart() -> None:
    """A call labelled in two windows is worth as much as one labelled in one."""
    aggregate = Aggregate()
    for value, splitting in ((1.0, {"windows": 1}), (0.0, {"windows": 2, "splitter": "x"})):
        aggregate.add(made(value, by=MAKER.model_copy(update=splitting)), 1.0)

    assert mean_of(aggregate).mean == 0.5
