"""Parquet files of evaluations, read as the lines of EVALS in their column `evaluation`.

A folder of parts is read part by part, in the order of their names with numbers in them as numbers,
in memory of some batches. Any line is found again by its offset, as in a file of lines.
"""

from __future__ import annotations

import io
import os
import re
import stat
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from rag_eval_integrations import _target
from rag_eval_integrations.dataset._evaluation_table import LINE, check_pyarrow
from rag_eval_integrations.dataset._seekable import Seekable
from rag_eval_integrations.errors import ConfigurationError

ROWS = "_rows.jsonl"
"""Rows that follow the parts while a run writes them. Readers of Parquet leave out `_…`."""
_PARQUET = (".parquet", ".pq")
_BATCH = 512
_KEPT = 4
"""Batches held, to find lines again that are read a little out of order."""
_BUFFER = 1 << 16


class ParquetDamageError(OSError):
    """A Parquet file cannot be read to its end."""


def is_parquet(path: str | os.PathLike[str]) -> bool:
    """Return whether a name says Parquet."""
    return os.fspath(path).lower().endswith(_PARQUET)


def parts_of(folder: Path) -> list[Path]:
    """List the Parquet files of a folder, in order; names that begin with `_` or `.` are not parts.

    Raises:
        ConfigurationError: there is another folder in it, whose files would be missing.
        OSError: it cannot be listed.
    """
    found = []
    for entry in list(os.scandir(folder)):
        if entry.name.startswith(("_", ".")):
            continue
        if entry.is_dir():
            why = f"holds the folder {entry.name}; name a folder that holds the Parquet files"
            raise ConfigurationError("file", str(folder), why)
        if is_parquet(entry.name):
            found.append(Path(entry.path))
    return sorted(found, key=lambda path: _in_order(path.name))


def _in_order(name: str) -> list[str | int]:
    pieces: list[str | int] = list(re.split("([0-9]+)", name))
    pieces[1::2] = map(int, pieces[1::2])
    return pieces


def opened(path: Path) -> Any:
    """Open a Parquet file of evaluations.

    Raises:
        ConfigurationError: it has no column `evaluation` of texts.
        ParquetDamageError: it is not Parquet, or damaged.
    """
    import pyarrow as pa  # noqa: PLC0415 -- large; only whoever has such a file needs it
    from pyarrow import parquet as pq  # noqa: PLC0415

    try:
        file = pq.ParquetFile(path, buffer_size=_BUFFER)
    except (pa.ArrowException, OSError) as error:
        words = " ".join(str(error).split())
        raise ParquetDamageError(f"{path.name}: {words:.200}") from error
    types = [field.type for field in file.schema_arrow if field.name == LINE]
    if types not in ([pa.string()], [pa.large_string()]):
        raise _without_lines(path)
    return file


def _without_lines(path: Path) -> ConfigurationError:
    return ConfigurationError(
        "file", str(path), f"is Parquet without a text column `{LINE}`, the line of EVALS that "
        "`rag-eval run -o NAME.parquet` writes; the tables of `rag-eval report` have none",
    )  # fmt: skip


def evaluation_lines(path: str | os.PathLike[str], *, or_other: bool = False) -> BinaryIO | None:
    """Open a Parquet file of evaluations, or a folder of them, as a file of lines of EVALS.

    Args:
        path: a path.
        or_other: whether the file may also be Parquet with other rows.

    Returns:
        None for what is neither a folder nor Parquet, and for Parquet with other rows.

    Raises:
        ConfigurationError: a folder without Parquet, or Parquet without lines of EVALS.
        MissingDependencyError: pyarrow is not installed.
        OSError: it cannot be read.
    """
    place = Path(os.fspath(path))
    try:
        mode = place.stat().st_mode
        if stat.S_ISDIR(mode):
            return folder_lines(place)
        if not stat.S_ISREG(mode):
            return None
        with place.open("rb") as stream:
            if stream.read(4) != b"PAR1":
                return None
    except OSError as error:
        raise _target.readable(error, place) from error
    check_pyarrow()
    try:
        opened(place)
    except ConfigurationError:
        if or_other:
            return None
        raise
    except ParquetDamageError:
        if or_other:
            return None
    return buffered(PartLines(place, [place]))


def folder_lines(folder: Path) -> BinaryIO:
    """Open a folder of Parquet files as a file of lines, with the rows that follow in a run.

    Raises:
        ConfigurationError: it holds nothing of the kind.
        MissingDependencyError: pyarrow is not installed.
        OSError: it cannot be listed.
    """
    parts = parts_of(folder)
    rows = folder / ROWS
    following = rows if rows.is_file() else None
    if not parts and following is None:
        raise ConfigurationError(
            "file", str(folder), "is a folder, not a file of rows, and holds no Parquet"
        )
    check_pyarrow()
    with suppress(ParquetDamageError):  # told as a row is
        for part in parts[:1]:
            opened(part)
        if following is not None and parts and is_written(parts[-1], following.read_bytes()):
            following = None
    return buffered(PartLines(folder, parts, following))


