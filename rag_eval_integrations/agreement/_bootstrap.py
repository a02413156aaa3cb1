"""Percentile bootstrap: 95 % intervals of figures under resampling of the rows.

Rows are drawn with replacement, as many as there are. All statistics of a group are computed on the
same draws. The interval extends from the 2.5th to the 97.5th percentile (Efron and Tibshirani 1993,
ch. 13). Sentence-level statistics are resampled by row too, because the sentences of a row are not
independent. The draws depend only on the seed and the number of rows.

A figure has no interval when it rests on fewer than `MIN_ROWS` rows, when it is undefined, or when
more than 1 in 20 resamples leave it undefined (as with fewer than three rows of the rarer class).
"""

from __future__ import annotations

import math
import random
import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import accumulate
from operator import add, itemgetter, mul
from typing import Protocol, TypeVar

from rag_eval_integrations.agreement._ranked import auroc_of
from rag_eval_integrations.agreement._summing import numpy_for, summing

# --- A draw of rows, and the sums of many columns over it in one pass


Column = Sequence[float]
"""One finite number per row of the group."""


class Packed:
    """Columns of a group of `size` rows, ready to be summed together.

    A number is kept with 62 bits less those of `size` (48 for 10,000 rows), relative to the largest
    number of its column. Integers are exact; other numbers are exact to 10⁻¹⁴ of the largest.
    """

    def __init__(self, size: int) -> None:
        self._bits = 62 - size.bit_length()
        # Shifted to be positive; `totals` subtracts one shift per drawn row.
        self._shift = 1 << self._bits
        self._exponents: list[int] = []
        self._rows = [0] * size

    def add(self, columns: Sequence[Column]) -> list[int]:
        """Take up columns, which need not be kept; return the place of each among `totals`."""
        exponents = [exponent_of(column, self._bits) for column in columns]
        fixed = [
            [self._shift + round(math.ldexp(number, exponent)) for number in column]
            for column, exponent in zip(columns, exponents, strict=True)
        ]
        if fixed:
            layout = struct.Struct(f"<{len(fixed)}Q")
            before = len(self._exponents)
            added = (
                int.from_bytes(layout.pack(*row), "little") << 64 * before
                for row in zip(*fixed, strict=True)
            )
            self._rows = list(map(add, self._rows, added))
            self._exponents += exponents
        return list(range(len(self._exponents) - len(columns), len(self._exponents)))

    def totals(self, drawn: Sequence[int]) -> list[float]:
        """Sum each column over the drawn rows (as many as the group has)."""
        layout = struct.Struct(f"<{len(self._exponents)}Q")
        total = sum(itemgetter(*drawn)(self._rows))
        sums = layout.unpack(total.to_bytes(layout.size, "little"))
        shifts = self._shift * len(drawn)
        return [
            math.ldexp(value - shifts, -exponent)
            for value, exponent in zip(sums, self._exponents, strict=True)
        ]


def exponent_of(column: Column, bits: int) -> int:
    """Return the power of two that gives the largest number of a column so many bits."""
    return bits - math.frexp(max(map(abs, column), default=0.0))[1]


def counted(drawn: Sequence[int]) -> list[int]:
    """Count how often each row was drawn."""
    weights = [0] * len(drawn)
    for row in drawn:
        weights[row] += 1
    return weights


# --- Statistics that can be computed again on a draw


RESAMPLES = 400
"""Default number of resamples: the ends of an interval are the 10th lowest and the 10th highest."""
MIN_ROWS = 10
SEED = 20240707
"""Default seed; any number would do."""

Interval = tuple[float, float]
Weights = Callable[[], Sequence[int]]
Name = TypeVar("Name", bound=Hashable)


class Statistic(Protocol):
    """A figure that can be computed again on a draw of rows."""

    @property
    def value(self) -> float | None:
        """The figure on all rows; None where it is undefined."""

    @property
    def rows(self) -> int:
        """Number of rows that the figure rests on."""

    @property
    def columns(self) -> Sequence[Column]:
        """The columns whose sums the figure needs."""

    def light(self) -> Statistic:
        """Return the statistic without its columns, once their sums are known."""

    def replicate(self, totals: Sequence[float], weights: Weights) -> float | None:
        """Compute the figure on a draw; None where it is undefined.

        Args:
            totals: the sum of each column over the drawn rows.
            weights: tells how often each row was drawn.
        """


@dataclass(frozen=True)
class OfSums:
    """A statistic that is a function of sums over rows."""

    value: float | None
    rows: int
    columns: tuple[Column, ...]
    formula: Callable[..., float | None]
    """Function of one sum per column."""

    def light(self) -> OfSums:
        """Return the formula alone."""
        return replace(self, columns=())

    def replicate(self, totals: Sequence[float], weights: Weights) -> float | None:
        """Apply the formula to the sums of the drawn rows."""
        return self.formula(*totals)


