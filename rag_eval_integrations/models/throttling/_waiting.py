"""What requests wait for: `Waiting`, a public snapshot, and `Waiter`, one request on its loop."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Literal

Reason = Literal[
    "rate limit", "token limit", "Retry-After", "backoff", "concurrency", "circuit open"
]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A snapshot of what requests wait for; `str()` of it fits a progress line."""

    reason: Reason
    """`rate limit` and `token limit` are the user's own; `Retry-After` is the endpoint's request,
    `backoff` the pause before a retry; `concurrency` means that as many requests as allowed are
    running; `circuit open` means that requests fail at once because the endpoint is down."""
    seconds: float | None
    """Seconds until it ends, at least 0; None where the end is unknown: for `concurrency`, and for
    the `rate limit` of shared permits."""
    requests: int
    """How many requests wait for this."""
    why: str = field(default="", compare=False)
    """The failure that they wait after; empty where they wait for another reason."""

    def __str__(self) -> str:
        how_long = "" if self.seconds is None else f" for {self.seconds:.1f} s"
        after = f" after: {self.why}" if self.why else ""
        return f"{self.requests} waiting{how_long}: {self.reason}{after}"


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
        """Let it check again, on its own loop; False when that loop is closed."""
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
    if not wakeup.done():
        wakeup.set_result(None)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
