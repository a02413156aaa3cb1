"""A private event loop on a daemon thread, on which every sync facade runs; threads of an object.

The alternatives fail: `asyncio.run` per call (a client reused across loops raises "Event loop is
closed"), `run_until_complete` (raises in Jupyter), `nest_asyncio` (patches the interpreter).

The async forms stay on the caller's loop. To move all that waits for a model here was tried: with
50 ms per answer and 32 requests at once, `evaluate_calls` fell from .79-.94 of a bare client's
rate to .75-.80 (the judge alone moved) and .72-.78 (all of `evaluate`), in six interleaved rounds
on two cores. Two busy threads take turns at the interpreter, and a user's coroutine could no longer
use a session of its own loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from rag_eval_integrations import _process
from rag_eval_integrations._process import ProcessObserver, register
from rag_eval_integrations.errors import ReentryError

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future


T = TypeVar("T")

_LOOK = 0.5
"""Seconds after which a waiting thread looks for signals. Python does not end a wait for one that
another thread received, or that came as the wait began: a Ctrl-C ended a run after its last row."""

_lock = threading.Lock()
_running: tuple[asyncio.AbstractEventLoop, Future[None]] | None = None
"""The loop, and what its thread ends with."""
_thread: threading.Thread | None = None


def running_loop() -> tuple[asyncio.AbstractEventLoop, Future[None]]:
    """Return the private loop, and a future that fails if its thread ends.

    It is started on first use, and again in a forked child, or where it could not run.
    """
    global _running, _thread
    import asyncio  # noqa: PLC0415  # 40 ms that a light import does not pay
    from concurrent.futures import Future  # noqa: PLC0415

    _process.notice_fork()
    with _lock:
        if _running is None or _running[1].done():
            _running = asyncio.new_event_loop(), Future()
            _thread = threading.Thread(
                target=_serve, args=_running, name="rag-eval-loop", daemon=True
            )
            _thread.start()
        return _running


def _serve(loop: asyncio.AbstractEventLoop, end: Future[None]) -> None:
    """Run the loop until its thread ends; pass a fatal error on to those who wait."""
    try:
        while True:
            # Of a task that a user's code started. The task keeps it, for who awaits it; asyncio
            # raises it out of the loop as well, with which every waiting caller would hang. They
            # would if a judge stopped the loop, too: nobody else does.
            with suppress(SystemExit, KeyboardInterrupt):
                loop.run_forever()
    except BaseException as error:  # noqa: BLE001 -- raised where the loop is waited for
        end.set_exception(error)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the private loop and wait for its result.

    Blocks the caller's thread, whether or not a loop is running there. If the wait is interrupted
    (Ctrl-C), the coroutine is cancelled.

    Raises:
        ReentryError: the caller is on the private loop itself, where the wait would never end; or
            the loop cannot run.
    """
    from asyncio import run_coroutine_threadsafe  # noqa: PLC0415
    from concurrent.futures import wait  # noqa: PLC0415

    loop, end = running_loop()
    if threading.current_thread() is _thread:
        coroutine.close()
        raise ReentryError(
            "a sync function was called from inside an evaluation, on the loop that would have to "
            "serve it; await the async form instead (for example `evaluate` for `evaluate_sync`)"
        )
    future = run_coroutine_threadsafe(coroutine, loop)
    either: list[Future[Any]] = [future, end]
    try:
        while not wait(either, _LOOK, return_when="FIRST_COMPLETED").done:
            pass
        if end.done() and not future.done():
            why = end.exception()
            raise ReentryError(
                f"the library's event loop could not run ({type(why).__name__}); greenlets "
                "(gevent, eventlet) share a thread, in which one loop runs at a time: await the "
                "async form on that loop (for example `evaluate` for `evaluate_sync`)"
            ) from why
        return future.result()
    except BaseException:
        future.cancel()
        raise


class _Forgetting(ProcessObserver):
    """Forgets the loop in the child of a fork, which has its object but not its thread."""

    def after_fork(self) -> None:
        """Forget the parent's loop and thread, which a child does not have."""
        global _lock, _running, _thread
        _lock = threading.Lock()
        _running = _thread = None


_forgetting = _Forgetting()
register(_forgetting)

# --- The threads of one object: started when they are needed, and anew in a forked process


class Threads(_process.ProcessObserver):
    """Runs blocking functions beside the event loop.

    Args:
        count: most threads.
        name: their name, for whoever lists the threads of a process.
    """

    def __init__(self, count: int, name: str) -> None:
        self._start = partial(ThreadPoolExecutor, count, name)
        self._pool: ThreadPoolExecutor | None = None
        _process.register(self)

    def after_fork(self) -> None:
        """Start new threads when they are needed: a fork copies none."""
        self._pool = None

    async def run(self, function: Callable[[], T]) -> T:
        """Call a function in a thread; wait for one that is free."""
        _process.notice_fork()
        self._pool = self._pool or self._start()
        return await asyncio.get_running_loop().run_in_executor(self._pool, function)

    async def aclose(self) -> None:
        """End the threads after the calls that are waiting for them."""
        _process.notice_fork()
        pool, self._pool = self._pool, None
        if pool is not None:
            await asyncio.to_thread(pool.shutdown)
