"""The base of all records: frozen, closed, no NaN, and a line of JSON each way."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PlainValidator,
    ValidationError,
    ValidationInfo,
)

from rag_eval_integrations._contain import contained, words_of
from rag_eval_integrations.errors import InputError, safe_text

SCHEMA = 1
"""Version of the file formats, which every line of every file carries as `"schema"`; that of
EVALS files is `EVALS_SCHEMA`."""

_SURROGATES = re.compile("[\ud800-\udfff]")


def whole_text(text: str) -> str:
    """Replace every lone surrogate by U+FFFD, so that the text has a UTF-8 form.

    Scraped documents and cut replies hold lone surrogates. One character replaces one, so offsets
    stay.
    """
    return text if is_whole(text) else _SURROGATES.sub("\ufffd", text)


def is_whole(text: str) -> bool:
    """Return whether a text has a UTF-8 form: whether it holds no lone surrogate."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


Text = Annotated[str, AfterValidator(whole_text)]
"""The text of a record: lone surrogates become U+FFFD where it enters."""


class Record(BaseModel):
    """A frozen value that survives JSON unchanged.

    Unknown fields, infinities and NaN are refused with the field's name.
    """

    writes_schema: ClassVar[bool] = False
    """Whether the record's own JSON says its schema; `to_line` adds it to all others."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    if not TYPE_CHECKING:  # who knows the fields' types from pydantic's

        def __init__(self, /, *values: object, **fields: object) -> None:
            """Make a record from its fields, by position or by name.

            Raises:
                InputError: names the field and the value that cannot be used.
            """
            if values:
                kind, names = type(self).__name__, list(type(self).model_fields)[: len(values)]
                if len(names) < len(values):
                    raise TypeError(f"{kind} takes at most {len(names)} values by position")
                if twice := fields.keys() & set(names):
                    raise TypeError(f"{kind} got {min(twice)!r} by position and by name")
                fields.update(zip(names, values, strict=True))
            try:
                super().__init__(**fields)
            except ValidationError as error:
                refused = input_error(error)
            else:
                return
            raise refused  # outside of `except`: pydantic's own text says the same, at length

        # Tells pydantic that it need not call this for every record that it reads.
        __init__.__pydantic_base_init__ = True

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """List the fields that a `repr` shows: those that differ from their default."""
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if value != field.get_default(call_default_factory=True):
                yield name, value

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy the record, with some fields changed; only their lone surrogates are looked at.

        Nothing is validated, and cached properties are worked out anew.
        """
        if update:
            update = {
                name: whole_text(value) if isinstance(value, str) else value
                for name, value in update.items()
            }
        copied = super().model_copy(update=update, deep=deep)
        if update:
            # pydantic copies cached properties along, which may not be true any more.
            for name in copied.__dict__.keys() - type(self).model_fields.keys():
                del copied.__dict__[name]
        return copied


_MAX_DEPTH = 64  # deeper than any real metadata, far from Python's recursion limit
_MAX_BITS = 13_000  # 3,900 digits: Python and pydantic read no more than 4,300

MOST = 2**63 - 1
"""The largest count that a record holds, as in every database."""
Count = Annotated[int, Field(ge=0, le=MOST)]
"""A whole number from 0 that every reader of the files can hold."""


def _json_copy(value: object, path: str, depth: int = 0) -> JsonValue:
    """Copy a JSON value; refuse what JSON cannot hold, naming the path.

    Tuples become lists, and lone surrogates U+FFFD.

    Raises:
        ValueError: not a JSON value, NaN or infinite, nested more than 64 deep, or a number of more
            than 3,900 digits.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{path} is {value}, which JSON cannot hold")
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        raise ValueError(f"{path} is a number of more than 3,900 digits, which cannot be read back")
    if value is None or isinstance(value, int | float):
        return value
    if depth == _MAX_DEPTH:
        raise ValueError(f"{path} is nested more than {_MAX_DEPTH} deep")
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"{path} has a key that is not a string: {excerpt(key)}")
        return {
            whole_text(key): _json_copy(item, f"{path}.{key}", depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_json_copy(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]
    raise ValueError(f"{path} is not a JSON value: {excerpt(value)}")


def _json_object(value: object, info: ValidationInfo) -> JsonValue:
    """Copy a JSON object; refuse anything else with a `ValueError`."""
    if not isinstance(value, dict):
        raise ValueError("should be an object with string keys")
    return _json_copy(value, info.field_name or "value")


def json_copy(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Copy a record's JSON object for another record, so that neither can change the other's.

    Raises:
        ValueError: names what was put into it since that is not a JSON value.
    """
    return {whole_text(key): _json_copy(item, key) for key, item in value.items()}


JsonObject = Annotated[
    dict[str, JsonValue], PlainValidator(_json_object, json_schema_input_type=dict[str, Any])
]
"""A JSON object with finite numbers; copied, so a dict that the app goes on to change does not
change the record."""

R = TypeVar("R", bound=Record)


# --- Records made without validation, where the caller made every field itself


