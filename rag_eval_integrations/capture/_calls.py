"""Make `RagCall`s from a framework's values: JSON values, documents, and the calls in flight."""

from __future__ import annotations

import numbers
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from math import isfinite
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from pydantic import JsonValue

from rag_eval_integrations.errors import ConfigurationError, whole_number
from rag_eval_integrations.records import Capture, Document, RagCall, Turn
from rag_eval_integrations.records._json import is_whole, trusted, whole_text
from rag_eval_integrations.records.call import CaptureStatus, DocumentsFrom, TraceSource, row_key_of

# --- JSON values of a framework's objects


_MAX_DEPTH = 16  # the records refuse more than 64 levels; real metadata has 2 or 3
_MAX_EXCERPT = 200  # characters kept of an object that is not a JSON value
_MAX_PLAIN = 2**63  # the check against `numbers.Real` takes ten times as long as this one
_LEAST_MARK = 6  # characters of an image's path, URL or base64
_MAX_BITS = 8_192  # json.dumps refuses integers of more than 4,300 digits


def json_value(value: object, depth: int = 0) -> JsonValue:
    """Copy a framework's value as a JSON value; never fails and never keeps a reference.

    Datetimes become ISO strings, NaN and infinities become their names, keys become strings. Any
    other object becomes the first 200 characters of its `str()`, or its type's name where `str()`
    fails.

    Args:
        value: any object.
        depth: levels above this value; from 16 on, containers are copied as strings.
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
    return _excerpt(value, isoformat if callable(isoformat) else None)


def json_object(mapping: Mapping[Any, object], depth: int = 0) -> dict[str, JsonValue]:
    """Copy a mapping as a JSON object, as `json_value` copies its values."""
    copied: dict[str, JsonValue] = {}
    for key, value in mapping.items():
        kind = type(value)
        if kind is str:
            if not value.isascii():  # type: ignore[attr-defined]  # narrowed by `kind`
                value = whole_text(value)  # type: ignore[arg-type]  # the same
        elif not (kind is float and isfinite(value)):  # type: ignore[arg-type]  # the same
            value = json_value(value, depth)
        if type(key) is not str:
            key = _excerpt(key)
        elif not key.isascii():
            key = whole_text(key)
        copied[key] = value  # type: ignore[assignment]  # the same
    return copied


def _json_number(value: numbers.Real) -> JsonValue:
    """Return a number as JSON takes it; NaN, infinity and huge integers become texts."""
    if isinstance(value, numbers.Integral):
        whole = int(value)
        return whole if whole.bit_length() <= _MAX_BITS else f"{whole.bit_length()}-bit integer"
    number = float(value)
    return number if isfinite(number) else str(number)


def _excerpt(value: object, render: Callable[[], object] | None = None) -> str:
    """Return the beginning of an object's text; the name of its type if it cannot be rendered."""
    try:
        return whole_text(str(value if render is None else render())[:_MAX_EXCERPT])
    except Exception:  # noqa: BLE001 -- a framework's object may do anything in its __str__
        return f"<{type(value).__name__}>"


def finite(value: object) -> float | None:
    """Return a retriever's score as a float; None for anything but a finite number."""
    if value is None:  # the usual case; the check below is slow
        return None
    if type(value) is float:
        return value if isfinite(value) else None
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        number = float(value)
        return number if isfinite(number) else None
    return None


class Snapshot(NamedTuple):
    """A snapshot of a framework's document, which the app may change afterwards.

    Its fields are those of `Document`.
    """

    text: str
    id: str | None
    metadata: dict[str, JsonValue]
    score: float | None
    header: str | None = None

    def document(self) -> Document:
        """Convert the snapshot to a `Document`."""
        return Document(**self._asdict())


class Context(NamedTuple):
    """The documents that the model saw, and how they are known."""

    documents: Sequence[Snapshot]
    source: DocumentsFrom
    unused: Sequence[Snapshot]
    """Retrieved, but never in the prompt."""
    earlier: int = 0
    """How many of the documents, the last ones, earlier turns retrieved."""


