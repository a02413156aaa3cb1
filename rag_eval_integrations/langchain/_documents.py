"""Stage 1 for LangChain: find documents in the values of events, and copy them.

The values are untyped and read by attribute. Nothing is guessed: a value of an unknown shape holds
no documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rag_eval_integrations.capture._calls import Snapshot, finite, json_object
from rag_eval_integrations.langchain._values import LISTS, plain
from rag_eval_integrations.records import Document

_SCORE_KEYS = ("relevance_score", "score")  # metadata in which rerankers and stores put scores
_MAX_DEPTH = 3
_MAX_KINDS = 1_000
_PARTS: dict[type, Callable[[Any], Sequence[object]] | None] = {}


def may_hold_documents(value: Any) -> bool:
    """Return whether a value may hold documents; fast, since most values cannot."""
    kind = type(value)
    if kind is dict:  # most hold nothing but strings
        for part in value.values():  # noqa: SIM110 -- a generator costs as much as all the rest
            if type(part) is not str:
                return True
        return False
    try:
        return _PARTS[kind] is not None
    except KeyError:
        return _parts_of(kind) is not None


def documents_of(value: object, depth: int = 0) -> Sequence[object]:
    """Find LangChain documents, or `(document, score)` pairs, in an event's value.

    The value may be a list of documents, of pairs, or of dicts with `page_content`; or a dict, a
    list of lists or dicts, a graph's command, a dataclass or a pydantic model that holds such
    lists. A single document is not a retrieval: a chain that is mapped over documents gets them
    one by one.

    Args:
        value: the value.
        depth: levels above this value; values below the third level are not read.
    """
    if isinstance(value, LISTS):
        if not value:
            return ()
        if is_document(value[0]):
            kind = type(value[0])
            return [
                item
                for item in value
                if (type(item) is kind and kind is not tuple and kind is not dict)
                or is_document(item)
            ]
        if not isinstance(value[0], (*LISTS, dict)):
            return ()
    if depth > _MAX_DEPTH or (parts := _PARTS.get(type(value)) or _parts_of(type(value))) is None:
        return ()
    found: Sequence[object] = ()
    for part in parts(value):
        if type(part) is not str and (more := documents_of(part, depth + 1)):
            found = [*found, *more] if found else more
    return found


def single_documents(value: object) -> Sequence[object]:
    """Find documents that are not in a list: the value itself, or its direct parts."""
    if is_document(value):
        return () if isinstance(value, tuple) else [value]
    parts = None if isinstance(value, LISTS) else _PARTS.get(type(value)) or _parts_of(type(value))
    if parts is None:
        return ()
    return [part for part in parts(value) if type(part) is not str and is_document(part)]


def snapshot(document: object, score: object) -> Snapshot:
    """Copy a LangChain document as it is now, with the score beside it, if there is one."""
    return copied(document, *text_and_metadata(document), score)


def document_from(document: object) -> Document:
    """Make the record of a LangChain document."""
    return Document(**snapshot(document, None)._asdict())


def text_and_metadata(document: Any) -> tuple[str, Any]:
    """Return a document's text and metadata: LangChain's own objects, not copies."""
    if type(document) is dict:
        return document["page_content"], document.get("metadata")
    return document.page_content, getattr(document, "metadata", None)


def copied(document: object, text: str, raw: Any, score: object) -> Snapshot:
    """Make the snapshot of a document with this text and metadata."""
    metadata = json_object(raw) if raw else {}
    value = None if score is None else finite(score)
    if value is None and metadata:
        for key in _SCORE_KEYS:
            if value is None and key in metadata:
                value = finite(metadata[key])
    name = _field(document, "id") if type(document) is dict else getattr(document, "id", None)
    return Snapshot(
        text if type(text) is str else plain(text),
        name if name is None or type(name) is str else str(name),
        metadata,
        value,
    )


def is_document(item: object) -> bool:
    """Return whether an object is a document, or a pair of a document and a score."""
    if isinstance(item, tuple):
        return len(item) == 2 and not isinstance(item[0], tuple) and is_document(item[0])
    return isinstance(_field(item, "page_content"), str)


def _field(item: object, name: str) -> Any:
    return item.get(name) if type(item) is dict else getattr(item, name, None)


def _parts_of(kind: type) -> Callable[[Any], Sequence[object]] | None:
    """Return the function that lists the parts of such values; None if they hold no lists."""
    parts: Callable[[Any], Any] | None = None
    if issubclass(kind, LISTS):
        parts = _itself
    elif issubclass(kind, dict):
        parts = dict.values
    elif "page_content" in getattr(kind, "__pydantic_fields__", ()):
        parts = _nothing  # a document
    elif hasattr(kind, "__pydantic_fields__") or hasattr(kind, "__dataclass_fields__"):
        # A state, or a command that updates one; not LangChain's own messages and prompts.
        parts = None if kind.__module__.startswith("langchain_core.") else _attributes
    if len(_PARTS) >= _MAX_KINDS:  # an app may make classes for ever
        _PARTS.clear()
    _PARTS[kind] = parts
    return parts


def _itself(value: Sequence[object]) -> Sequence[object]:
    return value


def _nothing(value: object) -> Sequence[object]:
    return ()


def _attributes(value: object) -> list[object]:
    return list(getattr(value, "__dict__", {}).values()) or [*_slots(value)]


def _slots(value: object) -> Iterator[object]:
    for name in getattr(value, "__dataclass_fields__", ()):
        yield getattr(value, name, None)
