"""The line that every request stands in: in order, and through when all limits allow it."""

from __future__ import annotations

import asyncio
import heapq
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from rag_eval_integrations.models.throttling._limits import PerMinute, Taken
from rag_eval_integrations.models.throttling._load import AdaptiveConcurrency, Circuit

# --- What a throttled judge is waiting for, in words for a progress line


Reason = Literal[
    "rate limit", "token limit", "Retry-After", "backoff", "concurrency", "circuit open"
]


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is being waited for at one moment."""

    reason: Reason
    """`rate limit` and `token limit` are the user's own; `Retry-After` is what the judge asked for,
    `backoff` our own pause before a retry; `concurrency` a free place; `circuit open` means that
    the judge is given up for a while and requests fail at once."""
    seconds: float | None
    """Seconds until it ends, at least 0; None for `concurrency`, where nobody knows."""
    requests: int
    """How many requests wait for this."""

    def __str__(self) -> str:
        how_long = "" if self.seconds is None else f" for {self.seconds:.1f} s"
        return f"{self.requests} waiting{how_long}: {self.reason}"


# --- One request that waits: woken on its own loop, or by the clock


_SHORTEST = 1e-6  # what is less may not move the clock, and the wait would repeat for ever


@dataclass(slots=True, eq=False)
class Waiter:
    """A request in the line, or resting before its next attempt."""

    loop: asyncio.AbstractEventLoop
    since: float
    """When it began to wait."""
    tokens: float = 0.0
    """Estimate of what it takes of the token limit."""
    reason: Reason = "concurrency"
    until: float | None = None
    """When the reason ends, where that is known."""
    gone: bool = False
    """Whether it has left the line."""
    _woken: asyncio.Future[None] | None = None

    def lie_down(self) -> asyncio.Future[None]:
        """Return what `wake` completes; make it with the line's lock held, so no wake is lost."""
        self._woken = self.loop.create_future()
        return self._woken

    def wake(self) -> bool:
        """Let it look again, on whatever loop it is; False when its loop is closed."""
        woken, self._woken = self._woken, None
        if woken is None:
            return True  # it is awake
        try:
            if self.loop is _running_loop():
                _complete(woken)
            else:
                self.loop.call_soon_threadsafe(_complete, woken)
        except RuntimeError:
            return False
        return True


async def sleep(woken: asyncio.Future[None], seconds: float | None) -> None:
    """Wait to be woken; at most some seconds, None for as long as it takes."""
    if seconds is None:
        await woken
        return
    timer = woken.get_loop().call_later(max(seconds, _SHORTEST), _complete, woken)
    try:
        await woken
    finally:
        timer.cancel()


