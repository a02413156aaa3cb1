"""Statistics of the agreement of two columns: the value on all rows, and the values on draws.

An undefined statistic, such as an AUROC without positives or a correlation with a constant, is
None, and NaN on a draw, never 0. Values are exact counts, or sums by `math.fsum`, so that they do
not depend on the order of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Array: TypeAlias = Any
"""An array of numpy, whose types are not checked."""


@dataclass(frozen=True)
class Statistic:
    """A figure that can be computed again on draws of rows."""

    value: float | None
    """The figure on all rows; None where it is undefined."""
    rows: int
    """Number of rows that the figure rests on."""
    on_draws: Callable[[Array], Array]
    """Computes the figure on each draw; NaN where it is undefined. It is given how often each draw
    has each row: one line per draw, one column per row of the group."""


class Places(NamedTuple):
    """The row of a group that each observation belongs to.

    Scores with gaps, sentences and whole rows are thus all resampled by the same draws.
    """

    rows: Array
    size: int
    """Number of rows of the group."""

    @classmethod
    def of_groups(cls, sizes: Sequence[int]) -> Places:
        """Return the places of observations listed row by row, `sizes[i]` of them in row i."""
        return cls(np.repeat(np.arange(len(sizes)), np.array(sizes, int)), len(sizes))

    def spread(self, values: Array | None = None) -> Array:
        """Sum a column by row; without one, count the observations."""
        return np.bincount(self.rows, values, self.size)


def exact_sum(values: Array) -> float:
    """Sum an array without a rounding error."""
    return math.fsum(values.tolist())


def _of_sums(
    value: float | None, rows: int, columns: Sequence[Array], formula: Callable[..., Array]
) -> Statistic:
    """Make a statistic from a formula of the columns' sums over rows."""
    stacked = np.array(columns, "f8")
    # Not by `@`, whose library starts threads that cost more than they save.
    return Statistic(
        value, rows, lambda weights: formula(*np.einsum("dr,cr->cd", weights, stacked))
    )


def rmse(xs: Array, ys: Array, places: Places) -> Statistic:
    """Compute the root of the mean squared difference.

    In [0, ∞), 0 is best; at most 1 where both columns lie in [0, 1]. None for no rows.
    """
    n, squares = len(xs), (xs - ys) * (xs - ys)
    value = math.sqrt(exact_sum(squares) / n) if n else None
    columns = places.spread(squares), places.spread()
    return _of_sums(value, n, columns, lambda total, drawn: np.sqrt(total / drawn))


def mean(values: Array, places: Places) -> Statistic:
    """Compute the mean; None for no rows."""
    n = len(values)
    columns = places.spread(values), places.spread()
    return _of_sums(exact_sum(values) / n if n else None, n, columns, lambda x, drawn: x / drawn)


# --- Yes/no columns


_OF_CELLS: dict[str, Callable[..., Array]] = {
    # Share of the predicted yes that is right, in [0, 1].
    "precision": lambda tp, fp, fn, tn: tp / (tp + fp),
    # Share of the gold yes that was predicted, in [0, 1].
    "recall": lambda tp, fp, fn, tn: tp / (tp + fn),
    # Their harmonic mean, in [0, 1]; undefined without any yes on either side.
    "f1": lambda tp, fp, fn, tn: 2 * tp / (2 * tp + fp + fn),
    # Cohen's kappa, in [-1, 1], 0 is chance (Cohen 1960). Undefined where both columns hold the
    # same answer throughout, since chance then explains everything.
    "kappa": lambda tp, fp, fn, tn: (
        2 * (tp * tn - fp * fn) / ((tp + fp) * (fp + tn) + (tp + fn) * (fn + tn))
    ),
}


def of_cells(cells: Array, rows: int, *names: str) -> dict[str, Statistic]:
    """Compute statistics of summed counts: tp, fp, fn and tn, a line of the array each.

    All are None without rows, and where their formula divides by 0.
    """
    with np.errstate(invalid="ignore"):
        values = {name: float(_OF_CELLS[name](*cells.sum(axis=1))) for name in names}
    return {
        name: _of_sums(None if math.isnan(value) else value, rows, cells, _OF_CELLS[name])
        for name, value in values.items()
    }


def cells_of(predicted: Array, gold: Array) -> Array:
    """Mark each row of two yes/no columns as tp, fp, fn or tn, a line each."""
    pairs = (predicted & gold, predicted & ~gold, ~predicted & gold, ~predicted & ~gold)
    return np.stack(pairs).astype("f8")


# --- Ranks


