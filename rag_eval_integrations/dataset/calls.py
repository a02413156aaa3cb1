"""`read_calls`: calls of a file, a data frame, a data set or a list, in the words of any tool."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import IO, Any, BinaryIO, cast

from rag_eval_integrations._contain import words_of
from rag_eval_integrations.dataset import _input
from rag_eval_integrations.dataset._input import Input, Line, lines_from
from rag_eval_integrations.dataset._names import Reader, check_field_map
from rag_eval_integrations.dataset._values import fields_of, plain
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.records import RagCall
from rag_eval_integrations.records._json import shown

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
            - an open file, what is left of which is copied first;
            - a pandas or polars data frame, or a pyarrow table;
            - an iterable of rows: a list of dicts, a Hugging Face data set, test cases of deepeval,
              samples of ragas, runs or examples of LangSmith, or calls.
        field_map: field of a call → name of the field that holds it, where names are others:
            `{"documents": "passages", "question": "inputs.text"}`. `a.b` is `b` inside of `a`.
        tell: called with the mapping in words; by default it is logged.

    Yields:
        One `Line` for each row, in order: its call, or why it is none. Memory stays flat, but for
        JSON that is not one row per line, which is read at once.

    Raises:
        ConfigurationError: the source has no rows of this kind; the field map names what a call, or
            the first row, has not; two columns have one name.
        MissingDependencyError: a Parquet file, and pyarrow is not installed.
        OSError: the file cannot be opened or read.
    """
    if field_map is None and isinstance(source, Input):
        field_map = source.field_map
    option = "--map" if isinstance(source, Input) else "field_map"
    reader = Reader(check_field_map(field_map), option, tell or _input.logger.info)
    if isinstance(source, str | os.PathLike):
        return _of_file(os.fspath(source), partial(_input.open_lines, source), reader)
    if hasattr(source, "read"):
        if not isinstance(source.read(0), str | bytes):
            raise ConfigurationError("source", shown(source), "should be a file of bytes or text")
        return _of_file("", lambda: _input.unpacked(_input.copied(source)), reader)
    return lines_from(_objects(source), reader.call, "row")


def _of_file(name: str, opened: Callable[[], BinaryIO], reader: Reader) -> Iterator[Line[RagCall]]:
    with opened() as stream:
        form = _input.format_of(name, stream, reader.given.values())
        rows = _input.rows_of(stream, form, _input.LONGEST_CALL, reader.tell)
        reader.cells = form in ("csv", "parquet")
        yield from lines_from(rows, reader.call, _input.unit_of(form))


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
        _input.check_names(names)
        return (
            dict(zip(names, row, strict=True)) for row in source.itertuples(index=False, name=None)
        )
    if hasattr(source, "iter_rows") and hasattr(source, "columns"):
        return cast(Iterator[Any], source.iter_rows(named=True))
    if hasattr(source, "to_batches") and hasattr(source, "schema"):
        _input.check_names(source.schema.names)
        return (row for batch in source.to_batches(_CHUNK) for row in batch.to_pylist())
    return None


def _row(item: Any) -> Any:
    if isinstance(item, RagCall):
        return item
    if isinstance(item, Line):
        return item.value if item.value is not None else item.error
    try:
        if not isinstance(item, Mapping):
            fields = fields_of(item)
            if fields is None:
                return InputError(f"is not a row: {shown(item)}")
            # An object has all of its fields; those that nobody set say nothing.
            item = {name: value for name, value in fields.items() if value is not None}
        return plain(item)
    except Exception as error:  # noqa: BLE001 -- of a user's object
        return InputError(f"not usable: {type(error).__name__}: {words_of(error)}")