@dataclass(frozen=True)
class Linear:
    """A statistic in [-1, 1] or [0, 1] to first order: its value plus the rows' contributions.

    The sum is taken on Fisher's z scale (1921), so that an interval near an end of the range is
    asymmetric and stays within the range.
    """

    value: float | None
    rows: int
    contributions: Column
    """One contribution per row; their sum is 0."""
    low: float = -1.0
    """Lower end of the range, -1 or 0; the upper end is 1."""

    @property
    def columns(self) -> Sequence[Column]:
        """The contributions."""
        return (self.contributions,)

    def light(self) -> Linear:
        """Return the value and its range alone."""
        return replace(self, contributions=())

    def replicate(self, totals: Sequence[float], weights: Weights) -> float | None:
        """Add up the contributions of the drawn rows."""
        if self.value is None:
            return None
        stretch = 2 / (1 - self.low)
        centred = 1 - (1 - self.value) * stretch
        room = 1 - centred * centred
        if room < 1e-12:  # at an end of the range, no row changes the value
            return self.value
        moved = math.atanh(centred) + totals[0] * stretch / room
        return 1 - (1 - math.tanh(moved)) / stretch


class RankedAuroc:
    """AUROC of one score per row; the rows are sorted once, so that a resample takes O(n)."""

    columns: Sequence[Column] = ()

    def __init__(
        self, scores: Sequence[float], positive: Sequence[bool], at: Sequence[int]
    ) -> None:
        self.rows = len(at)
        negatives, positives, below, up_to = _ranked(scores, positive, at)
        self.negatives = array("L", negatives)
        """Rows of the negatives, in ascending order of their scores."""
        self.positives = array("L", positives)
        self.below = array("L", below)
        """For each positive, how many negatives are below it."""
        self.up_to = array("L", up_to)
        # In halves, so that the count is exact.
        pairs = 2 * len(self.negatives) * len(self.positives)
        self.value = (sum(self.below) + sum(self.up_to)) / pairs if pairs else None

    def light(self) -> RankedAuroc:
        """Return itself: it has no columns."""
        return self

    @cached_property
    def _pickers(self) -> Sequence[Callable[[Sequence[int]], Sequence[int]]]:
        return [_picker(o) for o in (self.negatives, self.positives, self.below, self.up_to)]

    def replicate(self, totals: Sequence[float], weights: Weights) -> float | None:
        """Count, for each drawn positive, the drawn negatives below it (equal: half)."""
        drawn = weights()
        negatives, positives, below, up_to = self._pickers
        cumulated = [0, *accumulate(negatives(drawn))]
        ones = positives(drawn)
        pairs = 2 * sum(ones) * cumulated[-1]
        if not pairs:
            return None
        twice: int = sum(map(mul, ones, map(add, below(cumulated), up_to(cumulated))))
        return twice / pairs


def _ranked(
    scores: Sequence[float], positive: Sequence[bool], at: Sequence[int]
) -> Iterable[Iterable[int] | bytes]:
    """Sort the negatives, and place the positives among them."""
    numpy = numpy_for(len(at))
    if numpy is not None:
        rows = numpy.asarray(at, "i8")
        found = auroc_of(numpy, numpy.asarray(scores, "f8"), numpy.asarray(positive, "u1"))
        if found is None:
            return [], [], [], []
        parts = rows[found.zeros], rows[found.ones], found.below, found.up_to
        return [numpy.asarray(part, array("L").typecode).tobytes() for part in parts]
    items = list(zip(scores, positive, at, strict=True))
    negatives = sorted((score, row) for score, is_one, row in items if not is_one)
    ones = [(score, row) for score, is_one, row in items if is_one]
    levels = [score for score, _ in negatives]
    return (
        [row for _, row in negatives],
        [row for _, row in ones],
        [bisect_left(levels, score) for score, _ in ones],
        [bisect_right(levels, score) for score, _ in ones],
    )


def _picker(positions: Sequence[int]) -> Callable[[Sequence[int]], Sequence[int]]:
    # `itemgetter` of one position returns a bare item, and cannot be made of no position.
    if len(positions) > 1:
        return itemgetter(*positions)
    return lambda column: [column[position] for position in positions]


# --- Figures: values with intervals


@dataclass(frozen=True)
class Figure:
    """A statistic's value with its 95 % interval."""

    value: float | None
    """The value; None where the statistic is undefined."""
    interval: Interval | None = None
    """Lower and upper end; None when there is no interval."""
    replicates: tuple[float | None, ...] = field(default=(), repr=False)
    """The value on each resample; empty when there are too few rows for an interval."""


