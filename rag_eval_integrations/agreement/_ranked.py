"""Rank statistics of many rows by numpy, where it is installed; exact, as without it.

Ranks and counts are whole or half numbers, which floats hold exactly. All else is either the same
operations on the same numbers in the same order, or a sum by `math.fsum`, which has no order. What
each function computes is told at its namesake in `_statistics`.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain
from operator import methodcaller
from typing import Any, NamedTuple

from rag_eval_integrations.agreement._summing import numpy_for

_STEP = 50_000
"""Numbers that are Python's at one time; as such they take four times the memory."""
_FEW_LEVELS = 64
"""Up to so many levels, a pass for each takes less time than merging."""


def exact_sum(values: Any) -> float:
    """Sum an array as `math.fsum` does."""
    steps = range(0, len(values), _STEP)
    return math.fsum(chain.from_iterable(values[at : at + _STEP].tolist() for at in steps))


class Column(NamedTuple):
    """A column in ascending order, and its groups of equal values."""

    order: Any
    """Rows in ascending order of their values; equal ones in the order of the rows."""
    starts: Any
    """Of each group, the place of its first row in the order."""
    sizes: Any
    level: Any
    """Of each row, the number of its group."""


class Ranked:
    """Two columns of numbers with their orders, which all rank statistics share."""

    def __init__(self, numpy: Any, xs: Sequence[float], ys: Sequence[float]) -> None:
        self._numpy = numpy
        self._n = len(xs)
        self._x, self._y = (self._column(self.array(one)) for one in (xs, ys))

    @classmethod
    def of(cls, xs: Sequence[float], ys: Sequence[float]) -> Ranked | None:
        """Sort two columns; None where plain Python is as good, or all there is."""
        numpy = numpy_for(len(xs))
        return None if numpy is None else cls(numpy, xs, ys)

    def array(self, values: Sequence[float]) -> Any:
        """Return a column as an array."""
        return self._numpy.asarray(values, "f8")

    def _column(self, values: Any) -> Column:
        numpy = self._numpy
        order = numpy.argsort(values, kind="stable")
        ascending = values[order]
        first = numpy.concatenate(([True], ascending[1:] != ascending[:-1]))
        starts = numpy.flatnonzero(first)
        sizes = numpy.diff(numpy.append(starts, self._n))
        level = numpy.empty(self._n, "i8")
        level[order] = numpy.cumsum(first) - 1
        return Column(order, starts, sizes, level)

    def spearman(self) -> float | None:
        """Compute Spearman's correlation: Pearson's of the midranks, whose mean is known."""
        x, y = ((one.starts + (one.sizes - self._n) / 2)[one.level] for one in (self._x, self._y))
        return pearson(x, y, constant=self.constant)

    @property
    def constant(self) -> bool:
        """Whether all values of a column are equal."""
        return min(len(self._x.starts), len(self._y.starts)) < 2

    def concordance(self) -> Any:
        """Count for each row the rows concordant with it, less those discordant with it."""
        numpy, n, x, y = self._numpy, self._n, self._x, self._y
        lower = x.starts[x.level]
        below, same_y = y.starts[y.level], y.sizes[y.level]
        # By x, and then downwards by y: of the rows before a row, those lower in y are lower in x.
        order = numpy.lexsort((-y.level, x.level))
        less = numpy.empty(n, "i8")
        less[order] = self._lower_before(y.level[order])
        pairs = x.level * len(y.starts) + y.level
        tied_less, tied_same = self._within(pairs, x)
        same, _ = self._within(y.level * len(x.starts) + x.level, y)
        more = lower - less - same
        tied_more = x.sizes[x.level] - tied_less - tied_same
        higher_less = below - less - tied_less
        higher_more = n - (below + same_y) - more - tied_more
        return less - more + higher_more - higher_less

    def _within(self, pairs: Any, of: Column) -> tuple[Any, Any]:
        """Count the rows of a row's group that are lower in the other column, and equal ones."""
        by = self._column(pairs)
        return by.starts[by.level] - of.starts[of.level], by.sizes[by.level]

    def _lower_before(self, levels: Any) -> Any:
        """Count for each place the lower levels before it."""
        numpy, most = self._numpy, int(levels.max()) + 1
        if most > _FEW_LEVELS:
            return self._lower_before_of_many(levels, most)
        found = numpy.zeros(self._n, "i8")
        for level in range(1, most):
            here = numpy.flatnonzero(levels == level)
            found[here] = numpy.cumsum(levels < level)[here]
        return found

    def _lower_before_of_many(self, levels: Any, most: int) -> Any:
        """Count them by merging ever longer stretches."""
        numpy, n = self._numpy, self._n
        places = numpy.arange(n)
        found = numpy.zeros(n, "i8")
        width = 1
        while width < n:
            stretch = places // (2 * width)
            late = (places // width) & 1
            # In each stretch by level; of equal ones, the late first: equal is not lower.
            order = numpy.argsort((stretch * most + levels) * 2 + 1 - late, kind="stable")
            early = numpy.cumsum(late[order] == 0)
            before = numpy.minimum(stretch * 2 * width, n)
            early_before = numpy.concatenate(([0], numpy.cumsum(late == 0)))[before]
            counts = numpy.empty(n, "i8")
            counts[order] = early
            found += numpy.where(late == 1, counts - early_before, 0)
            width *= 2
        return found

    def spearman_contributions(self) -> Any | None:
        """Compute the contribution of each row to Spearman's correlation; None where undefined."""
        numpy, n = self._numpy, self._n
        x, y = self._centred(self._x), self._centred(self._y)
        variance_x = exact_sum(x * x) / n
        variance_y = exact_sum(y * y) / n
        if not variance_x or not variance_y:
            return None
        covariance = exact_sum(x * y) / n
        push_xy, push_xx = self._mean_above(self._x, y), self._mean_above(self._x, x)
        push_yx, push_yy = self._mean_above(self._y, x), self._mean_above(self._y, y)
        scale = math.sqrt(variance_x * variance_y)
        d_covariance = x * y + push_xy + push_yx - 3 * covariance
        d_variance_x = x * x + 2 * push_xx - 3 * variance_x
        d_variance_y = y * y + 2 * push_yy - 3 * variance_y
        relative = d_variance_x / variance_x + d_variance_y / variance_y
        found = (d_covariance - covariance * relative / 2) / scale / n
        return numpy.ascontiguousarray(found)

    def _centred(self, of: Column) -> Any:
        return ((of.starts + (of.sizes - self._n) / 2) / self._n)[of.level]

    def _mean_above(self, of: Column, values: Any) -> Any:
        numpy = self._numpy
        ordered = values[of.order]
        here = ordered[of.starts]
        held = ordered.tolist()
        for group in numpy.flatnonzero(of.sizes > 1).tolist():
            start = int(of.starts[group])
            here[group] = math.fsum(held[start : start + int(of.sizes[group])])
        above = numpy.zeros(len(here))
        above[:-1] = numpy.add.accumulate(here[::-1])[:-1][::-1]
        return ((above + here / 2) / self._n)[of.level]

    def kendall_contributions(self, surplus: Any) -> Any | None:
        """Compute the contribution of each row to Kendall's tau-b; None where undefined."""
        n = self._n
        own_x, own_y = (n - one.sizes[one.level] for one in (self._x, self._y))
        untied_x, untied_y = int(own_x.sum()), int(own_y.sum())
        if not untied_x or not untied_y:
            return None
        scale = math.sqrt(untied_x * untied_y)
        tau = int(surplus.sum()) / scale
        d_surplus = 2 * (surplus / scale - tau / n)
        d_untied = 2 * (own_x / untied_x + own_y / untied_y - 2 / n)
        return d_surplus - tau * d_untied / 2

    def kendall(self, surplus: Any) -> float | None:
        """Compute Kendall's tau-b of the rows' `concordance`."""
        untied = 1
        for one in (self._x, self._y):
            untied *= self._n**2 - int((one.sizes * one.sizes).sum())
        twice = int(surplus.sum())
        return max(-1.0, min(1.0, twice / math.sqrt(untied))) if untied else None


def from_mean(values: Any) -> Any:
    """Subtract the mean."""
    return values - exact_sum(values) / len(values)


def pearson(x: Any, y: Any, *, constant: bool) -> float | None:
    """Compute Pearson's correlation of two columns less their means."""
    spread = 0.0 if constant else math.sqrt(exact_sum(x * x) * exact_sum(y * y))
    return max(-1.0, min(1.0, exact_sum(x * y) / spread)) if spread else None


class Auroc(NamedTuple):
    """Positives and negatives, compared pair by pair; a tie counts half."""

    value: float
    ones: Any
    """Places of the positives among the scores."""
    zeros: Any
    """Places of the negatives, in ascending order of their scores."""
    below: Any
    """For each positive, how many negatives are below it."""
    up_to: Any


def auroc_of(numpy: Any, scores: Any, positive: Any) -> Auroc | None:
    """Compute the AUROC of an array of scores; None unless there are both classes."""
    ones, zeros = numpy.flatnonzero(positive), numpy.flatnonzero(positive == 0)
    if not len(ones) or not len(zeros):
        return None
    zeros = zeros[numpy.argsort(scores[zeros], kind="stable")]
    levels, found = scores[zeros], scores[ones]
    below = numpy.searchsorted(levels, found)
    up_to = numpy.searchsorted(levels, found, "right")
    won = int(below.sum()) + int(up_to.sum())
    return Auroc(won / (2 * len(ones) * len(zeros)), ones, zeros, below, up_to)


class Sentences(NamedTuple):
    """Scores of several items per row, as arrays."""

    scores: Any
    positive: Any
    """1 or 0."""
    owners: Any
    """The row of each item."""

    def of(self, one: int) -> Iterator[tuple[Any, Any]]:
        """Yield scores and owners of the positives, or of the negatives, some at a time."""
        for at in range(0, len(self.owners), _STEP):
            taken = self.positive[at : at + _STEP] == one
            yield self.scores[at : at + _STEP][taken], self.owners[at : at + _STEP][taken]


def clustered_auroc(
    numpy: Any, items: Sentences, size: int, steps: int | None
) -> tuple[float | None, array[float]]:
    """Compute the AUROC over the items of `size` rows, and the contribution of each row to it.

    Args:
        numpy: the module.
        items: at least one.
        size: number of rows.
        steps: the greatest score, if all are whole numbers up to it: then items are counted by
            score, and not sorted. None for any other scores.

    Returns:
        The value, None unless there are both classes, and an empty column without one.
    """
    n_ones = int(items.positive.sum())
    n_zeros = len(items.positive) - n_ones
    if not n_ones or not n_zeros:
        return None, array("d")
    result = array("d", bytes(8 * size))
    view = numpy.frombuffer(result, "f8")
    below = _Below(numpy, items, 0, steps)
    won = sum([int(below.twice(scores).sum(dtype="i8")) for scores, _ in items.of(1)])
    shares = (below.twice(scores) / (2 * n_zeros) for scores, _ in items.of(1))
    mean = math.fsum(chain.from_iterable(map(methodcaller("tolist"), shares))) / n_ones
    for scores, owners in items.of(1):
        numpy.add.at(view, owners, (below.twice(scores) / (2 * n_zeros) - mean) / n_ones)
    below = _Below(numpy, items, 1, steps)
    for scores, owners in items.of(0):
        numpy.add.at(view, owners, (1 - below.twice(scores) / (2 * n_ones) - mean) / n_zeros)
    return won / (2 * n_ones * n_zeros), result


class _Below:
    """Counts for each score twice the positives, or the negatives, below it; equal ones once."""

    def __init__(self, numpy: Any, items: Sentences, one: int, steps: int | None) -> None:
        self._numpy, self._steps = numpy, steps
        if steps is None:
            self._levels = numpy.sort(items.scores[items.positive == one])
            return
        small = "i4" if len(items.owners) < 1 << 30 else "i8"
        counts = numpy.zeros(steps + 2, small)
        for scores, _ in items.of(one):
            numpy.add.at(counts, scores + 1, 1)
        self._levels = numpy.cumsum(counts, out=counts, dtype=small)

    def twice(self, scores: Any) -> Any:
        levels, numpy = self._levels, self._numpy
        if self._steps is not None:
            return levels[scores] + levels[scores + 1]
        return numpy.searchsorted(levels, scores) + numpy.searchsorted(levels, scores, "right")