class _Ranks(NamedTuple):
    """A column by rank; equal values share a level."""

    level: Array
    """Of each row, from 0."""
    below: Array
    """For each row, how many rows have a lower value."""
    same: Array
    """For each row, how many rows have its value, with itself."""

    @classmethod
    def of(cls, values: Array) -> _Ranks:
        """Rank values; equal values share a level."""
        _, level, counts = np.unique(values, return_inverse=True, return_counts=True)
        return cls(level, (np.cumsum(counts) - counts)[level], counts[level])

    @property
    def centred(self) -> Array:
        """The midranks, less their mean."""
        return self.below + (self.same - len(self.level)) / 2


def correlations(xs: Array, ys: Array, places: Places) -> dict[str, Statistic]:
    """Compute Pearson's, Spearman's and Kendall's correlation of one pair of numbers per row.

    In [-1, 1], 1 is best, 0 is none. None for fewer than two rows or a constant column.
    """
    x, y = _Ranks.of(xs), _Ranks.of(ys)
    return {
        "pearson": _pearson_of(xs, ys, places),
        "spearman": _first_order(
            _pearson(x.centred, y.centred), lambda: _spearman_shares(x, y), places
        ),
        "kendall": _kendall_of(x, y, places),
    }


def _pearson_of(xs: Array, ys: Array, places: Places) -> Statistic:
    """Return Pearson's r as a statistic of sums."""
    n = len(xs)
    # Relative to the mean, so that subtracting sums below loses little precision.
    x, y = (column - exact_sum(column) / max(1, n) for column in (xs, ys))
    columns = [places.spread(column) for column in (None, x, y, x * x, y * y, x * y)]
    # The means are rounded, and a constant column may differ from its own.
    varied = n > 1 and all(column.min() < column.max() for column in (xs, ys))
    return _of_sums(_pearson(x, y) if varied else None, n, columns, _pearson_of_sums)


def _pearson(x: Array, y: Array) -> float | None:
    """Correlate columns whose means are 0."""
    # One root of the product, so that a column correlates with itself by exactly 1.
    spread = math.sqrt(exact_sum(x * x) * exact_sum(y * y))
    return max(-1.0, min(1.0, exact_sum(x * y) / spread)) if spread else None


def _pearson_of_sums(n: Array, x: Array, y: Array, xx: Array, yy: Array, xy: Array) -> Array:
    """Compute Pearson's r of each draw from its sums; NaN without spread."""
    spread_x, spread_y = n * xx - x * x, n * yy - y * y
    # The variance of a draw of equal values is only rounding error.
    varied = (spread_x > 1e-10 * n * xx) & (spread_y > 1e-10 * n * yy)
    pearson = (n * xy - x * y) / np.sqrt(np.where(varied, spread_x * spread_y, np.nan))
    return np.clip(pearson, -1, 1)


def _first_order(
    value: float | None, shares: Callable[[], Array], places: Places, low: float = -1.0
) -> Statistic:
    """Make a statistic in [low, 1] whose draws are estimated from each observation's influence.

    The influences (`shares`; Hampel, 1974) are summed on Fisher's z scale (1921), so that
    an interval near an end of the range is asymmetric and stays within the range.
    """
    rows = int(np.count_nonzero(places.spread()))
    stretch = 2 / (1 - low)
    centred = 0.0 if value is None else 1 - (1 - value) * stretch
    room = 1 - centred * centred
    if value is None or room < 1e-12:  # at an end of the range, no row changes the value
        return Statistic(value, rows, lambda weights: np.full(len(weights), value))
    column = places.spread(shares())

    def on_draws(weights: Array) -> Array:
        """Estimate the statistic on each draw from the rows' influences."""
        moved = math.atanh(centred) + np.einsum("dr,r->d", weights, column) * stretch / room
        return 1 - (1 - np.tanh(moved)) / stretch

    return Statistic(value, rows, on_draws)


def _spearman_shares(x: _Ranks, y: _Ranks) -> Array:
    """Return how much each row changes Spearman's rho (its influence)."""
    n = len(x.level)
    u, v = x.centred / n, y.centred / n
    variance_u, variance_v, covariance = (u * u).mean(), (v * v).mean(), (u * v).mean()
    # A row changes the covariance by its own product, and by raising the ranks of the rows above it
    # in x and in y. It changes the variances in the same way.
    d_covariance = u * v + _mean_above(x, v) + _mean_above(y, u) - 3 * covariance
    relative = (u * u + 2 * _mean_above(x, u)) / variance_u - 3
    relative += (v * v + 2 * _mean_above(y, v)) / variance_v - 3
    return (d_covariance - covariance * relative / 2) / math.sqrt(variance_u * variance_v) / n


def _mean_above(ranks: _Ranks, values: Array) -> Array:
    """Sum values for each row over the higher levels and half of its own, divided by n."""
    sums = np.bincount(ranks.level, values)
    return (sums.sum() - np.cumsum(sums) + sums / 2)[ranks.level] / len(values)


