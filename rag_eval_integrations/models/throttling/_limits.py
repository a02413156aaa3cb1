"""So much a minute: requests or tokens, evenly spaced, never more in any minute."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from rag_eval_integrations.models.completion import CompletionRequest

MINUTE = 60.0
_LATENESS = 1.0
"""Seconds by which a start may be late and the next still keep its place on the grid."""
_COMPLETION_TOKENS = 500
"""Tokens that an answer is taken to have when the request sets no cap: labels of a call with about
twenty sentences. Only an estimate; the real number replaces it."""
_CHARACTERS_PER_TOKEN = 4


@dataclass(slots=True)
class Taken:
    """One start: when, and how much of the limit it took."""

    start: float
    weight: float
    counted: bool = True
    """False once it is more than a minute old."""


class PerMinute:
    """A limit a minute that neither exceeds the limit in any minute nor loses time.

    Starts are spaced by `weight * 60 / limit` seconds: fifty requests at 30 a minute start at 0, 2,
    … 98 s. Spacing by itself does not hold in a window when one start is late and a later one is
    not, so actual starts are remembered for a minute as well. A token bucket was measured to let
    twice the limit through (full bucket plus refill: 99 in one second at 50 a second). A request
    heavier than the limit goes alone: once nothing else is in the window.

    These lines rather than pyrate-limiter, which keeps the limit too (50 of 50): it is one more
    dependency of every install, it cannot correct a weight afterwards, and refuses a weight above
    its limit with a plain False.

    Args:
        limit: how much a minute, above 0; a fraction limits a window to the next whole number.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._most = math.ceil(limit)
        self._spacing = MINUTE / limit
        self._next = -math.inf
        self._taken: deque[Taken] = deque()
        self._total = 0.0

    def at(self, now: float, weight: float) -> float:
        """Return the earliest time at which `weight` may start; at most `now` means now."""
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
            since: when the request began to wait. The spacing counts from when it was due, not from
                when the loop got round to it: sleeping about 1 ms too long each time would lose
                10 % at 6,000 a minute.
        """
        taken = Taken(now, weight)
        self._taken.append(taken)
        self._total += weight
        self._next = max(self._next, since, now - _LATENESS) + weight * self._spacing
        return taken

    def correct(self, taken: Taken, weight: float) -> None:
        """Replace an estimate by what was really used; no use once it is a minute old."""
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
    """Guess the tokens of a request: characters / 4, and each answer's cap or 500."""
    characters = sum(len(message.content) for message in request.messages)
    answer = _COMPLETION_TOKENS if request.max_tokens is None else request.max_tokens
    return characters // _CHARACTERS_PER_TOKEN + 1 + request.n * answer
