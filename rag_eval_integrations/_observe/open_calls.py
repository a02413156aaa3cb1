"""Open calls, within bounds."""

from __future__ import annotations

import time
from typing import Generic, Protocol, TypeVar

from rag_eval_integrations.errors import ConfigurationError


class Timed(Protocol):
    """A call that knows when it began (`time.monotonic`)."""

    began: float


C = TypeVar("C", bound=Timed)


class OpenCalls(Generic[C]):
    """Calls in flight by their root's key: at most `max_open`, none older than `ttl` seconds.

    What is too many or too old is dropped and counted: an app may keep a stream for ever
    without reading it, and no event tells.
    """

    def __init__(self, max_open: int, ttl: float) -> None:
        # Both come from users, whose type checker may be asleep: bool is an int, NaN a float.
        if type(max_open) is not int or max_open < 1:
            raise ConfigurationError("max_open", max_open, "should be a whole number of at least 1")
        if type(ttl) not in (int, float) or not ttl > 0:
            raise ConfigurationError("ttl", ttl, "should be a number of seconds above 0")
        self.dropped = 0
        """Calls that never ended, were too many, or too old."""
        self._max_open = max_open
        self._ttl = ttl
        self._calls: dict[object, C] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, key: object, call: C) -> list[C]:
        """Open a call; returns the calls that had to be dropped for it."""
        calls = self._calls
        calls[key] = call
        # Nearly always the call is the only one, or among few young ones.
        return self.expire(call.began) if len(calls) > 1 else []

    def holds(self, key: object, call: C) -> bool:
        """Whether this very call is open."""
        return self._calls.get(key) is call

    def close(self, key: object) -> C | None:
        """Take a call out; None when it is not open (any more), so that each is taken once."""
        return self._calls.pop(key, None)

    def expire(self, now: float | None = None) -> list[C]:
        """Drop what is too many or too old, oldest first; returns what was dropped."""
        oldest_allowed = (time.monotonic() if now is None else now) - self._ttl
        out: list[C] = []
        while self._calls:
            key, oldest = next(iter(self._calls.items()))
            if len(self._calls) <= self._max_open and oldest.began >= oldest_allowed:
                break
            # A garbage collection in between may have closed it from a stream's finaliser.
            if (call := self._calls.pop(key, None)) is not None:
                out.append(call)
                self.dropped += 1
        return out
