"""The way from a capturing object to its target; failures are logged and counted, never raised."""

from __future__ import annotations

import inspect
import logging
import sys
from asyncio import CancelledError
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypeVar

from rag_eval_integrations._suppress import SUPPRESSED, suppress_capture
from rag_eval_integrations._visible import LogOnce, kind_and_place, logger_of
from rag_eval_integrations.errors import ConfigurationError, RagEvalError
from rag_eval_integrations.records import RagCall
from rag_eval_integrations.records.call import EndedCall

if TYPE_CHECKING:
    from rag_eval_integrations.background._shared import Share
    from rag_eval_integrations.background.runner import BackgroundEvaluator
    from rag_eval_integrations.evaluations import Evaluations
    from rag_eval_integrations.evaluator import RagEvaluator
    from rag_eval_integrations.records import Evaluation


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


# --- Delivery


Target = Callable[[RagCall], object]
TargetOrEvaluator: TypeAlias = "Target | RagEvaluator | str"

PROCESS_LOGGER = logger_of("rag_eval_integrations.capture")
PROCESS_FAILURES = LogOnce(PROCESS_LOGGER, logging.ERROR)
"""Failures while an app without a framework is captured, counted for the whole process."""


def capture_failures() -> int:
    """Return how often a target, or the capture itself, has failed since the process began.

    Counts the failures of `capture_call` and `record_call`. The first failure of a kind (place,
    target and exception type) is logged with its traceback.
    """
    return PROCESS_FAILURES.count


_INSTALLED = 'RagEvalHandler("embedded").install(), and call it as before'
_APPS = {
    "invoke": 'app.invoke(…, {"callbacks": [RagEvalCallbackHandler("embedded")]})',
    "query": _INSTALLED,
    "chat": _INSTALLED,
    "retrieve": _INSTALLED,
}
"""Methods of chains, engines and retrievers → what to type where one is given as target."""


class TargetDelivery:
    """Delivers calls to a target; failures are logged and counted, and never reach the app.

    Only the first failure of a kind (place and exception type) is logged, with its traceback: a
    target that is down logs one traceback, not one per call. At most 100 kinds are logged.

    Args:
        target: a plain callable that takes a `RagCall`, or what `background` evaluates.
        failures: logs and counts the failures.
        background: takes the calls in place of the target, and makes their records itself.

    Raises:
        ConfigurationError: `target` cannot be called, or is async.
    """

    unreached = ""
    """What captures, and how to attach it, until a run has reached it; then empty."""

    def __init__(
        self,
        target: TargetOrEvaluator,
        failures: LogOnce,
        background: BackgroundEvaluator | Share | None = None,
    ) -> None:
        self._given = target
        taker = target if background is None else background
        if not callable(taker):
            for method, typed in _APPS.items():
                if hasattr(taker, method):
                    kind = type(taker).__name__
                    why = f"a {kind} is part of the app, and takes no calls; type {typed}"
                    raise ConfigurationError("target", taker, why, missing=True)
            why = "use a judge's name, a RagEvaluator or a function that takes a RagCall"
            if hasattr(taker, "evaluate_sync"):  # of `record_call`, which has no results to ask for
                why = "use a BackgroundEvaluator of it, or its `evaluate_sync`"
            raise ConfigurationError("target", taker, why)
        if isinstance(taker, type):
            raise ConfigurationError("target", taker, "is a class; pass an object of it")
        if is_async(taker):
            raise ConfigurationError(
                "target", taker, "is async; pass a plain callable that schedules its own work"
            )
        self.target: Target = taker
        """The callable that takes the calls."""
        self.background = background
        self._later = None if background is None else background.submit_ended
        self.failures = failures

    def __repr__(self) -> str:
        """Show the target, what came of it, and the failures."""
        to = getattr(self._given, "__qualname__", None) or repr(self._given)
        number = 0 if self.background is None else self.background.kept
        count = f"{number} evaluation{'s' if number > 1 else ''}, " if number else ""
        return f"{to}, {count}{self.failures.count} failed"

    def deliver(self, call: RagCall | EndedCall) -> None:
        """Call the target with a call; RAG calls that the target makes are not captured.

        A target that makes the record itself, in the background, gets what was captured. What the
        target raises is logged and counted.
        """
        token = SUPPRESSED.set(True)  # `suppress_capture` without the cost of a generator
        try:
            if type(call) is not EndedCall:
                self.target(call)  # type: ignore[arg-type]  # narrowed by `type`, as mypy cannot
            elif self._later is not None:
                self._later(call)
            elif (record := call.record()) is not None:
                self.target(record)
        except (Exception, CancelledError, SystemExit) as error:  # noqa: BLE001 -- the app goes on
            place = "the target"
            if self.failures is PROCESS_FAILURES:  # of many targets
                place = f"the target {getattr(self.target, '__qualname__', type(self.target))}"
            self.failure(place, error)
        finally:
            SUPPRESSED.reset(token)

    def failure(self, where: str, error: BaseException, *, hook: bool = False) -> None:
        """Count a failure; log it with its traceback if it is the first of its kind.

        Args:
            where: the place of the failure, as the log line begins.
            error: the exception.
            hook: it is of a function of the user that reads the app's texts, which its words may
                quote: the log has its type and place alone.
        """
        kind = type(error)
        what = kind.__name__
        if hook:
            what = str(error) if isinstance(error, UnusableError) else kind_and_place(error)
        message = (
            "%s failed with %s; the app's call is not affected, and further failures of this kind "
            "are counted but not logged"
        )
        self.failures.log((where, kind), message, where, what, error=None if hook else error)


