"""Snapshots of a host's documents, and the `RagCall` that is made of them."""

from __future__ import annotations

import numbers
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from pydantic import JsonValue

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import (
    Capture,
    Document,
    DocumentsFrom,
    RagCall,
    Record,
    whole_text,
)

# --- What a host gives, as JSON values


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
    if value is None or kind is bool:
        return value  # type: ignore[return-value]  # narrowed by `kind`, which mypy cannot see
    if isinstance(value, str):
        # An enum's own __str__ would give its name.
        return whole_text(value if kind is str else str.__str__(value))
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
        if kind is str:
            value = whole_text(value)  # type: ignore[arg-type]  # narrowed by `kind`
        elif not (kind is float and isfinite(value)):  # type: ignore[arg-type]  # the same
            value = json_value(value, depth)
        copied[whole_text(key) if type(key) is str else _shown(key)] = value  # type: ignore[assignment]  # the same
    return copied


def _json_number(value: numbers.Real) -> JsonValue:
    if isinstance(value, numbers.Integral):
        whole = int(value)
        return whole if whole.bit_length() <= _MAX_BITS else f"{whole.bit_length()}-bit integer"
    number = float(value)
    return number if isfinite(number) else str(number)


def _shown(value: object, render: Callable[[], object] | None = None) -> str:
    try:
        return whole_text(str(value if render is None else render())[:_MAX_SHOWN])
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


class Seen(NamedTuple):
    """A snapshot of a host's document: the host may change its own object afterwards."""

    text: str
    id: str | None
    metadata: dict[str, JsonValue]
    score: float | None


class Context(NamedTuple):
    """The documents that the model saw, and how that is known."""

    documents: Sequence[Seen]
    source: DocumentsFrom
    unused: Sequence[Seen]
    """Retrieved, but never in the prompt."""


def to_call(context: Context, capture: dict[str, Any], **fields: Any) -> RagCall:
    """Make the record of a call, with every field of `Capture` and `RagCall` as it is stored."""
    documents, source, unused = context
    _make_whole(capture)
    _make_whole(fields)
    capture["documents_from"] = source
    capture["not_in_prompt"] = _documents(unused) if unused else ()
    content = {
        "question": "",
        "documents": _documents(documents),
        "response": None,
        "id": "",  # told when it is asked for
        "reference": None,
        "metadata": {},
        "capture": _trusted(Capture, capture, _CAPTURE_FIELDS),
        "history": (),
        "started_at": None,
        "app": None,
        "sentences": None,
        **fields,
    }
    return _trusted(RagCall, content, _CALL_FIELDS)


def _make_whole(fields: dict[str, Any]) -> None:
    """Replace lone surrogates, as validation would, in a record's texts and tuples of texts."""
    for name, value in fields.items():
        if isinstance(value, str):
            fields[name] = whole_text(value)
        elif value and type(value) is tuple:
            fields[name] = tuple([whole_text(v) if isinstance(v, str) else v for v in value])


# One set for all records of a kind: pydantic copies it before it changes it.
_CALL_FIELDS = set(RagCall.model_fields)
_CAPTURE_FIELDS = set(Capture.model_fields)
_DOCUMENT_FIELDS = set(Document.model_fields)

_new = object.__new__
_set = object.__setattr__


def _documents(snapshots: Sequence[Seen]) -> tuple[Document, ...]:
    made = []
    for text, name, metadata, score in snapshots:
        fields = {
            "text": whole_text(text),
            "id": name if name is None else whole_text(name),
            "metadata": metadata,
            "score": score,
        }
        made.append(_trusted(Document, fields, _DOCUMENT_FIELDS))
    return tuple(made)


R = TypeVar("R", bound=Record)


def _trusted(kind: type[R], content: dict[str, Any], fields: set[str]) -> R:
    """Make a record of complete, valid fields without validating them.

    Everything that comes here was made JSON-safe and finite above. In a running app, where its
    code is cold, validation was a third of what capture adds to a call (180 of 490 µs on a loaded
    machine); pydantic's own `model_construct` saves little of it. A test holds the result equal
    to the validated record.
    """
    record = _new(kind)
    _set(record, "__dict__", content)
    _set(record, "__pydantic_fields_set__", fields)
    _set(record, "__pydantic_extra__", None)
    _set(record, "__pydantic_private__", None)
    return record


def distinct(documents: Iterable[Seen]) -> list[Seen]:
    """Drop documents whose text was there before; the first keeps its place."""
    first: dict[str, Seen] = {}
    for document in documents:
        first.setdefault(document.text, document)
    return list(first.values())


# --- Open calls, within bounds


class Timed(Protocol):
    """A call that knows when it began (`time.monotonic`)."""

    began: float


C = TypeVar("C", bound=Timed)


class OpenCalls(Generic[C]):
    """Calls in flight by their root's key: at most `max_open`, none older than `ttl` seconds.

    What is too many or too old is dropped and counted: an app may keep a stream for ever
    without reading it, and no event tells.
    """

    def __init__(self, max_open: int, ttl: float) -> None:
        # Both come from users, whose type checker may be asleep: bool is an int, NaN a float.
        if type(max_open) is not int or max_open < 1:
            raise ConfigurationError("max_open", max_open, "should be a whole number of at least 1")
        if type(ttl) not in (int, float) or not ttl > 0:
            raise ConfigurationError("ttl", ttl, "should be a number of seconds above 0")
        self.dropped = 0
        """Calls that never ended, were too many, or too old."""
        self._max_open = max_open
        self._ttl = ttl
        self._calls: dict[object, C] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, key: object, call: C) -> list[C]:
        """Open a call; returns the calls that had to be dropped for it."""
        calls = self._calls
        calls[key] = call
        # Nearly always the call is the only one, or among few young ones.
        return self.expire(call.began) if len(calls) > 1 else []

    def holds(self, key: object, call: C) -> bool:
        """Whether this very call is open."""
        return self._calls.get(key) is call

    def close(self, key: object) -> C | None:
        """Take a call out; None when it is not open (any more), so that each is taken once."""
        return self._calls.pop(key, None)

    def expire(self, now: float | None = None) -> list[C]:
        """Drop what is too many or too old, oldest first; returns what was dropped."""
        oldest_allowed = (time.monotonic() if now is None else now) - self._ttl
        out: list[C] = []
        while self._calls:
            key, oldest = next(iter(self._calls.items()))
            if len(self._calls) <= self._max_open and oldest.began >= oldest_allowed:
                break
            # A garbage collection in between may have closed it from a stream's finaliser.
            if (call := self._calls.pop(key, None)) is not None:
                out.append(call)
                self.dropped += 1
        return out
