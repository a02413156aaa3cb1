"""One request that waits: woken on its own loop, or by the clock."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from rag_eval_integrations.judges.throttling.waiting import Reason

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