_EVALUATING = {"rag_eval_integrations.background", "rag_eval_integrations.evaluator"}


def delivery_to(
    target: TargetOrEvaluator,
    logger: logging.Logger,
    on_evaluation: Callable[[Evaluation], object] | None = None,
    announce: Callable[[Evaluation], object] | None = None,
) -> TargetDelivery:
    """Make the delivery to the user's target; a `RagEvaluator` is run in the background.

    All deliveries to one evaluator, or to one judge's name, share a thread and its queue.

    Args:
        target: a callable that takes a `RagCall`, a `BackgroundEvaluator`, a `RagEvaluator`, or
            the name of its judge, such as `embedded`.
        logger: the framework's logger, for failures.
        on_evaluation: called with every evaluation, in order, from another thread; only with a
            `RagEvaluator` as target.
        announce: the framework's own function that is called as well.

    Raises:
        ConfigurationError: `target` cannot be called, or `on_evaluation` cannot be called or is
            given with another target than a `RagEvaluator`.
    """
    failures = PROCESS_FAILURES if logger is PROCESS_LOGGER else LogOnce(logger, logging.ERROR)
    # Evaluation costs more to import than all of capture. Whoever makes an evaluator has imported
    # it; if it is not imported, the target cannot be an evaluator.
    if (
        on_evaluation is None
        and not isinstance(target, str)
        and not sys.modules.keys() & _EVALUATING
    ):
        return TargetDelivery(target, failures)
    from rag_eval_integrations.background._shared import Share  # noqa: PLC0415
    from rag_eval_integrations.background.runner import BackgroundEvaluator  # noqa: PLC0415
    from rag_eval_integrations.evaluator import RagEvaluator  # noqa: PLC0415
    from rag_eval_integrations.sinks import CallbackSink  # noqa: PLC0415

    if isinstance(target, str | RagEvaluator):
        sinks = [CallbackSink(listener) for listener in (on_evaluation, announce) if listener]
        share = Share(target, sinks, failures)
        return TargetDelivery(share.lease.evaluator, failures, share)
    if on_evaluation is not None:
        raise ConfigurationError(
            "on_evaluation",
            on_evaluation,
            "needs a RagEvaluator as target; pass sinks to a BackgroundEvaluator instead",
        )
    return TargetDelivery(
        target, failures, target if isinstance(target, BackgroundEvaluator) else None
    )


# --- What an object that captures shows of its delivery


class HasDelivery(Protocol):
    """An object with a delivery, its own or that of one of its parts."""

    @property
    def _delivery(self) -> TargetDelivery: ...


