"""The admission queue: requests start in order, when rate limits, concurrency and circuit allow.

`AdmissionQueue` hands out a `Permit` per attempt and is told how the attempt ended; `Waiter` is one
request on its loop.
"""

from __future__ import annotations

import asyncio
import heapq
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from rag_eval_integrations._visible import LogOnce, counted, logger_of
from rag_eval_integrations.models.completion import Reason, Waiting
from rag_eval_integrations.models.throttling._limits import (
    AdaptiveConcurrency,
    CircuitBreaker,
    LocalPermits,
    Permits,
    Taken,
)


@dataclass(slots=True, eq=False)
class Waiter:
    """A request in the queue, or in backoff before its next attempt."""

    loop: asyncio.AbstractEventLoop
    since: float
    """When it began to wait."""
    tokens: float = 0.0
    """Estimate of the tokens that it takes of the limit."""
    reason: Reason = "concurrency"
    until: float | None = None
    """When the reason ends, if that is known."""
    why: str = ""
    """The failure that it waits after."""
    removed: bool = False
    """Whether it has left the queue."""
    _wakeup: asyncio.Future[None] | None = None

    def prepare_wait(self) -> asyncio.Future[None]:
        """Return a future that `wake` completes; call with the lock held, so no wake-up is lost."""
        self._wakeup = self.loop.create_future()
        return self._wakeup

    def wake(self) -> bool:
        """Wake the request on its own loop; False when that loop is closed.

        True as well when it is awake already.
        """
        wakeup, self._wakeup = self._wakeup, None
        if wakeup is None:
            return True  # it is awake
        try:
            if self.loop is _running_loop():
                _complete(wakeup)
            else:
                self.loop.call_soon_threadsafe(_complete, wakeup)
        except RuntimeError:
            return False
        return True


_SHORTEST = 1e-6  # a shorter timer may not advance the clock, and the wait would repeat for ever


async def sleep(wakeup: asyncio.Future[None], seconds: float | None) -> None:
    """Wait to be woken, at most `seconds`; None for no limit."""
    if seconds is None:
        await wakeup
        return
    timer = wakeup.get_loop().call_later(max(seconds, _SHORTEST), _complete, wakeup)
    try:
        await wakeup
    finally:
        timer.cancel()


def _complete(wakeup: asyncio.Future[None]) -> None:
    """Complete a future, unless it is complete."""
    if not wakeup.done():
        wakeup.set_result(None)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the running loop; None outside of one."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


logger = logger_of(__name__)

Outcome = Literal["answered", "overloaded", "failed", "unknown"]
"""How an attempt ended: `failed` is a failure that has nothing to do with load, `unknown` an
attempt that was cancelled."""

_FAILURES_BEFORE_PAUSE = 5
"""Failed attempts in a row after which all requests pause. One in ten failing at random gives five
in a row once in 100,000; a spent quota or an endpoint that is down gives them at once, and a long
queue would otherwise be sent there, request by request, to fail."""
_UNSEEN = 4.0
"""Seconds for which an endpoint may fail before that is logged: single requests are retried with
pauses that grow, and take a minute to fail five times."""


@dataclass(slots=True)
class Permit:
    """The right to make one attempt; return it with `AdmissionQueue.release`."""

    number: int
    started: float
    probe: bool
    tokens: Taken | None
    released: bool = False


