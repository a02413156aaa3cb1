"""From a finished call to the target, without ever disturbing the app."""

from __future__ import annotations

import inspect
import logging
import threading
from asyncio import CancelledError
from collections.abc import Callable

from rag_eval_integrations._suppress import SUPPRESSED
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import RagCall

# --- What a user gives to be called inside of the app's call: plain functions, told apart here


def is_async(function: object) -> bool:
    """Whether what it returns would have to be awaited."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 -- the method itself is asked for
    )


def check_hooks(**hooks: object) -> None:
    """Refuse hooks that cannot be called as they are; None is no hook.

    Raises:
        ConfigurationError: one cannot be called, or would have to be awaited; names it.
    """
    for name, hook in hooks.items():
        if hook is None:
            continue
        if not callable(hook):
            raise ConfigurationError(name, hook, "should be a plain function")
        if is_async(hook):
            raise ConfigurationError(
                name, hook, "is async; should be a plain function, it runs inside of the app's call"
            )


Target = Callable[[RagCall], object]


class TargetDelivery:
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


# --- What goes wrong while a plain app is captured: counted and logged, never raised


_LOGGER = logging.getLogger("rag_eval_integrations.capture")


_FAILURES = TargetDelivery(lambda call: None, _LOGGER)


def capture_failures() -> int:
    """How often a target, or this module itself, failed since the process began.

    The first failure of a kind (place, target and exception type) is logged with its traceback.
    """
    return _FAILURES.failed


class CountedDelivery(TargetDelivery):
    """Delivers for one `capture_call`; a target that is down logs no traceback a call."""

    def failure(self, where: str, error: BaseException) -> None:
        """Count a failure; log the first of its kind with its traceback."""
        if where == "the target":
            where = f"the target {getattr(self._target, '__qualname__', type(self._target))}"
        _FAILURES.failure(where, error)
