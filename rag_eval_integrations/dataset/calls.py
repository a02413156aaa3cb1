"""`read_calls`: calls of a file, a data frame, a data set or a list, in the words of any tool."""

from __future__ import annotations

import gzip
import io
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import IO, Any, BinaryIO, TypeVar, cast

from rag_eval_integrations._contain import words_of
from rag_eval_integrations._visible import logger_of
from rag_eval_integrations.dataset import _formats, _input
from rag_eval_integrations.dataset._input import Input
from rag_eval_integrations.dataset._line import Line, Patience, lines_from
from rag_eval_integrations.dataset._parquet_lines import evaluation_lines
from rag_eval_integrations.dataset._plain import attributes, plain
from rag_eval_integrations.dataset._reader import Names, Reader
from rag_eval_integrations.dataset._shapes import check_field_map, field_names
from rag_eval_integrations.errors import ConfigurationError, InputError, SchemaError
from rag_eval_integrations.records import RagCall, parse_object
from rag_eval_integrations.records._json import shown

T = TypeVar("T")

logger = logger_of(__name__)

_CHUNK = 512
"""Rows of a data frame that are objects at one time."""


def read_calls(
    source: str | os.PathLike[str] | IO[Any] | Iterable[Any],
    *,
    field_map: Mapping[str, str] | None = None,
    tell: Callable[[str], object] | None = None,
) -> Iterator[Line[RagCall]]:
    """Read calls; a bad row is an error in its place, not the end.

    Names of fields of ragas, deepeval, LangSmith, OpenAI-style messages and names in common use
    (`query`, `contexts`, `answer` …) are understood. The first row decides which they are, and the
    mapping is told once. `docs/data.md` has every form with an example.

    Args:
        source: one of

            - the path of a JSONL, JSON, CSV or Parquet file, plain or gzipped, or of a FIFO;
            - an open file;
            - a pandas or polars data frame, or a pyarrow table;
            - an iterable of rows: a list of dicts, a Hugging Face data set, test cases of deepeval,
              samples of ragas, runs or examples of LangSmith, or calls.
        field_map: field of a call → name of the field that holds it, where names are others:
            `{"documents": "passages", "question": "inputs.text"}`. `a.b` is `b` inside of `a`.
        tell: called with the mapping in words; by default it is logged.

    Yields:
        One `Line` for each row, in order: its call, or why it is none. Memory stays flat. After
        1,000 bad rows, one `Line` may stand for several that follow each other: see its `count`.

    Raises:
        ConfigurationError: the source has no rows of this kind; the field map names what a call, or
            the first row, has not; two columns have one name.
        MissingDependencyError: a Parquet file, and pyarrow is not installed.
        OSError: the file cannot be opened or read.
    """
    if field_map is None and isinstance(source, Input):
        field_map = source.field_map
    name = "--map" if isinstance(source, Input) else "field_map"
    given = check_field_map(field_map)
    say = tell or logger.info
    if isinstance(source, str | os.PathLike):
        return _of_path(source, Names(given, name, say))
    if hasattr(source, "read"):
        return _of_file(_of_bytes(cast(IO[Any], source)), Names(given, name, say))
    return _calls(_objects(source), Reader(Names(given, name, say), cells=True), "row", Patience())


def _of_path(path: str | os.PathLike[str], names: Names) -> Iterator[Line[RagCall]]:
    with _input.open_lines(path) as stream:
        yield from _of_stream(stream, os.fspath(path), names)


def _of_stream(stream: BinaryIO, name: str, names: Names) -> Iterator[Line[RagCall]]:
    known = {*field_names(), *names.given.values()}
    found = _formats.format_of(name, stream, known)
    patience = Patience()
    rows: Iterator[tuple[int, Any]] = _formats.rows(
        stream, found, _input.LONGEST_CALL, names.tell, patience
    )
    if found == "parquet":
        rows = ((number, _plain(row)) for number, row in rows)
    reader = Reader(names, cells=found in ("csv", "parquet"))
    return _calls(rows, reader, "line" if found in ("jsonl", "csv") else "row", patience)


def read_rows(
    path: str | os.PathLike[str],
    read: Callable[[dict[str, Any]], T],
    *,
    needed: Collection[Collection[str]] = (),
    parse: Callable[[bytes], Any] = parse_object,
) -> Iterator[Line[T]]:
    """Read every row of a file of JSON lines, a JSON array or Parquet, also of EVALS in Parquet.

    `parse` makes of a line of JSON what `read` is given. `needed` holds the fields of each kind of
        row: `read` always raises where a row has none whole. Errors as for `read_lines` and
        `open_evaluations`.
    """
    kinds = [frozenset(kind) for kind in needed] or [frozenset()]
    patience = Patience()
    evaluations = evaluation_lines(path, or_other=True)
    with evaluations or _input.open_lines(path) as stream:
        found: _formats.Format = "jsonl"
        if evaluations is None:
            found = _formats.format_of(os.fspath(path), stream, ())
        rows: Iterator[tuple[int, Any]] = _formats.rows(
            stream, found, _input.LONGEST_ROW, logger.info, patience, parse
        )
        if found == "parquet":
            rows = ((number, _plain(row)) for number, row in rows)
        unit = "line" if found in ("jsonl", "csv") else "row"
        try:
            yield from lines_from(
                rows,
                read,
                unit=unit,
                patience=patience,
                hopeless=lambda row: not any(kind <= row.keys() for kind in kinds),
            )
        except SchemaError as error:
            raise ConfigurationError("file", str(path), error.why) from error