def bootstrap(
    statistics: Mapping[Name, Statistic],
    *,
    rows: int,
    resamples: int = RESAMPLES,
    seed: int | str = SEED,
) -> dict[Name, Figure]:
    """Compute the figures of all statistics of a group of `rows` rows, with 95 % intervals."""
    draws = Draws(rows, resamples, seed)
    draws.add(statistics)
    return draws.figures(statistics)


class Draws:
    """The draws of a group's rows, on which statistics are computed again.

    Statistics may be added in several parts, and their columns be dropped after each. Large groups
    are summed by numpy where it is installed, and then the figures are the same to the last digit:
    both ways add up the same whole numbers.
    """

    def __init__(self, rows: int, resamples: int, seed: int | str) -> None:
        self._rows, self._resamples, self._seed = rows, resamples, seed
        self._values: dict[Hashable, float | None] = {}
        self._replicates: dict[Hashable, list[float | None]] = {}
        self._summed = summing(rows, resamples, seed)
        self._packed = Packed(rows)
        self._later: list[tuple[Hashable, Statistic, list[int]]] = []

    def add(self, statistics: Mapping[Name, Statistic]) -> None:
        """Take up statistics; those that share a column share it within one call only."""
        self._values |= {name: statistic.value for name, statistic in statistics.items()}
        wanted = {
            name: statistic
            for name, statistic in statistics.items()
            if statistic.value is not None and statistic.rows >= MIN_ROWS and self._resamples
        }
        # Statistics share columns: each is summed only once.
        columns = {id(column): column for one in wanted.values() for column in one.columns}
        if self._summed is not None:
            sums = dict(zip(columns, self._summed.totals(list(columns.values())), strict=True))
            for name, statistic in wanted.items():
                of = [sums[id(column)] for column in statistic.columns]
                self._replicates[name] = self._summed.replicates(statistic, of)
            return
        places = dict(zip(columns, self._packed.add(list(columns.values())), strict=True))
        self._later += [
            (name, statistic.light(), [places[id(column)] for column in statistic.columns])
            for name, statistic in wanted.items()
        ]

    def figures(self, names: Iterable[Name]) -> dict[Name, Figure]:
        """Compute the figures of all statistics that were added."""
        generator = random.Random(self._seed)
        for _ in range(self._resamples if self._later else 0):
            drawn = draw(generator, self._rows)
            totals = self._packed.totals(drawn)
            weights = cache(partial(counted, drawn))
            for name, statistic, places in self._later:
                found = statistic.replicate([totals[place] for place in places], weights)
                self._replicates.setdefault(name, []).append(found)
        self._later = []
        return {name: figure(self._values[name], self._replicates.get(name, ())) for name in names}


def draw(generator: random.Random, rows: int) -> list[int]:
    """Draw `rows` row numbers with replacement, three times as fast as `random.choices`."""
    words = struct.unpack(f"<{rows}I", generator.randbytes(4 * rows))
    return [word * rows >> 32 for word in words]


def figure(value: float | None, replicates: Sequence[float | None]) -> Figure:
    """Pair a value with the interval of its replicates."""
    return Figure(value, interval(replicates), tuple(replicates))


def mean_figure(figures: Sequence[Figure]) -> Figure:
    """Compute the unweighted mean of the defined figures of independent groups.

    The interval is that of the mean of their replicates (rows are drawn within each group); None
    when one of these groups has too few rows.
    """
    defined = [(item.value, item.replicates) for item in figures if item.value is not None]
    if not defined:
        return Figure(None)
    value = math.fsum(value for value, _ in defined) / len(defined)
    replicates = [_mean(drawn) for drawn in zip(*(r for _, r in defined), strict=False)]
    return figure(value, replicates)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if len(known) == len(values) else None


def interval(replicates: Sequence[float | None]) -> Interval | None:
    """Return the 2.5th and 97.5th percentile; None without replicates or if over 5 % are None."""
    known = sorted(value for value in replicates if value is not None)
    if not known or len(known) < 0.95 * len(replicates):
        return None
    return percentile(known, 0.025), percentile(known, 0.975)


def percentile(ordered: Sequence[float], share: float) -> float:
    """Compute the value below which `share` of the ordered values lie, by linear interpolation."""
    place = share * (len(ordered) - 1)
    lower = math.floor(place)
    upper = min(lower + 1, len(ordered) - 1)
    low, high = ordered[lower], ordered[upper]
    # In this form, equal neighbours give exactly their value, without a rounding error.
    return low + (high - low) * (place - lower)
