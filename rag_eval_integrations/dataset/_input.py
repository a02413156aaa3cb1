"""Reads files of rows: JSON lines, other JSON, CSV, Parquet, each also gzipped or a FIFO.

Every reader yields the number of a row and the row, or the error of a bad one: it stands in its
place, and is not the end. Lines and cells are bounded, so a line that never ends, a quote
that is never closed and a gzip bomb take no more memory than one long row.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import weakref
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Generic, Literal, TypeVar, cast

from rag_eval_integrations import _target
from rag_eval_integrations._visible import logger_of
from rag_eval_integrations.dataset._names import KNOWN, FieldMap
from rag_eval_integrations.dataset._paths import folded
from rag_eval_integrations.errors import ConfigurationError, InputError, SchemaError
from rag_eval_integrations.evaluations._formats import check_parquet
from rag_eval_integrations.records._json import not_utf_8, objects_in, parse_object
from rag_eval_integrations.traces._rows import check_names
from rag_eval_integrations.traces._values import as_json

T = TypeVar("T")

logger = logger_of(__name__)

LONGEST_CALL = 16 * 2**20
"""Bytes of a line of CALLS. Parsed, hostile JSON takes up to 25 times as much memory."""
LONGEST_ROW = 128 * 2**20
"""Bytes of any other line: an evaluation of a long call is up to eight times as long."""
_MOST_JSON = 10**9
"""Bytes of a file of JSON that is not one row per line, and is read at once."""

_BLOCK = 1 << 20
_BATCH = 512
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_ZIP = b"PK\3\4"
_IS_ZIP = "not text, but probably a spreadsheet; save it as CSV"
_IS_UTF_16 = "not UTF-8, but probably UTF-16; convert the file"


DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)
"""What reading a compressed file raises where it is damaged."""


@dataclass(frozen=True)
class Line(Generic[T]):
    """One line of a file: its value, or the reason why it has none."""

    number: int
    """From 1; of the line, or of the row in a JSON array, a Parquet file or a list."""
    value: T | None
    error: InputError | None = None


class Input(os.PathLike[str]):
    """A file that a command reads, perhaps more than once; `-` is standard input.

    Standard input and FIFOs, such as the shell's `<(…)`, can be read only once: they are copied to
    a private temporary file when they are first needed. The text of an input is its name, for
    messages.

    Args:
        path: the path, or `-`.
        field_map: where fields of calls are in its rows, see `read_calls`.
        tool: the tool whose traces it holds, see `read_calls`.
        separator: what stands between several references, see `read_calls`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        field_map: FieldMap | None = None,
        tool: str | None = None,
        separator: str | None = None,
    ) -> None:
        self._path = os.fspath(path)
        self.field_map = field_map
        self.separator = separator
        self.tool = tool
        self._copy: str | None = None

    def __str__(self) -> str:
        return "standard input" if self._path == "-" else self._path

    def __fspath__(self) -> str:
        """Return the path to read, after copying what can be read only once.

        Raises:
            ConfigurationError: there is no standard input.
            OSError: it cannot be read.
        """
        if self._copy is None and (self._path == "-" or Path(self._path).is_fifo()):
            if self._path == "-" and sys.stdin is None:
                raise ConfigurationError("file", "-", "there is no standard input")
            file, self._copy = tempfile.mkstemp(prefix="rag-eval-input-")
            weakref.finalize(self, Path(self._copy).unlink, missing_ok=True)
            stdin = nullcontext(sys.stdin.buffer) if self._path == "-" else None
            with os.fdopen(file, "wb") as copy, stdin or open(self._path, "rb") as source:
                shutil.copyfileobj(source, copy, _BLOCK)
        return self._copy or self._path

    def check(self, *, folder: bool = False) -> None:
        """Open the file once, so that a wrong name is refused before anything is written.

        Args:
            folder: whether it may be a folder of Parquet files.

        Raises:
            ConfigurationError, OSError: as for reading.
        """
        if not (folder and os.path.isdir(self)):
            open_lines(self).close()

    def is_file(self, path: Path) -> bool:
        """Return whether this is another name of a file that is going to be written."""
        try:
            mine = os.fstat(0) if self._path == "-" else os.stat(self._path)
            return os.path.samestat(mine, path.stat())
        except OSError:
            return False


