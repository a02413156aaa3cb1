"""Stage 1 for LangChain: find documents in the values of events, and copy them.

The values are untyped and read by attribute. Nothing is guessed: a value of an unknown shape holds
no documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rag_eval_integrations._answer import fields_of
from rag_eval_integrations.capture._calls import Snapshot, finite, json_object
from rag_eval_integrations.capture._delivery import Hooks, text, text_or_none
from rag_eval_integrations.capture._documents import documents_seen
from rag_eval_integrations.langchain._values import HUMAN, LISTS, builtin_str, message_of
from rag_eval_integrations.records import Document

_SCORE_KEYS = ("relevance_score", "score")  # metadata in which rerankers and stores put scores
_SEVERAL = 2
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

    The value may be a list of documents, of pairs, of dicts with `page_content`, or of objects
    that hold a document each, with its score; a dict of nothing but documents; or a dict, a list
    of lists or dicts, a graph's command, a dataclass or a pydantic model that holds such values. A
    single document is not a retrieval: a chain that is mapped over documents gets them one by one.

    Args:
        value: the value.
        depth: levels above this value; values below the third level are not read.
    """
    entries = False
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
        entries = not isinstance(value[0], LISTS)
        if entries and not may_hold_documents(value[0]):
            return ()
    elif depth and type(value) is dict:
        entries = all(type(part) is dict for part in value.values())
    if depth > _MAX_DEPTH or (parts := _PARTS.get(type(value)) or _parts_of(type(value))) is None:
        return ()
    documents: Sequence[object] = ()
    for part in parts(value):
        if type(part) is str:
            continue
        more = documents_of(part, depth + 1) or (_wrapped_document(part) if entries else ())
        if more:
            documents = [*documents, *more] if documents else more
    return documents or _by_name(value, depth)


def _by_name(value: object, depth: int) -> Sequence[object]:
    """Return the values of a dict if all are documents, named by their ids for example.

    A single one that is not part of something larger is an argument: `{"doc": document}`.
    """
    if type(value) is not dict or len(value) + depth < _SEVERAL:
        return ()
    parts = list(value.values())
    return parts if all(map(is_document, parts)) else ()


def _wrapped_document(item: object) -> Sequence[object]:
    """Return the document that an item of a list wraps, paired with the score beside it."""
    documents = single_documents(item)
    if len(documents) != 1:
        return documents
    if type(item) is dict:
        scores = [item.get(key) for key in _SCORE_KEYS]
    else:
        scores = [getattr(item, key, None) for key in _SCORE_KEYS]
    score = next((number for number in map(finite, scores) if number is not None), None)
    return documents if score is None or type(documents[0]) is tuple else [(documents[0], score)]


def single_documents(value: object) -> Sequence[object]:
    """Find documents that are not in a list: the value itself, or its direct parts."""
    if is_document(value):
        return () if isinstance(value, tuple) else [value]
    parts = None if isinstance(value, LISTS) else _PARTS.get(type(value)) or _parts_of(type(value))
    if parts is None:
        return ()
    return [part for part in parts(value) if type(part) is not str and is_document(part)]


def texts_beside(value: object, name: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the texts in a root's outputs that are neither documents nor a user's messages.

    Args:
        value: the outputs, or a part of them.
        name: keys or attributes under which the value stands.
        depth: levels above this value; values below the third level are not read.

    Yields:
        The name under which a text stands, and the text.
    """
    if isinstance(value, str):
        if value.strip():
            yield name, builtin_str(value)
    elif (message := message_of(value)) is not None:
        if message.text and message.role not in HUMAN:
            yield name, message.text
    elif depth <= _MAX_DEPTH and not is_document(value):
        if isinstance(value, (*LISTS, set, frozenset)):
            named = [(name, part) for part in value]
        elif _parts_of(type(value)) is not None:
            named = [(f"{name}.{key}", part) for key, part in fields_of(value).items()]
        else:
            return
        for below, part in named:
            yield from texts_beside(part, below, depth + 1)


def snapshot(document: object, score: object) -> Snapshot:
    """Copy a LangChain document as it is now, with the score beside it, if there is one."""
    return snapshot_from(document, *text_and_metadata(document), score)


def document_from(document: object) -> Document:
    """Convert a LangChain document to this library's `Document`."""
    return snapshot(document, None).document()


def text_and_metadata(document: Any) -> tuple[str, Any]:
    """Return a document's text and metadata: LangChain's own objects, not copies."""
    if type(document) is dict:
        return document["page_content"], document.get("metadata")
    return document.page_content, getattr(document, "metadata", None)


def snapshot_from(document: object, text: str, raw: Any, score: object) -> Snapshot:
    """Make the snapshot of a document whose text and metadata have been read."""
    metadata = json_object(raw) if raw else {}
    value = None if score is None else finite(score)
    if value is None and metadata:
        for key in _SCORE_KEYS:
            if value is None and key in metadata:
                value = finite(metadata[key])
    name = _field(document, "id") if type(document) is dict else getattr(document, "id", None)
    return Snapshot(
        text if type(text) is str else builtin_str(text),
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
    """Return an item of a dict, or an attribute of an object."""
    return item.get(name) if type(item) is dict else getattr(item, name, None)


def _parts_of(kind: type) -> Callable[[Any], Sequence[object]] | None:
    """Return the function that lists the parts of values of a type; None if they hold no lists.

    For the type of a document, a function that lists nothing. Results are cached by type; the cache
    is cleared when it is full.
    """
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
    """Return a list as its own parts."""
    return value


def _nothing(value: object) -> Sequence[object]:
    """Return no parts."""
    return ()


def _attributes(value: object) -> list[object]:
    """Return the values of an object's attributes."""
    return list(fields_of(value).values())


# --- The user's own extractors `question=`, `documents=`, `response=`


FAILED = "rag_eval_hook_failed"
"""Key of `Capture.metadata` under which the failed hooks of a call are listed."""


class HooksOfCall:
    """The hooks as run on one call; a failure is recorded, and the hook's field stays empty."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self.failed: list[str] = []

    @property
    def has_question(self) -> bool:
        """Whether a hook of the user returns the question."""
        return "question" in self._hooks

    def question(self, inputs: object) -> str | None:
        """Run the question hook; None without one, empty if it fails."""
        return self._hooks.run("question", inputs, read=text, empty="", failed=self.failed)

    def documents(self, inputs: object, outputs: object) -> list[Snapshot] | None:
        """Run the documents hook; None without one or if it returned None, empty if it fails."""
        return self._hooks.run(
            "documents",
            inputs,
            outputs,
            read=_documents,
            empty=[],
            failed=self.failed,
        )

    def response(self, outputs: object) -> tuple[str | None] | None:
        """Run the response hook; its result is in a tuple, `(None,)` after a failure, or None."""
        return self._hooks.run(
            "response", outputs, read=_response, empty=(None,), failed=self.failed
        )


def _documents(value: object) -> list[Snapshot] | None:
    """Read the documents that a hook returned; None without a result."""
    return None if value is None else documents_seen(value)


def _response(value: object) -> tuple[str | None]:
    """Read what a response hook returned; in a tuple, since None is a value.

    Raises:
        UnusableError: it is neither a string nor None.
    """
    return (text_or_none(value),)
