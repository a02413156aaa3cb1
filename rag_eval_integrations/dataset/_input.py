"""Reads files of rows line by line, in flat memory, whatever they hold.

Each line is bounded, and one that is longer is skipped as one bad line. Damage is an error in its
place. gzip is recognised by its first bytes. FIFOs and standard input are read to their end first.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
import weakref
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from rag_eval_integrations import _target
from rag_eval_integrations.dataset._line import NOT_AN_OBJECT, Line, Patience, lines_from
from rag_eval_integrations.dataset._parquet_lines import ParquetDamageError, evaluation_lines
from rag_eval_integrations.errors import ConfigurationError, InputError, SchemaError
from rag_eval_integrations.records import (
    EVALS_SCHEMA,
    Evaluation,
    from_line,
    from_object,
    parse_object,
)

T = TypeVar("T")

LONGEST_CALL = 16 * 2**20
"""Bytes of a line of CALLS. Parsed, hostile JSON takes up to 25 times as much memory."""
LONGEST_ROW = 128 * 2**20
"""Bytes of any other line: an evaluation of a long call is up to eight times as long."""

BLOCK = 1 << 20
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)


class Input(os.PathLike[str]):
    """A file that a command reads, perhaps more than once; `-` is standard input.

    Standard input and FIFOs, such as the shell's `<(…)`, are copied to a private temporary file
    when they are first needed: they can be read only once, and waiting for them would hold up the
    requests in progress. The text of an input is its name, for messages.

    Args:
        path: the path, or `-`.
        field_map: where fields of calls are in its rows, see `read_calls`.
    """

    def __init__(
        self, path: str | os.PathLike[str], field_map: Mapping[str, str] | None = None
    ) -> None:
        self._path = os.fspath(path)
        self.field_map = field_map
        self._copy: str | None = None

    def __str__(self) -> str:
        return "standard input" if self._path == "-" else self._path

    def __fspath__(self) -> str:
        """Return the path to read, after copying what can be read only once.

        Raises:
            ConfigurationError: it is no file.
            OSError: it cannot be read.
        """
        if self._copy is not None:
            return self._copy
        if self._path == "-":
            if sys.stdin is None:
                raise ConfigurationError("file", "-", "there is no standard input")
            return self._copied(lambda copy: shutil.copyfileobj(sys.stdin.buffer, copy, BLOCK))
        if _is_fifo(self._path):
            with open(self._path, "rb") as fifo:
                return self._copied(lambda copy: shutil.copyfileobj(fifo, copy, BLOCK))
        return self._path

    def check(self, opened: Callable[[Input], BinaryIO] | None = None) -> None:
        """Open it once, so that a wrong name is told before anything is written.

        Args:
            opened: what opens it: `open_lines` or `open_evaluations`; by default the first.

        Raises:
            ConfigurationError, OSError: as for reading.
        """
        (opened or open_lines)(self).close()

    def is_file(self, path: Path) -> bool:
        """Return whether this is another name of a file that is going to be written."""
        try:
            mine = os.fstat(0) if self._path == "-" else os.stat(self._path)
            return os.path.samestat(mine, path.stat())
        except OSError:
            return False

    def _copied(self, read: Callable[[BinaryIO], object]) -> str:
        name = os.path.join(tempfile.gettempdir(), f"rag-eval-input-{secrets.token_hex(8)}")
        # Before there is a file: a signal may end the command right after it is made.
        weakref.finalize(self, Path(name).unlink, missing_ok=True)
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(name, flags, 0o600), "wb") as copy:
            read(copy)
        self._copy = name
        return name


def open_lines(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for reading lines of bytes, through gzip where it is compressed.

    Raises:
        ConfigurationError: it is a device, folder or socket.
        OSError: it cannot be opened.
    """
    name = os.fspath(path)
    if stat.S_ISFIFO(_mode(name)):
        stream = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115  # the caller closes it
        with open(name, "rb") as fifo:
            shutil.copyfileobj(fifo, stream, BLOCK)
        stream.seek(0)
    else:
        try:
            stream = open(name, "rb", BLOCK)  # noqa: SIM115  # the caller closes it
        except OSError as error:
            raise _target.readable(error, name) from error
    start = stream.read(2)
    stream.seek(0)
    return cast(BinaryIO, _Unzipped(stream)) if start == b"\x1f\x8b" else stream


