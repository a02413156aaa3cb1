"""How many requests at once: found by halving on refusals and growing on answers (AIMD)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rag_eval_integrations.errors import JudgeUnavailableError

_SAMPLE = 4
"""Fewest outcomes that a window is judged by."""
_BACKGROUND_MOST = 0.3
"""Share of refusals from which they are overload, however constant."""
_SIGMAS = 3.0
"""Standard deviations above the background from which refusals are overload."""
_REGROW = 0.8
"""Share of what the judge bore at the limit that failed, up to which growth is fast."""
_SPARED = 0.9
"""Share of the same, up to which a refusal cannot come from the load."""
_MEMORY = 50
"""Windows over which the background is averaged."""


@dataclass(slots=True)
class _Outcomes:
    """What came back."""

    done: int = 0
    refused: int = 0

    @property
    def answered(self) -> float:
        """Share that was not refused; 1 of nothing."""
        return 1 - self.refused / self.done if self.done else 1.0

    def count(self, refused: bool) -> None:
        self.done += 1
        self.refused += refused


class AdaptiveConcurrency:
    """A number of places that follows what the judge bears, within [1, maximum].

    A refusal (429, timeout) halves the limit, at most once for each window of requests in flight:
    requests that started before the halving say nothing about the new limit. Answers raise it while
    all places are in use: by one each up to 0.8 of what the judge bore (the limit that failed times
    the share it answered), by one in two windows above.

    Halving on every refusal would starve on an endpoint that refuses a constant share: simulated,
    2 % refusals at random left 15 of 32 places in use, 10 % would leave 4 (the square root law of
    TCP). Load tells the two apart: up to 0.9 of what it bore, a judge has no reason to refuse. If
    it does, that share is its background: the limit goes back, and only an excess of three standard
    deviations over the background halves it again.

    Args:
        maximum: most requests at once, at least 1; where it starts.
    """

    def __init__(self, maximum: int) -> None:
        self._maximum = float(maximum)
        self.limit = float(maximum)
        """Requests at once, in [1, maximum]; the fraction is progress to the next whole number."""
        self.in_flight = 0
        """Requests that have started and not finished."""
        self.background = 0.0
        """Share of refusals that does not come from our load, in [0, 0.3]."""
        self._started = 0
        self._halved_at = 0
        self._failed_at = math.inf  # the limit that was halved
        self._before = _Outcomes()  # of the limit that was halved
        self._since = _Outcomes()  # since then
        self._window = _Outcomes()  # of the last `limit` requests
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
            refused: whether the judge was overloaded; None when it ended without saying (cancelled,
                or a failure that has nothing to do with load).
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
            slow = self.limit >= _REGROW * self._borne
            self.limit = min(self._maximum, self.limit + (0.5 / self.limit if slow else 1.0))
        self._decide()

    def _decide(self) -> None:
        size = max(int(self.limit), _SAMPLE)
        window = self._window
        full = window.done >= size
        mean = self.background * max(size, window.done)
        excess = window.refused > mean + _SIGMAS * math.sqrt(mean)
        if excess and window.refused > _BACKGROUND_MOST * size:
            self._halve()
        elif excess and (full or not self._on_trial):
            # Right after a halving a full window is waited for: refusals come back sooner than
            # answers, so the first outcomes of either limit are mostly refusals.
            if self.limit <= _SPARED * self._borne < math.inf:
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
    def _borne(self) -> float:
        """How many at once were answered at the limit that failed; infinite when none has."""
        return self._failed_at * self._before.answered

    def _halve(self) -> None:
        self._failed_at = self.limit
        self.limit = max(1.0, self.limit / 2)
        self._halved_at = self._started
        self._before, self._since, self._window = self._since, _Outcomes(), _Outcomes()
        self._on_trial = True

    def _restore(self) -> None:
        """Learn the background, and go back to the limit that was halved because of it."""
        before, since = self._before, self._since
        share = (before.refused + since.refused) / (before.done + since.done)
        self.background = min(_BACKGROUND_MOST, max(self.background, share))
        self.limit, self._failed_at = max(self.limit, self._failed_at), math.inf
        self._window = _Outcomes()
        self._on_trial = False


# --- A dead judge becomes quick, stated errors: after some failures in a row nothing is asked


class Circuit:
    """Opens after failures in a row; then one probe at a time, each after a cool-down.

    Args:
        name: the judge's name, for the error.
        failures: how many requests in a row must fail for good, at least 1.
        cool_down: seconds for which requests fail at once.
    """

    def __init__(self, name: str, failures: int, cool_down: float) -> None:
        self._name = name
        self._failures = failures
        self._cool_down = cool_down
        self._in_a_row = 0
        self._opened: float | None = None
        self._probing = False
        self._last = ""

    def seconds_open(self, now: float) -> float | None:
        """Seconds until a probe may go; None when the circuit is closed."""
        return None if self._opened is None else max(0.0, self._opened + self._cool_down - now)

    def check(self, now: float) -> None:
        """Raise when no request may go.

        Raises:
            JudgeUnavailableError: says what happened and when a request may go again.
        """
        seconds = self.seconds_open(now)
        if seconds is None or (not seconds and not self._probing):
            return
        when = f"it is tried again in {seconds:.0f} s" if seconds else "it is being tried again now"
        raise JudgeUnavailableError(
            f"{self._name} was not asked: {self._in_a_row} requests in a row failed, {when}; the "
            f"last: {self._last}",
            retry_after=seconds,
        )

    def enter(self) -> bool:
        """Count a request that `check` let through; return whether it is the probe."""
        self._probing = self._opened is not None
        return self._probing

    def leave(self) -> None:
        """The probe ended without a verdict (cancelled): another may go."""
        self._probing = False

    def answered(self) -> None:
        """The judge answered, be it with a refusal of the request: it is alive."""
        self._in_a_row = 0
        self._opened = None
        self._probing = False

    def failed(self, now: float, why: str, *, probe: bool = False) -> bool:
        """Count a request that failed for good, or a probe that failed once.

        Returns:
            Whether the circuit is opened by it.
        """
        self._in_a_row += 1
        self._last = why
        if probe:
            self._probing = False
        if probe or (self._opened is None and self._in_a_row >= self._failures):
            self._opened = now
            return True
        return False
