"""What a throttled judge is waiting for, in words for a progress line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Reason = Literal[
    "rate limit", "token limit", "Retry-After", "backoff", "concurrency", "circuit open"
]


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is being waited for at one moment."""

    reason: Reason
    """`rate limit` and `token limit` are the user's own; `Retry-After` is what the judge asked for,
    `backoff` our own pause before a retry; `concurrency` a free place; `circuit open` means that
    the judge is given up for a while and requests fail at once."""
    seconds: float | None
    """Seconds until it ends, at least 0; None for `concurrency`, where nobody knows."""
    requests: int
    """How many requests wait for this."""

    def __str__(self) -> str:
        how_long = "" if self.seconds is None else f" for {self.seconds:.1f} s"
        return f"{self.requests} waiting{how_long}: {self.reason}"
