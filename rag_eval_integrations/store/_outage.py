"""`Outage`: whether the judge can be reached, told from what becomes of the calls.

It cannot where no call of any kind was answered since one failed. Then no call uses up a try: the
worker asks with one, after a second and then ever later, until a call is answered. While calls are
answered, one that fails uses its tries.
"""

from __future__ import annotations

import time

from rag_eval_integrations._visible import logger_of, visible
from rag_eval_integrations.records import Evaluation

_logger = logger_of("rag_eval_integrations.store")

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 300.0
_TRANSIENT = {"JudgeUnavailableError", "JudgeRejectedError"}


def failure_of(evaluation: Evaluation) -> str | None:
    """Say with what the judge failed; None if it did not, or was not asked."""
    error = evaluation.error
    if error is None or (error.stage != "judge" and error.type not in _TRANSIENT):
        return None
    return f"{error.stage}: {error.type}: {error.message}"


class Outage:
    """Counts what the judge answers, and says when a call may be begun."""

    def __init__(self) -> None:
        self.answers = 0
        """Calls that the judge has answered."""
        self.is_answering = False
        """Whether the last call that it was asked about was answered."""
        self.pause = 0.0
        """Seconds between the calls with which it is asked whether it is back; 0 while it is."""
        self._began = self._due = 0.0

    @property
    def lasts(self) -> bool:
        """Whether the judge cannot be reached."""
        return self.pause > 0

    @property
    def seconds(self) -> float:
        """How long it could not be reached by now; 0 if it can."""
        return time.monotonic() - self._began if self.lasts else 0.0

    @property
    def is_due(self) -> bool:
        """Whether it is time to test with one call if the judge is back."""
        return time.monotonic() >= self._due

    def answered(self) -> None:
        """Count an answer, which ends an outage."""
        self.answers += 1
        self.is_answering = True
        if self.lasts:
            _logger.warning("the judge answers again, after %.0f s", self.seconds)
        self.pause = 0.0

    def failed(self, why: str, *, asked_for_it: bool) -> None:
        """Begin an outage, and tell; or wait longer, where the call was begun to ask."""
        self.is_answering = False
        now = time.monotonic()
        if not self.lasts:
            self._began = now
            message = "the judge cannot be reached (%s); it is asked with one call, ever later, "
            _logger.warning(message + "and no call uses up its tries", visible(why))
        elif not asked_for_it:
            return
        self.pause = min(max(2 * self.pause, _FIRST_PAUSE), _LONGEST_PAUSE)
        self._due = now + self.pause
