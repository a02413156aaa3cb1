"""What holds the rows: a file's only object, a data frame, a data set, a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeGuard

from rag_eval_integrations.dataset._input import Line
from rag_eval_integrations.dataset._names import KNOWN, QUESTIONS, ROWS
from rag_eval_integrations.dataset._paths import folded
from rag_eval_integrations.dataset._proposals import holds_documents
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import RagCall
from rag_eval_integrations.records._json import excerpt
from rag_eval_integrations.traces._rows import frame_rows, row_of
from rag_eval_integrations.traces._values import fields_of


def rows_of_frame(item: Any, tell: Callable[[str], object]) -> list[Any]:
    """Return the rows of a data frame that pandas' `to_json` wrote as one object; else empty.

    It is an object of columns by default, of rows with `orient="index"`, and has the cells of each
    row under `data` with `orient="split"`.
    """
    rows: list[Any] = []
    parts = list(item.values()) if isinstance(item, Mapping) else []
    if parts and item.keys() == {"columns", "index", "data"} and _is_split(item):
        rows = [dict(zip(item["columns"], cells, strict=True)) for cells in item["data"]]
    elif parts and all(isinstance(part, Mapping) for part in parts):
        labels = parts[0].keys()
        if all(str(label).isdecimal() for label in item):
            rows = parts
        elif all(part.keys() == labels for part in parts) and (
            "context.span_id" in item  # the labels are ids of Phoenix' spans
            or all(str(label).isdecimal() for label in labels)
        ):
            rows = [_cells_at(label, item) for label in labels]
    if rows:
        tell("rows are read from a data frame as pandas writes it")
    return rows


def _cells_at(label: Any, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a label from an object of columns."""
    return {name: cells[label] for name, cells in columns.items()}


def _is_split(item: Mapping[str, Any]) -> bool:
    """Tell whether an object has a list of columns and lists of as many cells."""
    names, rows = item["columns"], item["data"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return False
    return isinstance(rows, list) and all(
        isinstance(cells, list) and len(cells) == len(names) for cells in rows
    )


def rows_inside(item: Any, tell: Callable[[str], object]) -> list[Any] | None:
    """Return the rows that an object holds, which is not a row itself; None if it holds no list.

    They are a list of objects under one of the names that tools give it, or the only one.
    """
    fields = (
        item if isinstance(item, Mapping) else {name: getattr(item, name, None) for name in ROWS}
    )
    lists = {
        name: rows for name, rows in fields.items() if _are_objects(rows) and (rows or name in ROWS)
    }
    known = sorted((name for name in ROWS if name in lists), key=lambda name: not lists[name])
    if not QUESTIONS.isdisjoint(map(folded, fields)):
        return None
    for name in ("testRunData", "results"):  # deepeval's latest test run; promptfoo
        if isinstance(fields.get(name), Mapping):
            return rows_inside(fields[name], tell)
    only = [name for name in lists if len(lists) == 1 and not _is_field_of_call(name, lists[name])]
    if not (known or only):
        return None
    name, *others = known or only
    left = " and ".join(f"{len(lists[other])} of `{other}`" for other in others if lists[other])
    tell(f"rows are read from `{name}`" + (f"; left out: {left}" if left else ""))
    return lists[name]


def _are_objects(value: Any) -> TypeGuard[list[Any]]:
    """Tell whether a value is a list of objects alone: no texts, numbers, lists or nulls."""
    simple = (str, int, float, list, type(None))
    return isinstance(value, list) and not any(isinstance(item, simple) for item in value)


def _is_field_of_call(name: str, items: list[Any]) -> bool:
    """Tell whether a list of objects is a field of a call, such as its documents, not rows."""
    first = fields_of(items[0]) if items else None
    are_rows = any(folded(str(key)) in QUESTIONS for key in first or ())
    return holds_documents(name) or (folded(name) in KNOWN and not are_rows)


# --- Rows in memory


def objects_of(source: Any, tell: Callable[[str], object]) -> Iterator[tuple[int, Any]]:
    """Number the rows of a frame, a data set or a list, each as a dict of plain values or a call.

    Raises:
        ConfigurationError: it has no rows.
    """
    if isinstance(source, Mapping):
        if framed := rows_of_frame(source, tell):
            return ((number, _row(row)) for number, row in enumerate(framed, 1))
        if not QUESTIONS.isdisjoint(folded(str(name)) for name in source) and not all(
            isinstance(value, list) for value in source.values()
        ):
            return iter([(1, _row(source))])
        names = ", ".join(f"`{name!s:.40}`" for name in list(source)[:10])
        why = f"is a dict of {names or 'nothing'}: pass one of its values, or a list of rows"
        raise ConfigurationError("source", type(source).__name__, why)
    if hasattr(source, "collect_schema") and hasattr(source, "collect"):
        why = "is lazy: pass what its collect() gives"
        raise ConfigurationError("source", type(source).__name__, why)
    rows = frame_rows(source)
    is_record = hasattr(type(source), "model_fields")  # which iterates over its fields
    if rows is None and isinstance(source, Iterable) and not is_record:
        rows = None if isinstance(source, bytes) else iter(source)
    elif rows is None:
        # A result of ragas holds its data set.
        inside = rows_inside(source, tell) or rows_inside(getattr(source, "dataset", None), tell)
        rows = iter(inside or [source]) if inside or fields_of(source) is not None else None
    if rows is None:
        why = "should be a path, a file, a data frame, a data set, an iterable of rows, or a row"
        raise ConfigurationError("source", excerpt(source), why)
    return ((number, _row(row)) for number, row in enumerate(rows, 1))


def _row(item: Any) -> Any:
    """Return an item of an iterable as a row: a mapping, a call, or an error."""
    if isinstance(item, RagCall):
        return item
    if isinstance(item, Line):
        return item.value if item.value is not None else item.error
    return row_of(item)
