"""A loop whose time jumps from timer to timer: a test of minutes takes none."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable


class Jumping(selectors.DefaultSelector):
    """Sleeps no time: the clock jumps to the next timer, late by what `lateness` gives."""

    def __init__(self, lateness: Callable[[], float]) -> None:
        super().__init__()
        self.now = 1000.0
        self.lateness = lateness

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("everyone waits for ever")
        if not ready and timeout:
            self.now += timeout + self.lateness()
        return ready


class JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self, lateness: Callable[[], float] = lambda: 0.0) -> None:
        self._jumping = Jumping(lateness)
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now