class _Unzipped(gzip.GzipFile):
    """A compressed file that closes the file below it, too."""

    def __init__(self, below: BinaryIO) -> None:
        super().__init__(fileobj=below, mode="rb")
        self._below = below

    def close(self) -> None:
        super().close()
        self._below.close()


def open_evaluations(path: str | os.PathLike[str], *, or_other: bool = False) -> BinaryIO:
    """Open EVALS as lines: as `open_lines` does, or those of Parquet, or of a folder of Parquet.

    Args:
        path: a path.
        or_other: whether a file may also be Parquet with other rows, which is opened as it is.

    Raises:
        ConfigurationError, MissingDependencyError, OSError: as for `open_lines` and
            `evaluation_lines`.
    """
    return evaluation_lines(path, or_other=or_other) or open_lines(path)


def _is_fifo(name: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(name).st_mode)
    except OSError as error:
        raise _target.readable(error, name) from error


def _mode(name: str) -> int:
    try:
        mode = os.stat(name).st_mode
    except OSError as error:
        raise _target.readable(error, name) from error
    if stat.S_ISREG(mode) or stat.S_ISFIFO(mode):
        return mode
    raise ConfigurationError("file", name, f"is {_target.kind(mode)}, not a file of rows")


def lines_of(stream: BinaryIO, longest: int) -> Iterator[tuple[int, int, bytes | InputError]]:
    """Read every line that is not blank, in memory of the longest one's size.

    Args:
        stream: an open file.
        longest: bytes of a line.

    Yields:
        Number of the line from 1, offset at which it begins, and the line with its line end; an
        error for a line that is longer, and for the damaged rest of a compressed file.

    Raises:
        OSError: when the file cannot be read.
    """
    number = offset = 0
    while True:
        number += 1
        try:
            line = stream.readline(longest)
            size = len(line)
            whole = size < longest or line.endswith(b"\n")
            while not whole:
                rest = stream.readline(BLOCK)
                size += len(rest)
                whole = len(rest) < BLOCK or rest.endswith(b"\n")
            blank = _blank_lines(stream) if line.isspace() else b""
        except gzip.BadGzipFile as error:
            why = f"the gzip data is damaged ({error}); lines above may have changed"
            yield number, offset, InputError(why)
            return
        except (EOFError, zlib.error) as error:
            why = f"the gzip data is damaged ({error}); this line and all after it are lost"
            yield number, offset, InputError(why)
            return
        except ParquetDamageError as error:
            why = f"the Parquet data is damaged ({error}); this row and all after it are lost"
            yield number, offset, InputError(why)
            return
        if not line:
            return
        if size > longest:
            yield number, offset, InputError(f"is {size:,} bytes long; the limit is {longest:,}")
        elif number == 1 and line.startswith(UTF_16):
            yield number, offset, InputError("not UTF-8, but probably UTF-16; convert the file")
        elif (content := line.removeprefix(b"\xef\xbb\xbf")) and not content.isspace():
            yield number, offset, line
        offset += size + len(blank)
        number += blank.count(b"\n")


_BLANK = re.compile(rb"[ \t-\r]*+")


def _blank_lines(stream: BinaryIO) -> bytes:
    """Read the blank lines that are buffered, at once: gzip packs millions into a kilobyte."""
    ahead = cast(io.BufferedReader, stream).peek(1)
    blank = len(_BLANK.match(ahead)[0])  # type: ignore[index]  # perhaps empty
    return stream.read(ahead.rfind(b"\n", 0, blank) + 1)


def count_lines(path: str | os.PathLike[str]) -> int | None:
    """Count the lines of a file; None when it is damaged."""
    try:
        with open_lines(path) as stream:
            return sum(block.count(b"\n") for block in iter(lambda: stream.read(BLOCK), b""))
    except DAMAGE:
        return None


