"""What all records share: frozen, closed, no NaN, and a line of JSON each way."""

from __future__ import annotations

import json
import math
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    JsonValue,
    PlainValidator,
    ValidationError,
    ValidationInfo,
)

from rag_eval_integrations.errors import InputError

SCHEMA = 1
"""Version of the file formats; every line of every file carries it as `"schema"`."""


if TYPE_CHECKING:
    _Base = BaseModel
else:
    # Hidden from type checkers, which know no metaclass that is computed.

    class _Positional(type(BaseModel)):
        """Lets a record be made as it is written in the docs: `Document("text", id="7")`."""

        def __call__(cls, *values: object, **fields: object) -> Any:
            if values:
                names = list(cls.model_fields)[: len(values)]
                if len(names) < len(values):
                    raise TypeError(f"{cls.__name__} takes at most {len(names)} values by position")
                twice = fields.keys() & set(names)
                if twice:
                    raise TypeError(f"{cls.__name__} got {min(twice)!r} by position and by name")
                fields.update(zip(names, values, strict=True))
            return super().__call__(**fields)

    class _Base(BaseModel, metaclass=_Positional):
        """A model whose fields may be given by position."""


class Record(_Base):
    """A frozen value that survives JSON unchanged.

    Unknown fields, infinities and NaN are refused with the field's name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    def __copy__(self) -> Self:
        # pydantic copies cached properties along; after `model_copy(update=…)` they would be stale.
        copied = super().__copy__()
        for name in [name for name in copied.__dict__ if name not in type(self).model_fields]:
            del copied.__dict__[name]
        return copied


_MAX_DEPTH = 64  # deeper than any real metadata, far from Python's recursion limit


def _json_copy(value: object, path: str, depth: int = 0) -> JsonValue:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{path} is {value}, which JSON cannot hold")
    if value is None or isinstance(value, str | int | float):
        return value
    if depth == _MAX_DEPTH:
        raise ValueError(f"{path} is nested more than {_MAX_DEPTH} deep")
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"{path} has a key that is no string: {shown(key)}")
        return {key: _json_copy(item, f"{path}.{key}", depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_copy(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]
    raise ValueError(f"{path} is no JSON value: {shown(value)}")


def _json_object(value: object, info: ValidationInfo) -> JsonValue:
    if not isinstance(value, dict):
        raise ValueError("should be an object with string keys")
    return _json_copy(value, info.field_name or "value")


def json_copy(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Copy a record's JSON object for another record, so that neither can change the other's.

    Raises:
        ValueError: names what was put into it since that is no JSON value.
    """
    return {key: _json_copy(item, key) for key, item in value.items()}


JsonObject = Annotated[dict[str, JsonValue], PlainValidator(_json_object)]
"""A JSON object with finite numbers; copied, so a dict that the app goes on to change does not
change the record."""

R = TypeVar("R", bound=Record)

_new = object.__new__
_set = object.__setattr__


def trusted(kind: type[R], /, **fields: Any) -> R:
    """Make a record without validating it: of fields that this library made and knows to be valid.

    Tuples, not lists; floats, not integers; nothing mutable that somebody else holds. Fields with
    a plain default may be left out, all others must be given. Labels, scores and evaluation of a
    call take 0.07 ms so and 0.14 ms validated. Tests hold what is made so equal to the validated
    record.
    """
    record = _new(kind)
    _set(record, "__dict__", {**_defaults(kind), **fields})
    _set(record, "__pydantic_fields_set__", set(fields))
    _set(record, "__pydantic_extra__", None)
    _set(record, "__pydantic_private__", None)
    return record


@cache
def _defaults(kind: type[Record]) -> dict[str, Any]:
    """Every field of a kind in order, as `model_dump` and JSON keep it, with its plain default."""
    return {name: field.default for name, field in kind.model_fields.items()}


def field_path(location: tuple[int | str, ...]) -> str:
    """Render a pydantic error location as users write it: `documents[2].text`."""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def input_error(error: ValidationError) -> InputError:
    """Say a validation error's first complaint as one sentence that names the field."""
    first = error.errors(include_url=False)[0]
    location = first["loc"]
    if first["type"] == "missing":
        why = "is missing"
    elif first["type"] == "extra_forbidden":
        why = "is not a field of this record"
    else:
        message = first["msg"].removeprefix("Value error, ")
        why = f"{message}, not {shown(first['input'])}"
    others = error.error_count() - 1
    return InputError(
        why + (f" (and {others} more)" if others else ""), field=field_path(location) or None
    )


def shown(value: object) -> str:
    """Show a value in an error message: at most 60 characters, quotes and controls escaped."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def to_line(record: Record, **extra: JsonValue) -> str:
    """Write a record as one line of JSON, without the line end, with `"schema"` first.

    ASCII only, so no reader can split it at U+2028 or stumble over an encoding.
    """
    # Not pydantic's JSON mode: before 2.13 it replaces lone surrogates in the keys of objects.
    return _ENCODER.encode({"schema": SCHEMA, **extra, **_content(record)})


def _content(record: Record) -> dict[str, Any]:
    """What `model_dump` gives, with the records inside as they are: the encoder comes to them.

    A dump of an evaluation copies every sentence and probability first: 0.06 ms on top of 0.16.
    """
    layout = _layout(type(record))
    if layout is None:
        return record.model_dump()
    fields, computed = layout
    held = record.__dict__
    content = {name: held[name] for name in fields}
    for name in computed:
        content[name] = getattr(record, name)
    return content


@cache
def _layout(kind: type[Record]) -> tuple[list[str], list[str]] | None:
    """Fields and computed fields in a kind's JSON; None for one that has a serializer."""
    decorators = kind.__pydantic_decorators__
    if decorators.model_serializers or decorators.field_serializers:
        return None
    fields = [name for name, field in kind.model_fields.items() if not field.exclude]
    return fields, list(kind.model_computed_fields)


def _plain(value: object) -> object:
    if isinstance(value, Record):
        return _content(value)
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"no JSON for {shown(value)}")


# Records hold no circles: their JSON values are copies (`_json_copy`).
_ENCODER = json.JSONEncoder(
    allow_nan=False, check_circular=False, separators=(",", ":"), default=_plain
)


def parse_object(line: str | bytes) -> dict[str, Any]:
    """Read a line as a JSON object and check its `"schema"`, which is taken out.

    Raises:
        InputError: not UTF-8, not JSON, not an object, NaN or Infinity, or a newer schema.
    """
    try:
        text = line.decode("utf-8-sig") if isinstance(line, bytes) else line
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 at byte {error.start}") from error
    try:
        content = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg} at column {error.colno}") from error
    except RecursionError as error:
        raise InputError("not usable: the JSON is nested too deeply") from error
    except InputError:
        raise
    except ValueError as error:  # a number of more digits than Python converts
        raise InputError(f"not usable: {error}") from error
    if not isinstance(content, dict):
        raise InputError(f"not a JSON object, but {shown(content)}")
    schema = content.pop("schema", SCHEMA)
    if schema != SCHEMA:
        raise InputError(f"this version reads schema {SCHEMA}, not {shown(schema)}", field="schema")
    return content


def _refuse_constant(name: str) -> float:
    raise InputError(f"not JSON: {name} is no number")


def from_object(kind: type[R], content: object) -> R:
    """Validate a parsed JSON object as a record.

    Raises:
        InputError: names the field and the value.
    """
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise input_error(error) from error


def from_line(kind: type[R], line: str | bytes) -> R:
    """Read one line of JSON as a record; the inverse of `to_line`.

    Raises:
        InputError: names the field and why.
    """
    return from_object(kind, parse_object(line))