def _complete(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


logger = logging.getLogger(__name__)

Outcome = Literal["answered", "overloaded", "failed", "unknown"]
"""How an attempt ended: `failed` is a failure that says nothing about load, `unknown` none."""

_FAILURES_BEFORE_PAUSE = 5
"""Failed attempts in a row after which the others wait too. One in ten failing at random gives five
in a row once in 100,000; a spent quota or a dead judge gives them at once, and a long line would
otherwise be sent there, request by request, to fail."""


@dataclass(slots=True)
class Turn:
    """The right to make one attempt; give it back with `Line.leave`."""

    number: int
    began: float
    probe: bool
    tokens: Taken | None
    left: bool = False


class Line:
    """Lets requests through: older ones first, when circuit, pace and concurrency allow it.

    Order is by ticket, so that a request that is tried again stands before those that came after
    it: nobody starves however long the line is. Only the first in the line watches the clock, and
    nothing is taken before a request really starts: one that is cancelled has nothing to return.

    State is behind one lock and waiters are woken on their own loops: loops may come and go, and
    two threads may share a line. The lock is re-entrant because an abandoned coroutine may be
    finalised, and give its turn back, while its own thread holds it.

    Args:
        rpm: requests a minute, None for no limit.
        tpm: tokens a minute, None for no limit.
        concurrency: the places.
        circuit: whether the judge is given up.
        clock: the time in seconds; timers are the running loop's.
        on_wait: called when a wait with a known end begins.
    """

    def __init__(
        self,
        rpm: PerMinute | None,
        tpm: PerMinute | None,
        concurrency: AdaptiveConcurrency,
        circuit: Circuit,
        clock: Callable[[], float],
        on_wait: Callable[[Waiting], None] | None = None,
    ) -> None:
        self._rpm, self._tpm = rpm, tpm
        self._concurrency, self._circuit = concurrency, circuit
        self._clock, self._on_wait = clock, on_wait
        self._lock = threading.RLock()
        self._tickets = 0
        # Tickets are compared, never waiters: no Python code runs while the heap is in pieces.
        self._queue: list[tuple[int, Waiter]] = []
        self._standing = 0  # in the queue and not gone
        self._resting: set[Waiter] = set()
        self._failed_in_a_row = 0
        self._paused: tuple[float, Reason] | None = None

    def ticket(self) -> int:
        """Return the next place in the order."""
        with self._lock:
            self._tickets += 1
            return self._tickets

    # --- A request's way through ---------------------------------------------------------------

    async def turn(self, ticket: int, tokens: float, until: float | None) -> Turn:
        """Wait for a turn.

        Args:
            ticket: place in the order.
            tokens: estimate of what the request takes of the token limit.
            until: when to give up waiting; None for never.

        Raises:
            JudgeUnavailableError: the circuit is open.
            TimeoutError: `until` has passed; the message is what was waited for.
        """
        waiter = Waiter(asyncio.get_running_loop(), self._clock(), tokens)
        with self._lock:
            heapq.heappush(self._queue, (ticket, waiter))
            self._standing += 1
        try:
            while True:
                with self._lock:
                    now = self._clock()
                    self._circuit.check(now)
                    if until is not None and now >= until:
                        raise TimeoutError(waiter.reason)
                    reason, at = self._blocked(waiter, now)
                    if reason is None:
                        return self._admit(waiter, now)
                    told = (waiter.reason, waiter.until) == (reason, at)
                    waiter.reason, waiter.until = reason, at
                    woken = waiter.lie_down()
                    waiting = Waiting(reason, None if at is None else at - now, self._standing)
                if not told:
                    self._tell(waiting)
                ends = [end for end in (at, until) if end is not None]
                await sleep(woken, min(ends) - now if ends else None)
        finally:
            with self._lock:
                if not waiter.gone:
                    self._remove(waiter)
                self._wake_first()

    async def rest(self, seconds: float, reason: Reason, *, others: float) -> None:
        """Wait before the next attempt, holding no place.

        Args:
            seconds: how long.
            reason: why.
            others: how long everyone waits if the judge answers nobody.

        Raises:
            JudgeUnavailableError: the circuit opened meanwhile.
        """
        now = self._clock()
        end = now + seconds
        waiter = Waiter(asyncio.get_running_loop(), now, reason=reason, until=end)
        with self._lock:
            self._resting.add(waiter)
            waiting = Waiting(reason, seconds, len(self._resting))
            if self._failed_in_a_row >= _FAILURES_BEFORE_PAUSE:
                pause = (now + others, reason)
                self._paused = max(self._paused or pause, pause)
        try:
            told = False
            while True:
                with self._lock:
                    now = self._clock()
                    self._circuit.check(now)
                    woken = waiter.lie_down()
                if now >= end:
                    return
                if not told:
                    self._tell(waiting)
                    told = True
                await sleep(woken, end - now)
        finally:
            with self._lock:
                self._resting.discard(waiter)

    def leave(self, turn: Turn, outcome: Outcome, *, tokens: int = 0, why: str = "") -> None:
        """Give a turn back; a second time does nothing.

        Args:
            turn: what `turn` returned.
            outcome: how the attempt ended.
            tokens: what it really took of the token limit; 0 when unknown.
            why: the failure, when it failed.
        """
        with self._lock:
            if turn.left:
                return
            turn.left = True
            self._concurrency.finish(
                turn.number, {"answered": False, "overloaded": True}.get(outcome)
            )
            if turn.tokens is not None and self._tpm is not None and tokens:
                self._tpm.correct(turn.tokens, tokens)
            if outcome == "answered":
                self._failed_in_a_row = 0
                self._paused = None
                self._circuit.answered()
            elif outcome != "unknown":
                self._failed_in_a_row += 1
            opened = False
            if turn.probe and outcome == "unknown":
                self._circuit.leave()
            elif turn.probe and outcome != "answered":
                opened = self._circuit.failed(self._clock(), why, probe=True)
            self._wake_first()
        if opened:
            self._open()

    def failed(self, why: str) -> None:
        """Count a request that failed for good."""
        with self._lock:
            opened = self._circuit.failed(self._clock(), why)
        if opened:
            self._open()

    # --- What is waited for --------------------------------------------------------------------

    def waiting(self) -> Waiting | None:
        """Return what is waited for now; None when nobody waits. From any thread."""
        with self._lock:
            now = self._clock()
            seconds = self._circuit.seconds_open(now)
            if seconds is not None:
                return Waiting("circuit open", seconds, self._standing + len(self._resting))
            first = self._first()
            if first is not None:
                reason, at = self._blocked(first, now)
                left = None if at is None else at - now
                return Waiting(reason or "concurrency", left, self._standing)
            if self._resting:
                soonest = min(self._resting, key=lambda waiter: waiter.until or now)
                left = max(0.0, (soonest.until or now) - now)
                return Waiting(soonest.reason, left, len(self._resting))
            return None

    def _tell(self, waiting: Waiting | None) -> None:
        if self._on_wait is None or waiting is None or waiting.seconds is None:
            return
        try:
            self._on_wait(waiting)
        except Exception:
            # A progress line must not fail the run.
            logger.exception("on_wait failed and is not called again")
            self._on_wait = None

    # --- With the lock held, but for the last --------------------------------------------------

    def _blocked(self, waiter: Waiter, now: float) -> tuple[Reason | None, float | None]:
        """What holds a request, and until when where that is known; (None, None) for nothing."""
        if self._first() is not waiter or not self._concurrency.free:
            return "concurrency", None
        holds: list[tuple[float, Reason]] = []
        if self._paused is not None:
            holds.append(self._paused)
        if self._rpm is not None:
            holds.append((self._rpm.at(now, 1), "rate limit"))
        if self._tpm is not None:
            holds.append((self._tpm.at(now, waiter.tokens), "token limit"))
        for at, reason in sorted(holds, reverse=True):
            return (reason, at) if at > now else (None, None)
        return None, None

    def _admit(self, waiter: Waiter, now: float) -> Turn:
        self._remove(waiter)
        self._paused = None
        tokens = None
        if self._rpm is not None:
            self._rpm.take(now, 1, waiter.since)
        if self._tpm is not None:
            tokens = self._tpm.take(now, waiter.tokens, waiter.since)
        return Turn(self._concurrency.start(), now, self._circuit.enter(), tokens)

    def _first(self) -> Waiter | None:
        while self._queue and self._queue[0][1].gone:
            heapq.heappop(self._queue)
        return self._queue[0][1] if self._queue else None

    def _remove(self, waiter: Waiter) -> None:
        waiter.gone = True
        self._standing -= 1
        if len(self._queue) > 2 * self._standing + 64:
            # Those cancelled behind a first that waits for long would stay till their turn.
            self._queue = [entry for entry in self._queue if not entry[1].gone]
            heapq.heapify(self._queue)

    def _wake_first(self) -> None:
        while (first := self._first()) is not None and not first.wake():
            self._remove(first)  # its loop was closed under it

    def _open(self) -> None:
        """Let everyone see that the circuit is open."""
        self._tell(self.waiting())
        with self._lock:
            for waiter in (*(waiter for _, waiter in self._queue), *self._resting):
                waiter.wake()
