"""Paths to values in a row: a name for each level, through objects, lists of them, and cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rag_eval_integrations.errors import InputError
from rag_eval_integrations.traces._values import SENTENCES, items_in, object_in

FieldPath = tuple[str, ...]
"""The path to a value in a row, a name for each level."""
FieldPaths = dict[str, FieldPath]
"""Field of a call, or another name → the path to its value."""

LONGEST_NAME = 100
"""Characters of a name that is taken for what it stands beside, and shown."""

ABSENT: Any = object()
"""Stands for the value of a field that a row lacks."""


def folded(name: str) -> str:
    """Fold what spellings of one name differ in: case, spaces, underscores and hyphens."""
    return re.sub(r"[\s_-]+", "", name[:LONGEST_NAME]).lower()


def path_to(value: Any, name: str) -> FieldPath | None:
    """Return the path to a field by its name, which may be dotted; None when the row lacks it.

    `a.b` is `b` inside of `a`, or of every item of the list `a`. Names may hold dots themselves, as
    in a table with the column `outputs.answer`.
    """
    fields: dict[str, Any] = {}
    for item in reversed(items_in(value) or [value]):
        fields.update(object_in(item))
    if name in fields:
        return (name,)
    for dot in re.finditer(r"\.", name):
        head = name[: dot.start()]
        if head in fields:
            below = path_to(fields[head], name[dot.end() :])
            return None if below is None else (head, *below)
    return None


def value_at(value: Any, path: Sequence[str], place: str) -> Any:
    """Return the value at a path in a row: of a list on the path, the values of all of its items.

    Raises:
        InputError: an item lacks it; names the field by its place.
    """
    if not path:
        return value
    items = items_in(value)
    if items is None:
        inside = object_in(value)
        return value_at(inside[path[0]], path[1:], place) if path[0] in inside else ABSENT
    values: list[Any] = []
    for number, item in enumerate(items):
        inner = value_at(item, path, place)
        if inner is ABSENT:
            raise InputError(f"is missing in item {number}", field=place)
        # A list of sentences is one text; any other list holds several values.
        values += inner if isinstance(inner, list) and path[-1] != SENTENCES else [inner]
    return values


def remove(rest: dict[str, Any], path: Sequence[str]) -> None:
    """Remove the value at a path from a row; a list on the path goes whole.

    Objects on the path are copied first.
    """
    name, *below = path
    inner = dict(object_in(rest.get(name))) if below else {}
    if inner:
        remove(inner, below)
    if inner:
        rest[name] = inner
    else:
        rest.pop(name, None)
