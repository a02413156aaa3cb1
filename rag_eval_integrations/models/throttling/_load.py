"""The load that an endpoint can take: `AdaptiveConcurrency` (AIMD) and the circuit breaker.

Both are told how each request ended. The first decides how many requests may run at once, the
second whether any may start at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rag_eval_integrations.errors import JudgeUnavailableError

_SAMPLE = 4
"""Fewest outcomes that decide about a window."""
_BACKGROUND_MOST = 0.3
"""Share of refusals that always means overload, however constant it is."""
_SIGMAS = 4.0
"""Standard deviations above the background rate that mean overload. With 3, chance alone halved
the limit again and again: 640 simulated calls with 10 % 429, 5 % cut replies and 2 % hangs took 4.1
times the fault-free time (nine of ten runs up to 5.9), with 4 they take 4.0 (4.9)."""
_REGROW = 0.8
"""Share of the known capacity up to which the limit grows fast."""
_SPARED = 0.9
"""Share of the known capacity up to which refusals cannot come from load."""
_MEMORY = 50
"""Windows over which the background rate is averaged."""


@dataclass(slots=True)
class _Outcomes:
    """How many requests ended, and how many of them were refused."""

    done: int = 0
    refused: int = 0

    @property
    def answered(self) -> float:
        """Share that was not refused; 1 when none has ended."""
        return 1 - self.refused / self.done if self.done else 1.0

    def count(self, refused: bool) -> None:
        """Count a request that ended."""
        self.done += 1
        self.refused += refused


class AdaptiveConcurrency:
    """A limit on concurrent requests that follows the endpoint's capacity, in [1, maximum].

    Refusals (429, timeout) halve the limit, at most once per window of requests in flight: requests
    that started before the halving say nothing about the new limit. While the limit is fully used,
    answers raise it: by 1 each up to 0.8 of the capacity (the limit that failed times the share it
    answered), by 1 per two windows above.

    Halving on every refusal would starve on an endpoint that refuses a constant share: in a
    simulation 2 % random refusals left 15 of 32 requests running, 10 % would leave 4 (the square
    root law of TCP). Load tells the two apart: below 0.9 of its capacity an endpoint has no reason
    to refuse. If it does, that share is its background rate: the limit is restored, and only an
    excess of four standard deviations over that rate halves it again.

    Args:
        maximum: most concurrent requests, from 1; the limit starts there.
    """

    def __init__(self, maximum: int) -> None:
        self._maximum = float(maximum)
        self.limit = float(maximum)
        """Concurrent requests, in [1, maximum]; a fraction is progress to the next whole number."""
        self.in_flight = 0
        """Requests that have started and not finished."""
        self.background = 0.0
        """Share of refusals that our load does not cause, in [0, 0.3]."""
        self._started = 0
        self._halved_at = 0
        self._failed_at = math.inf  # the limit that was last halved
        self._before = _Outcomes()  # at that limit
        self._since = _Outcomes()  # since the halving
        self._window = _Outcomes()  # in the current window
        self._on_trial = False  # in the first window after a halving

    @property
    def free(self) -> bool:
        """Whether another request may start."""
        return self.in_flight < int(self.limit)

    def start(self) -> int:
        """Count a request as started; return its number."""
        self.in_flight += 1
        self._started += 1
        return self._started

    def finish(self, number: int, refused: bool | None) -> None:
        """Count a request as finished.

        Args:
            number: what `start` returned.
            refused: whether the endpoint was overloaded; None when that is not known (cancelled, or
                a failure that has nothing to do with load).
        """
        in_use = self.in_flight >= int(self.limit)
        self.in_flight -= 1
        if refused is None:
            return
        if number <= self._halved_at:
            self._before.count(refused)
            return
        self._since.count(refused)
        self._window.count(refused)
        if in_use and not refused and not self._on_trial:
            slow = self.limit >= _REGROW * self._capacity
            self.limit = min(self._maximum, self.limit + (0.5 / self.limit if slow else 1.0))
        self._decide()

    def _decide(self) -> None:
        """Halve the limit, restore it, or begin the next window, as the outcomes say."""
        size = max(int(self.limit), _SAMPLE)
        window = self._window
        full = window.done >= size
        mean = self.background * max(size, window.done)
        excess = window.refused > mean + _SIGMAS * math.sqrt(mean)
        if excess and window.refused > _BACKGROUND_MOST * size:
            self._halve()
        elif excess and (full or not self._on_trial):
            # Refusals come back sooner than answers, so the first outcomes after a halving are
            # mostly refusals: a full window has to end before they count.
            if self.limit <= _SPARED * self._capacity < math.inf:
                self._restore()
            else:
                self._halve()
        elif full:
            if self.background:
                share = min(_BACKGROUND_MOST, window.refused / window.done)
                self.background += (share - self.background) / _MEMORY
            self._window = _Outcomes()
            self._on_trial = False

    @property
    def _capacity(self) -> float:
        """The limit that failed times the share it answered; infinite before any has failed."""
        return self._failed_at * self._before.answered

    def _halve(self) -> None:
        """Halve the limit, and remember where it failed."""
        self._failed_at = self.limit
        self.limit = max(1.0, self.limit / 2)
        self._halved_at = self._started
        self._before, self._since, self._window = self._since, _Outcomes(), _Outcomes()
        self._on_trial = True

    def _restore(self) -> None:
        """Learn the background rate, and undo the halving that it caused."""
        before, since = self._before, self._since
        share = (before.refused + since.refused) / (before.done + since.done)
        self.background = min(_BACKGROUND_MOST, max(self.background, share))
        self.limit, self._failed_at = max(self.limit, self._failed_at), math.inf
        self._window = _Outcomes()
        self._on_trial = False


class CircuitBreaker:
    """Opens after failures in a row, then lets one probe at a time through.

    While it is open, requests fail at once instead of waiting for an endpoint that is down.

    Args:
        name: the model's name, for the error.
        failures: requests in a row that have to fail for good before it opens, from 1.
        cool_down: seconds before a probe may go, from 0.
    """

    def __init__(self, name: str, failures: int, cool_down: float) -> None:
        self._name = name
        self._failures = failures
        self._cool_down = cool_down
        self._in_a_row = 0
        self._opened: float | None = None
        self._probing = False
        self.last = ""
        """The last failure."""
        self._connected = True

    def seconds_open(self, now: float) -> float | None:
        """Seconds until a probe may go; None when the circuit is closed."""
        return None if self._opened is None else max(0.0, self._opened + self._cool_down - now)

    def check(self, now: float) -> None:
        """Raise an error when no request may go.

        Raises:
            JudgeUnavailableError: with the failures so far, and when a request may go again.
        """
        seconds = self.seconds_open(now)
        if seconds is None or (not seconds and not self._probing):
            return
        when = f"it is tried again in {seconds:.0f} s" if seconds else "it is being tried again now"
        if not self._connected:
            message = f"{self.last}; {when}"
        else:
            message = (
                f"{self._name} was not asked: {self._in_a_row} requests in a row failed, {when}; "
                f"the last: {self.last}"
            )
        raise JudgeUnavailableError(message, retry_after=seconds, connected=self._connected)

    def enter(self) -> bool:
        """Count a request that `check` let through; return whether it is the probe."""
        self._probing = self._opened is not None
        return self._probing

    def release_probe(self) -> None:
        """Let another probe go: this one ended without an outcome (cancelled)."""
        self._probing = False

    def answered(self) -> None:
        """Record an answer, including a refusal of the request: the endpoint is up."""
        self._in_a_row = 0
        self._opened = None
        self._probing = False

    def failed(
        self, now: float, why: str, *, probe: bool = False, connected: bool = True,
        at_once: bool = False,
    ) -> bool:  # fmt: skip
        """Count a request that failed for good, or a probe that failed once.

        Args:
            now: the time.
            why: the failure.
            probe: whether it was the probe of an open circuit.
            connected: False if no connection could be made.
            at_once: open now, whatever the number of failures before.

        Returns:
            Whether this failure opens the circuit.
        """
        self._in_a_row += 1
        self.last, self._connected = why, connected
        if probe:
            self._probing = False
        enough = at_once or self._in_a_row >= self._failures
        if probe or (self._opened is None and enough):
            self._opened = now
            return True
        return False