def to_call(
    context: Context,
    *,
    framework: str,
    run_id: str | None,
    status: CaptureStatus,
    latency_s: float | None,
    tags: tuple[str, ...],
    metadata: dict[str, JsonValue],
    retrievers: tuple[str, ...],
    question: str,
    response: str | None,
    started_at: datetime | None,
    app: str | None,
    reference: str | None = None,
    history: tuple[Turn, ...] = (),
    label: str = "",
    traces: dict[TraceSource, tuple[str, str]] | None = None,
) -> RagCall:
    """Make the record of a call from values that are already valid, except for lone surrogates.

    Without a label, the call's id is the beginning of its row key.

    Args:
        context: the documents.
        framework: a field of `Capture`, as all to `retrievers`.
        run_id: the framework's id of the outermost run.
        status: how the call ended.
        latency_s: wall time in seconds.
        tags: tags of the run.
        metadata: metadata of the run, as `json_object` copied it.
        retrievers: names of the retrievers.
        question: a field of `RagCall`, as all that follow.
        response: the answer.
        started_at: time of the start.
        app: name of the app.
        reference: the expected answer.
        history: earlier turns.
        label: the user's id of the call; empty for the default.
        traces: a field of `Capture`.
    """
    documents, source, unused, number = context
    earlier = tuple(range(len(documents) - number, len(documents)))
    # One look at all texts together takes 6,000 instructions for two documents; 18 calls that
    # looked at one text each took 24,000.
    texts = [question, response, reference, app, label, run_id, *tags, *retrievers]
    for text, name, _, _, header in documents:
        texts += text, name, header
    for text, name, _, _, header in unused:
        texts += text, name, header
    if not is_whole("".join(filter(None, texts))):
        question, label = whole_text(question), whole_text(label)
        response, reference = _whole_or_none(response), _whole_or_none(reference)
        app, run_id = _whole_or_none(app), _whole_or_none(run_id)
        tags, retrievers = tuple(map(whole_text, tags)), tuple(map(whole_text, retrievers))
        documents, unused = [*map(_whole_snapshot, documents)], [*map(_whole_snapshot, unused)]
    capture = {
        "framework": framework,
        "run_id": run_id,
        "status": status,
        "documents_from": source,
        "latency_s": latency_s,
        "tags": tags,
        "metadata": metadata,
        "retrievers": retrievers,
        "not_in_prompt": _documents(unused) if unused else (),
        "traces": traces or {},
    }
    content: dict[str, Any] = {
        "question": question,
        "documents": _documents(documents),
        "response": response,
        "id": label,
        "reference": reference,
        "metadata": {},
        "capture": trusted(Capture, capture, _CAPTURE_FIELDS),
        "history": history,
        "started_at": started_at,
        "app": app,
        "sentences": None,
        "relevant_ids": None,
        "earlier": earlier,
        "alternatives": (),
    }
    if not label:
        passages = [(seen.header, seen.text) for seen in documents]
        key = row_key_of(question, passages, response, reference, history, earlier)
        content["row_key"] = key
        content["id"] = key[:16]
    return trusted(RagCall, content, _CALL_FIELDS)


def _whole_or_none(text: str | None) -> str | None:
    """Replace lone surrogates of a text; keep None."""
    return None if text is None else whole_text(text)


def _whole_snapshot(seen: Snapshot) -> Snapshot:
    """Replace lone surrogates in a snapshot's texts."""
    header = _whole_or_none(seen.header)
    return seen._replace(text=whole_text(seen.text), id=_whole_or_none(seen.id), header=header)


# All records of a class share one set: pydantic copies it before a change.
_CALL_FIELDS = set(RagCall.model_fields)
_CAPTURE_FIELDS = set(Capture.model_fields)
_DOCUMENT_FIELDS = set(Document.model_fields)


def _documents(snapshots: Sequence[Snapshot]) -> tuple[Document, ...]:
    """Convert snapshots to documents, without validating them again."""
    return tuple([trusted(Document, seen._asdict(), _DOCUMENT_FIELDS) for seen in snapshots])


def distinct(documents: Iterable[Snapshot]) -> list[Snapshot]:
    """Drop documents that repeat the header and text of an earlier one.

    Documents with different ids are kept: chunks of overlapping sources, for instance.
    """
    first: dict[tuple[str | None, ...], Snapshot] = {}
    for document in documents:
        key: tuple[str | None, ...] = (document[4], document[0])
        if key in first and not same_id(first[key], document):
            key = (*key, document[1])
        first.setdefault(key, document)
    return list(first.values())


def same_id(document: Snapshot, other: Snapshot) -> bool:
    """Return whether two documents have the same id, or one has none, as a copy may."""
    return document[1] == other[1] or document[1] is None or other[1] is None