def buffered(lines: PartLines) -> BinaryIO:
    """Make a file of lines that can be read by line."""
    return cast(BinaryIO, io.BufferedReader(lines, _BUFFER))


def is_written(part: Path, rows: bytes) -> bool:
    """Return whether the rows that follow the parts are those of the last one.

    They are if a run was killed just after it had written it.

    Raises:
        ParquetDamageError: the part cannot be read.
    """
    at = 0
    for _, piece in _pieces([(part, group) for group in range(opened(part).num_row_groups)], 0):
        if not rows.startswith(piece, at):
            return False
        at += len(piece)
    return at == len(rows)


Group = tuple[Path, int]
"""A group of rows: its file, and its number in it."""


def _pieces(groups: Sequence[Group], first: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of groups, batch by batch, with the number of each one's group."""
    import pyarrow as pa  # noqa: PLC0415

    file: Any = None
    path = None
    for number in range(first, len(groups)):
        if groups[number][0] != path:
            path = groups[number][0]
            file = opened(path)
        try:
            batches = file.iter_batches(_BATCH, row_groups=[groups[number][1]], columns=[LINE])
            for batch in batches:
                # As bytes: text that is not UTF-8 is a bad row, not the end.
                texts = batch.column(0).cast(pa.large_binary()).to_pylist()
                yield number, b"".join(map(_line, texts))
        except (pa.ArrowException, OSError, OverflowError) as error:
            words = " ".join(str(error).split())
            raise ParquetDamageError(f"{groups[number][0].name}: {words:.200}") from error


def _line(text: bytes | None) -> bytes:
    # Within JSON, a line end is between values, where a space says the same.
    return b"null\n" if text is None else text.replace(b"\n", b" ") + b"\n"


class PartLines(Seekable):
    """The lines of Parquet files, one after the other, and of a file of lines behind them.

    Args:
        name: for messages.
        parts: the files, to which `add` adds.
        following: a file of lines that follow.
    """

    def __init__(self, name: Path, parts: Sequence[Path], following: Path | None = None) -> None:
        super().__init__()
        self.name = str(name)
        self.following = following
        self.end: int | None = None
        """Where the lines that follow begin; None until it is known."""
        self._parts = list(parts)
        self._groups: list[Group] = []
        self._starts = array("q", [0])  # where groups begin, as far as they were read
        self._position = 0
        self._coming: Iterator[tuple[int, bytes]] | None = None
        self._held: list[tuple[int, bytes]] = []
        self._listed = 0

    def add(self, part: Path, end: int) -> None:
        """Read a part that was written of the lines that follow, and where these begin now."""
        self._parts.append(part)
        self._coming = None
        self.end = end

    def readinto(self, buffer: Any, /) -> int:
        """Read at least a byte, unless there is none."""
        found = self._piece() if self.end is None or self._wanted < self.end else None
        if found is not None:
            start, piece = found
            at = self._wanted - start
            data: bytes | memoryview = memoryview(piece)[at : at + len(buffer)]
        elif self.following is None or self.end is None:
            return 0
        else:
            with self.following.open("rb") as stream:
                stream.seek(self._wanted - self.end)
                data = stream.read(len(buffer))
        buffer[: len(data)] = data
        self._wanted += len(data)
        return len(data)

    def _piece(self) -> tuple[int, bytes] | None:
        """Find the batch that holds the wanted byte, and where it begins; None behind the last."""
        for start, piece in self._held:
            if start <= self._wanted < start + len(piece):
                return start, piece
        group = bisect_right(self._starts, self._wanted) - 1
        if self._coming is None or not self._starts[group] <= self._position <= self._wanted:
            self._coming, self._position = _pieces(self._groups, group), self._starts[group]
        while True:
            for number, piece in self._coming:
                start, self._position = self._position, self._position + len(piece)
                while len(self._starts) <= number:
                    self._starts.append(start)
                if self._wanted < self._position:
                    self._held = [(start, piece), *self._held[: _KEPT - 1]]
                    return start, piece
            self._coming = None
            if self._listed == len(self._parts):
                break
            self._coming = _pieces(self._groups, self._list())
        if self.end is None:
            self.end = self._position
        return None

    def _list(self) -> int:
        """Look up the groups of the next part; return the number of the first."""
        first, part = len(self._groups), self._parts[self._listed]
        self._groups += [(part, group) for group in range(opened(part).num_row_groups)]
        self._listed += 1
        return first
