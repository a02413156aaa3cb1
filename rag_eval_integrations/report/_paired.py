"""Statistics of pairs: how sure a difference of means between two runs of the same calls is.

Values are taken as whole millionths, so that every machine gives the same figures from the same
random seed. All of it works on units: a unit is a pair, or all pairs of one conversation, whose
calls are not independent of each other (arXiv:2411.00640).

* The interval is the percentile bootstrap of the mean difference (Efron and Tibshirani 1993,
  ch. 13) where that can be trusted: from `MIN_BOOTSTRAP` units, of which `MIN_CHANGED` differ.
* With fewer that differ, and for few pairs of 0/1 scores, it is Bonett's and Price's (2012): the
  normal interval after one pair that rose by 1 and one that fell by 1 have been added; of
  conversations, one of average length each. It never has the width 0, which would claim to be
  certain because nothing happened to change.
* Otherwise it is Student's t, with the jackknife's error.

Conversations of unequal length tell less than as many equal ones: for their rules and degrees of
freedom, units count as many as units of one length would have to be, (Σn)² / Σn² (Kish 1965).

* p is that of sign flips (Fisher 1935): each unit's difference could as well have been the other
  way. All flips where there are few, which for 0/1 scores is McNemar's exact test.
"""

from __future__ import annotations

import math
import random
import struct
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from rag_eval_integrations.agreement._bootstrap import SEED, draw, percentile
from rag_eval_integrations.records._student import t_975
from rag_eval_integrations.records.mean import Interval

MIN_PAIRS = 10
"""Fewer units have no interval."""
MIN_BOOTSTRAP = 50
MIN_CHANGED = 10
"""Units that must differ from the most common difference for the shape of the rest to be seen."""
RESAMPLES = 2_000
FLIPS = 10_000
POWER = 2.80
"""Standard errors of the smallest difference that is seen in 80 % of samples: z.975 + z.80."""

_Z = 1.959963984540054  # 97.5 % point of the normal distribution
_MILLIONTHS = 10**6
_MOST_EXACT = 20
"""Units that differ, up to which all flips are counted: 2²⁰ sums take 0.1 s."""

Values = tuple[float, float]
"""One pair's values in the first and the second run, in [0, 1]."""


def millionths(value: float) -> int:
    """Return a value as it is compared: values that agree in it are ties."""
    return round(value * _MILLIONTHS)


@dataclass(frozen=True, slots=True)
class Paired:
    """The difference of one score over its pairs."""

    n: int
    """Number of pairs."""
    units: int
    """Number of conversations, or of pairs where each stands alone."""
    mean_a: float | None
    mean_b: float | None
    """None without a pair, as is every figure below."""
    difference: float | None
    std_error: float | None
    """None for fewer than `MIN_PAIRS` units."""
    interval: Interval | None
    """None for fewer than `MIN_PAIRS` units."""
    p: float | None
    """Two-sided p-value of no difference."""
    p_holm: float | None
    """The same, adjusted for the number of scores (Holm 1979)."""
    wins: int
    """Number of pairs that rose."""
    losses: int
    ties: int


def paired(
    scores: Mapping[str, Sequence[Values | None]],
    groups: Sequence[Hashable] | None = None,
    *,
    seed: int = SEED,
) -> dict[str, Paired]:
    """Compute the differences of several scores over the same calls.

    All scores are resampled by the same draws and flips, and each score's figures are the same
    whatever other scores stand beside it, except for `p_holm`.

    Args:
        scores: for each score, a pair of values per call; None for a call without both.
        groups: the conversation of each call; None where each call stands alone.
        seed: of the random draws.
    """
    made = {name: _Units.of(pairs, groups) for name, pairs in scores.items()}
    wide = [one for one in made.values() if one.method() == _BOOTSTRAP]
    bounds = dict(zip(map(id, wide), _bootstrap(wide, seed), strict=True))
    ps = _flips(list(made.values()), seed)
    found = {
        name: one.figures(bounds.get(id(one)), p)
        for (name, one), p in zip(made.items(), ps, strict=True)
    }
    return _holm(found)


_BOOTSTRAP, _PRICE, _STUDENT = "bootstrap", "Bonett-Price", "Student's t"


