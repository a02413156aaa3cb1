"""One limit per minute for many processes: `PermitBlocks` gives permits out, `BlockPermits` asks.

    ThrottledModel ─▶ BlockPermits ─▶ (Ray) ─▶ PermitBlocks, in one actor
    ThrottledModel ─▶ BlockPermits ─▶ (Ray) ──┘

A process asks for all of its requests that wait, and gets a block of them that may start now. None
is kept for later, so that the limit holds in every minute, and one question serves many requests.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from rag_eval_integrations.models.throttling import LocalPermits

Wanted = Sequence[tuple[int, int]]
"""Requests and tokens of each attempt that waits, in order."""

_MOST = 256
"""Attempts that one question names."""
_SECONDS = 1.0
"""Seconds of the limit that a block holds at most, where more than one attempt is due in them."""
ON_THE_WAY = 1.0
"""Seconds that a permit may take from the actor to the request that it lets start."""


class PermitBlocks:
    """Gives out permits of one limit in blocks; the processes take turns.

    In any minute no more attempts start than the limit allows, if a permit is on its way for no
    more than a second: one second of every 61 is given up for that.

    Args:
        rpm: requests per minute, above 0; None for no limit.
        tpm: tokens per minute, above 0; None for no limit.
        clock: returns seconds, like `time.monotonic`.
        all_taken: whether all of the limit may have been given out just now.

    Raises:
        ConfigurationError: for a limit out of its range.
    """

    def __init__(
        self,
        rpm: float | None = None,
        tpm: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        all_taken: bool = False,
    ) -> None:
        self._permits = LocalPermits(rpm, tpm, clock=clock, slack=ON_THE_WAY)
        self._requests = math.inf if rpm is None else rpm * _SECONDS / 60
        self._tokens = math.inf if tpm is None else tpm * _SECONDS / 60
        self._turn = asyncio.Lock()
        if all_taken:
            weights = [0 if limit is None else math.ceil(limit) for limit in (rpm, tpm)]
            self._permits.start(clock(), weights[1], clock(), weights[0])

    async def block(self, wanted: Wanted) -> int:
        """Wait until the first attempt may start; return how many of them may, from the first.

        Args:
            wanted: at least one attempt.
        """
        async with self._turn:
            count = requests = tokens = 0
            for one, weight in wanted:
                fits = requests + one <= self._requests and tokens + weight <= self._tokens
                if count and not fits:
                    break
                count, requests, tokens = count + 1, requests + one, tokens + weight
            await self._permits.take(requests, tokens)
            return count


class BlockPermits:
    """The `Permits` of one process, which asks for blocks of a shared limit.

    Serves one event loop at a time.

    Args:
        ask: `PermitBlocks.block`, wherever it is.
    """

    def __init__(self, ask: Callable[[Wanted], Awaitable[int]]) -> None:
        self._ask = ask
        self._waiting: deque[tuple[int, int, asyncio.Future[None]]] = deque()
        self._asking: asyncio.Task[None] | None = None

    async def take(self, requests: int, tokens: int) -> None:
        """Wait until so many requests and tokens are within the shared limit, and count them."""
        given = asyncio.get_running_loop().create_future()
        self._waiting.append((requests, tokens, given))
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._serve())
        await given

    async def _serve(self) -> None:
        while True:
            while self._waiting and self._waiting[0][2].done():
                self._waiting.popleft()  # cancelled
            asked = [one for one in self._waiting if not one[2].done()][:_MOST]
            if not asked:
                return
            try:
                count = await self._ask([(requests, tokens) for requests, tokens, _ in asked])
            except Exception as error:  # noqa: BLE001 -- of the actor; each request says it
                self._fail(error)
                return
            for one in asked[:count]:
                # A permit of a request that was cancelled meanwhile is lost, which is safe.
                self._waiting.remove(one)
                if not one[2].done():
                    one[2].set_result(None)

    def _fail(self, error: Exception) -> None:
        while self._waiting:
            given = self._waiting.popleft()[2]
            if not given.done():
                given.set_exception(ConnectionError(f"the shared limit does not answer: {error}"))