def objects_of(
    stream: BinaryIO,
    longest: int,
    patience: Patience,
    parse: Callable[[bytes], Any] = parse_object,
) -> Iterator[tuple[int, Any]]:
    """Read rows of JSON, one per line: the number of each line, and its row or why it has none."""
    for number, _, line in lines_of(stream, longest):
        if isinstance(line, InputError):
            yield number, line
        elif patience.over and not _may_be_a_row(line):
            yield number, NOT_AN_OBJECT
        else:
            try:
                yield number, parse(line)
            except InputError as error:
                yield number, NOT_AN_OBJECT if patience.over else error


def _may_be_a_row(line: bytes) -> bool:
    """Tell at a glance whether a line may be an object with a field."""
    bare = line.strip()
    return bare[:1] == b"{" and bare[-1:] == b"}" and b'"' in bare and b":" in bare


def read_lines(
    path: str | os.PathLike[str],
    read: Callable[[dict[str, Any]], T],
    *,
    longest: int = LONGEST_ROW,
    needed: Collection[str] = (),
) -> Iterator[Line[T]]:
    """Read every line that is not blank; a bad one is an error in its place, not the end.

    A line that is too long is one bad line, and so is the damaged rest of a gzipped file.

    Args:
        path: a JSONL file, also gzipped, or a FIFO.
        read: makes a value of the parsed object, or raises `InputError`.
        longest: bytes of a line; memory stays in proportion to it.
        needed: names of fields without which `read` always raises. They spare it, after 1,000 bad
            lines, those that lack one.

    Yields:
        One `Line` for each line that is not blank, in order. After 1,000 bad lines, one `Line` may
        stand for several bad ones that follow each other: see its `count`.

    Raises:
        ConfigurationError: when another version of the library wrote the file's evaluations, or
            the path is that of a device, a folder or a socket.
        OSError: when the file cannot be opened or read.
    """
    with open_lines(path) as stream:
        yield from _read(stream, str(path), read, longest, frozenset(needed))


def _read(
    stream: BinaryIO,
    name: str,
    read: Callable[[dict[str, Any]], T],
    longest: int,
    needed: frozenset[str],
) -> Iterator[Line[T]]:
    patience = Patience()
    rows = objects_of(stream, longest, patience)
    try:
        yield from lines_from(
            rows,
            read,
            unit="line",
            patience=patience,
            hopeless=lambda row: not needed <= row.keys(),
        )
    except SchemaError as error:
        raise ConfigurationError("file", name, error.why) from error


# --- Lines of EVALS


def read_evaluations(path: str | os.PathLike[str]) -> Iterator[Line[Evaluation]]:
    """Read EVALS: lines, a Parquet file or a folder of Parquet; see `read_lines`.

    Raises:
        ConfigurationError, MissingDependencyError, OSError: as for `open_evaluations`.
    """
    with open_evaluations(path) as stream:
        yield from _read(
            stream, str(path), lambda row: from_object(Evaluation, row), LONGEST_ROW,
            EVALUATION_NEEDS,
        )  # fmt: skip


def evaluations_at(path: str | os.PathLike[str], numbers: Collection[int]) -> dict[int, Evaluation]:
    """Read the evaluations on some lines of EVALS; of the others, only the ends are looked for."""
    found: dict[int, Evaluation] = {}
    with open_evaluations(path) as stream:
        for number, _, line in lines_of(stream, LONGEST_ROW):
            if number in numbers and isinstance(line, bytes):
                found[number] = from_line(Evaluation, line)
                if len(found) == len(numbers):
                    break
    return found


EVALUATION_NEEDS = frozenset(
    name for name, field in Evaluation.model_fields.items() if field.is_required()
)
"""Fields that every row of EVALS has."""

_ROW = f'{{"schema":{EVALS_SCHEMA},'.encode("ascii")
"""The beginning of every row."""


def is_torn(line: bytes) -> bool:
    """Return whether a line without its end is a row that a killed run was writing."""
    return not line.endswith(b"\n") and (line.startswith(_ROW) or _ROW.startswith(line))
