"""Single flight: concurrent and recent requests with the same key share one answer."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

from rag_eval_integrations import _process

T = TypeVar("T")


class _AbandonedError(Exception):
    """The caller that was making the request was cancelled; another one has to make it."""


class SingleFlight(_process.ProcessObserver, Generic[T]):
    """A bounded map from keys to answers that makes each request once.

    Callers may be on different loops and threads (the app's loop, the library's own). A failure
    is raised in every caller that waits for it, and is not remembered. If the caller that makes the
    request is cancelled, the next one makes it, and the others do not fail.

    Args:
        size: how many answers are remembered, from 0, the most recently used; 0 shares only
            requests in flight.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self.after_fork()
        _process.register(self)

    def after_fork(self) -> None:
        """Start empty: requests in flight at a fork are answered in the parent only."""
        # Re-entrant: a garbage collection in a locked region may finalise an abandoned coroutine.
        self._lock = threading.RLock()
        self._flying: dict[Hashable, Future[T]] = {}
        self._done: OrderedDict[Hashable, T] = OrderedDict()

    async def get(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """Return the answer for `key`; call `make` if none is remembered or being made.

        Waits for another caller that makes it already. If that caller is cancelled, one of those
        that wait calls its own `make`.

        Raises:
            Exception: whatever `make`, of this caller or of the one waited for, raised.
        """
        from asyncio import wrap_future  # noqa: PLC0415  # 40 ms, too much for a light import

        _process.notice_fork()
        while True:
            with self._lock:
                if key in self._done:
                    self._done.move_to_end(key)
                    return self._done[key]
                flight = self._flying.get(key)
                if flight is None:
                    own: Future[T] = Future()
                    # A running future refuses cancel(); otherwise one waiting caller that is
                    # cancelled would cancel the request of all.
                    own.set_running_or_notify_cancel()
                    self._flying[key] = own
            if flight is None:
                return await self._make(key, own, make)
            try:
                return await wrap_future(flight)
            except _AbandonedError:
                continue

    async def _make(self, key: Hashable, flight: Future[T], make: Callable[[], Awaitable[T]]) -> T:
        """Make the answer, and give it or the failure to all who wait for it.

        The answer is remembered, unless `size` is 0, and the least recently used one forgotten
        above `size`. A failure is not remembered. If this caller is cancelled, those that wait try
        again.
        """
        try:
            answer = await make()
        except BaseException as error:
            with self._lock:
                del self._flying[key]
            flight.set_exception(error if isinstance(error, Exception) else _AbandonedError())
            raise
        with self._lock:
            del self._flying[key]
            if self._size:
                self._done[key] = answer
                while len(self._done) > self._size:
                    self._done.popitem(last=False)
        flight.set_result(answer)
        return answer
