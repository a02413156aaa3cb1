"""What a run is doing, on stderr: a bar when a person is watching, else a line now and then."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rag_eval_integrations.cli.terminal import complain
from rag_eval_integrations.dataset.reading import open_lines

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

    from rag_eval_integrations.judges.throttling import Waiting

_BLOCK = 1 << 20
_SECONDS_A_LINE = 10.0


class Progress:
    """Counts lines done of the lines of a file, and says what is being waited for.

    Args:
        path: the file whose lines are the work.
        limit: stop at this many.
    """

    def __init__(self, path: Path, limit: int | None) -> None:
        self._path = path
        self._limit = limit
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None
        self._done = 0
        self._said = time.monotonic()

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._bar, self._task = self._start()
        return self

    def _start(self) -> tuple[RichProgress, TaskID]:
        from rich.console import Console  # noqa: PLC0415  # costs 0.2 s, only for people
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            MofNCompleteColumn,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bar  # noqa: PLC0415

        total = _count_lines(self._path)
        bar = Bar(
            TextColumn("evaluating"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
            TextColumn("{task.description}", markup=False), console=Console(stderr=True),
        )  # fmt: skip
        bar.start()
        return bar, bar.add_task(
            "", total=total if self._limit is None else min(total, self._limit)
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, done: int) -> None:
        """Show that `done` lines are done."""
        self._done = done
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, description="")

    def wait(self, waiting: Waiting) -> None:
        """Show what is waited for; a line every ten seconds where there is no bar."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=str(waiting))
        elif time.monotonic() - self._said >= _SECONDS_A_LINE:
            self._said = time.monotonic()
            complain(f"{self._done} evaluated; {waiting}")


def _count_lines(path: Path) -> int:
    with open_lines(path) as stream:
        return sum(block.count(b"\n") for block in iter(lambda: stream.read(_BLOCK), b""))
