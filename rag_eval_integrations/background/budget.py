"""What background evaluation may spend: evaluations a minute, dollars a day."""

from __future__ import annotations

import hashlib
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import RagCall, Usage

_MINUTE = 60.0
_DAY = 86_400


@dataclass(frozen=True)
class Budget:
    """Limits; None is no limit.

    Raises:
        ConfigurationError: for a limit that is no finite number above 0.
    """

    per_minute: float | None = None
    """Evaluations started in any 60 s. A fraction is kept over a longer time: 0.5 is one in 120 s,
    2.5 is three in 72 s."""
    per_day_usd: float | None = None
    """Dollars a day (UTC), by the `Usage.cost_usd` of what has come back: the evaluations in
    flight when it is reached (at most `max_concurrency`) go beyond it. A price that is not known
    is not 0: the limit cannot be kept then, which is logged once."""

    def __post_init__(self) -> None:
        for name, value in (("per_minute", self.per_minute), ("per_day_usd", self.per_day_usd)):
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ConfigurationError(name, value, "use a number above 0, or None")
            if not (math.isfinite(value) and value > 0):
                raise ConfigurationError(name, value, "use a finite number above 0, or None")


class Meter:
    """Keeps a budget; used from one thread.

    Args:
        budget: the limits.
        monotonic: seconds from any start, never going back.
        clock: seconds since 1970, UTC.
    """

    def __init__(
        self,
        budget: Budget,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._budget = budget
        self._monotonic = monotonic
        self._clock = clock
        per_minute = budget.per_minute
        # Exact in every window, which a bucket that refills is not: it lets twice the limit
        # through in its first minute.
        self._most = 0 if per_minute is None else math.ceil(per_minute)
        self._window = 0.0 if per_minute is None else _MINUTE * self._most / per_minute
        self._starts: deque[float] = deque()
        self._day = self._today()
        self._spent = 0.0
        self.cost_unknown = False
        """Whether an evaluation asked a judge at an unknown price under a limit in dollars."""

    def start(self) -> str | None:
        """Count an evaluation as started; return why it may not start, or None."""
        limit = self._budget.per_day_usd
        if limit is not None:
            self._new_day()
            if self._spent >= limit:
                return f"the day's budget of {limit:g} USD is spent"
        if self._most:
            now = self._monotonic()
            while self._starts and now - self._starts[0] >= self._window:
                self._starts.popleft()
            if len(self._starts) >= self._most:
                return f"{self._budget.per_minute:g} evaluations a minute are used up"
            self._starts.append(now)
        return None

    def spent(self, usage: Usage) -> None:
        """Count what an evaluation cost."""
        if self._budget.per_day_usd is None:
            return
        self._new_day()
        if usage.cost_usd is not None:
            self._spent += usage.cost_usd
        elif usage.requests:  # no request costs nothing, whatever the price
            self.cost_unknown = True

    def _new_day(self) -> None:
        today = self._today()
        if today != self._day:
            self._day, self._spent = today, 0.0

    def _today(self) -> int:
        return int(self._clock() // _DAY)


# --- Which calls are judged: decided by the call's id alone, so that it can be told again


SampleRate = float | Callable[[RagCall], float]

_RANGE = 2.0**64


def chosen(call_id: str, probability: float) -> bool:
    """Say whether a call is sampled at a probability in [0, 1]; the same id, the same answer.

    In every process and on every machine. A call sampled at one rate is sampled at all higher
    ones. About 1 µs: a digest of the id, of at most a few dozen characters, never of the texts.
    """
    if probability >= 1.0:
        return True
    digest = hashlib.blake2b(
        call_id.encode("utf-8", "surrogatepass"), digest_size=8, person=b"rag-eval-sample"
    )  # `person`: no other sampler that hashes the same ids picks the same calls
    return int.from_bytes(digest.digest(), "big") / _RANGE < probability


def checked(rate: SampleRate) -> SampleRate:
    """Return a rate that can be used.

    Raises:
        ConfigurationError: for what is neither a number in [0, 1] nor a function.
    """
    if not callable(rate) and not _is_probability(rate):
        raise ConfigurationError(
            "sample_rate", rate, "use a number in [0, 1], or a function that gives one"
        )
    return rate


def probability_of(call: RagCall, rate: SampleRate) -> float:
    """Return the probability with which a call is sampled.

    Raises:
        ValueError: when the user's function gave something else.
    """
    if not callable(rate):
        return rate
    probability = rate(call)
    if not _is_probability(probability):
        raise ValueError(f"`sample_rate` gave {probability!r}, which is not in [0, 1]")
    return probability


def _is_probability(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and 0.0 <= value <= 1.0
