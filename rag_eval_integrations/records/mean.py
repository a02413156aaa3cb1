"""The one mean that refuses to mix makers: running means of scores, by name, maker and method."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from rag_eval_integrations.records.score import By, Evaluation, Score

T = TypeVar("T")

Z_975 = 1.959963984540054
"""The 97.5 % point of the normal distribution, which is that of infinite freedom."""
_ZZ = Z_975 * Z_975
_NOISE = 1e-20  # variance below which values that differ in their last bits are equal
_ONE_VALUE = "Wilson, one value seen"


class Made(NamedTuple):
    """The key under which scores are averaged: name, comparable provenance and method."""

    name: str
    """Name of the score."""
    by: By
    """Provenance of the scores, as far as it is comparable."""
    method: str | None
    """How the values came about: `labels`, `logprobs` …"""


@dataclass(frozen=True)
class Interval:
    """A 95 % confidence interval within [0, 1]."""

    low: float
    high: float
    method: str
    """How it was made: `Student's t`, `Wilson`, or `Wilson, one value seen` (`RunningMean`)."""

    def __format__(self, spec: str) -> str:
        """Write both ends, each by the format of a float: `f"{interval:.2f}"` is `0.81–0.87`."""
        return f"{self.low:{spec}}–{self.high:{spec}}" if spec else str(self)

    def __str__(self) -> str:
        return f"{self:.3f} ({self.method})"


@dataclass
class RunningMean:
    """The weighted mean of values in [0, 1], its spread and its interval, in constant memory."""

    n: int = 0
    """Number of values."""
    _first: float = 0.0
    """Sums are shifted by the first value, so that equal values give exactly 0."""
    _w: float = 0.0
    _ww: float = 0.0
    _wd: float = 0.0
    _wdd: float = 0.0
    _wwd: float = 0.0
    _wwdd: float = 0.0
    _binary: bool = True

    @classmethod
    def of_sums(
        cls,
        n: int,
        total: float | None,
        squares: float | None,
        least: float | None,
        most: float | None,
        extremes: int,
    ) -> RunningMean:
        """Make the mean of values that a database has summed up, each with the weight 1.

        An empty mean without values.

        Args:
            n: number of values.
            total: their sum; None without values, as the next three.
            squares: sum of their squares.
            least: the smallest value.
            most: the largest value.
            extremes: number of values that are 0 or 1.
        """
        if total is None or squares is None or least is None:
            return cls()
        if least == most:  # without the noise of the sums
            return cls(n, least, n, n, _binary=extremes == n)
        return cls(n, 0.0, n, n, total, squares, total, squares, extremes == n)

    def add(self, value: float, weight: float = 1.0) -> None:
        """Add a value with a weight above 0."""
        if not self.n:
            self._first = value
        self.n += 1
        weighted = weight * (value - self._first)
        self._w += weight
        self._ww += weight * weight
        self._wd += weighted
        self._wdd += weighted * (value - self._first)
        self._wwd += weight * weighted
        self._wwdd += weighted * weighted
        self._binary = self._binary and value in (0.0, 1.0)

    def merge(self, other: RunningMean) -> None:
        """Add the values that another mean was made of."""
        if not self.n:
            self._first = other._first
        moved = other._first - self._first
        self.n += other.n
        self._w += other._w
        self._ww += other._ww
        self._wd += other._wd + moved * other._w
        self._wdd += other._wdd + moved * (2 * other._wd + moved * other._w)
        self._wwd += other._wwd + moved * other._ww
        self._wwdd += other._wwdd + moved * (2 * other._wwd + moved * other._ww)
        self._binary = self._binary and other._binary

    @property
    def mean(self) -> float | None:
        """Σwx / Σw; None without values."""
        return min(1.0, max(0.0, self._first + self._wd / self._w)) if self.n else None

    @property
    def deviation(self) -> float | None:
        """Standard deviation √(Σw(x - mean)² / Σw · n / (n - 1)); None for n < 2."""
        if self.n < 2:
            return None
        centre = self._wd / self._w
        variance = max(0.0, self._wdd / self._w - centre * centre)
        return math.sqrt(variance * self.n / (self.n - 1))

    @property
    def interval(self) -> Interval | None:
        """95 % confidence interval of the mean; None for fewer than two values.

        With n for the effective size (Σw)² / Σw², the number of values where all weights are equal:

        * all values are 0 or 1: Wilson's interval at n;
        * else Student's t: mean ± t(n - 1) · √(Σw²(x - mean)² / (Σw)² · N / (N - 1)), N values;
        * all values are equal, and neither 0 nor 1: no spread was seen, and t would give width 0,
          which is far too sure of ten values. A share of the population may have other values, at
          most Wilson's upper limit of 0 in n, p = z² / (n + z²), 28 % at n = 10, and these lie in
          [0, 1]: (mean · (1 - p), mean · (1 - p) + p). For values of 1 it is Wilson's interval.
        """
        mean = self.mean
        if mean is None or self.n < 2:
            return None
        size = self._w * self._w / self._ww
        if self._binary:
            return wilson(mean, size)
        centre = self._wd / self._w
        squares = self._wwdd - 2 * centre * self._wwd + centre * centre * self._ww
        if squares <= _NOISE * self._ww:
            unseen = _ZZ / (size + _ZZ)
            return Interval(mean * (1 - unseen), mean * (1 - unseen) + unseen, _ONE_VALUE)
        variance = squares / (self._w * self._w) * self.n / (self.n - 1)
        half = t_975(size - 1) * math.sqrt(variance) if size > 1 else 1.0
        return Interval(max(0.0, mean - half), min(1.0, mean + half), "Student's t")

    @property
    def ci95(self) -> tuple[float, float] | None:
        """Lower and upper end of the 95 % confidence interval; None without one."""
        interval = self.interval
        return None if interval is None else (interval.low, interval.high)


def wilson(share: float, n: float) -> Interval:
    """Return Wilson's 95 % interval (E. B. Wilson, 1927) of a share in [0, 1] of n > 0 cases."""
    centre = share + _ZZ / (2 * n)
    half = Z_975 * math.sqrt(share * (1 - share) / n + _ZZ / (4 * n * n))
    scale = 1 + _ZZ / n
    low = 0.0 if share == 0 else max(0.0, (centre - half) / scale)
    high = 1.0 if share == 1 else min(1.0, (centre + half) / scale)
    return Interval(low, high, "Wilson")


