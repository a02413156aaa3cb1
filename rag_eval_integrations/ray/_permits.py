"""One limit per minute for many processes: `Limit` in an actor, `SharedPermits` in each of them."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable

from rag_eval_integrations.models.throttling import LocalPermits

ON_THE_WAY = 1.0
"""Seconds that a permit may take from the actor to the request that it lets start."""


class Limit:
    """Gives out the permits of one limit, in the order in which they are asked for.

    In any minute no more attempts start than the limit allows, if a permit is on its way for no
    more than a second: one second of every 61 is given up for that.

    Args:
        rpm: requests per minute, above 0; None for no limit.
        tpm: tokens per minute, above 0; None for no limit.
        clock: returns seconds, like `time.monotonic`.
        again: whether an earlier one may have given out all of the limit just now.

    Raises:
        ConfigurationError: for a limit out of its range.
    """

    def __init__(
        self,
        rpm: float | None = None,
        tpm: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        again: bool = False,
    ) -> None:
        self._permits = LocalPermits(rpm, tpm, clock=clock, slack=ON_THE_WAY)
        self._turn = asyncio.Lock()
        if again:
            requests, tokens = (0 if limit is None else math.ceil(limit) for limit in (rpm, tpm))
            self._permits.start(clock(), tokens, clock(), requests)

    async def take(self, requests: int, tokens: int) -> None:
        """Wait until so many requests and tokens are within the limit, and count them."""
        async with self._turn:
            await self._permits.take(requests, tokens)


class SharedPermits:
    """The `Permits` of one process, which asks for each of a limit that is elsewhere.

    Args:
        ask: `Limit.take`, wherever it is.
    """

    def __init__(self, ask: Callable[[int, int], Awaitable[None]]) -> None:
        self._ask = ask

    async def take(self, requests: int, tokens: int) -> None:
        """Wait until so many requests and tokens are within the shared limit.

        A permit of a request that is cancelled meanwhile is lost, which is safe.
        """
        try:
            await self._ask(requests, tokens)
        except Exception as error:
            raise ConnectionError(f"the shared limit does not answer: {error}") from error