_new = object.__new__
# The slots in which pydantic keeps a record. `object.__setattr__` looks each up by its name, and
# makes a record at 6,500 instructions instead of 4,100.
_set_content, _set_fields, _set_extra, _set_private = [
    BaseModel.__dict__[name].__set__
    for name in (
        "__dict__",
        "__pydantic_fields_set__",
        "__pydantic_extra__",
        "__pydantic_private__",
    )
]


def trusted(kind: type[R], content: dict[str, Any], fields: set[str]) -> R:
    """Make a record from complete, valid fields without validating them.

    The caller has made every value JSON-safe and finite, and tests check that the results equal
    validated records. It stays because it pays: in a running app, where the code of the validation
    is cold, plain constructors add 36 to 57 µs to a LangChain call and 59 to 76 µs to a LlamaIndex
    call (thread CPU, both trees in turns in one run: 107 against 143 µs, and 168 against 244), of
    the 150 µs that capture may add; `model_construct` saves little of that.

    `content` is in the order of the fields, as it is in the record's JSON.
    """
    record = _new(kind)
    _set_content(record, content)
    _set_fields(record, fields)
    _set_extra(record, None)
    _set_private(record, None)
    return record


# --- Refusals in words


def field_path(location: tuple[int | str, ...]) -> str:
    """Render a pydantic error location as users write it: `documents[2].text`."""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def input_error(error: ValidationError) -> InputError:
    """Turn a validation error's first complaint into one sentence that names the field.

    It counts the other complaints, and hints at a field that is probably misnamed. An `InputError`
    behind the first complaint is returned as it is.
    """
    every = error.errors(include_url=False)
    first = every[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InputError):
        return cause
    if first["type"] == "missing":
        missing = [field_path(each["loc"]) for each in every if each["type"] == "missing"]
        extra = [field_path(each["loc"]) for each in every if each["type"] == "extra_forbidden"]
        rename = rename_hint(extra, missing)
        if not rename and missing[0] == "response":
            rename = "write None (in JSON null) where there is no answer"
        why = f"is missing; {rename}" if rename else "is missing"
    elif first["type"] == "extra_forbidden":
        why = "is not a field of this record"
    else:
        why = f"{first['msg'].removeprefix('Value error, ')}, not {excerpt(first['input'])}"
    others = f" (and {len(every) - 1} more)" if len(every) > 1 else ""
    return InputError(f"{why}{others}", field=field_path(first["loc"]) or None)


NAMES: Mapping[str, tuple[str, ...]] = {
    "question": (
        "question",
        "query",
        "input",
        "user_input",
        "prompt",
        "user_query",
        "query_str",
        "messages",
    ),
    "documents": (
        "documents",
        "contexts",
        "context",
        "retrieved_documents",
        "retrieved_contexts",
        "retrieved_context",
        "retrieval_context",
        "source_documents",
        "source_nodes",
        "retrieved_docs",
        "docs",
        "chunks",
        "passages",
    ),
    "response": (
        "response",
        "answer",
        "output",
        "actual_output",
        "generated_answer",
        "result",
        "prediction",
        "completion",
    ),
    "reference": (
        "reference",
        "reference_answer",
        "expected",
        "expected_output",
        "expected_answer",
        "expected_response",
        "ground_truth",
        "ground_truths",
        "gold_answer",
        "gt_answer",
    ),
    "relevant_ids": ("relevant_ids", "reference_context_ids"),
    "document_ids": ("document_ids", "retrieved_context_ids"),
    "history": ("history", "chat_history"),
    "earlier": ("earlier",),
    "id": ("id",),
    "metadata": ("metadata",),
}
"""Names that tools give to the fields of a call, our own first. A row with two of them for one
field is ambiguous, unless one is our own. Other spellings (`Ground Truth`, `sourceDocuments`) count
where no name is exact."""


def rename_hint(given: Iterable[str], missing: Iterable[str]) -> str:
    """Suggest renames of given fields to missing ones: "write `query` as `question`".

    Names of other tools count, and similar spellings. Empty if there is none.
    """
    given, pairs = list(given), []
    for name in missing:
        # A call's question is a text, which only readers of files make of messages.
        known = {*NAMES.get(name, ())} - {"messages"}
        other = [field for field in given if field.lower() in known]
        other += get_close_matches(name, given[:100], 1, 0.8)
        if other:
            pairs.append(f"`{other[0][:40]}` as `{name}`")
    return f"write {', '.join(pairs)}" if pairs else ""


def is_finite(number: float) -> bool:
    """Tell whether a number has a finite float: neither NaN nor an integer of 400 digits has."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def is_amount(value: object, *, or_zero: bool = False) -> bool:
    """Tell whether a value is a finite number above 0, or from 0; a bool is not."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not is_finite(value):
        return False
    return value > 0 or (or_zero and value == 0)


