"""Makes calls of the rows of one source, whose shape its first row decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from rag_eval_integrations.dataset._plain import json_part
from rag_eval_integrations.dataset._shapes import (
    REQUIRED,
    RUNS,
    FieldMap,
    Shape,
    lacks_names,
    listed,
    shape_of,
    way_to,
    with_later,
)
from rag_eval_integrations.dataset._values import (
    conversation,
    documents_from,
    ids_from,
    is_foreign,
    is_messages,
    list_in,
    named_ids,
    object_in,
    text_from,
    turns_from,
)
from rag_eval_integrations.dataset.rows import call_from
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.records import RagCall

_NOISE = frozenset(
    {"child_runs", "serialized", "events", "manifest", "attachments", "extra", "feedback_stats",
     "parent_run_ids", "child_run_ids", "dotted_order"}
)  # fmt: skip
"""Fields of a LangSmith run that are about its trace, and would fill every line of EVALS."""


class Names(NamedTuple):
    """What is known of the names of a source's fields before it is read."""

    given: FieldMap
    """Where fields of calls are, for those that are not found by their names."""
    option: str
    """What the user gave it by: `field_map` or `--map`."""
    tell: Callable[[str], object]
    """Called once with the mapping in words, if the names are not our own."""


class Reader:
    """Makes calls of the rows of one source.

    Args:
        names: what is known of its names.
        cells: whether values may be texts of a table's cells, which hold lists as JSON, or objects.
    """

    def __init__(self, names: Names, *, cells: bool) -> None:
        self._names = names
        self._cells = cells
        self._shape: Shape | None = None
        self._checked = not names.given
        self._split = False

    def call(self, row: dict[str, Any]) -> RagCall:
        """Make a call of a row.

        Raises:
            InputError: a field is missing or wrong, or nothing says which field it is.
            ConfigurationError: the first row lacks a field that the field map names.
        """
        if not self._checked:
            self._check_given(row)
            self._checked = True
        shape = self._shape
        if shape is None:
            shape = shape_of(row, self._names.given)
            self._shape = shape
            if shape.told:
                self._names.tell(shape.told)
        elif not shape.later.isdisjoint(row):
            shape = self._shape = with_later(shape, row)
            self._names.tell(shape.told)
        if shape.name == "calls" and not self._cells and not _has_foreign(row.get("documents")):
            return call_from(row)
        if shape.name == "deepeval" and "documents" not in self._names.given:
            row = self._apart(row, shape.paths["documents"][0])
        return call_from(_read(row, shape, self._cells))

    def _apart(self, row: dict[str, Any], name: str) -> dict[str, Any]:
        """Take documents apart that are one text, as deepeval writes them into CSV and JSONL."""
        text = row.get(name)
        if not isinstance(text, str) or "|" not in text or list_in(text, name) is not None:
            return row
        if not self._split:
            self._split = True
            self._names.tell(
                f"`{name}` is split at `|`, with which deepeval joins documents in CSV and JSONL; "
                f"to keep its texts whole, say documents={name} with {self._names.option}"
            )
        return {**row, name: [part for part in text.split("|") if part.strip()]}

    def hopeless(self, row: Mapping[str, Any]) -> bool:
        """Tell at a glance that a row is not a call; false where only `call` tells."""
        if self._shape is None:
            return not self._names.given and lacks_names(row)
        paths = self._shape.paths
        return any(ours in paths and paths[ours][0] not in row for ours in REQUIRED)

    def _check_given(self, row: Mapping[str, Any]) -> None:
        for ours, theirs in self._names.given.items():
            if way_to(row, theirs) is None:
                names = [str(name) for name in row]
                near = get_close_matches(theirs, names[:100], 1, 0.6)
                hint = f"; did you mean `{near[0]}`?" if near else ""
                why = f"the first row has {listed(names)}, and no field `{theirs}`{hint}"
                raise ConfigurationError(self._names.option, f"{ours}={theirs}", why)