# --- Opening


def open_lines(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for reading bytes, through gzip where it is compressed; a FIFO is copied first.

    Raises:
        ConfigurationError: it is a device, folder or socket.
        OSError: it cannot be opened.
    """
    name = os.fspath(path)
    try:
        mode = os.stat(name).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
            raise ConfigurationError("path", name, f"is {_target.kind(mode)}, not a file of rows")
        stream = open(name, "rb", _BLOCK)  # noqa: SIM115  # the caller closes it
    except OSError as error:
        raise _target.readable(error, name) from error
    if stat.S_ISFIFO(mode):
        with stream:
            stream = copied(stream)
    return unpacked(stream)


def copied(source: Any) -> BinaryIO:
    """Copy the rest of an open file of bytes or text to a temporary file of bytes."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
    while block := source.read(_BLOCK):
        copy.write(block if isinstance(block, bytes) else block.encode("utf-8", "surrogatepass"))
    copy.seek(0)
    return cast(BinaryIO, copy)


def unpacked(stream: BinaryIO) -> BinaryIO:
    """Return a reader of the decompressed bytes of a gzipped file; else the file itself."""
    zipped = stream.read(2) == b"\x1f\x8b"
    stream.seek(0)
    if not zipped:
        return stream
    unzipped = gzip.GzipFile(fileobj=stream, mode="rb")
    unzipped.myfileobj = cast(Any, stream)  # which it closes
    return cast(BinaryIO, unzipped)


def parts_of(folder: Path, forms: Collection[str] = ("parquet",)) -> list[Path]:
    """List the files of some formats in a folder, in the order of the numbers in their names."""
    files = (
        part
        for part in folder.rglob("*")
        if SUFFIXES.get(Path(part.name.removesuffix(".gz")).suffix) in forms
        and part.is_file()
        and part.name[0] not in "._"
    )
    return sorted(
        files,
        key=lambda part: [
            (int(piece), "") if piece.isdigit() else (0, piece)
            for piece in re.split("([0-9]+)", str(part.relative_to(folder)))
        ],
    )


# --- Lines


def lines_of(stream: BinaryIO, longest: int) -> Iterator[tuple[int, int, bytes | InputError]]:
    """Yield each line that is not blank with its number and offset, one in memory at a time.

    Args:
        stream: an open file.
        longest: bytes of a line.

    Yields:
        Number of the line from 1, offset at which it begins, and the line with its line end; an
        error for a line that is longer, and for the damaged rest of a compressed file.

    Raises:
        OSError: when the file cannot be read.
    """
    offset = 0
    for number, (size, line) in enumerate(_raw_lines(stream, longest), 1):
        blank = isinstance(line, bytes) and not line.removeprefix(codecs.BOM_UTF8).strip()
        if not blank:
            yield number, offset, line
        offset += size


def _raw_lines(stream: BinaryIO, longest: int) -> Iterator[tuple[int, bytes | InputError]]:
    """Yield every line with its size; an error for one that is too long, not text, or damaged."""
    first = True
    try:
        while line := stream.readline(longest):
            size, part, limit = len(line), line, longest
            while len(part) == limit and not part.endswith(b"\n"):
                part, limit = stream.readline(_BLOCK), _BLOCK
                size += len(part)
            if size > longest:
                yield size, InputError(f"is {size:,} bytes long; the limit is {longest:,}")
            elif first and line.startswith((*_UTF_16, _ZIP)):
                yield size, InputError(_IS_ZIP if line.startswith(_ZIP) else _IS_UTF_16)
            else:
                yield size, line
            first = False
    except DAMAGE as error:
        yield 0, _damage(error)


def _damage(error: Exception) -> InputError:
    """Make the error for damaged gzip data."""
    # A checksum that does not fit is found at the end of the file.
    bad_sum = isinstance(error, gzip.BadGzipFile)
    lost = "lines above may have changed" if bad_sum else "this line and all after it are lost"
    return InputError(f"the gzip data is damaged ({error}); {lost}")


def read_lines(
    path: str | os.PathLike[str],
    read: Callable[[dict[str, Any]], T],
    *,
    longest: int = LONGEST_ROW,
) -> Iterator[Line[T]]:
    """Read every line that is not blank; a bad one is an error in its place, not the end.

    A line that is too long is one bad line, and so is the damaged rest of a gzipped file.

    Args:
        path: a JSONL file, also gzipped, or a FIFO.
        read: makes a value of the parsed object, or raises `InputError`.
        longest: bytes of a line; memory stays in proportion to it.

    Yields:
        One `Line` for each line that is not blank, in order.

    Raises:
        ConfigurationError: when another version of the library wrote the file's evaluations, or
            the path is that of a device, a folder or a socket.
        OSError: when the file cannot be opened or read.
    """
    with open_lines(path) as stream:
        yield from lines_from(_json_line_rows(stream, longest, parse_object), read, "line", path)


def lines_from(
    rows: Iterable[tuple[int, Any]], read: Callable[[Any], T], unit: str, source: object = ""
) -> Iterator[Line[T]]:
    """Read each row as a `Line`; a bad row is an error in its place, not the end.

    Args:
        rows: number of each row, and the row or its error.
        read: makes a value of a row, or raises `InputError`.
        unit: what the number counts.
        source: the file, for the error.

    Raises:
        ConfigurationError: as `read` does, and for a row in another version's format.
    """
    for number, row in rows:
        try:
            if isinstance(row, InputError):
                raise row
            line = Line(number, read(row))
        except SchemaError as error:
            raise ConfigurationError("path", str(source), error.why) from error
        except ConfigurationError:
            raise
        except (ArithmeticError, RecursionError, ValueError) as error:
            # A number that is too large, or nesting, is the row's fault, too, and ends no run.
            fault = error if isinstance(error, InputError) else InputError(f"not usable: {error}")
            line = Line(
                number, None, InputError(fault.why, field=fault.field, line=number, unit=unit)
            )
        yield line


# --- Formats


Format = Literal["jsonl", "json", "csv", "parquet"]
Numbered = Iterator[tuple[int, Any]]
"""Numbers of rows from 1, and the rows or their errors. A row of CSV has its line's number."""

SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
_DELIMITERS = ",;\t|"
_SEPARATOR = re.compile(r'"?sep=([,;|\t])"?[ \t]*\r?\n', re.I)
"""The line with which a spreadsheet says what separates the cells of those below."""


def format_of(name: str, stream: BinaryIO, known: Iterable[str] = ()) -> Format:
    """Decide the format of a file, by the end of its name, or else by its first bytes.

    Args:
        name: the file's name; may be empty.
        stream: the file, at its beginning, also afterwards.
        known: further names of fields; a line that holds one, between separators, is the head of a
            table.
    """
    form = SUFFIXES.get(Path(name.lower().removesuffix(".gz")).suffix)
    if form in ("csv", "parquet"):
        return form
    try:
        head = stream.read(1 << 16)
    except DAMAGE:
        head = b""  # told by the reader of lines
    stream.seek(0)
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    first, _, rest = text.partition(b"\n")
    # An object whose fields have lines of their own; there may be one behind the other.
    spread = first.rstrip()[-1:] in (b"{", b",", b"[") and rest.lstrip()[:1] == b'"'
    if text.startswith(b"{") and spread:
        return "json"
    if text.startswith(b"{") and name.lower().endswith((".json", ".json.gz")) and not rest.strip():
        return "json"  # one object on one line, which may hold all rows
    if form is not None:
        return form
    if head.startswith(b"PAR1"):
        return "parquet"
    if text.startswith(b"["):
        return "json"
    return "csv" if _is_table(first, KNOWN.union(map(folded, known))) else "jsonl"


def _is_table(first: bytes, known: frozenset[str]) -> bool:
    """Tell whether the first line of a file is the head of a CSV table."""
    if first.startswith(b"{") or b"\0" in first:
        return False
    try:
        line = first.decode("utf-8")
        names = next(csv.reader([line], delimiter=_delimiter(line)), [])
    except (UnicodeDecodeError, csv.Error):
        return False
    if _SEPARATOR.match(line + "\n"):
        return True
    return len(names) > 1 and not known.isdisjoint(map(folded, names))


def rows_of(
    stream: BinaryIO,
    form: Format,
    longest: int,
    tell: Callable[[str], object],
    parse: Callable[[bytes], Any] | None = None,
    evaluations: bool = False,
) -> Numbered:
    """Read the rows of a file in a format; the last two arguments are those of `opened_rows`.

    Raises:
        MissingDependencyError: it is Parquet, and pyarrow is not installed.
        ConfigurationError: two columns have one name.
    """
    if form == "csv":
        return _csv_rows(stream, longest, tell)
    if form == "parquet":
        return parquet_rows([stream], parse, evaluations)
    if form == "json":
        return _json_rows(stream)
    return _json_line_rows(stream, longest, parse or row_object)


def unit_of(form: Format) -> str:
    """Return what the numbers of a format's rows count: `line` or `row`."""
    return "line" if form in ("jsonl", "csv") else "row"


def row_object(line: bytes) -> dict[str, Any]:
    """Read a line as `parse_object` does, but a field that is NaN as null."""
    try:
        return parse_object(line)
    except InputError:
        is_object = b"NaN" in line and not line.lstrip().startswith(b"[")
        rows = [row for _, row in _json_rows(io.BytesIO(line))] if is_object else []
        if len(rows) == 1 and isinstance(rows[0], dict):
            return rows[0]
        raise


def _json_line_rows(stream: BinaryIO, longest: int, parse: Callable[[bytes], Any]) -> Numbered:
    """Yield the number and the parsed value of each line; an error for a bad line."""
    return ((number, _parsed(line, parse)) for number, _, line in lines_of(stream, longest))


def _parsed(line: bytes | InputError, parse: Any) -> Any:
    """Parse a line; return an error instead of raising it."""
    try:
        return line if isinstance(line, InputError) else parse(line)
    except InputError as error:
        return error


def _json_rows(stream: BinaryIO) -> Numbered:
    """Yield the rows of a JSON array, or of objects one after another, as `jq` prints them.

    Where it cannot be read on, an error is the last row.
    """
    number = 1
    try:
        data = stream.read(_MOST_JSON + 1)
        if len(data) > _MOST_JSON:
            why = f"is longer than {_MOST_JSON:,} bytes; write JSON lines, one object per line"
            raise InputError(why)
        if data.startswith(_UTF_16):
            raise InputError(_IS_UTF_16)
        for row in objects_in(data.decode("utf-8-sig")):
            yield number, row
            number += 1
    except DAMAGE as error:
        yield number, _damage(error)
    except InputError as error:
        yield number, error
    except UnicodeDecodeError as error:
        yield number, not_utf_8(error)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        yield number, InputError(f"not JSON: {error.msg} at {place}; what follows is lost")
    except (RecursionError, ValueError) as error:
        yield number, InputError(f"not usable: {error}; what follows is lost")


# --- Tables


class _CsvRows:
    """The rows of a CSV table; reading goes on after the error of a row."""

    def __init__(self, stream: BinaryIO, longest: int) -> None:
        self._lines = enumerate(_raw_lines(stream, longest), 1)
        self._longest = longest
        self.number = 0
        head = self.line()
        while head.isspace():
            head = self.line()
        separator = _SEPARATOR.match(head)
        self.delimiter = separator[1] if separator else _delimiter(head)
        lines = chain([] if separator else [head], iter(self.line, ""))
        self._reader = csv.reader(lines, delimiter=self.delimiter, strict=True)

    def line(self) -> str:
        """Return the next line of the table for the CSV reader, empty at the end.

        Raises what is wrong with it.
        """
        self.number, (_, line) = next(self._lines, (self.number, (0, b"")))
        if isinstance(line, InputError):
            raise line
        try:
            return line.decode("utf-8-sig" if self.number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise not_utf_8(error) from error

    def row(self) -> list[str] | None:
        """Return the next row of cells; None at the end."""
        # The limit is the whole process's, and its default is less than documents need.
        earlier = csv.field_size_limit(self._longest)
        try:
            return next(self._reader, None)
        except csv.Error as error:
            raise InputError(f"not CSV: {error}") from error
        finally:
            csv.field_size_limit(earlier)


def _csv_rows(stream: BinaryIO, longest: int, tell: Callable[[str], object]) -> Numbered:
    """Yield the rows of a table whose first line has the names of the columns.

    Blank lines are left out; a row with another number of cells is an error.
    """
    names: list[str] = []
    try:
        table = _CsvRows(stream, longest)
        names = [name.strip() for name in table.row() or ()]
    except InputError as error:
        yield 1, error
    check_names(names)
    if names and table.delimiter != ",":
        words = "tabs" if table.delimiter == "\t" else repr(table.delimiter)
        tell(f"columns are separated by {words}")
    while names:
        begin = table.number + 1
        try:
            cells = table.row()
        except InputError as error:
            yield begin, error
            continue
        if cells is None:
            return
        if len(cells) == len(names) and any(cells):
            yield begin, {name: cell for name, cell in zip(names, cells, strict=True) if name}
        elif any(cells):  # else a blank line, also as spreadsheets write it: `;;;`
            yield begin, InputError(f"has {len(cells)} cells, and the table {len(names)} columns")


def _delimiter(head: str) -> str:
    """Guess the delimiter from the first line of a table; a comma if it has none."""
    bare = re.sub('"[^"]*"', "", head)
    return max(_DELIMITERS, key=bare.count)


# --- Parquet


LINE = "evaluation"
"""The column that holds the line of EVALS."""


def parquet_rows(
    sources: Iterable[BinaryIO | Path], parse: Callable[[bytes], Any] | None, evaluations: bool
) -> Numbered:
    """Yield the rows of Parquet files; with `parse`, those of their lines of EVALS."""
    check_parquet()
    import pyarrow as pa  # noqa: PLC0415 -- large, and only whoever has such a file needs it
    from pyarrow import parquet as pq  # noqa: PLC0415

    number = 0
    try:
        for source in sources:
            with ExitStack() as opened:
                if isinstance(source, gzip.GzipFile):  # it is read from its end
                    source = opened.enter_context(copied(source))
                file = pq.ParquetFile(source)
                names = file.schema_arrow.names
                check_names(names)
                lines = parse is not None and LINE in names
                if evaluations and not lines:
                    raise ConfigurationError("file", LINE, _NO_LINES)
                for batch in file.iter_batches(_BATCH, columns=[LINE] if lines else None):
                    if lines:  # as bytes: text that is not UTF-8 is a bad row, not the end
                        rows = batch.column(0).cast(pa.large_binary()).to_pylist()
                    else:
                        rows = batch.to_pylist()
                    for row in rows:
                        number += 1
                        yield number, _parsed(row or b"null", parse) if lines else as_json(row)
    except DAMAGE as error:
        yield number + 1, _damage(error)
    except (pa.ArrowException, UnicodeDecodeError, OSError, OverflowError) as error:
        words = f"{' '.join(str(error).split()):.200}"
        why = f"the Parquet data is damaged ({words}); this row and all after it are lost"
        yield number + 1, InputError(why)


_NO_LINES = (
    "is a column that this Parquet lacks: the line of EVALS that `rag-eval run -o NAME.parquet` "
    "writes; the tables of `rag-eval report` have none"
)


def count_rows(path: str | os.PathLike[str]) -> int | None:
    """Count the lines of a file of JSON lines; None for other formats, and when it is damaged."""
    try:
        with open_lines(path) as stream:
            if format_of(os.fspath(path), stream) != "jsonl":
                return None
            count, last = 0, b"\n"
            while block := stream.read(_BLOCK):
                count, last = count + block.count(b"\n"), block
            return count + (not last.endswith(b"\n"))  # the last line may lack its end
    except DAMAGE:
        return None
