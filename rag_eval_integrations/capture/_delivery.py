"""Deliver finished calls to the target; failures are logged and counted, never raised."""

from __future__ import annotations

import inspect
import logging
from asyncio import CancelledError
from collections.abc import Callable

from rag_eval_integrations._once import LogOnce
from rag_eval_integrations._suppress import SUPPRESSED
from rag_eval_integrations._visible import logger_of
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import RagCall
from rag_eval_integrations.records._ended import EndedCall

# --- Checks of the functions that a user passes, which have to be plain functions


def is_async(function: object) -> bool:
    """Return whether the function's result would have to be awaited."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 -- the method itself is inspected
    )


def check_hooks(**hooks: object) -> None:
    """Check that each hook is None or a plain function.

    Args:
        **hooks: the hooks, by name.

    Raises:
        ConfigurationError: a hook cannot be called, or is async; the message names it.
    """
    for name, hook in hooks.items():
        if hook is None:
            continue
        if not callable(hook):
            raise ConfigurationError(name, hook, "should be a plain function")
        if is_async(hook):
            raise ConfigurationError(
                name, hook, "is async; use a plain function, because it runs inside the app's call"
            )


Target = Callable[[RagCall], object]


class TargetDelivery:
    """Delivers calls to a target; failures are logged and counted, and never reach the app.

    Only the first failure of a kind (place and exception type) is logged, with its traceback: a
    target that is down logs one traceback, not one per call. At most 100 kinds are logged.

    Args:
        target: a plain callable that takes a `RagCall`.
        logger: the logger for failures.
        later: takes captured calls whose record it makes itself, in place of the target.

    Raises:
        ConfigurationError: `target` cannot be called, or is async.
    """

    def __init__(
        self,
        target: Target,
        logger: logging.Logger,
        *,
        later: Callable[[EndedCall], object] | None = None,
    ) -> None:
        if not callable(target):
            raise ConfigurationError("target", target, "should be a callable that takes a RagCall")
        if isinstance(target, type):
            raise ConfigurationError("target", target, "is a class; pass an object of it")
        if is_async(target):
            raise ConfigurationError(
                "target", target, "is async; pass a plain callable that schedules its own work"
            )
        self._target = target
        self._later = later
        self._failures = LogOnce(logger, logging.ERROR)

    @property
    def failed(self) -> int:
        """Number of failures of the target and of the capture itself."""
        return self._failures.count

    def deliver(self, call: RagCall | EndedCall) -> None:
        """Call the target with a call; RAG calls that the target makes are not captured."""
        token = SUPPRESSED.set(True)  # `suppress_capture` without the cost of a generator
        try:
            if type(call) is not EndedCall:
                self._target(call)  # type: ignore[arg-type]  # narrowed by `type`, as mypy cannot
            elif self._later is not None:
                self._later(call)
            elif (record := call.record()) is not None:
                self._target(record)
        except (Exception, CancelledError, SystemExit) as error:  # noqa: BLE001 -- the app goes on
            self.failure("the target", error)
        finally:
            SUPPRESSED.reset(token)

    def failure(self, where: str, error: BaseException) -> None:
        """Count a failure; log it with its traceback if it is the first of its kind.

        Args:
            where: the place of the failure, as the log line begins.
            error: the exception.
        """
        _log(self._failures, where, error)


def _log(failures: LogOnce, where: str, error: BaseException) -> None:
    kind = type(error)
    message = (
        "%s failed with %s; the app's call is not affected, and further failures of this kind are "
        "counted but not logged"
    )
    failures.log((where, kind), message, where, kind.__name__, error=error)


# --- Failures while an app without a framework is captured, counted for the whole process


_LOGGER = logger_of("rag_eval_integrations.capture")


_FAILURES = LogOnce(_LOGGER, logging.ERROR)


def capture_failures() -> int:
    """Return how often a target, or the capture itself, has failed since the process began.

    Counts the failures of `capture_call` and `record_call`. The first failure of a kind (place,
    target and exception type) is logged with its traceback.
    """
    return _FAILURES.count


class CountedDelivery(TargetDelivery):
    """Delivers the calls of `capture_call` and `record_call`; counts failures for the process."""

    def failure(self, where: str, error: BaseException) -> None:
        """Count a failure; log it with its traceback if it is the first of its kind."""
        if where == "the target":
            where = f"the target {getattr(self._target, '__qualname__', type(self._target))}"
        _log(_FAILURES, where, error)