@dataclass(frozen=True)
class _Units:
    """One score's differences in millionths: their sum and number in each unit."""

    values: list[Values]
    differences: list[int]
    sums: list[int]
    counts: list[int]
    """0 for a unit of which no pair has the score."""
    alone: bool
    """Whether every unit is one pair."""
    binary: bool

    @staticmethod
    def of(pairs: Sequence[Values | None], groups: Sequence[Hashable] | None) -> _Units:
        at = {group: index for index, group in enumerate(dict.fromkeys(groups or ()))}
        size = len(at) if groups is not None else len(pairs)
        sums, counts = [0] * size, [0] * size
        differences = []
        for index, pair in enumerate(pairs):
            if pair is None:
                continue
            unit = index if groups is None else at[groups[index]]
            difference = millionths(pair[1]) - millionths(pair[0])
            differences.append(difference)
            sums[unit] += difference
            counts[unit] += 1
        values = [pair for pair in pairs if pair is not None]
        return _Units(
            values, differences, sums, counts,
            alone=groups is None or max(counts, default=0) <= 1,
            binary=all(value in (0.0, 1.0) for pair in values for value in pair),
        )  # fmt: skip

    @property
    def size(self) -> int:
        return sum(count > 0 for count in self.counts)

    @property
    def effective(self) -> float:
        """The number of units of one length that tell as much, from 1 to `size`."""
        return sum(self.counts) ** 2 / sum(count**2 for count in self.counts)

    def method(self) -> str | None:
        if self.size < MIN_PAIRS:
            return None
        # By the mean of a unit: conversations that did not change are alike, whatever their length.
        seen = Counter(
            (total // divisor, count // divisor)
            for total, count in zip(self.sums, self.counts, strict=True)
            if (divisor := math.gcd(total, count))
        )
        most = seen.most_common(1)[0][1]
        sparse = most > 1 and self.size - most < MIN_CHANGED
        if sparse or (self.binary and self.size < MIN_BOOTSTRAP):
            return _PRICE
        return _BOOTSTRAP if self.effective >= MIN_BOOTSTRAP else _STUDENT

    def figures(self, bounds: tuple[float, float] | None, p: float | None) -> Paired:
        n = len(self.differences)
        difference = sum(self.differences) / n / _MILLIONTHS if n else None
        method = self.method()
        interval = error = None
        if method is not None:
            error, centre, reach = self._normal(method)
            low, high = bounds or (centre - reach * error, centre + reach * error)
            interval = Interval(max(-1.0, low), min(1.0, high), method)
        return Paired(
            n=n, units=self.size,
            mean_a=math.fsum(a for a, _ in self.values) / n if n else None,
            mean_b=math.fsum(b for _, b in self.values) / n if n else None,
            difference=difference, std_error=error, interval=interval, p=p, p_holm=p,
            wins=sum(d > 0 for d in self.differences),
            losses=sum(d < 0 for d in self.differences),
            ties=sum(d == 0 for d in self.differences),
        )  # fmt: skip

    def _normal(self, method: str) -> tuple[float, float, float]:
        """Return the standard error, the centre, and the reach in standard errors."""
        sums, counts = self.sums, self.counts
        if method == _PRICE:
            length = round(sum(counts) / self.size)  # of an average conversation; 1 for pairs
            sums = [*sums, length * _MILLIONTHS, -length * _MILLIONTHS]
            counts = [*counts, length, length]
        n, total, units = sum(counts), sum(sums), self.size
        pairs = list(zip(sums, counts, strict=True))
        if method == _PRICE:  # in whole numbers up to the root: Σ (n·sum - count·total)² / n⁴
            error = math.sqrt(sum((n * s - c * total) ** 2 for s, c in pairs) / n**4)
        else:  # what the mean changes by, without one unit after the other
            changes = ((n * s - c * total) / (n * (n - c)) for s, c in pairs)
            error = math.sqrt((units - 1) / units * math.fsum(one**2 for one in changes))
        # Below one degree, as where one conversation holds 70 % of all, t exceeds every range.
        reach = _Z if method == _PRICE and self.alone else t_975(max(1, self.effective - 1))
        return error / _MILLIONTHS, total / n / _MILLIONTHS, reach


# --- Bootstrap


def _bootstrap(scores: Sequence[_Units], seed: int) -> list[tuple[float, float]]:
    """Return the 2.5th and 97.5th percentile of each score's mean difference on the same draws."""
    if not scores:
        return []
    size = len(scores[0].sums)
    # Where every unit has one pair, the mean of a draw is its sum by the number of units.
    uneven = [one for one in scores if any(count != 1 for count in one.counts)]
    totals = _totals([one.sums for one in scores] + [one.counts for one in uneven], size)
    at = {id(one): len(scores) + place for place, one in enumerate(uneven)}
    generator = random.Random(seed)
    means: list[list[float]] = [[] for _ in scores]
    for _ in range(RESAMPLES):
        found = totals(generator)
        for place, (one, drawn) in enumerate(zip(scores, means, strict=True)):
            n = found[at[id(one)]] if id(one) in at else size
            if n:  # no drawn unit has the score: next to impossible from 50 that have it
                drawn.append(found[place] / n / _MILLIONTHS)
    for drawn in means:
        drawn.sort()
    return [(percentile(drawn, 0.025), percentile(drawn, 0.975)) for drawn in means]


_TABLE = 1 << 16
_TABLE_FROM = 1_000
"""Units from which looking them up in a table is faster."""


def _totals(columns: Sequence[list[int]], size: int) -> Callable[[random.Random], list[int]]:
    """Make a function that draws `size` units with replacement and sums each column over them.

    A unit's numbers are fields of one integer, so that one addition adds them all: each is shifted
    to be positive, and as wide as the sum of a draw can become.

    With thousands of units, most of the time goes into turning random bits into numbers of units.
    So they are looked up by 16 bits, in a table that holds each as often as fits. What remains of
    the table counts as no draw: a little fewer than `size` are drawn so, and the missing ones by
    number. Every unit is equally likely all the same.
    """
    shifts = [max(0, -min(column)) for column in columns]
    widths = [
        ((max(column) + shift) * size).bit_length() or 1
        for column, shift in zip(columns, shifts, strict=True)
    ]
    drawn_bits = size.bit_length() + 1
    rows = []
    for row in zip(*columns, strict=True):
        number = 0
        for value, shift, width in zip(row, shifts, widths, strict=True):
            number = number << width | (value + shift)
        rows.append(number << drawn_bits | 1)  # counts the draws

    def unpacked(total: int) -> list[int]:
        total >>= drawn_bits
        sums = []
        for shift, width in zip(reversed(shifts), reversed(widths), strict=True):
            sums.append((total & ((1 << width) - 1)) - shift * size)
            total >>= width
        return sums[::-1]

    if not _TABLE_FROM <= size <= _TABLE:
        return lambda generator: unpacked(sum(itemgetter(*draw(generator, size))(rows)))
    copies = _TABLE // size
    table = rows * copies + [0] * (_TABLE - copies * size)
    share = copies * size / _TABLE
    # Six standard deviations less than `size`, so that there are next to never too many.
    words = int((size - 6 * math.sqrt(size * (1 - share)) - 1) / share)
    layout = struct.Struct(f"<{words}H")
    every = (1 << drawn_bits) - 1

    def totals(generator: random.Random) -> list[int]:
        while True:
            found = layout.unpack(generator.randbytes(2 * words))
            total = sum(itemgetter(*found)(table))
            missing = size - (total & every)
            if missing >= 0:
                break
        total += sum(rows[generator.getrandbits(32) * size >> 32] for _ in range(missing))
        return unpacked(total)

    return totals


# --- Sign flips


def _flips(scores: Sequence[_Units], seed: int) -> list[float | None]:
    """Return each score's two-sided p-value; None without a pair."""
    ps: dict[int, float | None] = {}
    sampled = []
    for one in scores:
        changed = [abs(total) for total in one.sums if total]
        if not one.differences:
            ps[id(one)] = None
        elif len(set(changed)) <= 1:  # as of 0/1 scores
            ps[id(one)] = _mcnemar(sum(total > 0 for total in one.sums), len(changed))
        elif len(changed) <= _MOST_EXACT:
            ps[id(one)] = _all_flips(changed, abs(sum(one.sums)))
        else:
            sampled.append(one)
    ps.update(zip(map(id, sampled), _sampled_flips(sampled, seed), strict=True))
    return [ps[id(one)] for one in scores]


def _mcnemar(wins: int, changed: int) -> float:
    """Sum both tails of the binomial distribution, exactly."""
    tail = term = 1
    for i in range(min(wins, changed - wins)):
        term = term * (changed - i) // (i + 1)
        tail += term
    share: float = 2 * tail / 2**changed
    return min(1.0, share)


def _all_flips(sizes: Sequence[int], observed: int) -> float:
    totals = [0]
    for size in sizes[1:]:
        totals = [t + size for t in totals] + [t - size for t in totals]
    # The first sign is left at plus: the other half of all flips is the mirror image.
    first = sizes[0]
    return sum(abs(total + first) >= observed for total in totals) / len(totals)


def _sampled_flips(scores: Sequence[_Units], seed: int) -> list[float]:
    """Sample flips: sums of signed integers by their binary digits, for all units at once."""
    if not scores:
        return []
    size = len(scores[0].sums)
    generator = random.Random(seed + 1)  # not the bits that the bootstrap draws by
    prepared = []
    for one in scores:
        sizes = [abs(total) for total in one.sums]
        planes = [_plane(sizes, digit) for digit in range(max(sizes).bit_length())]
        prepared.append((planes, sum(sizes), abs(sum(one.sums))))
    extreme = [0] * len(scores)
    for _ in range(FLIPS):
        mask = generator.getrandbits(size)
        for index, (planes, whole, observed) in enumerate(prepared):
            kept = 0
            for digit, plane in enumerate(planes):
                kept += (plane & mask).bit_count() << digit
            extreme[index] += abs(2 * kept - whole) >= observed
    return [(1 + count) / (FLIPS + 1) for count in extreme]


def _plane(sizes: Sequence[int], digit: int) -> int:
    """Gather one binary digit of every number into one integer, the first number lowest."""
    digits = "".join("1" if size >> digit & 1 else "0" for size in reversed(sizes))
    return int(digits, 2)


def _holm(found: Mapping[str, Paired]) -> dict[str, Paired]:
    ordered = sorted((one.p, name) for name, one in found.items() if one.p is not None)
    adjusted: dict[str, float] = {}
    largest = 0.0
    for rank, (p, name) in enumerate(ordered):
        largest = max(largest, min(1.0, p * (len(ordered) - rank)))
        adjusted[name] = largest
    return {name: replace(one, p_holm=adjusted.get(name)) for name, one in found.items()}
