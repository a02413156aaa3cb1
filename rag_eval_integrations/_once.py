"""`LogOnce`: count failures, and log the first of each kind.

A judge, a sink or a target that is down must not fill the app's log with one line per call.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Hashable


class LogOnce:
    """Counts failures from any thread; logs the first of each kind.

    Args:
        logger: where failures are logged.
        level: level of the log lines.
        max_kinds: number of kinds that are logged; further ones are only counted, so that kinds
            without end fill neither the log nor the memory.
    """

    def __init__(
        self, logger: logging.Logger, level: int = logging.WARNING, *, max_kinds: int = 100
    ) -> None:
        self.count = 0
        """Failures so far, logged or not."""
        self._logger = logger
        self._level = level
        self._max_kinds = max_kinds
        self._kinds: set[Hashable] = set()
        self._lock = threading.RLock()  # a garbage collection in here may report a failure

    def log(
        self, kind: Hashable, message: str, *args: object, error: BaseException | None = None
    ) -> None:
        """Count a failure; log it if it is the first of its kind.

        Args:
            kind: key of the kind of failure.
            message: the log line, with the places of `args`.
            *args: values for the log line.
            error: the exception whose traceback is logged, if any.
        """
        with self._lock:
            self.count += 1
            if kind in self._kinds or len(self._kinds) >= self._max_kinds:
                return
            self._kinds.add(kind)
        self._logger.log(self._level, message, *args, exc_info=error, stacklevel=2)
