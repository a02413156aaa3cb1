"""Count the outcome of every call, and log the first failure of each kind."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from rag_eval_integrations._counted import counted
from rag_eval_integrations._once import LogOnce
from rag_eval_integrations._visible import logger_of


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
    """Counts calls: each is captured once and then meets one fate; until then it is pending."""

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
        """Count the fate of calls that were captured before."""
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


def shown(message: str) -> str:
    """Return a foreign message for a log line: at most 200 characters, line breaks escaped."""
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
