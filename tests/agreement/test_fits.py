"""Pooled adjacent violators and Platt's map: what holds for any rows, and naive second versions."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.agreement._fits import (
    RIDGE,
    Row,
    coarsened,
    isotonic,
    knots_of,
    platt,
)
from rag_eval_integrations.judges.calibration import MOST_KNOTS, ScoreMap, log_odds

UNIT = st.floats(0, 1)
COARSE = st.integers(0, 8).map(lambda number: number / 8)
ROWS = st.lists(
    st.tuples(st.one_of(UNIT, COARSE), st.one_of(UNIT, st.sampled_from([0.0, 1.0]))),
    min_size=1,
    max_size=40,
)


def naive_levels(rows: list[Row]) -> list[float]:
    """Levels by the min-max formula: the largest, over starts, of the least mean to any end."""
    scores = sorted({score for score, _ in rows})
    gold = [[value for score, value in rows if score == one] for one in scores]

    def mean(start: int, stop: int) -> float:
        values = [value for group in gold[start : stop + 1] for value in group]
        return math.fsum(values) / len(values)

    return [
        max(min(mean(start, stop) for stop in range(at, len(scores))) for start in range(at + 1))
        for at in range(len(scores))
    ]


@given(ROWS)
def test_pooling_gives_the_levels_of_the_definition(rows: list[Row]) -> None:
    """The min-max formula is what isotonic regression is; both agree at every score."""
    blocks = isotonic(rows)
    scores = sorted({score for score, _ in rows})
    levels = [next(b.level for b in blocks if b.low <= score <= b.high) for score in scores]

    assert levels == pytest.approx(naive_levels(rows), abs=1e-12)
    assert sum(block.n for block in blocks) == len(rows)


@given(ROWS, st.randoms(use_true_random=False))
def test_pooling_does_not_depend_on_order_and_is_idempotent(
    rows: list[Row], order: random.Random
) -> None:
    """Shuffled rows give the same blocks to the last bit; pooled levels are not pooled further."""
    shuffled = list(rows)
    order.shuffle(shuffled)
    blocks = isotonic(rows)

    assert isotonic(shuffled) == blocks
    again = isotonic([(block.low, block.level) for block in blocks])
    assert [block.level for block in again] == [block.level for block in blocks]


@given(ROWS, st.lists(UNIT, min_size=2, max_size=20))
def test_an_isotonic_map_ascends_within_the_unit_interval(
    rows: list[Row], scores: list[float]
) -> None:
    """At most a handful of knots; between and beyond them a larger score is never mapped lower."""
    knots = knots_of(coarsened(isotonic(rows)))
    fit = ScoreMap(method="isotonic", estimator="labels", knots=knots, n=len(rows), questions=1)
    mapped = [fit(score) for score in sorted(scores)]

    assert 1 <= len(knots) <= MOST_KNOTS
    assert mapped == sorted(mapped)
    assert all(0 <= one <= 1 for one in mapped)
    assert all(fit(x) == pytest.approx(y, abs=1e-6) for x, y in knots)


@given(ROWS, st.integers(1, 5))
def test_coarser_blocks_keep_the_rows_and_the_order(rows: list[Row], most: int) -> None:
    """Joining neighbours changes neither the number of rows nor their sum of gold."""
    fine = isotonic(rows)
    coarse = coarsened(fine, most)

    assert len(coarse) == min(most, len(fine))
    assert sum(block.n for block in coarse) == len(rows)
    assert math.fsum(b.gold for b in coarse) == pytest.approx(math.fsum(g for _, g in rows))
    levels = [block.level for block in coarse]
    assert levels == sorted(levels)


def naive_loss(rows: list[Row], slope: float, intercept: float) -> float:
    total = RIDGE / 2 * ((slope - 1) ** 2 + intercept**2)
    for score, gold in rows:
        p = 1 / (1 + math.exp(-(intercept + slope * log_odds(score))))
        total -= gold * math.log(p) + (1 - gold) * math.log(1 - p)
    return total


@given(ROWS)
def test_a_platt_map_is_where_no_step_lowers_the_loss(rows: list[Row]) -> None:
    """The loss is written out anew; the slope is never negative, which would turn ranks over."""
    slope, intercept = platt(rows)
    least = naive_loss(rows, slope, intercept)

    assert slope >= 0
    for step in (1e-3, 1e-2, 0.3):
        for across, up in ((step, 0), (-step, 0), (0, step), (0, -step), (step, step)):
            if slope + across >= 0:
                assert naive_loss(rows, slope + across, intercept + up) >= least - 1e-7


@given(ROWS, st.randoms(use_true_random=False), st.lists(UNIT, min_size=2, max_size=20))
def test_a_platt_map_ascends_whatever_the_order(
    rows: list[Row], order: random.Random, scores: list[float]
) -> None:
    """In [0, 1], ascending, and the same for shuffled rows."""
    shuffled = list(rows)
    order.shuffle(shuffled)
    slope, intercept = platt(rows)
    fit = ScoreMap(
        method="platt", estimator="labels", slope=slope, intercept=intercept, n=1, questions=1
    )
    mapped = [fit(score) for score in sorted(scores)]

    assert platt(shuffled) == pytest.approx((slope, intercept), abs=2e-6)
    assert mapped == sorted(mapped)
    assert all(0 <= one <= 1 for one in mapped)


def test_no_rows_give_the_identity_and_many_the_truth() -> None:
    """The ridge decides without rows, and nothing with thousands."""
    chance = random.Random(5)
    rows = []
    for _ in range(4_000):
        score = chance.uniform(0.02, 0.98)
        p = 1 / (1 + math.exp(-(0.5 * log_odds(score) - 0.7)))
        rows.append((score, float(chance.random() < p)))

    assert platt([]) == (1.0, 0.0)
    assert platt(rows) == pytest.approx((0.5, -0.7), abs=0.12)
    assert platt([(0.9, 0.0), (0.1, 1.0)] * 20)[0] == 0.0
