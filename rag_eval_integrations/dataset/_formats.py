"""Formats of files of rows: JSONL, other JSON, CSV, Parquet; in flat memory, each also gzipped.

Each reader yields the number of a row and the row, or the reason why it is none; damage is an error
in its place. A row is bounded as a line is, so a quote or bracket that is never closed costs no
more memory than one long row.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Literal, cast

from rag_eval_integrations.dataset import _input
from rag_eval_integrations.dataset._json_array import Found, spans_lines, values
from rag_eval_integrations.dataset._line import OTHER_CELLS, Patience
from rag_eval_integrations.dataset._shapes import field_names, folded
from rag_eval_integrations.errors import ConfigurationError, InputError, MissingDependencyError
from rag_eval_integrations.records import parse_object

Format = Literal["jsonl", "json", "csv", "parquet"]
_SUFFIXES: dict[str, Format] = {
    ".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
_LINES = (".jsonl", ".ndjson")
_HEAD = 1 << 16
_DELIMITERS = ",;\t|"
_SAID = re.compile(rb'(?:\xef\xbb\xbf)?"?+sep=([,;|\t])"?+[ \t]*+\r?+\n', re.I)
"""The line with which a spreadsheet says what separates the cells of those below."""
_MOST_UNZIPPED = 8 * 2**30
"""Bytes of a gzipped Parquet file, which has to be unpacked to be read."""


def format_of(name: str, stream: BinaryIO, known: Iterable[str]) -> Format:
    """Decide the format of a file, by the end of its name, or else by its first bytes.

    Args:
        name: the file's name; may be empty.
        stream: the file, at its beginning; it is at its beginning afterwards.
        known: names of fields; a line that holds one, between separators, is the head of a table.
    """
    plain_name = name.lower().removesuffix(".gz")
    for suffix, found in _SUFFIXES.items():
        if plain_name.endswith(suffix):
            return found
    start = stream.tell()
    try:
        head = stream.read(_HEAD)
    except _input.DAMAGE:
        head = b""  # told by the reader of lines
    stream.seek(start)
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if plain_name.endswith(_LINES):
        return "json" if spans_lines(text) else "jsonl"
    if head.startswith(b"PAR1"):
        return "parquet"
    if text.startswith(b"[") or spans_lines(text):
        return "json"
    return "csv" if _is_table(text, known) else "jsonl"


def _is_table(head: bytes, known: Iterable[str]) -> bool:
    if _SAID.match(head):
        return True
    first = head.partition(b"\n")[0]
    if first.startswith(b"{") or b"\0" in first or len(first) == len(head) == _HEAD:
        return False
    try:
        names = next(csv.reader([first.decode("utf-8")], delimiter=_delimiter(first)), [])
    except (UnicodeDecodeError, csv.Error):
        return False
    return len(names) > 1 and not set(map(folded, names)).isdisjoint(map(folded, known))


def _delimiter(head: bytes) -> str:
    """Return what separates the names in the first line of a table; a comma if nothing does."""
    bare = re.sub(rb'"[^"]*+"', b"", head)
    counts = {one: bare.count(one.encode()) for one in _DELIMITERS}
    return max(_DELIMITERS, key=lambda one: counts[one])


# --- CSV


class _Lines:
    """Gives the lines of a table to `csv.reader`, as many as a row has, bounded in total."""

    def __init__(self, stream: BinaryIO, longest: int) -> None:
        self._stream = stream
        self._longest = longest
        self.number = 0
        self.size = 0
        """Bytes of the row that is being read."""
        self.ended = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        limit = self._longest
        line = self._stream.readline(limit)
        if not line:
            self.ended = True
            raise StopIteration
        self.number += 1
        size = len(line)
        while size % limit == 0 and not line.endswith(b"\n"):  # the rest of a line that is too long
            line = self._stream.readline(limit)
            size += len(line)
            if len(line) < limit:
                break
        self.size += size
        if self.size > limit:
            raise InputError(f"is longer than {limit:,} bytes; perhaps a quote is not closed")
        if self.number == 1:
            if line.startswith(_input.UTF_16):
                raise InputError("not UTF-8, but probably UTF-16; convert the file")
            line = line.removeprefix(codecs.BOM_UTF8)
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"not UTF-8 at byte {error.start}") from error


def table(
    stream: BinaryIO, longest: int, tell: Callable[[str], object], patience: Patience
) -> Iterator[Found]:
    """Read the rows of a table whose first line has the names of the columns.

    A line `sep=;` before it names the separator, as spreadsheets write it.

    Args:
        stream: the file, which can be looked into ahead.
        longest: bytes of a row.
        tell: called with the separator where it is not a comma.
        patience: how many bad rows are still told in full.

    Raises:
        ConfigurationError: two columns have one name.
    """
    feed = _Lines(stream, longest)
    try:
        start = cast(io.BufferedReader, stream).peek(_HEAD)[:_HEAD]
    except _input.DAMAGE:
        start = b""  # told below
    said = _SAID.match(start)
    if said is None:
        delimiter = _delimiter(start.lstrip().partition(b"\n")[0])
    else:
        delimiter = said[1].decode()
        next(feed)
    reader = csv.reader(feed, delimiter=delimiter, strict=True)
    names: list[str] | None = None
    while True:
        number = feed.number + 1
        try:
            cells = _next_row(reader, feed, longest)
        except InputError as error:
            yield number, error
            if names is None or feed.ended:
                return
            continue
        if cells is None:
            return
        if not any(cells):
            continue  # a blank line, also as spreadsheets write it: `;;;`
        if names is None:
            names = [name.strip() for name in cells]
            check_names(names)
            if delimiter != ",":
                told = "tabs" if delimiter == _TAB else repr(delimiter)
                tell(f"columns are separated by {told}")
        elif len(cells) != len(names):
            why = f"has {len(cells)} cells, and the table {len(names)} columns"
            yield number, OTHER_CELLS if patience.over else InputError(why)
        else:
            yield number, {name: cell for name, cell in zip(names, cells, strict=True) if name}


_TAB = "\t"


def _next_row(reader: Iterator[list[str]], feed: _Lines, longest: int) -> list[str] | None:
    feed.size = 0
    # The limit is the whole process's, and its default is less than documents need.
    earlier = csv.field_size_limit(longest)
    try:
        return next(reader, None)
    except csv.Error as error:
        raise InputError(f"not CSV: {error}") from error
    except _input.DAMAGE as error:
        feed.ended = True
        raise InputError(f"the gzip data is damaged ({error}); what follows is lost") from error
    finally:
        csv.field_size_limit(earlier)


def check_names(names: list[str]) -> None:
    """Refuse a table with two columns of one name: one would be lost.

    Raises:
        ConfigurationError: names them.
    """
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise ConfigurationError("file", twice, "is the name of two columns; rename one")


# --- Parquet


def parquet(stream: BinaryIO) -> Iterator[Found]:
    """Read the rows of a Parquet file, batch by batch.

    Raises:
        MissingDependencyError: pyarrow is not installed.
        ConfigurationError: two columns have one name, or the unpacked file is too large.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415 -- large, and only whoever has such a file needs it
        from pyarrow import parquet as pq  # noqa: PLC0415
    except ImportError as error:
        raise MissingDependencyError("pyarrow", "parquet") from error

    number = 0
    try:
        with _seekable(stream) as whole:
            file = pq.ParquetFile(whole)
            check_names(file.schema_arrow.names)
            for batch in file.iter_batches(batch_size=_BATCH):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except _input.DAMAGE as error:
        yield number + 1, InputError(f"the gzip data is damaged ({error})")
    except (pa.ArrowException, UnicodeDecodeError, OSError, OverflowError) as error:
        words = " ".join(str(error).split())
        yield (
            number + 1,
            InputError(f"the Parquet data is damaged ({words:.200}); the rest is lost"),
        )