def _has_foreign(documents: object) -> bool:
    """Whether documents are written as another tool writes them."""
    return isinstance(documents, list) and any(map(is_foreign, documents))


def _read(row: Mapping[str, Any], shape: Shape, cells: bool) -> dict[str, Any]:
    """Bring a row into the form of CALLS; fields that are none of a call's stay as they are.

    Raises:
        InputError: a field is missing, or holds what cannot be read as such.
    """
    rest = dict(row)
    found: dict[str, Any] = {}
    for ours, way in shape.paths.items():
        value = _take(rest, way)
        if value is _ABSENT:
            value = _take(dict(row), way)  # a field that is mapped twice
        if value is not _ABSENT:
            found[ours] = value
        elif ours in REQUIRED:
            why = f"is missing; the row has {listed([str(name) for name in row])}"
            raise InputError(why, field=".".join(way))
    if shape.name == "langsmith":
        rest = {name: held for name, held in rest.items() if name not in _NOISE}
    call: dict[str, Any] = {}
    for ours, value in found.items():
        _put(call, ours, value, shape.paths[ours], found)
    for ours in REQUIRED:
        if ours not in call:
            raise InputError("is missing: the messages have none", field=ours)
    if "document_ids" in found:
        call["documents"] = named_ids(
            call["documents"], found["document_ids"], ".".join(shape.paths["document_ids"])
        )
    return {**(json_part(rest) if cells else rest), **call}


def _put(
    call: dict[str, Any], ours: str, value: Any, way: tuple[str, ...], found: Mapping[str, Any]
) -> None:
    """Put a value into the call that is being made."""
    where = ".".join(way)
    if ours == "question" and (messages := is_messages(value)):
        call |= _of_messages(messages, where, found)
    elif ours == "documents" and way == (RUNS,):
        call[ours] = documents_from(_retrieved(value), where)
    elif ours in _READERS and not (ours in call and value is None):
        read = _READERS[ours](value, where)
        if read is not None or ours in REQUIRED:
            call[ours] = read


def _of_messages(messages: list[Any], where: str, found: Mapping[str, Any]) -> dict[str, Any]:
    held = conversation(messages, where, answered="response" not in found)
    call: dict[str, Any] = {"question": held.question, "history": held.history}
    if "response" not in found:
        call["response"] = held.response
    if "documents" not in found:
        call["documents"] = held.tools
    return call


def _id_from(value: object, where: str) -> object:
    return None if value == "" else value


def _metadata_from(value: object, where: str) -> object:
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return object_in(value) or {"metadata": value}  # a column of texts
    return value  # the record refuses anything but an object


_READERS: Mapping[str, Callable[[object, str], object]] = {
    "question": lambda value, where: text_from(value, where) or "",
    "documents": documents_from,
    "response": text_from,
    "reference": lambda value, where: text_from(value, where) or None,
    "id": _id_from,
    "history": turns_from,
    "relevant_ids": ids_from,
    "metadata": _metadata_from,
}

_ABSENT: Any = object()


def _take(rest: dict[str, Any], way: tuple[str, ...]) -> Any:
    """Take a value out of a row, whose nested objects are copied first."""
    name, *below = way
    if name not in rest:
        return _ABSENT
    if not below:
        return rest.pop(name)
    inner = dict(object_in(rest[name]))
    value = _take(inner, tuple(below))
    if value is not _ABSENT:
        if inner:
            rest[name] = inner
        else:
            del rest[name]
    return value


def _retrieved(runs: object) -> list[Any]:
    """Collect what the outermost retrievers below a run returned."""
    found: list[Any] = []
    for run in runs if isinstance(runs, list | tuple) else ():
        read = run.get if isinstance(run, Mapping) else lambda name, run=run: getattr(run, name, 0)
        if read("run_type") == "retriever":
            held = object_in(read("outputs")).get("documents")
            found += held if isinstance(held, list | tuple) else ()
        else:
            found += _retrieved(read(RUNS))
    return found
