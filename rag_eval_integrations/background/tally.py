"""Counts what becomes of calls, from any thread, so that the counts always add up."""

from __future__ import annotations

import threading
from typing import Literal

from rag_eval_integrations.background.counters import Counters, SinkCounters

Fate = Literal["sampled_out", "skipped", "dropped", "over_budget", "failed", "scored", "unscored"]


class Tally:
    """Every call is captured once and meets one fate; what has met none is pending."""

    def __init__(self) -> None:
        # Reentrant: a garbage collection in here may finalise a stream, whose call is submitted.
        self._lock = threading.RLock()
        self._captured = 0
        self._fates: dict[Fate, int] = {}

    def captured(self, fate: Fate | None = None) -> None:
        """Count a call that was handed in, with its fate where that is known at once."""
        with self._lock:
            self._captured += 1
            if fate is not None:
                self._fates[fate] = self._fates.get(fate, 0) + 1

    def met(self, fate: Fate, calls: int = 1) -> None:
        """Count calls, captured before, that met a fate."""
        with self._lock:
            self._fates[fate] = self._fates.get(fate, 0) + calls

    @property
    def pending(self) -> int:
        """Calls that have met no fate yet."""
        with self._lock:
            return self._captured - sum(self._fates.values())

    def counters(self, sinks: tuple[SinkCounters, ...]) -> Counters:
        """Take a snapshot."""
        with self._lock:
            pending = self._captured - sum(self._fates.values())
            return Counters(captured=self._captured, pending=pending, sinks=sinks, **self._fates)
