"""Limits per minute on requests or tokens: evenly spaced, never exceeded in any 60 s window."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from rag_eval_integrations.models.completion import CompletionRequest

MINUTE = 60.0
_LATENESS = 1.0
"""Seconds by which a start may be late without moving those after it."""
_COMPLETION_TOKENS = 500
"""Estimated tokens of an answer when the request sets no `max_tokens`: labels of a call of about
twenty sentences. The usage that comes back replaces the estimate."""
_CHARACTERS_PER_TOKEN = 4


@dataclass(slots=True)
class Taken:
    """One started request, and how much of the limit it took."""

    start: float
    weight: float
    counted: bool = True
    """False once it is a minute old."""


class PerMinute:
    """A limit per minute that is never exceeded in any minute and loses no time.

    Starts are spaced by `weight * 60 / limit` seconds: fifty requests at 30 per minute start at 0,
    2, … 98 s. Spacing alone does not keep the limit in every window when one start is late and the
    next is not, so the starts of the last minute are remembered as well. A token bucket was
    measured to let twice the limit through (full bucket plus refill: 99 in one second at 50 per
    second). A request heavier than the limit goes alone, when nothing else is in the window.

    pyrate-limiter also keeps the limit (50 of 50), but it is one more dependency of every install,
    cannot correct a weight afterwards, and refuses a weight above its limit with a plain False.

    Args:
        limit: weight per minute, above 0; a window holds at most the next whole number.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._most = math.ceil(limit)
        self._spacing = MINUTE / limit
        self._next = -math.inf
        self._taken: deque[Taken] = deque()
        self._total = 0.0

    def at(self, now: float, weight: float) -> float:
        """Return the earliest time at which `weight` may start; not above `now` means now."""
        self._forget(now)
        earliest = self._next
        excess = self._total + weight - self._most
        for taken in self._taken:
            if excess <= 0:
                break
            earliest = max(earliest, taken.start + MINUTE)
            excess -= taken.weight
        return earliest

    def take(self, now: float, weight: float, since: float) -> Taken:
        """Record a start at `now`, which `at` allowed.

        Args:
            now: the time of the start.
            weight: how much of the limit it takes.
            since: when the request began to wait. Spacing counts from when it was due, not from
                when the loop woke it: waking 1 ms late each time would lose 10 % at 6,000 per
                minute.
        """
        taken = Taken(now, weight)
        self._taken.append(taken)
        self._total += weight
        self._next = max(self._next, since, now - _LATENESS) + weight * self._spacing
        return taken

    def correct(self, taken: Taken, weight: float) -> None:
        """Replace an estimate by what was used; ignored once the start is a minute old."""
        if not taken.counted:
            return
        self._total += weight - taken.weight
        self._next += (weight - taken.weight) * self._spacing
        taken.weight = weight

    def _forget(self, now: float) -> None:
        while self._taken and self._taken[0].start + MINUTE <= now:
            old = self._taken.popleft()
            old.counted = False
            self._total -= old.weight
        if not self._taken:
            self._total = 0.0


def estimated_tokens(request: CompletionRequest) -> int:
    """Estimate the tokens of a request: characters / 4, plus `max_tokens` or 500 per answer."""
    characters = sum(len(message.content) for message in request.messages)
    answer = _COMPLETION_TOKENS if request.max_tokens is None else request.max_tokens
    return characters // _CHARACTERS_PER_TOKEN + 1 + request.n * answer
