"""Folders of evaluations in Parquet: checked, written part by part, and replaced as a whole."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from rag_eval_integrations import _target
from rag_eval_integrations.dataset._evaluation_table import COLUMNS, LINE, table_of
from rag_eval_integrations.dataset._parquet_lines import (
    ROWS,
    ParquetDamageError,
    is_parquet,
    opened,
    parts_of,
)
from rag_eval_integrations.errors import ConfigurationError

MOST_ROWS, MOST_BYTES = 10_000, 16 << 20
"""Rows of a part, and bytes of their lines: whichever comes first."""
_GROUP = 512
"""Rows of a group: to find a row again, its group is read."""
REPLACES = "_replaces"
"""In the folder of a run that lasts: which folder it is going to replace, and how."""
_BYTES = b"rag_eval_integrations.bytes"
"""Metadata of a part: bytes of its lines."""


def resolved(path: Path, field: str) -> Path:
    """Follow links to the folder that is going to be written, as `_target.resolved` does.

    Raises:
        ConfigurationError: there is something else than a folder of parts.
        OSError: its folder does not exist.
    """
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode
    except OSError:
        return _target.resolved(path, field)
    if not stat.S_ISDIR(mode):
        why = f"is {_target.kind(mode)}, where a folder of Parquet parts would be; use another name"
        raise ConfigurationError(field, str(path), why)
    found = _foreign(target)
    if found is not None:
        raise ConfigurationError(field, str(path), f"{found}; use another name")
    return target


def _foreign(folder: Path) -> str | None:
    """Say what of a folder is not of a run; it would be lost."""
    name = foreign_name(folder)
    if name is not None:
        return name
    for part in parts_of(folder):
        try:
            opened(part)
        except ConfigurationError as error:
            return f"holds {part.name}, which {error.why}"
        except ParquetDamageError as error:
            return f"holds damaged Parquet ({error})"
    return None


def foreign_name(folder: Path) -> str | None:
    """Say what in a folder has a name that no file of a run has; None if nothing has."""
    for entry in list(os.scandir(folder)):
        ours = entry.name in (ROWS, REPLACES) or is_parquet(entry.name)
        if not entry.is_file(follow_symlinks=False) or not (ours or is_unfinished(entry.name)):
            return f"is a folder that holds {entry.name}, which is not a part of evaluations"
    return None


def is_unfinished(name: str) -> bool:
    """Return whether this is the name of a part that a killed run was writing."""
    return re.fullmatch(r"part-[0-9]+\.parquet\.[0-9a-f]{8}\.unfinished", name) is not None


class Parts:
    """Writes the next parts of a folder, each of which is there whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.paths = parts_of(folder)
        # The columns of later parts begin with those of the first: readers go by these.
        self._names = _scores_of(self.paths[0]) if self.paths else []

    def write(self, lines: Sequence[bytes]) -> None:
        """Write rows as the next part.

        Raises:
            OSError: it cannot be written.
        """
        import pyarrow as pa  # noqa: PLC0415 -- large; only whoever writes Parquet needs it
        from pyarrow import parquet as pq  # noqa: PLC0415

        tables = []
        for at in range(0, len(lines), _GROUP):
            texts = [line.decode("ascii") for line in lines[at : at + _GROUP]]
            tables.append(table_of(texts, self._names))
            self._names = _names_in(tables[-1].column_names)
        table = pa.concat_tables(tables, promote_options="default")
        table = table.select([*(name for name in table.column_names if name != LINE), LINE])
        path = self.folder / f"part-{len(self.paths):05}.parquet"
        with _target.replacing(path, new=True) as stream, pq.ParquetWriter(
            stream, table.schema, compression="zstd", use_dictionary=False,
            write_statistics=[name for name in table.column_names if name != LINE],
        ) as file:  # fmt: skip
            file.add_key_value_metadata({_BYTES: b"%d" % sum(map(size_of, lines))})
            file.write_table(table, row_group_size=_GROUP)
        self.paths.append(path)