class AdmissionQueue:
    """Admits requests in order, when circuit, rate limits and concurrency allow.

    Order is by sequence number, so that a retry goes before the requests that came after it:
    no request starves, however long the queue is. Only the head of the queue watches the clock, and
    nothing is taken from a limit before a request starts: a cancelled one has nothing to return.

    State is behind one lock and waiters are woken on their own loops: loops may come and go, and
    two threads may share a queue. The lock is re-entrant because an abandoned coroutine may be
    finalised, and release its permit, while its own thread holds the lock.

    Args:
        permits: requests and tokens per minute of this process.
        concurrency: how many requests may run at once.
        circuit: whether the endpoint is down.
        clock: the time in seconds; timers are the running loop's.
        on_wait: called when a wait with a known end begins.
    """

    def __init__(
        self,
        permits: LocalPermits,
        concurrency: AdaptiveConcurrency,
        circuit: CircuitBreaker,
        clock: Callable[[], float],
        on_wait: Callable[[Waiting], None] | None = None,
    ) -> None:
        self._permits = permits
        self._concurrency, self._circuit = concurrency, circuit
        self._clock, self._on_wait = clock, on_wait
        self._log = LogOnce(logger)
        self._lock = threading.RLock()
        self._last_sequence = 0
        # Sequence numbers are compared, never waiters: no Python code runs while the heap is
        # inconsistent.
        self._heap: list[tuple[int, Waiter]] = []
        self._queued = 0  # in the heap and not removed
        self._backing_off: set[Waiter] = set()
        self._sharing = 0  # admitted, and waiting for shared permits
        self._failed_in_a_row = 0
        self._failing_since = 0.0  # when the first of them ended
        self.was_up = False
        """Whether any attempt has been answered, if only by a refusal."""
        self._paused: tuple[float, Reason] | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether a request waits for a permit."""
        return self._queued > 0

    def next_sequence(self) -> int:
        """Return the place of a new request in the order."""
        with self._lock:
            self._last_sequence += 1
            return self._last_sequence

    async def acquire(self, sequence: int, tokens: float, until: float | None) -> Permit:
        """Wait for a permit.

        `on_wait` is called when a wait with a known end begins. A request that raises or is
        cancelled leaves the queue, and the next one is woken.

        Args:
            sequence: the request's place in the order.
            tokens: estimate of the tokens that the request takes of the limit.
            until: when to stop waiting; None for never.

        Raises:
            JudgeUnavailableError: the circuit is open.
            TimeoutError: `until` has passed; the message is the reason of the wait.
        """
        waiter = Waiter(asyncio.get_running_loop(), self._clock(), tokens)
        with self._lock:
            heapq.heappush(self._heap, (sequence, waiter))
            self._queued += 1
        try:
            while True:
                with self._lock:
                    now = self._clock()
                    self._circuit.check(now)
                    if until is not None and now >= until:
                        raise TimeoutError(waiter.reason)
                    reason, free_at = self._hold(waiter, now)
                    if reason is None:
                        return self._admit(waiter, now)
                    notified = (waiter.reason, waiter.until) == (reason, free_at)
                    waiter.reason, waiter.until = reason, free_at
                    wakeup = waiter.prepare_wait()
                    waiting = Waiting(
                        reason, None if free_at is None else free_at - now, self._queued
                    )
                if not notified:
                    self._notify(waiting)
                ends = [end for end in (free_at, until) if end is not None]
                await sleep(wakeup, min(ends) - now if ends else None)
        finally:
            with self._lock:
                if not waiter.removed:
                    self._remove(waiter)
                self._wake_head()

    async def share(
        self, permit: Permit, shared: Permits, tokens: int, until: float | None
    ) -> None:
        """Wait for shared permits, then begin the attempt.

        The place is held meanwhile, so that requests ask in the order in which they were admitted.
        On success, the attempt counts as started only now (`permit.started`).

        Args:
            permit: the result of `acquire`; it is returned when this raises.
            shared: what to take from.
            tokens: estimate of the tokens that the attempt takes.
            until: when to stop waiting; None for never.

        Raises:
            TimeoutError: `until` has passed; the message is the reason of the wait.
            RuntimeError: the shared permits raised a `TimeoutError` of their own.
            Exception: whatever else the shared permits raise.
        """
        seconds = None if until is None else max(0.0, until - self._clock())
        with self._lock:
            self._sharing += 1
        taken = False
        try:
            async with asyncio.timeout(seconds) as limit:
                await shared.take(1, tokens)
            taken = True
        except TimeoutError as error:
            if limit.expired():
                raise TimeoutError("rate limit") from None
            raise RuntimeError("the shared permits did not answer in time") from error
        finally:
            with self._lock:
                self._sharing -= 1
            if not taken:
                self.release(permit, "unknown")
        permit.started = self._clock()

    async def backoff(
        self, seconds: float, reason: Reason, *, others: float, why: str = ""
    ) -> None:
        """Wait before the next attempt, outside the queue.

        After five failed attempts in a row, of any requests, all requests in the queue pause for
        `others` seconds. `on_wait` is told of the wait. Without `on_wait`, failures with a `why`
        are logged, once in all: after five in a row, or when they go on for more than 4 seconds.

        Args:
            seconds: how long.
            reason: why.
            others: how long all requests wait if none is answered.
            why: the failure that it follows; empty to tell nobody yet.

        Raises:
            JudgeUnavailableError: the circuit opened meanwhile.
        """
        now = self._clock()
        end = now + seconds
        waiter = Waiter(asyncio.get_running_loop(), now, reason=reason, until=end, why=why)
        with self._lock:
            self._backing_off.add(waiter)
            waiting = Waiting(reason, seconds, len(self._backing_off), why)
            failing = self._failed_in_a_row
            unseen = end - self._failing_since  # when the next attempt may tell more
            if failing >= _FAILURES_BEFORE_PAUSE:
                pause = (now + others, reason)
                self._paused = max(self._paused or pause, pause)
        worth_saying = failing >= _FAILURES_BEFORE_PAUSE or (failing and unseen > _UNSEEN)
        if why and worth_saying and self._on_wait is None:
            # Requests may be retried for minutes before the first of them fails for good.
            times = counted(failing, "attempt", "attempts in a row")
            self._log.log("failing", "%s failed, the last: %s", times, why)
        try:
            notified = False
            while True:
                with self._lock:
                    now = self._clock()
                    self._circuit.check(now)
                    wakeup = waiter.prepare_wait()
                if now >= end:
                    return
                if not notified:
                    self._notify(waiting)
                    notified = True
                await sleep(wakeup, end - now)
        finally:
            with self._lock:
                self._backing_off.discard(waiter)

    def release(
        self,
        permit: Permit,
        outcome: Outcome,
        *,
        tokens: int = 0,
        why: str = "",
        connected: bool = True,
    ) -> None:
        """Return a permit, and record how its attempt ended; a second time does nothing.

        Adapts the concurrency, corrects the token estimate and wakes the next request. An answer
        ends a pause and closes the circuit; a probe that fails opens it again.

        Args:
            permit: the result of `acquire`.
            outcome: how the attempt ended.
            tokens: tokens that the attempt used; 0 when unknown.
            why: the failure, when it failed.
            connected: False if no connection could be made.
        """
        with self._lock:
            if permit.released:
                return
            permit.released = True
            self._concurrency.finish(
                permit.number, {"answered": False, "overloaded": True}.get(outcome)
            )
            if tokens:
                self._permits.correct(permit.tokens, tokens)
            if outcome == "answered":
                self.was_up = True
                self._failed_in_a_row = 0
                self._paused = None
                self._circuit.answered()
            elif outcome != "unknown":
                if not self._failed_in_a_row:
                    self._failing_since = self._clock()
                self._failed_in_a_row += 1
            opened = False
            if permit.probe and outcome == "unknown":
                self._circuit.release_probe()
            elif permit.probe and outcome != "answered":
                opened = self._circuit.failed(self._clock(), why, probe=True, connected=connected)
            self._wake_head()
        if opened:
            self._announce_open()

    def record_failure(self, why: str, *, unreachable: bool = False) -> None:
        """Count a request that failed for good; enough of them in a row open the circuit.

        `on_wait` is called then, and all waiting requests fail.

        Args:
            why: the failure.
            unreachable: whether to fail all other requests at once, because the endpoint never
                answered and no connection to it can be made.
        """
        with self._lock:
            opened = self._circuit.failed(
                self._clock(), why, connected=not unreachable, at_once=unreachable
            )
        if opened:
            self._announce_open()

    def waiting(self) -> Waiting | None:
        """Return what requests wait for now; None when none waits. From any thread.

        The first that applies of: open circuit, shared permits, the head of the queue, the retry
        that is due soonest.
        """
        with self._lock:
            now = self._clock()
            seconds = self._circuit.seconds_open(now)
            if seconds is not None:
                waiting = self._queued + len(self._backing_off)
                return Waiting("circuit open", seconds, waiting, self._circuit.last)
            if self._sharing:
                return Waiting("rate limit", None, self._queued + self._sharing)
            head = self._head()
            if head is not None:
                reason, free_at = self._hold(head, now)
                remaining = None if free_at is None else free_at - now
                return Waiting(reason or "concurrency", remaining, self._queued)
            if self._backing_off:
                soonest = min(self._backing_off, key=lambda waiter: waiter.until or now)
                remaining = max(0.0, (soonest.until or now) - now)
                return Waiting(soonest.reason, remaining, len(self._backing_off), soonest.why)
            return None

    def _notify(self, waiting: Waiting | None) -> None:
        """Call the user's `on_wait` for a wait with a known end.

        Waits without a known end are not told. If it raises, that is logged and it is not called
        again.
        """
        if self._on_wait is None or waiting is None or waiting.seconds is None:
            return
        try:
            self._on_wait(waiting)
        except Exception:
            # A progress line must not fail the run.
            logger.exception("on_wait failed and is not called again")
            self._on_wait = None

    def _announce_open(self) -> None:
        """Call `on_wait` for the open circuit, and wake every waiting request to see it."""
        self._notify(self.waiting())
        with self._lock:
            for waiter in (*(waiter for _, waiter in self._heap), *self._backing_off):
                waiter.wake()

    # --- Called with the lock held

    def _hold(self, waiter: Waiter, now: float) -> tuple[Reason | None, float | None]:
        """Return why a request has to wait, and until when if known; (None, None) if it may go.

        A request that is not the first waits for `concurrency`; of several limits, the one that
        ends last is returned.
        """
        if self._head() is not waiter or not self._concurrency.free:
            return "concurrency", None
        holds: list[tuple[float, Reason]] = []
        if self._paused is not None:
            holds.append(self._paused)
        holds += self._permits.holds(now, waiter.tokens)
        for free_at, reason in sorted(holds, reverse=True):
            return (reason, free_at) if free_at > now else (None, None)
        return None, None

    def _admit(self, waiter: Waiter, now: float) -> Permit:
        """Let a request start: take it out of the queue, count it in every limit, end a pause."""
        self._remove(waiter)
        self._paused = None
        tokens = self._permits.start(now, waiter.tokens, waiter.since)
        return Permit(self._concurrency.start(), now, self._circuit.enter(), tokens)

    def _head(self) -> Waiter | None:
        """Return the first request that is still waiting; None when none is."""
        while self._heap and self._heap[0][1].removed:
            heapq.heappop(self._heap)
        return self._heap[0][1] if self._heap else None

    def _remove(self, waiter: Waiter) -> None:
        """Take a request out of the queue."""
        waiter.removed = True
        self._queued -= 1
        if len(self._heap) > 2 * self._queued + 64:
            # Cancelled requests behind a head that waits for long would otherwise stay.
            self._heap = [entry for entry in self._heap if not entry[1].removed]
            heapq.heapify(self._heap)

    def _wake_head(self) -> None:
        """Wake the first request that can be woken; drop those whose loop is closed."""
        while (head := self._head()) is not None and not head.wake():
            self._remove(head)  # its loop was closed