class Captures:
    """Counts and evaluations of an object that captures; a mixin for handlers and wrappers.

    It has neither fields nor a constructor, so that pydantic models can inherit it as well.
    """

    @property
    def failed(self: HasDelivery) -> int:
        """Number of failures of the target, the hooks, `on_evaluation` and the capture itself."""
        return self._delivery.failures.count

    @property
    def pending(self: HasDelivery) -> int:
        """Number of captured calls that wait or are being evaluated.

        With a `BackgroundEvaluator` as target, of all that it is given; 0 for a plain callable.
        """
        background = self._delivery.background
        return 0 if background is None else background.pending

    @property
    def evaluations(self: HasDelivery) -> Evaluations:
        """The latest 100 evaluations, oldest first: a snapshot, for any thread.

        Printed, it says how many calls are still being judged; `flush` waits for them.
        With a `BackgroundEvaluator` as target, all that it keeps, other handlers' too; empty for a
        plain callable.

        Raises:
            RagEvalError: the target is a `Spool`; the evaluations are in a store.
        """
        background = self._delivery.background
        if background is not None:
            pending = background.pending  # first, so that no call is in neither
            evaluations = background.evaluations
            evaluations._pending = pending
            return evaluations
        from rag_eval_integrations.store.spool import Spool  # noqa: PLC0415 -- SQLite, as above

        if isinstance(self._delivery.target, Spool):
            raise RagEvalError(
                f"the calls are in the spool {self._delivery.target.folder}, and their evaluations "
                "in the store of its worker: `rag-eval worker --store URL --spool DIR` makes them, "
                "and `rag_eval_integrations.store.Store(URL).evaluations()` reads them"
            )
        from rag_eval_integrations.evaluations import Evaluations  # noqa: PLC0415 -- as above

        return Evaluations()

    def flush(self: HasDelivery, timeout: float = 30.0) -> bool:
        """Wait until the calls captured so far are evaluated, and `on_evaluation` was called.

        Blocks the calling thread; in async code call it with `asyncio.to_thread`. Where no run has
        reached the handler yet, the log says how to attach it.

        Args:
            timeout: seconds to wait at most.

        Returns:
            Whether all of them were evaluated in time; True at once for a plain callable.

        Raises:
            ReentryError: called inside an evaluation or a sink, which would wait for itself.
        """
        delivery = self._delivery
        if delivery.unreached:
            delivery.failures.logger.warning("no run has reached this %s", delivery.unreached)
            delivery.unreached = ""
        return delivery.background is None or delivery.background.flush(timeout)


_OF_MANAGERS = {"start_trace", "event_starts_to_ignore", "run_inline", "raise_error"}
"""What a callback manager asks each of its handlers for, of LlamaIndex and of LangChain."""


class Attached(Captures):
    """A handler, and what a callback manager is told that cannot use it."""

    _attach: ClassVar[str]
    """How to attach it."""

    if not TYPE_CHECKING:  # which should tell attributes that are not there

        def __getattr__(self, name: str) -> Any:
            why = f"; {self._attach}" if name in _OF_MANAGERS else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{why}")


# --- The user's own extractors `question=`, `documents=` and `response=`
#
# They are the user's code inside the app's call: a failure is counted and logged, and never reaches
# the app. Each framework decides what its hooks are given, and what stands where one of them fails.


T = TypeVar("T")
E = TypeVar("E")


class Hooks:
    """The user's own extractors; each is optional.

    Args:
        delivery: counts and logs the failures.
        **hooks: the extractors by name; None for those that the user did not give.

    Raises:
        ConfigurationError: a hook cannot be called, or is async; the message names it.
    """

    def __init__(self, delivery: TargetDelivery, **hooks: Callable[..., object] | None) -> None:
        check_hooks(**hooks)
        self._delivery = delivery
        self._hooks = {name: hook for name, hook in hooks.items() if hook is not None}

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def __contains__(self, name: str) -> bool:
        return name in self._hooks

    def run(
        self,
        name: str,
        *given: Any,
        read: Callable[[object], T],
        empty: E,
        failed: list[str] | None = None,
    ) -> T | E | None:
        """Run a hook; what it calls of the frameworks is not captured.

        What it raises is counted.

        Args:
            name: name of the hook.
            *given: its arguments.
            read: checks and converts what it returns.
            empty: what to return if it fails.
            failed: list to which the name of a hook that fails is added.

        Returns:
            What `read` made of the hook's result; None without this hook.
        """
        hook = self._hooks.get(name)
        if hook is None:
            return None
        try:
            with suppress_capture():
                return read(hook(*given))
        except (Exception, CancelledError, SystemExit) as error:  # noqa: BLE001 -- the app goes on
            if failed is not None:
                failed.append(name)
            self._delivery.failure(f"the `{name}` hook", error, hook=True)
            return empty


# --- What a hook may return


class UnusableError(TypeError):
    """The result of a hook is of a type that cannot be used; its words quote no text."""


def text(value: object) -> str:
    """Return a hook's text as a plain `str`.

    Raises:
        UnusableError: it is not a string.
    """
    if not isinstance(value, str):
        raise UnusableError(f"should return a string, not {type(value).__name__}")
    return str.__str__(value)


def text_or_none(value: object) -> str | None:
    """Return a hook's text, or None.

    Raises:
        UnusableError: it is something else.
    """
    return None if value is None else text(value)
