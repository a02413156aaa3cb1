"""A line on stderr now and then, so that a long stage is seen to go on."""

from __future__ import annotations

import time
from collections.abc import Callable

from rag_eval_integrations.cli.terminal import complain

SECONDS_A_LINE = 10.0


class Counter:
    """Counts what is done, and says so every ten seconds; nothing of a stage that is quick.

    Args:
        what: is counted, such as `outputs`.
        total: how many there will be; None where nobody knows.
    """

    def __init__(self, what: str, total: Callable[[], int] | None = None) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._said = time.monotonic()

    def __call__(self, _: object = None) -> None:
        """Count one more."""
        self._done += 1
        now = time.monotonic()
        if now - self._said < SECONDS_A_LINE:
            return
        self._said = now
        of = "" if self._total is None else f" of {self._total():,}"
        complain(f"{self._done:,}{of} {self._what}")