def _kendall_of(x: _Ranks, y: _Ranks, places: Places) -> Statistic:
    """Compute Kendall's tau-b: (C - D) / √((P - Tx)(P - Ty)) (Kendall 1945).

    P pairs of rows, of which C are concordant, D discordant, and Tx and Ty tied in a column.
    """
    n = len(x.level)
    untied_x, untied_y = (n * n - int(ranks.same.sum()) for ranks in (x, y))
    if not untied_x or not untied_y:
        return _first_order(None, lambda: np.zeros(n), places)
    surplus = _concordance(x.level, y.level)
    scale = math.sqrt(untied_x * untied_y)
    tau = int(surplus.sum()) / scale  # each pair is seen from both of its ends

    def shares() -> Array:
        """Return how much each row changes tau (its influence)."""
        untied = (n - x.same) / untied_x + (n - y.same) / untied_y - 2 / n
        return 2 * (surplus / scale - tau / n) - tau * untied

    return _first_order(max(-1.0, min(1.0, tau)), shares, places)


def _concordance(x: Array, y: Array) -> Array:
    """Count for each row the rows concordant with it, less those discordant with it."""
    return _lower(x, y) + _lower(-x, -y) - _lower(x, -y) - _lower(-x, y)


def _lower(x: Array, y: Array) -> Array:
    """Count for each row the rows that are lower in both columns, in O(n log² n)."""
    order = np.lexsort((-y, x))  # of the rows before a row, those lower in y are lower in x
    levels, span = y[order] - y.min(), int(np.ptp(y)) + 1
    counts = np.zeros(len(x), "i8")
    for bit in range(len(x).bit_length()):
        # Every row of an odd block is compared with the rows of the block before it.
        block = np.arange(len(x)) >> bit
        known, before = np.sort(block * span + levels), (block - 1) * span
        lower = np.searchsorted(known, before + levels) - np.searchsorted(known, before)
        counts[order] += np.where(block & 1, lower, 0)
    return counts


class _Wins(NamedTuple):
    """Positives and negatives, compared pair by pair; a tie counts half."""

    ones: Array
    """Places of the positives."""
    zeros: Array
    """Places of the negatives, in ascending order of their scores."""
    below: Array
    """For each positive, how many negatives are below it."""
    up_to: Array

    @classmethod
    def of(cls, scores: Array, positive: Array) -> _Wins:
        """Count for each positive row the negative ones that score below it, or not above."""
        ones, zeros = np.flatnonzero(positive), np.flatnonzero(~positive)
        zeros = zeros[np.argsort(scores[zeros], kind="stable")]
        sides = (np.searchsorted(scores[zeros], scores[ones], side) for side in ("left", "right"))
        return cls(ones, zeros, *sides)

    @property
    def auroc(self) -> float | None:
        """The share of pairs in which the positive is above: Mann-Whitney's U over their number."""
        pairs = len(self.ones) * len(self.zeros)
        # In halves, so that the count is exact.
        return (int(self.below.sum()) + int(self.up_to.sum())) / (2 * pairs) if pairs else None


def auroc(scores: Array, positive: Array, places: Places) -> Statistic:
    """Compute the probability that a random positive scores above a random negative.

    A tie counts half. In [0, 1], 1 is best, .5 is chance, and also the value of a constant score.
    None unless there is at least one positive and one negative (Hanley and McNeil 1982).
    """
    wins = _Wins.of(scores, positive)
    ones, zeros = places.rows[wins.ones], places.rows[wins.zeros]

    def on_draws(weights: Array) -> Array:
        """Compute the AUROC of each draw from the weights of the rows."""
        drawn = weights[:, ones]
        cumulated = np.zeros((len(weights), len(zeros) + 1))
        np.cumsum(weights[:, zeros], axis=1, out=cumulated[:, 1:])
        twice = (drawn * (cumulated[:, wins.below] + cumulated[:, wins.up_to])).sum(axis=1)
        return twice / (2 * drawn.sum(axis=1) * cumulated[:, -1])

    return Statistic(wins.auroc, len(places.rows), on_draws)


def clustered_auroc(scores: Array, positive: Array, places: Places) -> Statistic:
    """Compute the AUROC of several scores per row (sentences), resampled by row."""
    wins = _Wins.of(scores, positive)
    value = wins.auroc

    def shares() -> Array:
        """Return how much each item changes the AUROC (its influence)."""
        of_one, of_zero = 1 / len(wins.ones), 1 / len(wins.zeros)
        ones = np.sort(scores[wins.ones])
        own = scores[wins.zeros]
        lost = np.searchsorted(ones, own) + np.searchsorted(ones, own, "right")
        shares = np.empty(len(scores))
        shares[wins.ones] = ((wins.below + wins.up_to) * of_zero / 2 - value) * of_one
        shares[wins.zeros] = (1 - lost * of_one / 2 - value) * of_zero
        return shares

    return _first_order(value, shares, places, low=0.0)
