"""Rows of data frames and of objects, as dicts of plain values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from rag_eval_integrations._contain import words_of
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.records._json import excerpt
from rag_eval_integrations.traces._values import as_json, fields_of

_CHUNK = 512
"""Rows of a data frame that are objects at one time."""
_DOUBLED = "context.span_id"
"""The index of Phoenix' frame of spans, which is a column of it, too."""


def check_names(names: list[str]) -> None:
    """Refuse a table with two columns of one name: one would be lost.

    Raises:
        ConfigurationError: names them.
    """
    twice = (name for name in names if name and name != _DOUBLED and names.count(name) > 1)
    if (name := next(twice, None)) is not None:
        raise ConfigurationError("file", name, "is the name of two columns; rename one")


def frame_rows(source: Any) -> Iterator[Any] | None:
    """Return the rows of a pandas or polars frame or a pyarrow table; None for anything else."""
    if hasattr(source, "iloc") and hasattr(source, "columns"):
        names = [str(name) for name in source.columns]
        check_names(names)
        return (
            dict(zip(names, row, strict=True)) for row in source.itertuples(index=False, name=None)
        )
    if hasattr(source, "iter_rows") and hasattr(source, "columns"):
        return cast(Iterator[Any], source.iter_rows(named=True))
    if hasattr(source, "to_batches") and hasattr(source, "schema"):
        check_names(source.schema.names)
        return (row for batch in source.to_batches(_CHUNK) for row in batch.to_pylist())
    return None


def row_of(item: Any) -> Any:
    """Return an item of an iterable as a row: a mapping, or an error.

    Of an object, the fields that are set.
    """
    try:
        if not isinstance(item, Mapping):
            if hasattr(item, "info") and hasattr(item, "to_json"):  # a trace of MLflow
                return json.loads(item.to_json())
            fields = fields_of(item)
            if fields is None:
                return InputError(f"is not a row: {excerpt(item)}")
            # A row of ragas' test set holds the sample.
            fields = {**fields, **(fields_of(fields.get("eval_sample")) or {})}
            # An object has all of its fields; those that nobody set say nothing.
            item = {name: value for name, value in fields.items() if value is not None}
        return as_json(item)
    except Exception as error:  # noqa: BLE001 -- of a user's object
        return InputError(f"not usable: {type(error).__name__}: {words_of(error)}")
