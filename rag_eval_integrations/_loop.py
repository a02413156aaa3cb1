"""One private event loop on a daemon thread: what every sync facade runs on.

Not `asyncio.run` a call (a client reused across loops fails with "Event loop is closed"), not
`run_until_complete` (fails in Jupyter), not a patched interpreter (`nest_asyncio`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from rag_eval_integrations.errors import ReentryError

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None


def running_loop() -> asyncio.AbstractEventLoop:
    """Return the private loop, started on first use (and again in a forked child)."""
    global _loop, _thread
    import asyncio  # noqa: PLC0415  # 40 ms that a light import does not pay

    with _lock:
        if _loop is None:
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="rag-eval-loop", daemon=True)
            thread.start()
            _loop, _thread = loop, thread
        return _loop


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the private loop and wait for its result.

    Works with and without a running loop in the caller's thread (which it blocks). An interrupt
    of the wait (Ctrl-C) cancels the coroutine.

    Raises:
        ReentryError: when called on the private loop itself, which would wait for ever.
    """
    from asyncio import run_coroutine_threadsafe  # noqa: PLC0415

    loop = running_loop()
    if threading.current_thread() is _thread:
        coroutine.close()
        raise ReentryError(
            "a sync function was called from inside an evaluation, on the loop that would have to "
            "serve it; await the async form instead (for example `evaluate` for `evaluate_sync`)"
        )
    future = run_coroutine_threadsafe(coroutine, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def _forget_after_fork() -> None:
    # The child of a fork (gunicorn prefork) has the parent's loop object but not its thread.
    global _lock, _loop, _thread
    _lock = threading.Lock()
    _loop = _thread = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
