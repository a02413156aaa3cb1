"""Means over sampled traffic: weights, intervals, and what is never mixed."""

from __future__ import annotations

import random

import pytest

from rag_eval_integrations.background.counters import Aggregate
from rag_eval_integrations.records import By, Evaluation, JudgeInfo, Score, Sentences


def made(value: float | None, *, name: str = "s", by: By | None = None, method: str = "labels") -> Evaluation:  # fmt: skip
    by = By(judge="j") if by is None else by
    if value is None:
        score = Score(name=name, status="unscored", unscored="refusal", by=by)
    else:
        score = Score(name=name, status="scored", value=value, by=by, method=method)
    return Evaluation(
        id="1", row_key="k", question="q", response="r", scores={name: score}, labels=None,
        sentences=Sentences(), judge=JudgeInfo(name="j"),
    )  # fmt: skip


def test_the_mean_is_weighted_by_inverse_probability() -> None:
    """By hand: 0.2 twice at 1/2 and 0.5 twice at 1/8: (4*0.2 + 16*0.5) / 20 = 0.44.

    Its variance is (8*0.24² + 128*0.06²) / 20² * 4/3 = 0.003072, of effective size 20²/136 = 2.941:
    t(1.941) = 4.430, half width 4.430*0.05543 = 0.2455.
    """
    aggregate = Aggregate()
    for value, probability in ((0.2, 0.5), (0.5, 0.125), (0.2, 0.5), (0.5, 0.125)):
        aggregate.add(made(value), probability)
    aggregate.add(made(None), 0.5)

    summary = aggregate.summary()
    mean = summary.mean("s")

    assert mean is not None
    assert mean.mean == pytest.approx(0.44)
    assert mean.ci95 == pytest.approx((0.1945, 0.6855), abs=1e-4)
    assert (mean.scored, mean.total) == (4, 5)
    assert summary.unscored == {"s": {"refusal": 1}}
    assert summary.mean("other") is None


def test_the_weighted_mean_is_unbiased_and_the_interval_covers() -> None:
    """Bad calls (0) are sampled always, good ones (1) rarely: the plain mean would be far off."""
    chance = random.Random(7)
    covered, total = 0, 0.0
    for _ in range(100):
        aggregate = Aggregate()
        for _ in range(80):
            value = float(chance.random() < 0.7)
            probability = 0.2 if value else 0.9
            if chance.random() < probability:
                aggregate.add(made(value), probability)
        mean = aggregate.summary().mean("s")
        assert mean is not None
        assert mean.ci95 is not None
        total += mean.mean
        covered += mean.ci95[0] <= 0.7 <= mean.ci95[1]

    assert total / 100 == pytest.approx(0.7, abs=0.02)
    assert covered / 100 > 0.88


@pytest.mark.parametrize(
    ("by", "method"),
    [
        (By(judge="other"), "labels"),
        (By(judge="j", formulas="ragbench"), "labels"),
        (By(judge="j", prompt_version="2"), "labels"),
        (By(judge="j"), "expected"),
    ],
)
def test_scores_made_differently_are_not_mixed(by: By, method: str) -> None:
    """Asking for one mean over both raises; each has its own."""
    aggregate = Aggregate()
    aggregate.add(made(1.0), 1.0)
    aggregate.add(made(0.0, by=by, method=method), 1.0)

    summary = aggregate.summary()

    assert [mean.mean for mean in summary.means] == [1.0, 0.0]
    with pytest.raises(ValueError, match="2 different"):
        summary.mean("s")


def test_splitting_does_not_keep_scores_apart() -> None:
    """A call labelled in two windows is worth as much as one labelled in one."""
    aggregate = Aggregate()
    aggregate.add(made(1.0, by=By(judge="j", windows=1)), 1.0)
    aggregate.add(made(0.0, by=By(judge="j", windows=2, splitter="x")), 1.0)

    mean = aggregate.summary().mean("s")

    assert mean is not None
    assert mean.mean == 0.5
