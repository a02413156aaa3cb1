"""Estimate the mean scores over all traffic from the calls that were sampled and judged."""

from __future__ import annotations

import math
import threading
from collections import Counter
from dataclasses import dataclass, field

from rag_eval_integrations.records import By, Evaluation, Score

_Z = 1.959963984540054  # 97.5 % point of the normal distribution


@dataclass(frozen=True)
class WeightedMean:
    """The estimated mean over all traffic of one score with one provenance and method."""

    name: str
    """Name of the score."""
    by: By
    """Provenance of the scores, without `splitter` and `windows`, which do not change the meaning
    of a score."""
    method: str | None
    """The estimator: `labels`, `expected`, `calibrated` …"""
    mean: float
    """Σwx / Σw over the scored calls, w = 1 / P(the call was sampled). In [0, 1]."""
    ci95: tuple[float, float] | None
    """95 % confidence interval of the mean, within [0, 1]; None for a single call.

    Normal approximation with the linearised variance Σw²(x - mean)² / (Σw)² · n / (n - 1). If all
    values are 0 or 1 (`adherence`), Wilson's interval at the effective size (Σw)² / Σw², which
    keeps a width when all values agree. The traffic itself is taken as a sample: the interval is
    for the app's true rate, and has a width even if every call is judged. Calls that share an id
    are sampled together; the interval takes them as independent.
    """
    scored: int
    """Calls with a value, over which the mean is taken."""
    total: int
    """Calls for which this score was requested: scored, unscored, failed and over budget."""


@dataclass(frozen=True)
class TrafficSummary:
    """Mean scores over the traffic, by score, provenance and method."""

    means: tuple[WeightedMean, ...]
    """The means; a score with several provenances or methods has one mean for each."""
    unscored: dict[str, dict[str, int]]
    """Score name → code (`error` for a failure) → calls."""

    def mean(self, name: str) -> WeightedMean | None:
        """Look up the mean of one score.

        Args:
            name: name of the score.

        Returns:
            The mean; None when no call has a value for this score.

        Raises:
            ValueError: the score has several means; look them up in `means`.
        """
        found = [mean for mean in self.means if mean.name == name]
        if len(found) > 1:
            raise ValueError(
                f"{name} was made by {len(found)} different judges, formulas or estimators; "
                "`means` has one mean for each"
            )
        return found[0] if found else None


@dataclass
class _Sums:
    n: int = 0
    w: float = 0.0
    ww: float = 0.0
    wx: float = 0.0
    wwx: float = 0.0
    wwxx: float = 0.0
    binary: bool = True

    def add(self, value: float, weight: float) -> None:
        self.n += 1
        self.w += weight
        self.ww += weight * weight
        self.wx += weight * value
        self.wwx += weight * weight * value
        self.wwxx += weight * weight * value * value
        self.binary = self.binary and value in (0.0, 1.0)

    def mean(self) -> float:
        return min(1.0, self.wx / self.w)

    def interval(self) -> tuple[float, float] | None:
        if self.n < 2:
            return None
        mean = self.mean()
        if self.binary:
            return _wilson(mean, self.w * self.w / self.ww)
        squares = self.wwxx - 2 * mean * self.wwx + mean * mean * self.ww
        variance = max(0.0, squares) / (self.w * self.w) * self.n / (self.n - 1)
        half = _Z * math.sqrt(variance)
        return max(0.0, mean - half), min(1.0, mean + half)


def _wilson(mean: float, n: float) -> tuple[float, float]:
    centre = mean + _Z * _Z / (2 * n)
    half = _Z * math.sqrt(mean * (1 - mean) / n + _Z * _Z / (4 * n * n))
    scale = 1 + _Z * _Z / n
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


@dataclass
class Aggregate:
    """Running sums of scores, of constant size; for any thread."""

    _sums: dict[tuple[str, By, str | None], _Sums] = field(default_factory=dict)
    _totals: Counter[str] = field(default_factory=Counter)
    _unscored: dict[str, Counter[str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, evaluation: Evaluation, probability: float) -> None:
        """Add one evaluation of a call that was sampled with a probability in (0, 1]."""
        shared: By | None = None  # the scores of one judge share one `By`; copies are expensive
        by: By | None = None
        with self._lock:
            for name, score in evaluation.scores.items():
                if by is None or score.by is not shared:
                    shared = score.by
                    by = shared.model_copy(update={"splitter": None, "windows": None})
                self._add(name, score, by, 1 / probability)

    def _add(self, name: str, score: Score, by: By, weight: float) -> None:
        self._totals[name] += 1
        if score.value is None:
            codes = self._unscored.setdefault(name, Counter())
            codes[score.unscored or score.status] += 1
            return
        self._sums.setdefault((name, by, score.method), _Sums()).add(score.value, weight)

    def summary(self) -> TrafficSummary:
        """Compute the means of the evaluations so far."""
        with self._lock:
            means = tuple(
                WeightedMean(
                    name=name, by=by, method=method, mean=sums.mean(), ci95=sums.interval(),
                    scored=sums.n, total=self._totals[name],
                )
                for (name, by, method), sums in self._sums.items()
            )  # fmt: skip
            unscored = {name: dict(codes) for name, codes in self._unscored.items()}
        return TrafficSummary(means=means, unscored=unscored)
