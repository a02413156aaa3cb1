"""Says each kind of failure once: a judge that is down must not fill the app's log."""

from __future__ import annotations

import logging
import threading

from rag_eval_integrations.background.counters import Counters

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
