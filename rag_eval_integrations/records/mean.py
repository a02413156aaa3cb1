"""The one mean that refuses to mix makers: running means of scores, by name, maker and method."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from rag_eval_integrations.records.score import By, Evaluation, Score

T = TypeVar("T")

_Z = 1.959963984540054  # 97.5 % point of the normal distribution


class Made(NamedTuple):
    """The properties that scores share that may be averaged together."""

    name: str
    """Name of the score."""
    by: By
    """Provenance of the scores, without `splitter` and `windows`, which do not change the meaning
    of a score."""
    method: str | None
    """How the values came about: `labels`, `logprobs` …"""


@dataclass
class RunningMean:
    """The weighted mean of values in [0, 1], and its interval, in constant memory."""

    n: int = 0
    """Number of values."""
    _w: float = 0.0
    _ww: float = 0.0
    _wx: float = 0.0
    _wwx: float = 0.0
    _wwxx: float = 0.0
    _binary: bool = True

    def add(self, value: float, weight: float = 1.0) -> None:
        """Add a value with a weight above 0."""
        self.n += 1
        self._w += weight
        self._ww += weight * weight
        self._wx += weight * value
        self._wwx += weight * weight * value
        self._wwxx += weight * weight * value * value
        self._binary = self._binary and value in (0.0, 1.0)

    @property
    def mean(self) -> float | None:
        """Σwx / Σw; None without values."""
        return min(1.0, self._wx / self._w) if self.n else None

    @property
    def ci95(self) -> tuple[float, float] | None:
        """95 % confidence interval of the mean, within [0, 1]; None for fewer than two values.

        Normal approximation with the linearised variance Σw²(x - mean)² / (Σw)² · n / (n - 1); if
        all values are 0 or 1, Wilson's interval at the effective size (Σw)² / Σw².
        """
        mean = self.mean
        if mean is None or self.n < 2:
            return None
        if self._binary:
            return _wilson(mean, self._w * self._w / self._ww)
        squares = self._wwxx - 2 * mean * self._wwx + mean * mean * self._ww
        variance = max(0.0, squares) / (self._w * self._w) * self.n / (self.n - 1)
        half = _Z * math.sqrt(variance)
        return max(0.0, mean - half), min(1.0, mean + half)


def _wilson(mean: float, n: float) -> tuple[float, float]:
    centre = mean + _Z * _Z / (2 * n)
    half = _Z * math.sqrt(mean * (1 - mean) / n + _Z * _Z / (4 * n * n))
    scale = 1 + _Z * _Z / n
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


@dataclass
class Means:
    """Running means over evaluations; scores made differently are kept apart.

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
        shared: By | None = None  # the scores of one metric share one `By`; a copy takes 20 µs
        maker = By()
        for name, score in evaluation.scores.items():
            if score.by is not shared:
                shared = score.by
                maker = shared.model_copy(update={"splitter": None, "windows": None})
            self._add(name, score, maker, weight)

    def _add(self, name: str, score: Score, maker: By, weight: float) -> None:
        self.total[name] += 1
        if score.value is None:
            codes = self.unscored.setdefault(name, Counter())
            codes[score.unscored or score.status] += 1
            return
        self.made.setdefault(Made(name, maker, score.method), RunningMean()).add(
            score.value, weight
        )

    def mean(self, name: str) -> RunningMean | None:
        """Look up the mean of one score; None when no evaluation has a value for it.

        Raises:
            ValueError: the score was made in different ways, so that it has no common mean.
        """
        return only_mean(name, [mean for made, mean in self.made.items() if made.name == name])


def only_mean(name: str, means: Sequence[T]) -> T | None:
    """Return the only mean of a score; None when there is none.

    Raises:
        ValueError: there are several, because the score was made in different ways.
    """
    if len(means) > 1:
        raise ValueError(
            f"{name} was made by {len(means)} different judges, formulas or estimators"
        )
    return means[0] if means else None