def bytes_of(part: Path) -> int:
    """Return the size of the lines of a part that this program wrote."""
    try:
        return int(opened(part).metadata.metadata[_BYTES])
    except (KeyError, TypeError, ValueError) as error:
        raise ParquetDamageError(f"{part.name}: was not written by a run") from error


def is_full(rows: int, size: int) -> bool:
    """Return whether rows are enough for a part: their number, and the bytes of their lines."""
    return rows >= MOST_ROWS or size >= MOST_BYTES


def size_of(line: bytes) -> int:
    """Return the size of a line with its end."""
    return len(line) + 1


def _names_in(columns: Sequence[str]) -> list[str]:
    """Return the names of the scores that have columns."""
    scores = [name for name in columns if name not in COLUMNS]
    return [short if (short := name.removeprefix("score:")) in COLUMNS else name for name in scores]


def _scores_of(part: Path) -> list[str]:
    return _names_in(opened(part).schema_arrow.names)


def empty(folder: Path) -> None:
    """Remove a folder of parts with what is in it, the file that locks it last."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name == ROWS):
        Path(entry.path).unlink(missing_ok=True)
    with suppress(OSError):  # another run has begun, or there is something else in it
        folder.rmdir()


# --- A folder that is there whole or not at all


@contextmanager
def replacing(
    path: Path, *, new: bool, before: Callable[[], object] = lambda: None
) -> Iterator[Callable[[bytes], object]]:
    """Write a folder of parts that takes the place of another at the end, or not on an error.

    Args:
        path: the folder, as returned by `resolved`.
        new: refuse to replace a folder.
        before: called just before the other one is moved away.

    Yields:
        A function that appends a line of EVALS, without its line end.

    Raises:
        FileExistsError: there is something at the path, and `new` is set.
        OSError: it cannot be written; whatever was there is as it was.
    """
    folder = path.with_name(f"{path.name}.{os.urandom(4).hex()}.unfinished")
    folder.mkdir(0o700)
    try:
        parts, lines, size = Parts(folder), list[bytes](), 0

        def append(line: bytes) -> None:
            nonlocal size
            lines.append(line)
            size += size_of(line)
            if is_full(len(lines), size):
                parts.write(lines)
                lines.clear()
                size = 0

        yield append
        if lines:
            parts.write(lines)
        before()
        put_in_place(folder, path, new=new)
    finally:
        if folder.exists():
            empty(folder)


def put_in_place(folder: Path, path: Path, *, new: bool) -> None:
    """Rename a folder; one that it replaces is OUT.bak for the moment that this takes.

    Arguments and errors as for `replacing`.
    """
    if new:
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        folder.rename(path)
        return
    backup = _target.backup_of(path)
    check_backup(path)
    mode = stat.S_IMODE(path.stat().st_mode)
    for part in parts_of(folder):
        part.chmod(mode & 0o666)
    folder.chmod(mode)
    path.rename(backup)  # no call of the system exchanges two folders that Python has
    try:
        folder.rename(path)
    except BaseException:
        backup.rename(path)
        raise
    empty(backup)


def check_backup(path: Path, field: str = "out") -> None:
    """Refuse a backup of the user's own, in whose place the replaced folder would be.

    Raises:
        ConfigurationError: there is one.
    """
    backup = _target.backup_of(path)
    if os.path.lexists(backup):
        why = "is there and is kept; move it away before you overwrite a folder"
        raise ConfigurationError(field, str(backup), why)


def remove_unfinished(path: Path) -> None:
    """Remove what killed processes left of `replacing`, for a caller that holds the lock."""
    ours = re.compile(re.escape(path.name) + r"\.[0-9a-f]{8}\.unfinished")
    for entry in list(os.scandir(path.parent)):
        if ours.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
            left = Path(entry.path)
            if foreign_name(left) is None:
                empty(left)
