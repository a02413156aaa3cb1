"""Count the outcome of every call, estimate means over the traffic, log failures once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from rag_eval_integrations._visible import LogOnce, counted, logger_of
from rag_eval_integrations.records import By, Evaluation
from rag_eval_integrations.records.mean import Means, only_mean


@dataclass(frozen=True)
class SinkCounters:
    """Counts of the evaluations for one sink."""

    name: str
    """Class of the sink, followed by its position from 0 if several sinks have this class."""
    written: int
    """Evaluations that the sink wrote."""
    failed: int
    """Evaluations that the sink did not write, because it raised. A repeatable sink was given them
    again in vain, for 15 minutes if its place was down, else six times."""
    dropped: int
    """Evaluations that were not passed to the sink, because its queue was full or it was closed."""
    pending: int
    """Evaluations that are waiting for the sink, also to be sent again, or being written."""


NotJudged = Literal[
    "sampled_out",
    "over_budget",
    "queue_full",
    "closed",
    "run_failed",
    "aborted",
    "interrupted",
    "no_documents",
]
"""Why a call was not judged."""


@dataclass(frozen=True)
class Counters:
    """A snapshot of the counts of calls since the start, or since the fork in a forked process.

    `captured` is the sum of all other counts of calls: each call is in exactly one of them.
    """

    captured: int = 0
    """Calls that were submitted."""
    sampled_out: int = 0
    """Calls that the sample left out."""
    skipped: int = 0
    """Calls whose run failed, was aborted or interrupted (`Capture.status` is not `ok`)."""
    dropped: int = 0
    """Calls that were dropped, because the queue was full or the evaluator was closed."""
    over_budget: int = 0
    """Calls beyond the budget: delivered to the sinks unscored, with the code `over_budget`."""
    failed: int = 0
    """Evaluations with an error, and submitted objects that are not calls."""
    scored: int = 0
    """Evaluations with at least one score that has a value."""
    unscored: int = 0
    """Evaluations without an error in which no score has a value."""
    pending: int = 0
    """Calls that are waiting or being evaluated."""
    not_judged: Mapping[NotJudged, int] = field(default_factory=dict)
    """Calls that were not judged, per reason; every reason is there. `queue_full` and `closed` are
    counted in `dropped` as well; `run_failed`, `aborted` and `interrupted` in `skipped`;
    `no_documents` in `unscored`; the others under their own name."""
    sinks: tuple[SinkCounters, ...] = ()
    """The counts of each sink, in order."""


# --- Counting, from any thread; the counts add up at any time


Fate = NotJudged | Literal["failed", "scored", "unscored"]

_COUNTED_AS = {
    "queue_full": "dropped",
    "closed": "dropped",
    "run_failed": "skipped",
    "aborted": "skipped",
    "interrupted": "skipped",
    "no_documents": "unscored",
}


class Tally:
    """Counts of calls by fate: each is captured once, and pending until it meets one fate."""

    def __init__(self) -> None:
        # Reentrant: a garbage collection in here may finalise a stream and so submit its call.
        self._lock = threading.RLock()
        self._captured = 0
        self._fates: Counter[Fate] = Counter()

    def captured(self, fate: Fate | None = None) -> None:
        """Count a submitted call, with its fate if that is known at once."""
        with self._lock:
            self._captured += 1
            if fate is not None:
                self._fates[fate] += 1

    def met(self, fate: Fate, calls: int = 1) -> None:
        """Count the fate of calls that were captured before.

        Only the count of this fate is raised. The captured calls stay as they are, and the pending
        ones, which are the difference, become fewer.
        """
        with self._lock:
            self._fates[fate] += calls

    @property
    def pending(self) -> int:
        """Number of calls that are waiting or being evaluated."""
        with self._lock:
            return self._captured - self._fates.total()

    def counters(self, sinks: tuple[SinkCounters, ...]) -> Counters:
        """Return a snapshot of the counts, with those of the sinks."""
        with self._lock:
            captured, fates = self._captured, self._fates.copy()
        counts = Counter({"captured": captured, "pending": captured - fates.total()})
        for fate, calls in fates.items():
            counts[_COUNTED_AS.get(fate, fate)] += calls
        reasons: tuple[NotJudged, ...] = get_args(NotJudged)
        return Counters(
            sinks=sinks, not_judged={reason: fates[reason] for reason in reasons}, **counts
        )


# --- Logging, once per kind of failure: a judge that is down must not fill the app's log


_MAX_MESSAGE = 200

logger = logger_of("rag_eval_integrations.background")


class FailureLog:
    """Logs the first failure of each kind, from any thread; the caller counts all of them."""

    def __init__(self) -> None:
        self._once = LogOnce(logger)

    def log(self, kind: tuple[str, ...], text: str, error: BaseException | None = None) -> None:
        """Log a text, with the error's traceback, unless this kind was logged before.

        Args:
            kind: key of the kind of failure.
            text: the log line, without an end mark.
            error: the exception whose traceback is logged, if any.
        """
        message = "%s; further cases of this kind are counted but not logged"
        self._once.log(kind, message, text, error=error)


def log_excerpt(message: str) -> str:
    """Return the beginning of a foreign message on one line: at most 200 characters, escaped."""
    short = message if len(message) <= _MAX_MESSAGE else f"{message[: _MAX_MESSAGE - 1]}…"
    return short.encode("unicode_escape").decode("ascii")


def log_undone(counters: Counters, when: str) -> bool:
    """Log in one line how many calls were not evaluated and how many evaluations not written.

    Returns:
        Whether there were any.
    """
    unwritten = sum(sink.pending for sink in counters.sinks)
    if counters.pending or unwritten:
        logger.warning(
            "%s not evaluated and %s not written %s",
            counted(counters.pending, "call was", "calls were"),
            counted(unwritten, "evaluation"),
            when,
        )
    return bool(counters.pending or unwritten)


# --- Mean scores over all traffic, estimated from the calls that were sampled and judged


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
        """Compute weighted means so far, one per score and maker, and count what is unscored."""
        with self._lock:
            means = tuple(
                WeightedMean(
                    name=maker.name,
                    by=maker.by,
                    method=maker.method,
                    mean=mean.mean,
                    ci95=mean.ci95,
                    scored=mean.n,
                    total=self._means.total[maker.name],
                )
                for maker, mean in self._means.made.items()
                if mean.mean is not None
            )
            unscored = {name: dict(codes) for name, codes in self._means.unscored.items()}
        return TrafficSummary(means=means, unscored=unscored)
