"""Where the lines of a run are: in OUT.partial while it lasts, in OUT at its end."""

from __future__ import annotations

import io
from collections.abc import Iterable
from contextlib import ExitStack
from gzip import GzipFile
from pathlib import Path
from typing import BinaryIO, cast

from rag_eval_integrations import _target
from rag_eval_integrations._lines import LineFile
from rag_eval_integrations.dataset._input import is_torn
from rag_eval_integrations.dataset._zipped import Unzipped, ZippedLines


class LineStorage:
    """The lines of a run that writes a file of lines, plain or gzipped.

    Args:
        out: OUT, as returned by `_target.resolved`.
        zipped: gzip it.
    """

    def __init__(self, out: Path, *, zipped: bool) -> None:
        self.out, self.partial = out, out.with_name(f"{out.name}.partial")
        self.takes_over = False
        """Whether the rows of OUT are of this run, too."""
        self._zipped = zipped
        self._backup: Path | None = None

    def open(self, *, resume: bool) -> None:
        """Open OUT.partial, made when absent, and keep other runs from writing it.

        Args:
            resume: take up what a killed run left.

        Raises:
            BlockingIOError: another run is writing it.
            ConfigurationError: it cannot be taken up, or is not a regular file.
            OSError: it cannot be opened.
        """
        kind = ZippedLines if self._zipped else LineFile
        self._file = kind(self.partial, wait=False)
        try:
            if not self.holds_rows() and not self._file.is_own():
                # Of another user, or with another name: rows in it would be there, too.
                with self._file:  # locked until its name is free
                    self.partial.unlink()
                self._file = kind(self.partial, new=True)
            _target.remove_unfinished(self.out)
            if resume:
                self._take_up()
        except BaseException:
            self._file.close()
            raise

    def _take_up(self) -> None:
        if isinstance(self._file, ZippedLines):
            self._file.mend()
        # A killed run with `overwrite` left OUT.bak: it was replacing OUT, so it is not of that
        # run.
        if _target.is_backed_up(self.out):
            self._backup = _target.backup_of(self.out)
        self.takes_over = self._backup is None and self.out.exists()

    def mend(self) -> None:
        """Cut off half a row at the end of OUT.partial, which is going to be resumed.

        Raises:
            OSError: it cannot be read or written.
        """
        if not isinstance(self._file, ZippedLines):
            self._file.end_last_line(is_torn)

    def holds_rows(self) -> bool:
        """Return whether OUT.partial holds anything."""
        return bool(self._file.head(1))

    def rows(self) -> BinaryIO:
        """Open OUT.partial, which may grow, to read lines by their offsets."""
        return _opened(self.partial, zipped=self._zipped, whole=False)

    def earlier(self) -> BinaryIO:
        """Open OUT to read lines by their offsets, plain or gzipped, whatever its name says."""
        with self.out.open("rb") as stream:
            zipped = stream.read(2) == b"\x1f\x8b"
        return _opened(self.out, zipped=zipped, whole=True)

    def append(self, line: bytes) -> int:
        """Append a line to OUT.partial; return its offset.

        Raises:
            OSError: it cannot be written whole; nothing of it is in the file.
        """
        return self._file.append(line)

    def back_up(self) -> None:
        """Give OUT, which is going to be replaced, its second name OUT.bak until then.

        Raises:
            ConfigurationError: there is an OUT.bak of the user's.
            OSError: it cannot be made.
        """
        self._backup = _target.back_up(self.out)

    def take_place(self, *, new: bool) -> None:
        """Have OUT.partial become OUT.

        Args:
            new: refuse to replace an OUT.

        Raises:
            FileExistsError: there is an OUT, and `new` is set.
            OSError: OUT cannot be written.
        """
        self._file.take_place(self.out, new=new)

    def replace(self, lines: Iterable[bytes], *, new: bool) -> None:
        """Write OUT from lines without line ends, whole or not at all; as for `take_place`."""
        with ExitStack() as opened:
            target = opened.enter_context(_target.replacing(self.out, new=new))
            if self._zipped:
                target = opened.enter_context(zipping(target))
            for line in lines:
                target.write(line + b"\n")

    def discard(self) -> None:
        """Remove OUT.partial, and OUT.bak if a run made it."""
        if self._backup is not None:
            self._backup.unlink(missing_ok=True)
        self.partial.unlink(missing_ok=True)

    def close(self) -> None:
        """Let other runs write OUT.partial."""
        self._file.close()


def zipping(stream: BinaryIO) -> BinaryIO:
    """Gzip what is written to a file; the same bytes give the same bytes."""
    return cast(BinaryIO, GzipFile("", "wb", compresslevel=6, fileobj=stream, mtime=0))


def _opened(path: Path, *, zipped: bool, whole: bool) -> BinaryIO:
    below = path.open("rb")
    return cast(BinaryIO, io.BufferedReader(Unzipped(below, whole=whole))) if zipped else below
