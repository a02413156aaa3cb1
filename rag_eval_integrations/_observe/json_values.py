"""What a host gives, as JSON values."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from pydantic import JsonValue

_MAX_DEPTH = 16  # the records refuse more than 64; real metadata is 2 or 3 deep
_MAX_SHOWN = 200  # characters kept of an object that is no JSON value
_MAX_PLAIN = 2**63  # the check against `numbers.Real` costs ten times as much as this one
_MAX_BITS = 8_192  # json.dumps refuses integers of more than 4,300 digits


def json_value(value: object, depth: int = 0) -> JsonValue:
    """Copy a value of the host as a JSON value; never fails, never keeps a reference.

    Datetimes become ISO strings, NaN and infinities their names, keys strings; what is no JSON
    value becomes the first 200 characters of its `str()`, or its type's name where that fails.
    """
    kind = type(value)
    if value is None or kind is str or kind is bool:
        return value  # type: ignore[return-value]  # narrowed by `kind`, which mypy cannot see
    if isinstance(value, str):
        return str.__str__(value)  # an enum's own __str__ would give its name
    if kind is int and -_MAX_PLAIN < value < _MAX_PLAIN:  # type: ignore[operator]  # the same
        return value  # type: ignore[return-value]  # the same
    if isinstance(value, numbers.Real):  # also numpy's scalars, without importing numpy
        return _json_number(value)
    if depth < _MAX_DEPTH:
        if isinstance(value, Mapping):
            return json_object(value, depth + 1)
        if isinstance(value, list | tuple | set | frozenset):
            return [json_value(item, depth + 1) for item in value]
    isoformat = getattr(value, "isoformat", None)
    if callable(isoformat):
        return _shown(value, isoformat)
    return _shown(value)


def json_object(mapping: Mapping[Any, object], depth: int = 0) -> dict[str, JsonValue]:
    """Copy a mapping as a JSON object; see `json_value`."""
    copied: dict[str, JsonValue] = {}
    for key, value in mapping.items():
        kind = type(value)
        if kind is not str and not (kind is float and isfinite(value)):  # type: ignore[arg-type]  # narrowed by `kind`
            value = json_value(value, depth)
        copied[key if type(key) is str else _shown(key)] = value  # type: ignore[assignment]  # the same
    return copied


def _json_number(value: numbers.Real) -> JsonValue:
    if isinstance(value, numbers.Integral):
        whole = int(value)
        return whole if whole.bit_length() <= _MAX_BITS else f"{whole.bit_length()}-bit integer"
    number = float(value)
    return number if isfinite(number) else str(number)


def _shown(value: object, render: Callable[[], object] | None = None) -> str:
    try:
        return str(value if render is None else render())[:_MAX_SHOWN]
    except Exception:  # noqa: BLE001 -- a host's object may do anything in its __str__
        return f"<{type(value).__name__}>"


def finite(value: object) -> float | None:
    """Read a retriever's score; None for anything but a finite number."""
    if value is None:  # nearly always; the check below is slow
        return None
    if type(value) is float:
        return value if isfinite(value) else None
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        number = float(value)
        return number if isfinite(number) else None
    return None
