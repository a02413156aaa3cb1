"""Terminal output of all commands: results on stdout, messages and progress on stderr, escaped."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, Self

from rag_eval_integrations._visible import hanging, visible

if TYPE_CHECKING:
    from asyncio import Task

    from rich.console import Console
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID
    from rich.table import Table

    from rag_eval_integrations.models.throttling import Waiting

_WIDTH = 120
"""Columns of output to a file or pipe, which have no width of their own."""


def stdout(*, to_stderr: bool = False) -> Console:
    """Make a console for results: text under test cannot act, add colours or forge lines.

    Args:
        to_stderr: print to stderr, because stdout holds rows.
    """
    from rich.console import Console  # noqa: PLC0415  # costs 0.1 s
    from rich.text import Text  # noqa: PLC0415

    class Results(Console):
        """Escapes every string that is printed, alone or in a table."""

        def print(self, *objects: object, **options: Any) -> None:
            """Print texts with hanging lines."""
            shown = [hanging(item) if isinstance(item, str) else item for item in objects]
            super().print(*shown, **options)

        def on_broken_pipe(self) -> None:
            """Go on without output: `| head` says nothing about the scores and thresholds."""
            self.quiet = True
            without_stdout()

        def render_str(self, text: str, **options: Any) -> Text:
            """Render a text with its control characters escaped."""
            return super().render_str(visible(text), **options)

    _encodable()
    stream = sys.stderr if to_stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _WIDTH
    return Results(markup=False, highlight=False, emoji=False, width=width, stderr=to_stderr)


_UNBOUNDED = 10_000
"""Width, in columns, at which a table is measured, so that no cell is folded."""


def width_of(table: Table, console: Console) -> int:
    """Return the columns that a table needs so that no cell is folded or cut."""
    from rich.measure import Measurement  # noqa: PLC0415  # costs 0.1 s

    return Measurement.get(console, console.options.update(width=_UNBOUNDED), table).maximum


def print_stderr(text: str) -> None:
    """Print one message to stderr; its further lines are indented.

    A stderr that cannot be written, such as a log on a full disk, ends no run: the exit code still
    says what happened.
    """
    with suppress(OSError):
        print(hanging(text), file=sys.stderr)  # noqa: T201  # the program's own output


def write_stdout(text: str) -> None:
    """Write a report in a file format to stdout, as it is but for characters that act."""
    _encodable()
    try:
        sys.stdout.write(visible(text))
        sys.stdout.flush()
    except BrokenPipeError:
        without_stdout()


def without_stdout() -> None:
    """Send stdout, whose reader has gone, nowhere, so that nothing fails when Python ends."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def open_standard_streams() -> None:
    """Open the standard streams that are closed (`>&-`) on the null device.

    Otherwise Python has None for them, and the next file that is opened gets their number: OUT
    could be stdout, and hold whatever is printed.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # has the lowest free number
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # until the end
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # until the end


def _encodable() -> None:
    """Escape what the encoding of stdout lacks, as stderr does, instead of failing."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


# --- Progress of a run, on stderr: a bar in a terminal, otherwise one line per ten seconds


_SECONDS_PER_LINE = 10.0
_TICK = 1.0


class Progress:
    """Shows how many lines of a file are done, what the run is waiting for, and the time left.

    That is while it is entered (`async with`).

    Args:
        path: the file whose lines are processed.
        limit: number of lines that are processed at most; None for all.
    """

    def __init__(self, path: str | os.PathLike[str], limit: int | None) -> None:
        self._path = path
        self._limit = limit
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None
        self._done = 0
        self._started = self._printed_at = time.monotonic()
        self._waiting: Waiting | None = None
        self._failed = False
        self._total: int | None = None
        self._ticking: Task[None] | None = None

    async def __aenter__(self) -> Self:
        from asyncio import create_task  # noqa: PLC0415  # costs 40 ms

        self._started = self._printed_at = time.monotonic()
        if sys.stderr.isatty():
            self._bar, self._task = self._start()
        else:
            self._ticking = create_task(self._tick())
        return self

    async def __aexit__(self, *exception: object) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
        if self._bar is not None:
            self._bar.stop()

    def _start(self) -> tuple[RichProgress, TaskID]:
        """Start a bar on the terminal."""
        from rich import progress  # noqa: PLC0415  # costs 0.2 s; only for a terminal
        from rich.console import Console  # noqa: PLC0415

        bar = progress.Progress(
            progress.TextColumn("evaluating"), progress.BarColumn(), progress.MofNCompleteColumn(),
            progress.TimeRemainingColumn(),
            progress.TextColumn("{task.description}", markup=False), console=Console(stderr=True),
        )  # fmt: skip
        bar.start()
        return bar, bar.add_task("", total=self._lines())

    def advance(self, done: int) -> None:
        """Show the number of finished lines.

        Args:
            done: lines finished since the start, invalid ones included.
        """
        self._done, self._waiting = done, None
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, description="")

    def wait(self, waiting: Waiting) -> None:
        """Show what the run is waiting for: in the bar, or in the next line.

        The first failure that is waited after is shown at once.
        """
        self._waiting = waiting
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=visible(str(waiting)))
        elif waiting.why and waiting.reason != "circuit open" and not self._failed:
            self._failed = True
            self._print()

    async def _tick(self) -> None:
        """Print one line per ten seconds, until it is cancelled."""
        from asyncio import sleep  # noqa: PLC0415  # costs 40 ms

        while True:
            await sleep(_TICK)
            if time.monotonic() - self._printed_at >= _SECONDS_PER_LINE:
                self._print()

    def _print(self) -> None:
        """Print a line of progress."""
        now = self._printed_at = time.monotonic()
        total = self._lines()
        of = "" if total is None else f" of {total:,}"
        left = ""
        if total is not None and 0 < self._done < total:
            left = f", {_duration((now - self._started) / self._done * (total - self._done))} left"
        waiting = "" if self._waiting is None else f"; {self._waiting}"
        print_stderr(f"{self._done:,}{of} evaluated{left}{waiting}")

    def _lines(self) -> int | None:
        """Count the lines once, when a line or a bar is shown; None if they cannot be counted."""
        if self._total is None:
            from rag_eval_integrations.dataset._input import count_rows  # noqa: PLC0415  # --help

            lines = count_rows(self._path)
            limit = self._limit
            self._total = lines if limit is None else min(lines or limit, limit)
        return self._total


_MINUTE, _HOUR = 60, 3600


def _duration(seconds: float) -> str:
    """Write seconds as s, min or h."""
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    return f"{seconds / _MINUTE:.0f} min" if seconds < _HOUR else f"{seconds / _HOUR:.1f} h"
