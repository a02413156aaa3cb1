"""A dead judge becomes quick, stated errors: after some failures in a row nothing is asked."""

from __future__ import annotations

from rag_eval_integrations.errors import JudgeUnavailableError


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