# --- Student's t


def t_975(freedom: float) -> float:
    """Return the 97.5 % point of Student's t distribution.

    For t = √ν·tan θ, the density of θ is proportional to cos θ to the power ν - 1, on a quarter
    circle. It is summed by Simpson's rule and the point found by Newton's method, to about 1e-10;
    a table would end somewhere, and the effective size of a weighted sample is no whole number.

    Args:
        freedom: degrees of freedom ν, above 0; the point is infinite below 1, where there are fewer
            than two independent values.

    Raises:
        ValueError: `freedom` is not above 0.
    """
    if not freedom > 0:
        raise ValueError(f"degrees of freedom = {freedom!r}: use a number above 0")
    if freedom < 1 or freedom > 1e7:
        return math.inf if freedom < 1 else Z_975
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    angle = math.atan(Z_975 / math.sqrt(freedom))
    for _ in range(100):  # from below, without ever passing it: the density falls
        width = angle / _STEPS
        heights = [math.cos(width * step) ** (freedom - 1) for step in range(_STEPS + 1)]
        inner = 4 * math.fsum(heights[1::2]) + 2 * math.fsum(heights[2:-1:2])
        share = scale * width / 3 * (heights[0] + inner + heights[-1])
        step = (0.475 - share) / (scale * heights[-1])
        angle += step
        if step < 1e-13:
            break
    return math.sqrt(freedom) * math.tan(angle)


_STEPS = 200


# --- The means of scores, by who made them


def makers_of(evaluation: Evaluation) -> Iterator[tuple[Made, Score]]:
    """Yield each score of an evaluation behind the key under which it is averaged.

    In the order of the scores, also those without a value.
    """
    shared: By | None = None  # the scores of one metric share one `By`; a copy takes 20 µs
    maker = By()
    for name, score in evaluation.scores.items():
        if score.by is not shared and score.by != shared:
            shared = score.by
            maker = shared.comparable()
        yield Made(name, maker, score.method), score


@dataclass
class Means:
    """Running means over evaluations, one per score and maker.

    A common mean of different judges, prompts, formulas or estimators would have no meaning.
    """

    made: dict[Made, RunningMean] = field(default_factory=dict)
    """The means of the scores with a value."""
    total: Counter[str] = field(default_factory=Counter)
    """Score name → number of evaluations that have the score, with or without a value."""
    unscored: dict[str, Counter[str]] = field(default_factory=dict)
    """Score name → code (`error` for a failure) → number of evaluations."""

    def add(self, evaluation: Evaluation, weight: float = 1.0) -> None:
        """Add the scores of an evaluation, with a weight above 0."""
        for maker, score in makers_of(evaluation):
            self.count(maker, score, weight)

    def count(self, maker: Made, score: Score, weight: float = 1.0) -> None:
        """Add one score, as `makers_of` yields it.

        A score without a value is counted in `total` and `unscored` only. These counts have no
        weights.
        """
        self.total[maker.name] += 1
        if score.value is None:
            self.unscored.setdefault(maker.name, Counter())[score.unscored or score.status] += 1
            return
        if maker not in self.made:
            self.made[maker] = RunningMean()
        self.made[maker].add(score.value, weight)

    def merge(self, other: Means) -> None:
        """Add the scores of other means."""
        self.total.update(other.total)
        for name, codes in other.unscored.items():
            self.unscored.setdefault(name, Counter()).update(codes)
        for maker, mean in other.made.items():
            self.made.setdefault(maker, RunningMean()).merge(mean)

    def mean(self, name: str) -> RunningMean | None:
        """Look up the mean of one score; None when no evaluation has a value for it.

        Raises:
            ValueError: the score was made in different ways, so that it has no common mean.
        """
        return only_mean(name, [mean for maker, mean in self.made.items() if maker.name == name])


def only_mean(name: str, means: Sequence[T]) -> T | None:
    """Return the only mean of a score; None when there is none.

    Raises:
        ValueError: there are several, because the score was made in different ways.
    """
    if len(means) > 1:
        why = f"{name} was made by {len(means)} different judges, formulas or estimators"
        raise ValueError(why)
    return means[0] if means else None
