"""Rows of EVALS that finish before their turn: held back, and on the disk meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from rag_eval_integrations._lines import LineFile
from rag_eval_integrations.errors import ConfigurationError

_Row = tuple[str, bool]
"""A line of EVALS, and whether its call has failed."""
LEAST = 1 << 20
"""Bytes of OUT.waiting that need not be less."""


class Waiting:
    """Rows that came before their turn: in memory, and in OUT.waiting, so that none is lost.

    The file is begun anew when most of it is rows that have had their turn; for a moment, there is
    a second one beside it.
    """

    def __init__(self, out: Path) -> None:
        self._paths = [out.with_name(f"{out.name}{end}") for end in (".waiting", ".waiting2")]
        self._file: LineFile | None = None
        self._held: dict[int, tuple[int, _Row]] = {}
        self._turn = 0
        self._size = self._live = 0

    def earlier(self, *, resume: bool) -> Iterator[bytes]:
        """Yield the whole rows that a killed run has left; rows may also be in OUT.partial.

        Raises:
            ConfigurationError: there are some, and `resume` is not set.
        """
        for path in self._paths:
            if not os.path.lexists(path):
                continue
            with LineFile(path) as file, path.open("rb") as stream:
                rows = file.is_own() and file.head(1)
                if rows and not resume:
                    raise ConfigurationError(
                        "out", str(path),
                        "is there from a run that did not end; go on with --resume, or delete it",
                    )  # fmt: skip
                if rows:
                    yield from (row[:-1] for row in stream if row.endswith(b"\n"))

    def due(self, turn: int, index: int, row: _Row) -> Iterator[tuple[int, _Row]]:
        """Take a row; yield the rows whose turn it is now."""
        self._held[turn] = index, row
        if turn != self._turn:
            self._write([row[0]])
        while self._turn in self._held:
            found = self._held.pop(self._turn)
            yield found
            if self._turn != turn:
                self._live -= len(found[1][0]) + 1
            self._turn += 1

    def rest(self) -> Iterator[tuple[int, _Row]]:
        """Yield the rows that wait, in order."""
        for turn in sorted(self._held):
            yield self._held.pop(turn)
            self._turn = turn + 1

    def compact(self) -> None:
        """Let go of the disk that rows take which have had their turn."""
        if self._file is None or self._size < max(LEAST, 2 * self._live):
            return
        before, self._file = self._file, None
        self._size = self._live = 0
        self._write([self._held[turn][1][0] for turn in sorted(self._held)])
        before.close()
        Path(before.path).unlink(missing_ok=True)
        self._paths.reverse()

    def clear(self) -> None:
        """Remove the files."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self._size = self._live = 0
        for path in self._paths:
            path.unlink(missing_ok=True)

    def _write(self, rows: list[str]) -> None:
        if not rows:
            return
        if self._file is None:
            free = (path for path in self._paths if not os.path.lexists(path))
            self._file = LineFile(next(free, self._paths[0]), new=True)
        data = "\n".join(rows).encode("ascii")
        self._file.append(data)
        self._size += len(data) + 1
        self._live += len(data) + 1
