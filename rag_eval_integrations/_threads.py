"""The threads of one object: started when they are needed, and anew in a forked process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from rag_eval_integrations import _process

T = TypeVar("T")


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
        self._pool = self._pool or self._start()
        return await asyncio.get_running_loop().run_in_executor(self._pool, function)

    async def aclose(self) -> None:
        """End the threads after the calls that are waiting for them."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await asyncio.to_thread(pool.shutdown)
