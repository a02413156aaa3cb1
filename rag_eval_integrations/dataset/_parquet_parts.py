"""EVALS as a folder of Parquet parts, written row by row: nothing lost, and no second copy.

A Parquet file cannot be read before its end is written. So rows are first lines of a file, and
become a part when there are enough of them:

    OUT.partial/part-00000.parquet      finished parts
    OUT.partial/_rows.jsonl             the rows that follow them
    OUT.partial/_replaces               of a run that is going to replace an OUT: which, and how

At the end, the folder is renamed to OUT.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from rag_eval_integrations import _target
from rag_eval_integrations._lines import LineFile
from rag_eval_integrations.dataset._input import is_torn
from rag_eval_integrations.dataset._parquet_folder import (
    REPLACES,
    Parts,
    bytes_of,
    check_backup,
    empty,
    foreign_name,
    is_full,
    is_unfinished,
    put_in_place,
    remove_unfinished,
    replacing,
    size_of,
)
from rag_eval_integrations.dataset._parquet_lines import (
    ROWS,
    ParquetDamageError,
    PartLines,
    buffered,
    folder_lines,
    is_written,
)
from rag_eval_integrations.errors import ConfigurationError

_OVERWRITE, _MERGE = "overwrite", "merge"
"""How OUT is going to be replaced: by the rows of this run, or by its own and those."""


class PartStorage:
    """The rows of a run that writes a folder of Parquet parts; see `LineStorage`.

    Args:
        out: OUT, as returned by `resolved`.
    """

    def __init__(self, out: Path) -> None:
        self.out, self.partial = out, out.with_name(f"{out.name}.partial")
        self.takes_over = False

    def open(self, *, resume: bool) -> None:
        """Open OUT.partial, made when absent; see `LineStorage.open`."""
        _make(self.partial)
        self._rows = LineFile(self.partial / ROWS, wait=False)
        try:
            for entry in list(os.scandir(self.partial)):
                if is_unfinished(entry.name):
                    Path(entry.path).unlink()
            remove_unfinished(self.out)
            self._end_replacement()
            self._parts = Parts(self.partial)
            self._lines = PartLines(self.partial, self._parts.paths, self.partial / ROWS)
            self._lines.end = sum(map(bytes_of, self._parts.paths))
            self._count = self._size = 0
            self._written = False
            if resume:
                self._check()
                self.takes_over = not self._takes_up() and self.out.exists()
        except ParquetDamageError as error:
            self._rows.close()
            why = f"holds damaged Parquet ({error}), so there is nothing to resume"
            raise ConfigurationError("out", str(self.partial), why) from error
        except BaseException:
            self._rows.close()
            raise

    def _check(self) -> None:
        """Let go of rows that are a part already; refuse what no run has written."""
        rows = (self.partial / ROWS).read_bytes()
        if self._parts.paths and is_written(self._parts.paths[-1], rows):
            self._rows.truncate(0)
            return
        if not rows.isascii():
            why = "was changed: rows have characters of ASCII only, so nothing is resumed"
            raise ConfigurationError("out", str(self.partial / ROWS), why)

    def mend(self) -> None:
        """Cut off half a row at the end of the rows; see `LineStorage.mend`."""
        self._rows.end_last_line(is_torn)
        rows = (self.partial / ROWS).read_bytes()
        self._count, self._size = rows.count(b"\n"), len(rows)

    def _end_replacement(self) -> None:
        """Remove what a run left in OUT and as OUT.bak that was killed when OUT was whole."""
        if self._marked(self.out)[1] == _identity(_target.backup_of(self.out)):
            empty(_target.backup_of(self.out))
        (self.out / REPLACES).unlink(missing_ok=True)

    def _takes_up(self) -> bool:
        """Undo half a replacement of a killed run; return whether OUT is going to be replaced."""
        how, which = self._marked(self.partial)
        backup = _target.backup_of(self.out)
        if which == _identity(backup):  # it was killed between the two renames, or after them
            if not os.path.lexists(self.out):
                backup.rename(self.out)
            elif how == _MERGE:
                empty(backup)
        if how == _OVERWRITE and which == _identity(self.out):
            return True
        (self.partial / REPLACES).unlink(missing_ok=True)
        return False

    def _marked(self, folder: Path) -> tuple[str, str]:
        """Return how a folder was going to replace an OUT, and which; empty if it was not."""
        try:
            how, which = (folder / REPLACES).read_text("ascii").split()
        except (FileNotFoundError, ValueError):  # ValueError: killed as it was written
            return "", ""
        return how, which

    def _mark(self, how: str) -> None:
        marker = self.partial / REPLACES
        marker.unlink(missing_ok=True)
        with os.fdopen(_target.create(marker), "w", encoding="ascii") as file:
            file.write(f"{how} {_identity(self.out)}")

    def holds_rows(self) -> bool:
        """Return whether OUT.partial holds any row."""
        return bool(self._parts.paths or self._rows.head(1))

    def rows(self) -> BinaryIO:
        """Open the rows of OUT.partial as a file of lines that grows."""
        return buffered(self._lines)

    def earlier(self) -> BinaryIO:
        """Open OUT, which is going to be replaced, as a file of lines; errors as for `back_up`."""
        check_backup(self.out)
        return folder_lines(self.out)

    def append(self, line: bytes) -> int:
        """Append a line to OUT.partial; return its offset in the file of lines.

        Raises:
            OSError: it cannot be written, or it is, and the part that it fills cannot.
        """
        if self._written:  # and could not be cut off
            self._let_go()
        if not line.isascii():  # not of this program
            line = line.decode("utf-8", "replace").encode("ascii", "replace")
        offset = (self._lines.end or 0) + self._rows.append(line)
        self._count += 1
        self._size += size_of(line)
        if is_full(self._count, self._size):
            self._write_part()
        return offset

    def _write_part(self) -> None:
        rows = (self.partial / ROWS).read_bytes()
        self._parts.write(rows.split(b"\n")[:-1])
        self._written = True
        # In this order: rows that are in both are recognised, see `is_written`.
        self._lines.add(self._parts.paths[-1], (self._lines.end or 0) + len(rows))
        self._let_go()

    def _let_go(self) -> None:
        self._rows.truncate(0)
        self._count, self._size, self._written = 0, 0, False

    def back_up(self) -> None:
        """Note that OUT is going to be replaced; it becomes OUT.bak when it is.

        Raises:
            ConfigurationError: there is an OUT.bak of the user's.
        """
        check_backup(self.out)
        self._mark(_OVERWRITE)

    def take_place(self, *, new: bool) -> None:
        """Have OUT.partial become OUT; errors as for `LineStorage.take_place`."""
        if self._written:
            self._let_go()
        if self._count:
            self._write_part()
        put_in_place(self.partial, self.out, new=new)
        for name in (REPLACES, ROWS):
            (self.out / name).unlink(missing_ok=True)

    def replace(self, lines: Iterable[bytes], *, new: bool) -> None:
        """Write OUT from lines; errors as for `LineStorage.replace`."""
        before = (lambda: None) if new else (lambda: self._mark(_MERGE))
        with replacing(self.out, new=new, before=before) as append:
            for line in lines:
                append(line)

    def discard(self) -> None:
        """Remove OUT.partial, unless it has become OUT."""
        if self._rows.is_at_path():
            empty(self.partial)

    def close(self) -> None:
        """Let other processes write."""
        self._rows.close()


def _identity(folder: Path) -> str | None:
    """Return what a folder is known by, whatever its name; None where there is none."""
    try:
        return str(folder.lstat().st_ino)
    except OSError:
        return None


def _make(folder: Path) -> None:
    """Make OUT.partial, or check that it is the folder of a run."""
    try:
        folder.mkdir(0o700)
        return
    except FileExistsError:
        found = folder.lstat()
    except OSError as error:
        raise _target.readable(error, folder) from error
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, f"{folder}: is a link that is not followed")
    if not stat.S_ISDIR(found.st_mode):
        why = f"is {_target.kind(found.st_mode)}, where a folder would be; move it away"
        raise ConfigurationError("out", str(folder), why)
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        why = "belongs to another user, who could read what is written; use another name"
        raise ConfigurationError("out", str(folder), why)
    name = foreign_name(folder)
    if name is not None:
        raise ConfigurationError("out", str(folder), f"{name}; move it away")