def choose_namesakes(
    documents: Sequence[Snapshot], seen: Sequence[Snapshot], lists: Iterable[Sequence[Snapshot]]
) -> list[Snapshot]:
    """Replace documents by those of the same text that the app passed on last.

    Only where more documents of a text were seen than the model was shown: its prompt does not tell
    which of them it holds.

    Args:
        documents: the documents that the model was shown, known by their texts.
        seen: all documents that were seen.
        lists: the lists in which documents were passed on, in order.
    """
    number = Counter(document.text for document in documents)
    seen_number = Counter(document.text for document in seen)
    ambiguous = [text for text in number if seen_number[text] > number[text]]
    last: dict[str, list[Snapshot]] = {}
    for passed in lists if ambiguous else ():
        for text in ambiguous:
            namesakes = [document for document in passed if document.text == text]
            if len(namesakes) >= number[text]:
                last[text] = namesakes
    return [last[each.text].pop(0) if each.text in last else each for each in documents]


def left_out(retrieved: Sequence[Snapshot], used: Sequence[Snapshot]) -> list[Snapshot]:
    """Return the retrieved documents that are not among the used ones.

    Where more documents of a text were retrieved than used, their ids tell which.
    """
    by_text: dict[str, list[Snapshot]] = {}
    for document in used:
        by_text.setdefault(document.text, []).append(document)
    number = Counter(document.text for document in retrieved)

    def is_used(document: Snapshot) -> bool:
        namesakes = by_text.get(document.text, ())
        if number[document.text] <= len(namesakes):
            return True
        return any(same_id(document, other) for other in namesakes)

    return [document for document in retrieved if not is_used(document)]


def without_images(context: Context, images: Collection[str]) -> Context:
    """Leave out the unused documents that are images which a model was shown.

    Args:
        context: the documents.
        images: path, URL or base64 of the images that models were shown.
    """
    if not images or not context.unused:
        return context
    unused = [seen for seen in context.unused if not _is_image(seen, images)]
    return context._replace(unused=unused)


def _is_image(seen: Snapshot, images: Collection[str]) -> bool:
    """Return whether a document's text or metadata is part of an image's path, URL or base64."""
    marks = (seen.text.strip(), *map(str, seen.metadata.values()))
    return any(mark in image for mark in marks if len(mark) >= _LEAST_MARK for image in images)


def with_earlier(context: Context, older: Sequence[Snapshot]) -> Context:
    """Append the documents of earlier turns that the model was shown again.

    A document that this turn retrieved as well counts as this turn's.
    """
    again = [seen for seen in context.unused if not left_out([seen], older)]
    own = distinct([*context.documents, *again])
    documents, unused = distinct([*own, *older]), left_out(context.unused, again)
    return context._replace(documents=documents, unused=unused, earlier=len(documents) - len(own))


# --- Calls in flight, limited in number and age


class Timed(Protocol):
    """A call with the time of its start, by `time.monotonic`."""

    began: float


C = TypeVar("C", bound=Timed)


class OpenCalls(Generic[C]):
    """The calls in flight, by their root's key.

    Calls beyond `max_open`, or older than `ttl`, are dropped and counted: an app may keep a stream
    for ever without reading it, and no event reports that.

    Args:
        max_open: calls held at most, at least 1.
        ttl: seconds after which a call is dropped, above 0.

    Raises:
        ConfigurationError: `max_open` or `ttl` is out of its range.
    """

    def __init__(self, max_open: int, ttl: float) -> None:
        # Both come from users, perhaps without a type checker: NaN is a float.
        whole_number("max_open", max_open)
        if type(ttl) not in (int, float) or not ttl > 0:
            raise ConfigurationError("ttl", ttl, "should be a number of seconds above 0")
        self.dropped = 0
        """Calls that were dropped because they were too many or too old."""
        self._max_open = max_open
        self._ttl = ttl
        self._calls: dict[object, C] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, key: object, call: C) -> list[C]:
        """Add a call; return the calls that were dropped because of it."""
        calls = self._calls
        calls[key] = call
        # Usually the call is the only one, or one of a few young ones.
        return self.expire(call.began) if len(calls) > 1 else []

    def holds(self, key: object, call: C) -> bool:
        """Return whether this call object is open."""
        return self._calls.get(key) is call

    def close(self, key: object) -> C | None:
        """Remove a call and return it; None when it is not open, so that each is closed once."""
        return self._calls.pop(key, None)

    def expire(self, now: float | None = None) -> list[C]:
        """Drop calls that are too many or too old, oldest first; return the dropped ones."""
        oldest_allowed = (time.monotonic() if now is None else now) - self._ttl
        expired: list[C] = []
        while self._calls:
            key, oldest = next(iter(self._calls.items()))
            if len(self._calls) <= self._max_open and oldest.began >= oldest_allowed:
                break
            # A garbage collection may have run a stream's finaliser, which closed the call.
            if (call := self._calls.pop(key, None)) is not None:
                expired.append(call)
                self.dropped += 1
        return expired
