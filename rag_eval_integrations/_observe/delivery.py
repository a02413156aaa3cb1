"""From a finished call to the target, without ever disturbing the app."""

from __future__ import annotations

import logging
import threading
from asyncio import CancelledError
from collections.abc import Callable

from rag_eval_integrations._observe.functions import is_async
from rag_eval_integrations._suppress import SUPPRESSED
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import RagCall

Target = Callable[[RagCall], object]


class Delivery:
    """Hands calls to the target; whatever goes wrong stays here, logged and counted.

    The traceback is logged at the first failure of a kind (place and exception type), so that a
    target that is down does not fill the app's log with a traceback a call.
    """

    _MAX_KINDS = 100

    def __init__(self, target: Target, logger: logging.Logger) -> None:
        if not callable(target):
            raise ConfigurationError("target", target, "should be a callable that takes a RagCall")
        if is_async(target):
            raise ConfigurationError(
                "target", target, "is async; pass a plain callable that schedules its own work"
            )
        self.failed = 0
        """Failures of the target and of the capture itself."""
        self._target = target
        self._logger = logger
        self._logged: set[tuple[str, type[BaseException]]] = set()
        self._lock = threading.Lock()

    def deliver(self, call: RagCall) -> None:
        """Call the target; what it runs in either framework is not captured."""
        token = SUPPRESSED.set(True)  # `suppress_capture` without a generator's cost
        try:
            self._target(call)
        except (Exception, CancelledError, SystemExit) as error:  # noqa: BLE001 -- the app goes on
            self.failure("the target", error)
        finally:
            SUPPRESSED.reset(token)

    def failure(self, where: str, error: BaseException) -> None:
        """Count a failure, and log it with its traceback if it is the first of its kind."""
        kind = (where, type(error))
        with self._lock:
            self.failed += 1
            first = kind not in self._logged and len(self._logged) < self._MAX_KINDS
            if first:
                self._logged.add(kind)
        if first:
            self._logger.error(
                "%s failed with %s; the app's call is not affected, further failures of this "
                "kind are only counted",
                where,
                type(error).__name__,
                exc_info=error,
            )