def _calls(
    rows: Iterator[tuple[int, Any]], reader: Reader, unit: str, patience: Patience
) -> Iterator[Line[RagCall]]:
    return lines_from(
        rows,
        lambda row: row if isinstance(row, RagCall) else reader.call(row),
        unit=unit,
        patience=patience,
        hopeless=reader.hopeless,
    )


# --- Open files


class _Encoded(io.RawIOBase):
    """The bytes of a file that was opened as text."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            self._left = self._file.read(_input.BLOCK).encode("utf-8", "surrogatepass")
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size


def _of_bytes(file: IO[Any]) -> BinaryIO:
    """Return an open file as one of bytes, at its present place.

    Raises:
        ConfigurationError: it gives neither bytes nor text.
    """
    start = file.read(0)
    if isinstance(start, bytes):
        return cast(BinaryIO, file)
    if not isinstance(start, str):
        raise ConfigurationError("source", shown(file), "should be a file of bytes or text")
    below = getattr(file, "buffer", None)
    if below is None or file.tell() != 0:
        return cast(BinaryIO, io.BufferedReader(_Encoded(file)))
    return cast(BinaryIO, below)


def _of_file(file: BinaryIO, names: Names) -> Iterator[Line[RagCall]]:
    """Read a user's file, which stays open; one that cannot go back is copied first."""
    with ExitStack() as opened:
        if not (hasattr(file, "peek") and file.seekable()):
            copy = opened.enter_context(tempfile.TemporaryFile())
            while block := file.read(_input.BLOCK):
                copy.write(block)
            copy.seek(0)
            file = cast(BinaryIO, copy)
        at = file.tell()
        zipped = file.read(2) == b"\x1f\x8b"
        file.seek(at)
        if zipped:
            file = cast(BinaryIO, opened.enter_context(gzip.GzipFile(fileobj=file, mode="rb")))
        yield from _of_stream(file, "", names)


# --- Rows in memory


def _objects(source: Any) -> Iterator[tuple[int, Any]]:
    """Number the rows of a frame, a data set or a list, each as a dict of plain values or a call.

    Raises:
        ConfigurationError: it has no rows.
    """
    if isinstance(source, Mapping):
        names = ", ".join(f"`{name!s:.40}`" for name in list(source)[:10])
        why = f"is a dict of {names or 'nothing'}: pass one of its values, or a list of rows"
        raise ConfigurationError("source", type(source).__name__, why)
    if hasattr(source, "collect_schema") and hasattr(source, "collect"):
        why = "is lazy: pass what its collect() gives"
        raise ConfigurationError("source", type(source).__name__, why)
    rows = _frame_rows(source)
    if rows is None:
        if isinstance(source, bytes) or not isinstance(source, Iterable):
            why = "should be a path, a file, a data frame, a data set or an iterable of rows"
            raise ConfigurationError("source", shown(source), why)
        rows = iter(source)
    return ((number, _row(row)) for number, row in enumerate(rows, 1))


def _frame_rows(source: Any) -> Iterator[Any] | None:
    """Return the rows of a pandas or polars frame or a pyarrow table; None for anything else."""
    if hasattr(source, "iloc") and hasattr(source, "columns"):
        names = [str(name) for name in source.columns]
        _formats.check_names(names)
        return (
            dict(zip(names, row, strict=True))
            for at in range(0, len(source), _CHUNK)
            for row in source.iloc[at : at + _CHUNK].itertuples(index=False, name=None)
        )
    if hasattr(source, "iter_rows") and hasattr(source, "columns"):
        return cast(Iterator[Any], source.iter_rows(named=True))
    if hasattr(source, "to_batches") and hasattr(source, "schema"):
        _formats.check_names(source.schema.names)
        return (row for batch in source.to_batches(_CHUNK) for row in batch.to_pylist())
    return None


def _row(item: Any) -> Any:
    if isinstance(item, RagCall):
        return item
    if isinstance(item, Line):
        return item.value if item.value is not None else item.error
    try:
        if not isinstance(item, Mapping):
            held = None if isinstance(item, str | bytes | int | float | list) else attributes(item)
            if held is None:
                return InputError(f"is not a row: {shown(item)}")
            # An object has all of its fields; those that nobody set say nothing.
            item = {name: value for name, value in held.items() if value is not None}
    except Exception as error:  # noqa: BLE001 -- of a user's object
        return InputError(f"not usable: {type(error).__name__}: {words_of(error)}")
    return _plain(item)


def _plain(row: Any) -> Any:
    try:
        return plain(row) if isinstance(row, Mapping) else row
    except Exception as error:  # noqa: BLE001 -- of a user's object
        return InputError(f"not usable: {type(error).__name__}: {words_of(error)}")
