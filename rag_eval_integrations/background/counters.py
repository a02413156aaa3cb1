"""What became of every call: counts that add up."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class SinkCounters:
    """What became of the evaluations for one sink."""

    name: str
    """The sink's class, with its number from 0 where several have one class."""
    written: int
    failed: int
    """In batches that the sink raised on; not written again."""
    dropped: int
    """Not handed over: the sink was slower than the evaluations came, and its queue was full."""
    pending: int


@dataclass(frozen=True)
class Counters:
    """A snapshot of what became of the calls since the start (of this process, after a fork).

    `captured` is the sum of all the others: every call is in exactly one of them.
    """

    captured: int = 0
    """Calls handed in."""
    sampled_out: int = 0
    skipped: int = 0
    """Whose run did not end well (`Capture.status` is not `ok`)."""
    dropped: int = 0
    """The queue was full, or the evaluator closed."""
    over_budget: int = 0
    """Delivered to the sinks unscored, with the code `over_budget`."""
    failed: int = 0
    """Evaluations with an error, and objects that are no calls."""
    scored: int = 0
    """Evaluations with at least one score that has a value."""
    unscored: int = 0
    """Evaluations without an error and without a value."""
    pending: int = 0
    """Waiting or being evaluated."""
    sinks: tuple[SinkCounters, ...] = ()
    """One a sink, in order."""


# --- Counts what becomes of calls, from any thread, so that the counts always add up


Fate = Literal["sampled_out", "skipped", "dropped", "over_budget", "failed", "scored", "unscored"]


class Tally:
    """Every call is captured once and meets one fate; what has met none is pending."""

    def __init__(self) -> None:
        # Reentrant: a garbage collection in here may finalise a stream, whose call is submitted.
        self._lock = threading.RLock()
        self._captured = 0
        self._fates: dict[Fate, int] = {}

    def captured(self, fate: Fate | None = None) -> None:
        """Count a call that was handed in, with its fate where that is known at once."""
        with self._lock:
            self._captured += 1
            if fate is not None:
                self._fates[fate] = self._fates.get(fate, 0) + 1

    def met(self, fate: Fate, calls: int = 1) -> None:
        """Count calls, captured before, that met a fate."""
        with self._lock:
            self._fates[fate] = self._fates.get(fate, 0) + calls

    @property
    def pending(self) -> int:
        """Calls that have met no fate yet."""
        with self._lock:
            return self._captured - sum(self._fates.values())

    def counters(self, sinks: tuple[SinkCounters, ...]) -> Counters:
        """Take a snapshot."""
        with self._lock:
            pending = self._captured - sum(self._fates.values())
            return Counters(captured=self._captured, pending=pending, sinks=sinks, **self._fates)


# --- Says each kind of failure once: a judge that is down must not fill the app's log


_MAX_KINDS = 100
_MAX_MESSAGE = 200

logger = logging.getLogger("rag_eval_integrations.background")


class FailureLog:
    """Logs the first failure of each kind; the caller counts them all. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a garbage collection in here may submit a call
        self._seen: set[tuple[str, ...]] = set()

    def say(self, kind: tuple[str, ...], text: str, error: BaseException | None = None) -> None:
        """Log a text, with the error's traceback, unless this kind was logged before.

        At most 100 kinds are logged, so that kinds without end do not fill the memory.
        """
        with self._lock:
            if kind in self._seen or len(self._seen) >= _MAX_KINDS:
                return
            self._seen.add(kind)
        logger.warning("%s; further ones of this kind are only counted", text, exc_info=error)


def shown(message: str) -> str:
    """Show a foreign message in a log line: at most 200 characters, line ends escaped."""
    short = message if len(message) <= _MAX_MESSAGE else f"{message[: _MAX_MESSAGE - 1]}…"
    return short.encode("unicode_escape").decode("ascii")


def log_undone(counters: Counters, when: str) -> None:
    """Say in one line what was neither evaluated nor written, if anything was."""
    unwritten = sum(sink.pending for sink in counters.sinks)
    if counters.pending or unwritten:
        logger.warning(
            "%d calls were not evaluated and %d evaluations not written %s",
            counters.pending, unwritten, when,
        )  # fmt: skip
