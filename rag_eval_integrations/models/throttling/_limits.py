"""Limits per minute: the protocol `Permits`, that of one process, and the window they rest on."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.models.completion import CompletionRequest
from rag_eval_integrations.records._json import is_amount

Limit = Literal["rate limit", "token limit"]

MINUTE = 60.0
_LATENESS = 1.0
"""Seconds by which a start may be late without moving those after it."""
_COMPLETION_TOKENS = 500
"""Estimated tokens of an answer when the request sets no `max_tokens`: labels of a call of about
twenty sentences. The usage that comes back replaces the estimate."""
_CHARACTERS_PER_TOKEN = 4


@runtime_checkable
class Permits(Protocol):
    """A limit per minute that several models, processes or machines may share.

    `ThrottledModel(permits=…)` takes one permit per attempt, in the order in which its requests
    start. `LocalPermits` is one for a process; a server or an actor that holds a `LocalPermits`
    makes one for many.
    """

    async def take(self, requests: int, tokens: int) -> None:
        """Wait until so many requests and tokens are within the limit, and count them.

        Args:
            requests: attempts about to start, from 1.
            tokens: estimate of what they take, prompts and answers.

        A cancelled `take` should count nothing. An error ends the request that waits.
        """
        ...


@dataclass(slots=True)
class Taken:
    """One start, and how much of the limit it took."""

    start: float
    weight: float
    counted: bool = True
    """False once it has left the window."""


class RollingWindow:
    """What started within the latest seconds, and when there is room for more.

    Exact in every window. A token bucket was measured to let twice the limit through (full bucket
    plus refill: 99 in one second at 50 per second).

    Args:
        most: weight that any window holds at most, above 0.
        seconds: length of the window, above 0.
    """

    def __init__(self, most: float, seconds: float) -> None:
        self._most, self._seconds = most, seconds
        self._taken: deque[Taken] = deque()
        self._total = 0.0

    def free_at(self, now: float, weight: float) -> float:
        """Return the earliest time at which `weight` has room; not above `now` means now.

        What is heavier than the window has room alone, when nothing else is in it.
        """
        self._forget(now)
        earliest = -math.inf
        excess = self._total + weight - self._most
        for taken in self._taken:
            if excess <= 0:
                break
            earliest = taken.start + self._seconds
            excess -= taken.weight
        return earliest

    def add(self, now: float, weight: float) -> Taken:
        """Record a start."""
        taken = Taken(now, weight)
        self._taken.append(taken)
        self._total += weight
        return taken

    def correct(self, taken: Taken, weight: float) -> float:
        """Replace an estimate by what was used; return the difference, 0 once it does not count."""
        if not taken.counted:
            return 0.0
        difference = weight - taken.weight
        self._total += difference
        taken.weight = weight
        return difference

    def _forget(self, now: float) -> None:
        """Drop the starts that have left the window."""
        while self._taken and self._taken[0].start + self._seconds <= now:
            old = self._taken.popleft()
            old.counted = False
            self._total -= old.weight
        if not self._taken:
            self._total = 0.0


class PerMinute:
    """A limit per minute that is never exceeded in any minute and loses no time.

    Starts are spaced by `weight * 60 / limit` seconds: fifty requests at 30 per minute start at 0,
    2, … 98 s. Spacing alone does not keep the limit in every window when one start is late and the
    next is not, so the starts of the last minute are remembered as well. A request heavier than the
    limit goes alone, when nothing else is in the window.

    pyrate-limiter also keeps the limit (50 of 50), but it is one more dependency of every install,
    cannot correct a weight afterwards, and refuses a weight above its limit with a plain False.

    Args:
        limit: weight per minute, above 0; a window holds at most the next whole number.
        slack: seconds by which a start may come after it was recorded, from 0.
    """

    def __init__(self, limit: float, slack: float = 0.0) -> None:
        self._window = RollingWindow(math.ceil(limit), MINUTE + slack)
        self._spacing = MINUTE / limit
        self._next = -math.inf

    def free_at(self, now: float, weight: float) -> float:
        """Return the earliest time at which `weight` may start; not above `now` means now."""
        return max(self._next, self._window.free_at(now, weight))

    def take(self, now: float, weight: float, since: float) -> Taken:
        """Record a start at `now`, which `at` allowed.

        Args:
            now: the time of the start.
            weight: how much of the limit it takes.
            since: when the request began to wait. Spacing counts from when it was due, not from
                when the loop woke it: waking 1 ms late each time would lose 10 % at 6,000 per
                minute.
        """
        self._next = max(self._next, since, now - _LATENESS) + weight * self._spacing
        return self._window.add(now, weight)

    def correct(self, taken: Taken, weight: float) -> None:
        """Replace an estimate by what was used; ignored once the start is a minute old."""
        self._next += self._window.correct(taken, weight) * self._spacing


class LocalPermits:
    """The `Permits` of one process: requests and tokens per minute, evenly spaced.

    `ThrottledModel` makes its own of `rpm` and `tpm`; pass one to several models to have them share
    a quota. May be used from any thread and loop.

    Args:
        rpm: requests per minute, above 0; None for no limit.
        tpm: tokens per minute, above 0; None for no limit.
        clock: returns seconds, like `time.monotonic`.
        slack: seconds that a permit may take to the request that it lets start, from 0; above 0
            where that is in another process.

    Raises:
        ConfigurationError: for a limit out of its range.
    """

    def __init__(
        self,
        rpm: float | None = None,
        tpm: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        slack: float = 0.0,
    ) -> None:
        for field, number in (("rpm", rpm), ("tpm", tpm)):
            if number is not None and not is_amount(number):
                raise ConfigurationError(field, number, "use a finite number above 0")
        self._requests = None if rpm is None else PerMinute(rpm, slack)
        self._tokens = None if tpm is None else PerMinute(tpm, slack)
        self._clock = clock
        self._lock = threading.Lock()

    async def take(self, requests: int, tokens: int) -> None:
        """Wait until so many requests and tokens are within the limits, and count them."""
        since = self._clock()
        while True:
            with self._lock:
                now = self._clock()
                free_at = max(self.holds(now, tokens, requests), default=(now, ""))[0]
                if free_at <= now:
                    self.start(now, tokens, since, requests)
                    return
            # A shorter timer may not advance the clock.
            await asyncio.sleep(max(free_at - now, 1e-6))

    # --- For a queue that has its own lock, and shows what it waits for

    def holds(self, now: float, tokens: float, requests: int = 1) -> list[tuple[float, Limit]]:
        """Return until when each limit holds requests back: not above `now` means no longer."""
        holds: list[tuple[float, Limit]] = []
        if self._requests is not None:
            holds.append((self._requests.free_at(now, requests), "rate limit"))
        if self._tokens is not None:
            holds.append((self._tokens.free_at(now, tokens), "token limit"))
        return holds

    def start(self, now: float, tokens: float, since: float, requests: int = 1) -> Taken | None:
        """Count a start that `holds` allowed; return its tokens, to be corrected."""
        if self._requests is not None:
            self._requests.take(now, requests, since)
        return None if self._tokens is None else self._tokens.take(now, tokens, since)

    def correct(self, taken: Taken | None, tokens: int) -> None:
        """Replace an estimate by the tokens that were used."""
        if taken is not None and self._tokens is not None:
            self._tokens.correct(taken, tokens)


def estimated_tokens(request: CompletionRequest) -> int:
    """Estimate the tokens of a request: characters / 4, plus `max_tokens` or 500 per answer."""
    characters = sum(len(message.content) for message in request.messages)
    answer = _COMPLETION_TOKENS if request.max_tokens is None else request.max_tokens
    return characters // _CHARACTERS_PER_TOKEN + 1 + request.n * answer
