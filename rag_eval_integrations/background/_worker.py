"""The queue between the app's threads and the loop thread that processes its calls."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import partial
from itertools import takewhile
from typing import Literal

from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.records import RagCall
from rag_eval_integrations.records.call import EndedCall

WhenFull = Literal["drop_newest", "drop_oldest", "block"]
_Queued = tuple[int, RagCall | EndedCall, float]
"""Number, call, probability; a tuple is the fastest to make."""

_TICK = 0.02
"""Seconds between checks of the queue while calls come in. If the app woke the loop's thread, it
would pay for a system call, during which that thread takes the interpreter lock for up to 5 ms
(measured: 272 µs at the 99th percentile of `submit`, at 200 calls per second)."""
_QUIET = 1.0
"""Seconds without a call after which the thread sleeps until it is woken. Even then the wake-up
only sets a timer, so that the app has the lock back before the work begins."""
_MAX_BLOCK = 30.0
"""Seconds that `block` waits for room at most, so that a judge that hangs cannot hang the app."""

_LONGEST_STEP = 2.0
"""Seconds that a fork waits for a step of the loop at most: a judge may block it. The first request
to an endpoint imports its client, which takes some .3 s."""

_inside: ContextVar[Worker | None] = ContextVar("rag_eval_integrations_background", default=None)


def discard(call: RagCall | EndedCall) -> None:
    """Release a call that will not be judged."""
    if isinstance(call, EndedCall):
        call.drop()


class Worker:
    """A bounded queue, and a thread with its own loop that starts with the first call.

    The loop of the sync facades is not used: splitting and scoring take milliseconds of the thread,
    for which callers of `evaluate_sync` would wait, and `close` has to stop it.

    Args:
        run: handles a call, sampled with a probability in (0, 1], on the loop; should raise
            nothing but `CancelledError`.
        lost: called with why, and for how many calls, `run` will not be called.
        max_pending: calls waiting at most, not counting those being handled.
        max_concurrency: calls being handled concurrently at most.
        when_full: which call is dropped, or whether `offer` waits, when the queue is full.
    """

    def __init__(
        self,
        run: Callable[[RagCall | EndedCall, float], Awaitable[None]],
        lost: Callable[[BaseException, int], None],
        *,
        max_pending: int,
        max_concurrency: int,
        when_full: WhenFull,
    ) -> None:
        self._run = run
        self._lost = lost
        self._max_pending = max_pending
        self._max_concurrency = max_concurrency
        self._when_full = when_full
        # Reentrant: a garbage collection inside a locked region can finalise a stream, whose call
        # is then submitted in the same thread.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._queue: deque[_Queued] = deque()
        self._running: set[int] = set()
        self._begun: set[int] = set()
        self._tasks: dict[asyncio.Task[None], int] = {}  # a loop refers to its tasks weakly
        self._last = 0  # number of the call accepted last
        self._last_recorded = 0  # number of the last call whose record was made while it waited
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event | None = None
        self._latest = 0.0  # the time at which the loop last found a call, by its clock
        self._idle = False  # whether the loop has to be woken for the next call
        self._ends = 0  # how often the loop has ended by an exception since a call was handled
        self.stopping = False

    def offer(self, call: RagCall | EndedCall, probability: float) -> int:
        """Queue a call; return how many calls were dropped (0 or 1: this one or the oldest).

        Takes microseconds, unless `when_full` is `block`: then it waits up to 30 s for room. Inside
        an evaluation, which would wait for itself, it never waits.

        Args:
            call: the call.
            probability: probability with which it was sampled, in (0, 1].

        Raises:
            RuntimeError: a thread could not be started.
        """
        dropped = 0
        with self._lock:
            if len(self._queue) >= self._max_pending and not self.stopping:
                if self._when_full == "drop_oldest":
                    discard(self._queue.popleft()[1])
                    dropped = 1
                elif self._when_full == "drop_newest" or self.is_own() or not self._wait_for_room():
                    discard(call)
                    return 1
            if self.stopping:
                discard(call)
                return 1
            if self._thread is None:
                self._start()
            self._last += 1
            self._queue.append((self._last, call, probability))
            woken = not self._idle
            self._idle = False
        if not woken:
            self._call_soon(self._wake_later)
        return dropped

    def drain(self, timeout: float) -> bool:
        """Wait until every call offered before now is handled or dropped.

        Calls that are offered meanwhile are not waited for, so it ends under steady traffic too.

        Args:
            timeout: seconds to wait at most.

        Returns:
            Whether that was in time.
        """
        with self._changed:
            target = self._last
            return self._changed.wait_for(lambda: self._lowest() > target, max(0.0, timeout))

    def stop(self, timeout: float) -> int:
        """Cancel running evaluations and end the thread; return the number of waiting calls.

        Args:
            timeout: seconds to wait for the thread at most; it does not wait for itself.
        """
        with self._changed:
            self.stopping = True
            left = self._discard_waiting()
            self._changed.notify_all()
            thread = self._thread
        self._call_soon(self._wake_now)
        if thread is not None and not self.is_own():
            thread.join(max(0.0, timeout))
        return left

    def _discard_waiting(self) -> int:
        """Discard the waiting calls; return their number."""
        left = len(self._queue)
        for _, call, _ in self._queue:
            discard(call)
        self._queue.clear()
        return left

    def rest(self) -> None:
        """Pause the loop's thread between two steps until `go_on`, for a fork meanwhile.

        A child would keep what the thread is about to import half imported, and its locks locked.
        """
        paused, resumed = threading.Event(), threading.Event()

        def wait() -> None:
            """Hold the worker's thread until the fork is over."""
            paused.set()
            resumed.wait()

        self._resumed = resumed
        if self._loop is not None and not self.is_own():
            self._call_soon(wait)
            paused.wait(_LONGEST_STEP)

    def go_on(self) -> None:
        """Let the loop's thread go on after `rest`."""
        self._resumed.set()

    def is_own(self) -> bool:
        """Return whether the caller is on the loop, or in a thread that an evaluation waits for."""
        return _inside.get() is self or threading.current_thread() is self._thread

    def _wait_for_room(self) -> bool:
        """Block until the queue has room; return False after the longest wait."""
        return self._changed.wait_for(
            lambda: len(self._queue) < self._max_pending or self.stopping, _MAX_BLOCK
        )

    def _lowest(self) -> float:
        """Return the lowest number of a call that waits or runs; infinity for none."""
        first = self._queue[0][0] if self._queue else float("inf")
        return min(first, min(self._running, default=float("inf")))

    def _start(self) -> None:
        """Start the worker's thread."""
        thread = threading.Thread(target=self._run_loop, name="rag-eval-background", daemon=True)
        thread.start()
        self._thread = thread

    def _call_soon(self, function: Callable[[], object]) -> None:
        """Call a function on the worker's loop, if it runs."""
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop was just closed: `stop` counts
                loop.call_soon_threadsafe(function)

    # --- on the loop's thread -----------------------------------------------------------------

    def _run_loop(self) -> None:
        """Run the loop in the worker's thread, and report how it ended.

        Starts anew if calls wait. When it ends by an error a second time, those are given up.
        """
        try:
            if asyncio._get_running_loop() is not None:
                raise RuntimeError("another event loop runs in this thread, which greenlets share")
            with suppress_capture(), asyncio.Runner() as runner:
                self._keep_working(runner.get_loop())
        except BaseException as error:  # noqa: BLE001 -- the end of the thread: only this reports it
            with self._lock:
                self._ends += 1
                # A second time in a row: it would end for ever.
                given_up = self._discard_waiting() if self._ends > 1 else 0
                self._lost(error, given_up)
        with self._lock:
            self._loop = self._wake = self._thread = None
            self._idle = False
            self._running.clear()
            if self._queue and not self.stopping:
                self._start()
            self._changed.notify_all()

    def _keep_working(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run `_work` to its end, even if a user's code stops the loop or cancels its tasks.

        It begins again if it was cancelled and the worker is not stopping; errors of our own are
        raised.
        """
        work = loop.create_task(self._work())
        while not work.done():
            try:
                loop.run_until_complete(work)
            except (SystemExit, KeyboardInterrupt):
                continue  # what a task that a user's code started raises is that task's alone
            except (RuntimeError, asyncio.CancelledError):
                # It stopped the loop, or cancelled all of its tasks; else, an error of our own.
                if work.done() and not work.cancelled():
                    raise
            if work.cancelled() and not self.stopping:
                work = loop.create_task(self._work())

    async def _work(self) -> None:
        """Start a task per queued call until the worker stops."""
        wake = asyncio.Event()
        loop = asyncio.get_running_loop()
        with self._lock:
            self._loop, self._wake, self._latest = loop, wake, loop.time()
        while not self.stopping:
            wake.clear()
            taken = self._take(loop.time())
            try:
                while taken:
                    self._start_task(*taken.popleft())
                    await asyncio.sleep(0)  # the task runs until it waits for the judge
            finally:
                self._put_back(taken)
            self._make_records()
            timer = None if self._idle else loop.call_later(_TICK, wake.set)
            await wake.wait()
            if timer is not None:
                timer.cancel()

    def _take(self, now: float) -> deque[_Queued]:
        """Take as many calls from the queue as may run now."""
        with self._changed:
            most = self._max_concurrency - len(self._running)
            taken = deque(self._queue.popleft() for _ in range(min(most, len(self._queue))))
            if taken or self._queue:
                self._running.update(number for number, _, _ in taken)
                self._latest = now
                self._changed.notify_all()
            # Set under the same lock as the look at the queue, so that no call is missed.
            self._idle = now - self._latest > _QUIET
        return taken

    def _make_records(self) -> None:
        """Make the records of waiting calls: without one, a call holds all of its prompts."""
        with self._lock:
            waiting = list(
                takewhile(lambda entry: entry[0] > self._last_recorded, reversed(self._queue))
            )
            self._last_recorded = self._last
        for _, call, _ in reversed(waiting):
            if isinstance(call, EndedCall):
                call.record()

    def _put_back(self, taken: deque[_Queued]) -> None:
        """Return calls without a task to the queue, in their order."""
        if taken:
            with self._changed:
                self._running.difference_update(number for number, _, _ in taken)
                self._queue.extendleft(reversed(taken))

    def _start_task(self, number: int, call: RagCall | EndedCall, probability: float) -> None:
        """Start the evaluation of a call as a task of the loop."""
        task = asyncio.create_task(self._handle(number, call, probability))
        self._tasks[task] = number
        task.add_done_callback(partial(self._on_task_end, call))

    async def _handle(self, number: int, call: RagCall | EndedCall, probability: float) -> None:
        """Evaluate a call in its task."""
        _inside.set(self)
        self._begun.add(number)
        await self._run(call, probability)

    def _on_task_end(self, call: RagCall | EndedCall, task: asyncio.Task[None]) -> None:
        """Note that a task has ended, and wake the loop if calls wait.

        The call of a task that never began is counted as lost.
        """
        number = self._tasks.pop(task)
        if number not in self._begun:  # cancelled before its first step: `run` counts nothing
            discard(call)
            self._lost(asyncio.CancelledError("before it began"), 1)
        self._begun.discard(number)
        self._ends = 0
        with self._changed:
            self._running.discard(number)
            self._changed.notify_all()
            waiting = bool(self._queue)
        if waiting:
            self._wake_now()

    def _wake_later(self) -> None:
        """Wake the loop after a tick."""
        if self._loop is not None:
            self._loop.call_later(_TICK, self._wake_now)

    def _wake_now(self) -> None:
        """Wake the loop, from its own thread."""
        if self._wake is not None:
            self._wake.set()
