"""Maps from scores to gold with a handful of parameters: Platt's, and pooled adjacent violators.

All sums are over rows sorted by score or by `fsum`, so that the order of rows does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import exp, fsum, log1p
from typing import NamedTuple

from rag_eval_integrations.judges.calibration import MOST_KNOTS, log_odds

Row = tuple[float, float]
"""A score and its gold value, both in [0, 1]."""
Knot = tuple[float, float]

RIDGE = 1.0
"""Strength with which a Platt map is held near the identity, worth about one row of doubt."""
_DIGITS = 6
_STEPS = 50
_CLOSE = 1e-10


def platt(rows: Sequence[Row], *, ridge: float = RIDGE) -> tuple[float, float]:
    """Fit P(gold) = σ(intercept + slope · log-odds of the score) (J. Platt, 1999).

    Gold may be a share: the cross-entropy is minimised, plus ridge/2 · ((slope - 1)² + intercept²),
    so that no rows give the identity and separated rows a finite slope.

    Args:
        rows: scores and gold values.
        ridge: 0 or more; 0 has no finite solution where a score separates gold's classes.

    Returns:
        Slope, from 0, and intercept.
    """
    odds = [(log_odds(score), gold) for score, gold in rows]
    slope, intercept = _newton(odds, ridge, 1.0, free=True)
    if slope < 0:  # a convex function has its constrained minimum at the border
        slope, intercept = _newton(odds, ridge, 0.0, free=False)
    return round(slope, _DIGITS), round(intercept, _DIGITS)


def _newton(odds: Sequence[Row], ridge: float, slope: float, *, free: bool) -> tuple[float, float]:
    """Minimise by Newton's method with halved steps; the slope stays fixed unless it is `free`."""
    intercept = 0.0
    loss = _loss(odds, ridge, slope, intercept)
    for _ in range(_STEPS):
        found = [(at, gold, _sigmoid(intercept + slope * at)) for at, gold in odds]
        down = fsum([p - gold for _, gold, p in found]) + ridge * intercept
        weight = fsum([p * (1 - p) for _, _, p in found]) + ridge
        along = fsum([at * (p - gold) for at, gold, p in found]) + ridge * (slope - 1)
        mixed = fsum([at * p * (1 - p) for at, _, p in found])
        square = fsum([at * at * p * (1 - p) for at, _, p in found]) + ridge
        if free:
            size = weight * square - mixed * mixed
            if size <= 0:  # one score alone says nothing of a slope
                break
            step = (weight * along - mixed * down) / size, (square * down - mixed * along) / size
        else:
            step = 0.0, down / weight if weight else 0.0
        if max(map(abs, step)) < _CLOSE:
            break
        scale = 1.0
        while scale > _CLOSE:
            tried = slope - scale * step[0], intercept - scale * step[1]
            after = _loss(odds, ridge, *tried)
            if after <= loss:
                break
            scale /= 2
        else:
            break
        (slope, intercept), loss = tried, after
    return slope, intercept


def _loss(odds: Sequence[Row], ridge: float, slope: float, intercept: float) -> float:
    logits = [(intercept + slope * at, gold) for at, gold in odds]
    entropy = fsum([_softplus(z) - gold * z for z, gold in logits])
    return entropy + ridge / 2 * ((slope - 1) ** 2 + intercept**2)


def _softplus(z: float) -> float:
    return max(z, 0.0) + log1p(exp(-abs(z)))


def _sigmoid(z: float) -> float:
    if z < 0:
        power = exp(z)
        return power / (1 + power)
    return 1 / (1 + exp(-z))


# --- Isotonic regression


class Block(NamedTuple):
    """Neighbouring rows that share one level."""

    n: int
    low: float
    """Least score."""
    high: float
    """Greatest score."""
    scores: float
    """Sum of the scores."""
    gold: float
    """Sum of the gold values."""

    @property
    def level(self) -> float:
        """Mean of the gold values."""
        return self.gold / self.n


def isotonic(rows: Sequence[Row]) -> list[Block]:
    """Pool adjacent violators: the ascending levels closest to gold in squares.

    Rows of one score share a block. (Ayer, Brunk, Ewing, Reid and Silverman, 1955.)

    Returns:
        Blocks in ascending order of their scores, with strictly ascending levels.
    """
    blocks: list[Block] = []
    for score, group in groupby(sorted(rows), lambda row: row[0]):
        gold = [value for _, value in group]
        block = Block(len(gold), score, score, score * len(gold), fsum(gold))
        while blocks and blocks[-1].level >= block.level:
            block = _joined(blocks.pop(), block)
        blocks.append(block)
    return blocks


def _joined(one: Block, other: Block) -> Block:
    return Block(
        one.n + other.n, one.low, other.high, one.scores + other.scores, one.gold + other.gold
    )


def coarsened(blocks: Sequence[Block], most: int = MOST_KNOTS) -> list[Block]:
    """Join the neighbours that differ least, weighted by their rows, until `most` are left."""
    left = list(blocks)
    while len(left) > most:
        at = min(range(len(left) - 1), key=lambda i: (_loss_of_joining(left[i], left[i + 1]), i))
        left[at : at + 2] = [_joined(left[at], left[at + 1])]
    return left


def _loss_of_joining(one: Block, other: Block) -> float:
    """Return by how much the sum of squares grows."""
    return one.n * other.n / (one.n + other.n) * (one.level - other.level) ** 2


def knots_of(blocks: Sequence[Block]) -> tuple[Knot, ...]:
    """Return the mean score and the level of each block, as the knots of a line."""
    knots: list[Knot] = []
    for block in blocks:
        score = min(1.0, max(0.0, round(block.scores / block.n, _DIGITS)))
        level = min(1.0, max(0.0, round(block.level, _DIGITS)))
        if not knots or score > knots[-1][0]:
            knots.append((score, level))
    return tuple(knots)
