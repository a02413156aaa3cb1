"""Limits per minute (`Permits`), and the load that an endpoint bears (`AdaptiveConcurrency`)."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, runtime_checkable

from rag_eval_integrations.errors import ConfigurationError, JudgeUnavailableError
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

        What is heavier than the window has room alone, when nothing else is in it. Starts that have
        left the window are forgotten.
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
        """Replace an estimate by the actual weight; return the difference, 0 if it is too old."""
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
        """Record a start at `now`, which `free_at` allowed.

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
        """Replace an estimate by the actual weight; ignored once the start is a minute old."""
        self._next += self._window.correct(taken, weight) * self._spacing


class LocalPermits:
    """The `Permits` of one process: requests and tokens per minute, evenly spaced.

    `ThrottledModel` makes its own of `rpm` and `tpm`; pass one to several models to have them share
    a quota. May be used from any thread and loop.

    Args:
        rpm: requests per minute, above 0; None for no limit.
        tpm: tokens per minute, above 0; None for no limit.
        clock: returns seconds, like `time.monotonic`.

    Raises:
        ConfigurationError: for a limit out of its range.
    """

    _slack: ClassVar[float] = 0.0
    """Seconds that a permit may take to the request that it lets start: above 0 where that is in
    another process."""

    def __init__(
        self,
        rpm: float | None = None,
        tpm: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        for field, number in (("rpm", rpm), ("tpm", tpm)):
            if number is not None and not is_amount(number):
                raise ConfigurationError(field, number, "use a finite number above 0")
        self._requests = None if rpm is None else PerMinute(rpm, self._slack)
        self._tokens = None if tpm is None else PerMinute(tpm, self._slack)
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
        """Return the time until which each limit holds requests back; not above `now` for none.

        One entry per limit that is set; empty without any. Nothing is counted.
        """
        holds: list[tuple[float, Limit]] = []
        if self._requests is not None:
            holds.append((self._requests.free_at(now, requests), "rate limit"))
        if self._tokens is not None:
            holds.append((self._tokens.free_at(now, tokens), "token limit"))
        return holds

    def start(self, now: float, tokens: float, since: float, requests: int = 1) -> Taken | None:
        """Count a start that `holds` allowed; return its tokens, to be corrected.

        None without a token limit.
        """
        if self._requests is not None:
            self._requests.take(now, requests, since)
        return None if self._tokens is None else self._tokens.take(now, tokens, since)

    def correct(self, taken: Taken | None, tokens: int) -> None:
        """Replace an estimate by the tokens that were used; None is ignored.

        So is a start that is a minute old.
        """
        if taken is not None and self._tokens is not None:
            self._tokens.correct(taken, tokens)


def estimated_tokens(request: CompletionRequest) -> int:
    """Estimate the tokens of a request: characters / 4, plus `max_tokens` or 500 per answer."""
    characters = sum(len(message.content) for message in request.messages)
    answer = _COMPLETION_TOKENS if request.max_tokens is None else request.max_tokens
    return characters // _CHARACTERS_PER_TOKEN + 1 + request.n * answer


# --- The concurrency that an endpoint bears


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
    """Counts of ended requests and of refused ones."""

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
        """Count a request as finished, and raise, halve or restore the limit by how it ended.

        One that started before the last halving is counted, but does not move the limit; nor does
        one whose outcome is not known.

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
        """Halve the limit, to 1 at least, and remember where it failed."""
        self._failed_at = self.limit
        self.limit = max(1.0, self.limit / 2)
        self._halved_at = self._started
        self._before, self._since, self._window = self._since, _Outcomes(), _Outcomes()
        self._on_trial = True

    def _restore(self) -> None:
        """Learn the background rate, 0.3 at most, and undo the halving that it caused."""
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

        It returns when the circuit is closed, and when it has cooled down and no probe is running.

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
        """Count a request that `check` let through; return whether it probes an open circuit."""
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
        self,
        now: float,
        why: str,
        *,
        probe: bool = False,
        connected: bool = True,
        at_once: bool = False,
    ) -> bool:
        """Count a request that failed for good, or a probe that failed once.

        A probe that fails opens the circuit for another `cool_down`. Other failures do not prolong
        an open circuit.

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