def excerpt(value: object) -> str:
    """Return the `repr` of a value for an error message, cut to 60 characters."""
    text = safe_text(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def to_line(record: Record) -> str:
    """Write a record as one line of JSON, without the line end, with `"schema"` first.

    ASCII only: no reader can cut it at U+2028 or stumble over an encoding.
    """
    if record.writes_schema:
        return record.model_dump_json()
    return f'{{"schema":{SCHEMA},{record.model_dump_json(ensure_ascii=True)[1:]}'


def not_utf_8(error: UnicodeDecodeError) -> InputError:
    """Make the error of a text in another encoding."""
    why = f"not UTF-8 at byte {error.start}; save it as UTF-8, or convert it with iconv"
    return InputError(why)


def parse_object(line: str | bytes) -> dict[str, Any]:
    """Read a line as a JSON object, its `"schema"` included.

    A byte order mark is dropped.

    Raises:
        InputError: not UTF-8, not JSON, not an object, NaN or Infinity, too deep, too many digits.
    """
    try:
        text = line.decode("utf-8-sig") if isinstance(line, bytes) else line
    except UnicodeDecodeError as error:
        raise not_utf_8(error) from error
    try:
        content = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg} at column {error.colno}") from error
    except RecursionError as error:
        raise InputError("not usable: the JSON is nested too deeply") from error
    except InputError:
        raise
    except ValueError as error:  # a number of more digits than Python converts
        raise InputError("not usable: a number has more digits than Python reads") from error
    if not isinstance(content, dict):
        raise InputError(f"not a JSON object, but {excerpt(content)}")
    return content


def check_schema(content: dict[str, Any]) -> None:
    """Check `"schema"` in a line of any file but EVALS, and remove it; it may be absent.

    Raises:
        InputError: another version's.
    """
    schema = content.get("schema")
    if not isinstance(schema, int | float):  # pandas makes floats of a column with a gap
        return  # another tool's field, such as a table's schema
    if schema != SCHEMA:
        raise InputError(
            f"this version reads schema {SCHEMA}, not {excerpt(schema)}", field="schema"
        )
    del content["schema"]


def _refuse_constant(name: str) -> float:
    """Refuse NaN and Infinity, which JSON does not have."""
    raise InputError(f"not JSON: {name} is not a number")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
_SPACE = re.compile(r"[ \t\r\n]*")


def objects_in(text: str) -> Iterator[Any]:
    """Yield the objects of a JSON array, or one after the other; an error for another value.

    Raises:
        JSONDecodeError: the text breaks off, or goes on where it should end.
    """

    def behind_space(place: int) -> int:
        """Return the position after white space."""
        match = _SPACE.match(text, place)
        assert match is not None
        return match.end()

    place = behind_space(0)
    in_array = text.startswith("[", place)
    place = behind_space(place + in_array)
    more = place < len(text) and not (in_array and text[place] == "]")
    while more:
        try:
            row, end = _DECODER.raw_decode(text, place)
        except InputError as error:  # a constant, which spoils this row alone
            row, end = _without_nan(text, place, error)
        if not isinstance(row, dict | InputError):
            row = InputError(f"not a JSON object, but {excerpt(row)}")
        yield row
        place = behind_space(end)
        more = text.startswith(",", place) if in_array else place < len(text)
        place = behind_space(place + (more and in_array))
    if in_array and not text.startswith("]", place):
        raise json.JSONDecodeError("Expecting ',' delimiter", text, place)
    if behind_space(place + in_array) < len(text):
        raise json.JSONDecodeError("Extra data", text, place + in_array)


def _without_nan(text: str, place: int, error: InputError) -> tuple[Any, int]:
    """Decode an object with null for each field that is NaN; return it and its end.

    `error` is returned in place of an object with another constant, or with NaN further inside.
    """
    constants: list[float] = []

    def constant(name: str) -> float:
        constants.append(float(name))
        return constants[-1]

    row, end = json.JSONDecoder(parse_constant=constant).raw_decode(text, place)
    missing = [name for name in row if row[name] != row[name]] if isinstance(row, dict) else []
    is_row = len(missing) == len(constants)
    return {**row, **dict.fromkeys(missing)} if is_row else error, end


@contextmanager
def as_input_error() -> Iterator[None]:
    """Turn every exception in the `with` block into an `InputError`."""
    try:
        with contained:
            yield
    except InputError:
        raise
    except ValidationError as error:
        raise input_error(error) from error
    except Exception as error:  # a number or a nesting beyond Python's limits, a user's object
        raise InputError(f"not usable: {type(error).__name__}: {words_of(error)}") from error


def from_object(kind: type[R], content: object) -> R:
    """Validate a parsed JSON object as a record.

    Raises:
        InputError: names the field and the value.
    """
    with as_input_error():
        return kind.model_validate(content)


def from_line(kind: type[R], line: str | bytes) -> R:
    """Read one line of JSON as a record; the inverse of `to_line`.

    Raises:
        InputError: names the field and why.
        SchemaError: another version's line of EVALS.
    """
    content = parse_object(line)
    if not kind.writes_schema:
        check_schema(content)
    return from_object(kind, content)
