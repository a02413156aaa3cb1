"""Snapshots of a host's documents, and the `RagCall` that is made of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from pydantic import JsonValue

from rag_eval_integrations.records import Capture, Document, DocumentsFrom, RagCall, Record


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


# One set for all records of a kind: pydantic copies it before it changes it.
_CALL_FIELDS = set(RagCall.model_fields)
_CAPTURE_FIELDS = set(Capture.model_fields)
_DOCUMENT_FIELDS = set(Document.model_fields)

_new = object.__new__
_set = object.__setattr__


def _documents(snapshots: Sequence[Seen]) -> tuple[Document, ...]:
    made = []
    for text, name, metadata, score in snapshots:
        fields = {"text": text, "id": name, "metadata": metadata, "score": score}
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