_BATCH = 512


@contextmanager
def _seekable(stream: BinaryIO) -> Iterator[BinaryIO]:
    """Unpack a gzipped file into a temporary one: Parquet is read from its end."""
    if not isinstance(stream, gzip.GzipFile):
        yield stream
        return
    with tempfile.TemporaryFile() as copy:
        size = 0
        while block := stream.read(1 << 20):
            size += copy.write(block)
            if size > _MOST_UNZIPPED:
                why = f"is larger than {_MOST_UNZIPPED:,} bytes unpacked; unpack it yourself"
                raise ConfigurationError("file", "gzip", why)
        copy.seek(0)
        yield cast(BinaryIO, copy)


# --- A file in any format


def rows(
    stream: BinaryIO,
    found: Format,
    longest: int,
    tell: Callable[[str], object],
    patience: Patience,
    parse: Callable[[bytes], Any] = parse_object,
) -> Iterator[Found]:
    """Read the rows of a file in a format; `parse` reads a line of JSON."""
    if found == "csv":
        return table(stream, longest, tell, patience)
    if found == "parquet":
        return parquet(stream)
    if found == "json":
        return values(stream, longest, patience)
    return _input.objects_of(stream, longest, patience, parse)


def count_rows(path: str | os.PathLike[str]) -> int | None:
    """Count the rows of a file; None where only reading it would tell, and when it is damaged."""
    try:
        with _input.open_lines(path) as stream:
            name = os.fspath(path)
            if format_of(name, stream, set(field_names())) != "jsonl":
                return None
    except (*_input.DAMAGE, zlib.error):
        return None
    return _input.count_lines(path)
