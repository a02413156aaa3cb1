"""Estimate the mean scores over all traffic from the calls that were sampled and judged."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from rag_eval_integrations.records import By, Evaluation
from rag_eval_integrations.records.mean import Means, only_mean


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

    Made as `records.RunningMean.interval` says: Wilson's interval if all values are 0 or 1
    (`adherence`), else Student's t, both at the effective size (Σw)² / Σw²; it keeps a width when
    all values agree. The traffic itself is taken as a sample: the interval is for the app's true
    rate, and has a width even if every call is judged. Calls that share an id are sampled together;
    the interval takes them as independent.
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
        return only_mean(name, [mean for mean in self.means if mean.name == name])


@dataclass
class Aggregate:
    """Running means of scores, of constant size; for any thread."""

    _means: Means = field(default_factory=Means)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, evaluation: Evaluation, probability: float) -> None:
        """Add one evaluation of a call that was sampled with a probability in (0, 1]."""
        with self._lock:
            self._means.add(evaluation, 1 / probability)

    def summary(self) -> TrafficSummary:
        """Compute the means of the evaluations so far."""
        with self._lock:
            means = tuple(
                WeightedMean(
                    name=made.name, by=made.by, method=made.method, mean=mean.mean, ci95=mean.ci95,
                    scored=mean.n, total=self._means.total[made.name],
                )
                for made, mean in self._means.made.items()
                if mean.mean is not None
            )  # fmt: skip
            unscored = {name: dict(codes) for name, codes in self._means.unscored.items()}
        return TrafficSummary(means=means, unscored=unscored)
