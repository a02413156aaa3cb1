"""A progress bar on stderr, when a person is watching; nothing otherwise."""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rag_eval_integrations.dataset.reading import open_lines

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

_BLOCK = 1 << 20


class Progress:
    """Counts lines done of the lines of a file.

    Args:
        path: the file whose lines are the work.
        limit: stop at this many.
    """

    def __init__(self, path: Path, limit: int | None) -> None:
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None
        if not sys.stderr.isatty():
            return
        from rich.console import Console  # noqa: PLC0415  # costs 0.2 s, only for people
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            MofNCompleteColumn,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bar  # noqa: PLC0415

        columns = (TextColumn("evaluating"), BarColumn(), MofNCompleteColumn())
        self._bar = Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True))
        total = _count_lines(path)
        self._task = self._bar.add_task("", total=total if limit is None else min(total, limit))

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

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
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done)


def _count_lines(path: Path) -> int:
    with open_lines(path) as stream:
        return sum(block.count(b"\n") for block in iter(lambda: stream.read(_BLOCK), b""))
