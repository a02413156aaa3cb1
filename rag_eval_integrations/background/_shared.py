"""One background for all handlers on one evaluator: a handler per request costs no thread.

    handler ─▶ Share ─▶ _Lease ─▶ _SharedBackground ◀─ its threads, while they run
                 ▲
                 └─ calls that wait, are evaluated or are told to the handler's functions

When the last share is gone, its `_Lease` is too, and the threads end.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary, finalize

from rag_eval_integrations import _process
from rag_eval_integrations._visible import LogOnce
from rag_eval_integrations.background._worker import discard
from rag_eval_integrations.background.runner import BackgroundEvaluator
from rag_eval_integrations.evaluations import Evaluations
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.records import Evaluation, RagCall
from rag_eval_integrations.records.call import EndedCall
from rag_eval_integrations.sinks import CallbackSink

# --- What a handler has of a shared background


class Share(_process.ProcessObserver):
    """One handler's part of a shared background: its calls, their evaluations, its callbacks.

    Args:
        target: the evaluator, or the name of its judge; handlers with the same one share threads.
        sinks: callbacks that get each evaluation, in order, also when the handler is gone.
        failures: counts and logs what the callbacks raise.

    Raises:
        ConfigurationError: the judge is not known, or threads are patched (gevent, eventlet).
    """

    def __init__(
        self, target: RagEvaluator | str, sinks: Sequence[CallbackSink], failures: LogOnce
    ) -> None:
        # Without a lock, which a fork could leave locked: of two made at once, one is used.
        key = target if isinstance(target, str) else id(target)
        self.lease = _leases.get(key) or _leases.setdefault(key, _Lease(target))
        self.sinks = sinks
        self.failures = failures
        self.after_fork()
        _process.register(self)

    def after_fork(self) -> None:
        """Start empty; the parent evaluates the calls that it had queued."""
        # Reentrant: a garbage collection in here may finalise a stream and so submit its call.
        self._changed = threading.Condition()
        self._open: set[_OwnedCall] = set()
        self.latest: deque[Evaluation] = deque(maxlen=100)

    def __call__(self, call: RagCall | EndedCall) -> None:
        """Queue a call for evaluation; takes microseconds and never raises."""
        _process.notice_fork()
        owned = _OwnedCall(call, self)
        with self._changed:
            self._open.add(owned)
        self.lease.background.submit(owned)  # type: ignore[arg-type]  # it takes both, as here

    submit_ended = __call__

    def settle(self, call: _OwnedCall) -> None:
        """Mark a call as finished, whatever became of it."""
        with self._changed:
            self._open.discard(call)
            self._changed.notify_all()

    @property
    def evaluations(self) -> Evaluations:
        """A snapshot of the latest 100 evaluations, oldest first."""
        _process.notice_fork()
        return Evaluations(self.latest.copy())

    @property
    def kept(self) -> int:
        """Number of evaluations that `evaluations` holds."""
        return len(self.latest)

    @property
    def pending(self) -> int:
        """Number of calls that wait or are being evaluated."""
        _process.notice_fork()
        with self._changed:
            return sum(not call.evaluated for call in self._open)

    def flush(self, timeout: float = 30.0) -> bool:
        """Wait until the handler's calls are evaluated and its callbacks done; return if in time.

        Raises:
            ReentryError: called inside an evaluation or a sink, which would wait for itself.
        """
        background = self.lease.background
        background._refuse_reentry("flush")
        with background._deliveries[0].hurried(), self._changed:
            own = self._open.copy()
            done = self._changed.wait_for(
                lambda: own.isdisjoint(self._open), min(timeout, threading.TIMEOUT_MAX)
            )
            pending = self.pending
            untold = len(self._open) - pending
        if not done:
            background._log_undone(timeout, pending, untold)
        return done


class _OwnedCall(EndedCall):
    """A call that reports to its share what becomes of it."""

    __slots__ = ("_call", "evaluated", "share")
    __repr__ = object.__repr__  # the fields of the base class are not set

    def __init__(self, call: RagCall | EndedCall, share: Share) -> None:
        self._call: RagCall | EndedCall | None = call
        self.share = share
        self.evaluated = False
        """Whether it is evaluated, and only its callbacks are left."""
        captured = call if isinstance(call, EndedCall) else call.capture
        self.status = "ok" if captured is None else captured.status

    def record(self) -> RagCall | None:
        """Return the record of the call, and release the handler that makes it."""
        if isinstance(self._call, EndedCall):
            self._call = self._call.record()
        return self._call

    def drop(self) -> None:
        """Release a call that will not be judged."""
        if self._call is not None:
            discard(self._call)
        self.share.settle(self)


# --- The background


class _SharedBackground(BackgroundEvaluator):
    """Background evaluator of several shares; each evaluation goes to its own share alone."""

    async def _evaluate(self, call: _OwnedCall, probability: float) -> None:  # type: ignore[override]
        try:
            await super()._evaluate(call, probability)
        finally:
            if not call.evaluated:
                call.share.settle(call)

    def _pass_on(self, call: Any, evaluation: Evaluation, probability: float) -> None:
        call.share.latest.append(evaluation)
        delivery: Any = (call, evaluation)
        call.evaluated = bool(call.share.sinks) and self._deliveries[0].enqueue(delivery)

    def end(self) -> None:
        """End the threads, from any thread, once no share is left."""
        self._worker.stop(0.0)
        self._deliveries[0].stop(0.0)


def _call_back(delivery: Any) -> None:
    """Pass an evaluation to its share's callbacks; what these raise is counted there."""
    call, evaluation = delivery
    for sink in call.share.sinks:
        try:
            sink.write([evaluation])
        except BaseException as error:  # noqa: BLE001 -- the thread must go on
            message = "`on_evaluation` failed; further failures of this kind are only counted"
            call.share.failures.log(("on_evaluation", type(error)), message, error=error)
    call.share.settle(call)


class _Lease:
    """Lease of a background, which ends with the last share that holds it."""

    def __init__(self, target: RagEvaluator | str) -> None:
        self.evaluator = RagEvaluator(target) if isinstance(target, str) else target
        self.background = _SharedBackground(self.evaluator, [CallbackSink(_call_back)])
        finalize(self, self.background.end).atexit = False


_leases: WeakValueDictionary[str | int, _Lease] = WeakValueDictionary()
"""Judge's name or the evaluator's `id` → the lease of its background, which keeps the evaluator."""
