"""Progress of a run, on stderr: a bar in a terminal, otherwise one line per ten seconds."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from functools import cached_property
from typing import TYPE_CHECKING, Self

from rag_eval_integrations._visible import visible
from rag_eval_integrations.cli._terminal import print_stderr
from rag_eval_integrations.dataset._input import count_rows

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from rag_eval_integrations.models.throttling import Waiting

_SECONDS_PER_LINE = 10.0
_TICK = 1.0


class Progress:
    """Display of the lines done, what the run is waiting for, and the time left.

    It is shown within `async with`.

    Args:
        path: the file whose lines are processed.
        limit: number of lines that are processed at most; None for all.
    """

    def __init__(self, path: str | os.PathLike[str], limit: int | None) -> None:
        self._path = path
        self._limit = limit
        self._bar: Bar | None = None
        self._ticking: asyncio.Task[None] | None = None
        self._done = 0
        self._waiting: Waiting | None = None
        self._failed = False
        self._started = self._printed_at = time.monotonic()

    async def __aenter__(self) -> Self:
        self._started = self._printed_at = time.monotonic()
        if sys.stderr.isatty():
            self._bar = _bar()
            self._bar.add_task("", total=self._total)
            self._bar.start()
        else:
            self._ticking = asyncio.create_task(self._tick())
        return self

    async def __aexit__(self, *exception: object) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
        if self._bar is not None:
            self._bar.stop()

    def advance(self, done: int) -> None:
        """Show the number of finished lines.

        Args:
            done: lines finished since the start, invalid ones included.
        """
        self._done = done
        self._show(None)

    def wait(self, waiting: Waiting) -> None:
        """Show what the run is waiting for: in the bar, or in the next line.

        The first failure that is waited after is shown at once.
        """
        self._show(waiting)
        if self._bar is None and waiting.why and waiting.reason != "circuit open":
            if not self._failed:
                self._print()
            self._failed = True

    def _show(self, waiting: Waiting | None) -> None:
        """Note what is waited for; a bar shows it at once."""
        self._waiting = waiting
        if self._bar is not None:
            words = "" if waiting is None else visible(str(waiting))
            self._bar.update(self._bar.task_ids[0], completed=self._done, description=words)

    async def _tick(self) -> None:
        """Print one line per ten seconds, until it is cancelled."""
        while True:
            await asyncio.sleep(_TICK)
            if time.monotonic() - self._printed_at >= _SECONDS_PER_LINE:
                self._print()

    def _print(self) -> None:
        """Print how many calls are evaluated, how long the rest takes, what is waited for."""
        now = self._printed_at = time.monotonic()
        total = self._total
        of = "" if total is None else f" of {total:,}"
        left = ""
        if total is not None and 0 < self._done < total:
            left = f", {_duration((now - self._started) / self._done * (total - self._done))} left"
        waiting = "" if self._waiting is None else f"; {self._waiting}"
        print_stderr(f"{self._done:,}{of} evaluated{left}{waiting}")

    @cached_property
    def _total(self) -> int | None:
        """The number of lines, counted when a line or a bar is shown; None if it is not known."""
        lines = count_rows(self._path)
        return lines if self._limit is None else min(lines or self._limit, self._limit)


def _bar() -> Bar:
    """Make a bar for a terminal."""
    from rich import progress  # noqa: PLC0415  # costs 0.2 s; only for a terminal
    from rich.console import Console  # noqa: PLC0415

    return progress.Progress(
        progress.TextColumn("evaluating"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeRemainingColumn(),
        progress.TextColumn("{task.description}", markup=False),
        console=Console(stderr=True),
    )


_MINUTE, _HOUR = 60, 3600


def _duration(seconds: float) -> str:
    """Write seconds as s, min or h."""
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    return f"{seconds / _MINUTE:.0f} min" if seconds < _HOUR else f"{seconds / _HOUR:.1f} h"
