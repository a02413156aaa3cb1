"""`BackgroundEvaluator`: sample, queue, evaluate, count and deliver the submitted calls."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Literal, Self, get_args

from rag_eval_integrations import _process
from rag_eval_integrations._visible import counted
from rag_eval_integrations.background._sink_delivery import deliveries_to
from rag_eval_integrations.background._worker import WhenFull, Worker, discard
from rag_eval_integrations.background.budget import (
    BoundedEvaluator,
    Budget,
    SampleRate,
    checked,
    chosen,
    probability_of,
    sample_key,
)
from rag_eval_integrations.background.counters import (
    Aggregate,
    Counters,
    FailureLog,
    Fate,
    Tally,
    TrafficSummary,
    log_excerpt,
    log_undone,
)
from rag_eval_integrations.errors import ConfigurationError, ReentryError, whole_number
from rag_eval_integrations.evaluations import Evaluations
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.judges.judge import judge_base
from rag_eval_integrations.records import Evaluation, RagCall
from rag_eval_integrations.records._json import is_amount
from rag_eval_integrations.records.call import EndedCall
from rag_eval_integrations.sinks.sink import Sink, WatchingSink

OnSigterm = Literal["leave", "drain"]

_LAST_BATCH = 1.0  # seconds that `close` gives the threads to end after everything else


class BackgroundEvaluator(_process.ProcessObserver):
    """Evaluates calls in a background thread; `submit` only adds them to a queue.

    It is a target for the handlers of LangChain and LlamaIndex
    (`RagEvalCallbackHandler(background)`). A failure never reaches the app: failures are counted,
    and logged once per kind. Drain it with `flush`, `close`, `with` or `async with` (in an async
    app: `await asyncio.to_thread(background.flush)`). If the program ends without that, pending
    calls have `exit_grace` seconds, and one log line counts those that are lost. In a forked child
    (gunicorn prefork) it starts empty, with its own thread, counters and budget; the parent
    evaluates the calls that it had queued.

    Args:
        evaluator: evaluates the calls.
        sinks: receive the evaluations, in batches; each sink is called from its own thread.
        sample_rate: share of the calls to judge, in [0, 1], or a function from a call to that
            share (to judge more of the risky calls), which runs on the app's thread. The decision
            depends on `capture.run_id` alone, or on `id` for a call without one, and is the same
            on every machine.
        max_pending: calls waiting at most. The queue of each sink holds as many evaluations, but
            at least 1,000.
        max_concurrency: calls evaluated concurrently at most.
        budget: limits on evaluations per minute and dollars per day, for each process. Calls
            beyond them do not wait: they are delivered to the sinks unscored (`over_budget`).
        when_full: which call is dropped when `max_pending` calls wait: `drop_newest`,
            `drop_oldest`, or `block`: then `submit` blocks the app for up to 30 s and drops the
            call after that.
        exit_grace: seconds that the end of the program waits for pending calls at most, from 0.
            With nothing pending it does not wait. `os._exit` and signals without a handler end a
            process at once.
        keep: number of the latest evaluations that `evaluations` holds, from 0. Each takes about 50
            kB; sinks get every evaluation.
        on_sigterm: `drain` to have SIGTERM wait `exit_grace` seconds for pending calls before it
            ends the process, where it has no handler. A handler of the app's, set before or later,
            stays and decides: if it ends the program normally (`sys.exit`), `exit_grace` applies.
            `leave` to change nothing.

    Raises:
        ConfigurationError: an argument cannot be used; the message names it. Or threads are patched
            (gevent, eventlet).
    """

    _timeout = 300.0
    """Seconds per evaluation at most: a judge that never answers holds no place for ever. A call
    beyond it is delivered with an error."""

    def __init__(
        self,
        evaluator: RagEvaluator,
        sinks: Sequence[Sink] = (),
        *,
        sample_rate: SampleRate = 1.0,
        max_pending: int = 1000,
        max_concurrency: int = 8,
        budget: Budget | None = None,
        when_full: WhenFull = "drop_newest",
        exit_grace: float = 5.0,
        on_sigterm: OnSigterm = "leave",
        keep: int = 100,
    ) -> None:
        if not isinstance(evaluator, RagEvaluator):
            raise ConfigurationError(
                "evaluator", evaluator, "should be a RagEvaluator, as in RagEvaluator()"
            )
        whole_number("max_pending", max_pending)
        whole_number("max_concurrency", max_concurrency)
        whole_number("keep", keep, 0)
        if not is_amount(exit_grace, or_zero=True):
            raise ConfigurationError(
                "exit_grace", exit_grace, "use a finite number of seconds from 0"
            )
        if on_sigterm not in get_args(OnSigterm):
            raise ConfigurationError("on_sigterm", on_sigterm, f"use one of {get_args(OnSigterm)}")
        if when_full not in get_args(WhenFull):
            raise ConfigurationError("when_full", when_full, f"use one of {get_args(WhenFull)}")
        if threading.get_ident.__module__ != "_thread":
            raise ConfigurationError(
                "threading",
                threading.get_ident.__module__,
                "greenlets stand for threads here, and only one of them can run an event loop; let "
                "workers have threads (gunicorn: `--worker-class gthread`), or hand handlers a "
                "function, such as `lambda call: gevent.spawn(evaluator.evaluate_sync, call)`",
            )
        self._evaluator = evaluator
        self._sinks = _checked_sinks(sinks)
        self._sample_rate = checked(sample_rate)
        self._judge_all = not callable(sample_rate) and sample_rate == 1.0
        self._max_pending = max_pending
        self._max_concurrency = max_concurrency
        self._budget = Budget() if budget is None else budget
        self._when_full: WhenFull = when_full
        self._exit_grace = exit_grace
        self._keep = keep
        self._of_parent: tuple[object, ...] = ()
        self._start_empty()
        for sink in self._sinks:
            if isinstance(sink, WatchingSink):
                sink.watch_not_judged(self._not_judged)
        _process.register(self)
        _process.finish_before_exit()
        if on_sigterm == "drain":
            self._drain_on_sigterm()

    def _drain_on_sigterm(self) -> None:
        """Have SIGTERM finish the calls in flight; refuse another thread than the main one."""
        try:
            _process.drain_on_sigterm(self)
        except ValueError as error:
            why = "signal handlers are set in the main thread: make the evaluator there"
            raise ConfigurationError("on_sigterm", "drain", why) from error

    def _start_empty(self) -> None:
        """Set up counters, worker and deliveries, at first and in a forked child."""
        self._failures = FailureLog()
        self._tally = Tally()
        self._aggregate = Aggregate()
        self._latest: deque[Evaluation] = deque(maxlen=self._keep)
        self._bounded = BoundedEvaluator(
            self._evaluator, self._budget, self._timeout, self._failures
        )
        self._worker = Worker(
            self._evaluate,
            self._count_lost,
            max_pending=self._max_pending,
            max_concurrency=self._max_concurrency,
            when_full=self._when_full,
        )
        self._deliveries = deliveries_to(self._sinks, self._max_pending, self._failures)
        self._drained = True  # whether the end of the process has not yet waited in vain
        self._undone_logged = False  # whether the end of the process has told what is left undone

    def __repr__(self) -> str:
        counts = self.counters
        sinks = ", ".join(type(sink).__name__ for sink in self._sinks)
        return (
            f"BackgroundEvaluator({self._evaluator!r}, [{sinks}]; {counts.captured} captured, "
            f"{counts.scored} scored, {counts.failed} failed, {counts.pending} pending)"
        )

    # --- the app's threads ----------------------------------------------------------------------

    def __call__(self, call: RagCall) -> None:
        """Submit a call; handlers call the evaluator in this form."""
        self.submit(call)

    def submit(self, call: RagCall) -> None:
        """Queue a call for evaluation; takes microseconds and never raises.

        May be called from any thread, also from a sink or inside an evaluation. With
        `when_full="block"` it waits up to 30 s for room.

        Args:
            call: the call; an object that is not a `RagCall` is counted as failed.
        """
        _process.notice_fork()
        try:
            # Few function calls: in an app that has just slept, each takes a microsecond or two.
            is_uncaptured = type(call) is RagCall and call.capture is None
            fate = None if is_uncaptured else self._refuse(call)
            probability = 1.0
            if not self._judge_all and fate is None:
                probability = probability_of(call, self._sample_rate)
                if not chosen(sample_key(call), probability):
                    fate = "sampled_out"
            self._tally.captured(fate)
            if fate is not None:
                discard(call)
                return
        except Exception as error:  # noqa: BLE001 -- the app's call goes on
            self._tally.captured("failed")
            self._failures.log(("submit", type(error).__name__), "a call was not accepted", error)
            return
        try:
            dropped = self._worker.offer(call, probability)
        except Exception as error:  # noqa: BLE001 -- the app's call goes on
            discard(call)
            self._tally.met("failed")
            self._failures.log(("queue", type(error).__name__), "a call was not queued", error)
            return
        if dropped:
            closed = self._worker.stopping
            self._tally.met("closed" if closed else "queue_full", dropped)
            why = "it is closed" if closed else "its queue is full"
            self._failures.log(("dropped", why), f"background evaluation dropped a call: {why}")

    def submit_ended(self, call: EndedCall) -> None:
        """Queue an ended call whose record is not made yet; otherwise as `submit`."""
        if type(self) is BackgroundEvaluator:
            self.submit(call)  # type: ignore[arg-type]  # `_evaluate` makes the record
        elif (record := call.record()) is not None:  # a user's subclass may look at the records
            self(record)

    def _refuse(self, call: object) -> Fate | None:
        """Return the fate of a call that is refused, by its type or status; None for others."""
        if isinstance(call, EndedCall):
            status = call.status
        elif isinstance(call, RagCall):
            status = "ok" if call.capture is None else call.capture.status
        else:
            kind = type(call).__name__
            self._failures.log(("no call", kind), f"an object of type {kind} is not a RagCall")
            return "failed"
        if status == "ok":
            return None
        return "run_failed" if status == "error" else status

    # --- the worker's loop ----------------------------------------------------------------------

    async def _evaluate(self, call: RagCall | EndedCall, probability: float) -> None:
        """Evaluate a call, count its fate and pass the evaluation to the sinks.

        Nothing is raised but a cancellation while the worker is stopping.
        """
        record = call.record() if isinstance(call, EndedCall) else call
        if record is None:  # capture has logged and counted why
            self._tally.met("failed")
            return
        try:
            evaluation, fate = await self._bounded.evaluate(record)
            self._pass_on(call, evaluation, probability)
        except asyncio.CancelledError as error:
            if self._worker.stopping:
                self._tally.met("closed")
                raise
            # The worker did not cancel it: something in the evaluation did.
            self._count_failed(error)
        except BaseException as error:  # noqa: BLE001 -- also SystemExit: the loop must go on
            self._count_failed(error)
        else:
            self._tally.met(fate)

    def _pass_on(
        self, call: RagCall | EndedCall, evaluation: Evaluation, probability: float
    ) -> None:
        """Keep an evaluation, add it to the means and queue it for the sinks."""
        self._latest.append(evaluation)
        self._aggregate.add(evaluation, probability)
        for delivery in self._deliveries:
            delivery.enqueue(evaluation)

    def _count_lost(self, error: BaseException, calls: int) -> None:
        """Count calls that the worker gave up: by its end, or by an error."""
        if self._worker.stopping:
            self._tally.met("closed", calls)
        else:
            self._count_failed(error, calls)

    def _count_failed(self, error: BaseException, calls: int = 1) -> None:
        """Count and log calls that ended without an evaluation."""
        self._tally.met("failed", calls)
        kind = ("evaluate", type(error).__name__)
        self._failures.log(kind, "an evaluation ended without a result", error)

    # --- counts, means and the end ----------------------------------------------------------------

    @property
    def counters(self) -> Counters:
        """A snapshot of the counts of calls; `dataclasses.asdict` makes it a dict for JSON."""
        _process.notice_fork()
        return self._tally.counters(tuple(delivery.counters() for delivery in self._deliveries))

    def _not_judged(self) -> dict[str, int]:
        """Return the counts of calls that were not judged, by reason."""
        return {str(reason): calls for reason, calls in self.counters.not_judged.items()}

    @property
    def evaluations(self) -> Evaluations:
        """A snapshot of the latest `keep` evaluations, oldest first, also of those that failed."""
        _process.notice_fork()
        return Evaluations(self._latest.copy())

    @property
    def kept(self) -> int:
        """Number of evaluations that `evaluations` holds; reading it costs nothing."""
        return len(self._latest)

    @property
    def pending(self) -> int:
        """Number of calls that wait or are being evaluated, as in `counters`."""
        _process.notice_fork()
        return self._tally.pending

    def summary(self) -> TrafficSummary:
        """Compute mean scores over the traffic, weighted by inverse sampling probability."""
        _process.notice_fork()
        return self._aggregate.summary()

    def flush(self, timeout: float = 30.0) -> bool:
        """Wait until every call submitted before now is evaluated and its evaluation written.

        Args:
            timeout: seconds to wait at most.

        Returns:
            Whether all of that was done in time. If not, the first time, the reason is logged.

        Raises:
            ReentryError: called inside an evaluation or a sink, which would wait for itself.
        """
        self._refuse_reentry("flush")
        done = self._drain(timeout)
        if not done:
            unwritten = sum(sink.pending for sink in self.counters.sinks)
            self._log_undone(timeout, self.pending, unwritten)
        return done

    def _drain(self, timeout: float) -> bool:
        """Wait for calls and sinks; return whether all are done in time."""
        timeout = min(timeout, threading.TIMEOUT_MAX)  # locks refuse to wait for longer
        end = time.monotonic() + timeout
        if not self._worker.drain(timeout):
            return False
        return all([delivery.wait(end - time.monotonic()) for delivery in self._deliveries])

    def _log_undone(self, timeout: float, pending: int, unwritten: int) -> None:
        """Log once what is not done after a timeout of `flush`, and what the judge waits for."""
        text = (
            f"after {timeout:g} s of `flush`, {counted(pending, 'call is', 'calls are')} not "
            f"evaluated and {counted(unwritten, 'evaluation')} not written"
        )
        if pending:
            model = judge_base(self._evaluator.judge).model
            waiting = None if model is None else model.waiting()
            why = "has not answered yet" if waiting is None else f"has {waiting}"
            text = f"{text}: the judge {self._evaluator.judge.name} {log_excerpt(why)}"
        self._failures.log(("flush",), text)

    def close(self, timeout: float = 30.0) -> bool:
        """Flush, then end the threads; calls not evaluated in time are dropped, counted and logged.

        Calls submitted later are dropped. A second `close` does nothing.

        Args:
            timeout: seconds to wait at most for the queued calls, and one more second for the
                threads to end.

        Returns:
            Whether all calls were evaluated and written in time.

        Raises:
            ReentryError: called inside an evaluation or a sink, which would wait for itself.
        """
        self._refuse_reentry("close")
        if self._worker.stopping:
            return self._tally.pending == 0
        done = self._drain(timeout)
        before = self.counters
        end = time.monotonic() + _LAST_BATCH
        self._tally.met("closed", self._worker.stop(_LAST_BATCH))
        for delivery in self._deliveries:
            delivery.stop(end - time.monotonic())
        if not done:
            log_undone(before, "at close")
        return done

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await asyncio.to_thread(self.close)  # the app's loop goes on meanwhile

    def _refuse_reentry(self, name: str) -> None:
        """Refuse a wait inside of what it would wait for."""
        _process.notice_fork()
        if self._worker.is_own() or any(d.is_own_thread() for d in self._deliveries):
            raise ReentryError(
                f"`{name}` was called inside an evaluation or a sink, for which it would wait"
            )

    # --- the process ----------------------------------------------------------------------------

    def rest(self) -> None:
        """Pause the worker's thread for a fork, so that it imports nothing and holds no lock."""
        self._worker.rest()

    def after_fork_in_parent(self) -> None:
        """Let the worker's thread go on."""
        self._worker.go_on()

    def after_fork(self) -> None:
        """Start empty in a child process; the parent evaluates the calls that it had queued."""
        # The parent's worker is kept and never closed: its loop shares the parent's selector, and
        # closing that would stop the parent's loop.
        self._of_parent = (self._worker, self._deliveries, self._of_parent)
        self._start_empty()

    def before_exit(self, began: float) -> None:
        """Wait for what is pending, `exit_grace` seconds from the beginning of the end at most."""
        if not self._worker.stopping and self._exit_grace:
            self._drained = False
            self._drained = self._drain(max(0.0, began + self._exit_grace - time.monotonic()))

    def at_exit(self) -> None:
        """Log, once, what the end of the process leaves undone.

        Waits before that for calls since `before_exit`, unless a signal hurries the end.
        """
        if self._worker.stopping or self._undone_logged:
            return
        hurried = _process.hurried()
        if self._exit_grace and self._drained and not hurried:
            with contextlib.suppress(BaseException):  # a signal's: the line is still to be written
                self._drain(self._exit_grace)
        grace = f", {self._exit_grace:g} s after it began" if self._exit_grace else ""
        when = f"at exit{', which a signal hurried' if hurried else grace}"
        self._undone_logged = log_undone(self.counters, f"{when}; `flush()` or `close()` before it")


def _checked_sinks(sinks: Iterable[Sink] | str) -> tuple[Sink, ...]:
    if isinstance(sinks, str) or not isinstance(sinks, Iterable):
        raise ConfigurationError("sinks", sinks, "use a list of sinks, as in [JsonlSink(path)]")
    checked = tuple(sinks)
    for sink in checked:
        if isinstance(sink, type) or not isinstance(sink, Sink):
            raise ConfigurationError("sinks", sink, "a sink needs a method `write(batch)`")
    return checked
