"""One HTTP client for each event loop, closed with its loop.

A client's connections belong to the loop that opened them: the same client on a second loop
fails with "Event loop is closed" or hangs (measured with openai 2.54 and 3.54).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING
from weakref import finalize

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_Client = tuple["AsyncOpenAI", AsyncGenerator[None, None], int]  # and the process it is of
_Kept = dict[asyncio.AbstractEventLoop, _Client]
_AT_EXIT = 1.0  # seconds that the end of the process waits for another thread's loop


class LoopClients:
    """Makes a client where there is none for the running loop, and closes it in that loop.

    Each client is kept by an async generator, because a loop that ends in order (`asyncio.run`)
    closes its generators while it still can; a loop that lives on closes the client when this
    object is dropped; the library's own loop, a daemon thread, does so when the process ends.
    A loop that was closed without any of these leaves its sockets to the garbage collector.
    """

    def __init__(self, make: Callable[[], AsyncOpenAI]) -> None:
        self._make = make
        self._lock = threading.Lock()
        # Weak keys would be of no use: a client refers to its loop. Closed loops are swept.
        self._kept: _Kept = {}
        # The finalizers hold the clients, so that one garbage collection cannot take the judge
        # and its open sockets together. Of two, the later runs first and leaves the other
        # nothing to do; at the end of the process only the first runs.
        finalize(self, _close_and_wait, self._kept)
        finalize(self, _close_soon, self._kept).atexit = False

    async def get(self) -> AsyncOpenAI:
        """Return the running loop's client."""
        loop = asyncio.get_running_loop()
        kept = self._kept.get(loop)
        if kept is not None:
            return kept[0]
        client = self._make()
        keeper = _closed_at_the_end(client)
        with self._lock:
            closed = [other for other in self._kept if other.is_closed()]
            left = [self._kept.pop(other)[0] for other in closed]
            self._kept[loop] = (client, keeper, os.getpid())
        for old in left:
            _give_up(old)
        await anext(keeper)
        return client

    async def aclose(self) -> None:
        """Close the running loop's client; the next request makes a new one."""
        with self._lock:
            kept = self._kept.pop(asyncio.get_running_loop(), None)
        if kept is not None:
            await kept[1].aclose()


async def _closed_at_the_end(client: AsyncOpenAI) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await client.close()


def _give_up(client: AsyncOpenAI) -> None:
    """Mark the client of a closed loop as closed, as far as that goes without the loop.

    The SDK's client would otherwise close itself as a task of whatever loop runs when it is
    collected, and log an error about the one that is gone.
    """
    closing = client.close()
    with contextlib.suppress(StopIteration, RuntimeError):
        closing.send(None)
    with contextlib.suppress(RuntimeError):
        closing.close()


async def _close(keeper: AsyncGenerator[None, None]) -> None:
    await keeper.aclose()


def _close_soon(kept: _Kept) -> None:
    _start_closing(kept)


def _close_and_wait(kept: _Kept) -> None:
    for closed in _start_closing(kept):
        closed.wait(_AT_EXIT)


def _start_closing(kept: _Kept) -> list[threading.Event]:
    """Have each running loop close its client; events tell when it has."""
    begun = []
    while kept:
        loop, (_, keeper, process) = kept.popitem()
        # In the child of a fork the parent's loops seem to run, but have no thread.
        if loop.is_running() and process == os.getpid():
            closed = threading.Event()
            with contextlib.suppress(RuntimeError):  # it was closed just now
                loop.call_soon_threadsafe(_begin, loop, keeper, closed)
                begun.append(closed)
    return begun


_closing: set[asyncio.Task[None]] = set()  # a loop refers to its tasks weakly


def _begin(
    loop: asyncio.AbstractEventLoop, keeper: AsyncGenerator[None, None], closed: threading.Event
) -> None:
    task = loop.create_task(_close(keeper))
    _closing.add(task)
    task.add_done_callback(_closing.discard)
    task.add_done_callback(lambda _: closed.set())
