"""When to ask again, and what to say when it is given up."""

from __future__ import annotations

import random
from dataclasses import dataclass

from rag_eval_integrations.errors import JudgeUnavailableError

_FIRST = 1.0
"""Seconds. With 0.5, eight attempts were over within a minute, sooner than a quota by the minute
that sends no Retry-After is renewed."""
_LONGEST = 30.0

_OVERLOADED = frozenset({408, 429, 503, 504, 529})


def overloaded(error: JudgeUnavailableError) -> bool:
    """Whether a failure says that the judge has too much to do.

    429, 503, 529 say so; 408, 504 and a failure without a status (a timeout, no connection) look
    the same from outside. A 500 is an accident of one request.
    """
    return error.status is None or error.status in _OVERLOADED


def pause(attempt: int, retry_after: float | None, random_: random.Random) -> float:
    """Seconds before the next attempt: full jitter, and never before the judge allows it.

    Uniform in [0, min(30, 2^(attempt - 1))], so that requests that failed together do not
    come back together; at least `retry_after` where the judge gave it.

    Args:
        attempt: how many attempts were made, from 1.
        retry_after: seconds that the judge asked to wait.
        random_: where chance comes from.
    """
    jittered = random_.uniform(0.0, min(_LONGEST, _FIRST * 2.0 ** min(attempt - 1, 16)))
    return max(jittered, retry_after or 0.0)


def pause_for_others(error: JudgeUnavailableError, seconds: float) -> float:
    """Seconds that all requests wait when none is answered.

    A 429 or a Retry-After is meant for all: they wait as long as this one. After other failures
    they wait a second at most, so that a dead judge is found dead in one minute, not in four.

    Args:
        error: the failure.
        seconds: how long this request waits.
    """
    if error.status == 429 or error.retry_after is not None:
        return seconds
    return min(seconds, 1.0)


@dataclass(slots=True)
class Tries:
    """What was tried for one request."""

    name: str
    """The judge's name."""
    deadline: float
    """Seconds from the start of the first attempt to the end of the last."""
    ticket: int
    """Place in the line."""
    tokens: float
    """Estimate of what each attempt takes of the token limit."""
    made: int = 0
    """Attempts that have begun."""
    began: float | None = None
    """When the first began."""
    last: JudgeUnavailableError | None = None
    """The last attempt's failure."""

    @property
    def end(self) -> float | None:
        """When the deadline passes; None before the first attempt."""
        return None if self.began is None else self.began + self.deadline

    def remaining(self, now: float) -> float:
        """Seconds until the deadline."""
        return self.deadline if self.began is None else self.began + self.deadline - now

    def begin(self, now: float) -> float:
        """Count an attempt; return when the deadline passes."""
        self.made += 1
        if self.began is None:
            self.began = now
        return self.began + self.deadline

    def error(self, now: float, why: str) -> JudgeUnavailableError:
        """Make the error of a request that is given up.

        Args:
            now: the time.
            why: what forbids another attempt.
        """
        last = self.last
        times = "1 attempt" if self.made == 1 else f"{self.made} attempts"
        seconds = now - (now if self.began is None else self.began)
        cause = "" if last is None else f"; the last failure: {last}"
        return JudgeUnavailableError(
            f"{self.name} did not answer: {times} in {seconds:.1f} s, {why}{cause}",
            status=None if last is None else last.status,
            retry_after=None if last is None else last.retry_after,
        )
