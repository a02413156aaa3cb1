"""Objects and values that JSON has no form for: numpy, pandas, dates, pydantic models, dataclasses.

Objects are read by attribute; nothing of their packages is imported.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

_MOST_DEEP = 64


def attributes(item: object) -> dict[str, Any] | None:
    """Return an object's fields: of a pydantic model, a dataclass, or any object with `__dict__`.

    None for an object without any.
    """
    fields = getattr(type(item), "model_fields", None) or getattr(
        type(item), "__dataclass_fields__", None
    )
    if isinstance(fields, Mapping):
        return {name: getattr(item, name, None) for name in fields if name[:1] != "_"}
    held = getattr(item, "__dict__", None)
    if not isinstance(held, dict):
        return None
    return {name: value for name, value in held.items() if name[:1] != "_"} or None


_GONE: Any = object()


def json_part(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the part of an object that JSON has a form for; dates as text, NaN as null."""
    found = plain(value, keep=False)
    assert isinstance(found, dict)
    return found


def plain(value: Any, *, keep: bool = True, depth: int = 0) -> Any:
    """Bring a value of a data frame or of an object into the form of JSON.

    Args:
        value: the value; numpy's arrays and numbers, dates, `NaN` and `NaT` are understood.
        keep: whether to leave other objects as they are, for who knows them; else drop them.
        depth: of nesting.
    """
    if value is None or isinstance(value, str | bool | int):
        return value if type(value).__module__ == "builtins" else _unboxed(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if depth > _MOST_DEEP:
        return value if keep else None
    if isinstance(value, Mapping):
        made = {str(key): plain(held, keep=keep, depth=depth + 1) for key, held in value.items()}
        return {key: held for key, held in made.items() if held is not _GONE}
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        found = [plain(item, keep=keep, depth=depth + 1) for item in items]
        return [item for item in found if item is not _GONE]
    return _plain_object(value, keep, depth)


def _plain_object(value: Any, keep: bool, depth: int) -> Any:
    if isinstance(value, datetime.date | datetime.time):
        return None if value != value else value.isoformat()  # NaT is not itself
    if isinstance(value, Decimal):
        return float(value) if value.is_finite() else None
    if isinstance(value, UUID):
        return str(value)
    module = type(value).__module__.partition(".")[0]
    if module in ("numpy", "polars", "pyarrow") and hasattr(value, "tolist"):
        return plain(value.tolist(), keep=keep, depth=depth + 1)
    if module == "polars" and hasattr(value, "to_list"):
        return plain(value.to_list(), keep=keep, depth=depth + 1)
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    return value if keep else _GONE


def _unboxed(value: Any) -> Any:
    """Return the plain value of an enumeration's member, or of numpy's text."""
    for kind in (bool, str, int):
        if isinstance(value, kind):
            return kind.__str__(value) if kind is str else kind(value)
    return value
