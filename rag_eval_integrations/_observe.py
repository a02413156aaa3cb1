"""Stage 1, shared by the hosts: from what a framework shows to a `RagCall`, and out of the way.

Nothing here knows a framework. Four jobs: keep what a host gives as JSON values (`json_object`),
tell which documents a prompt holds (`reached`), hold the open calls within bounds (`OpenCalls`),
and hand a finished call to the target without ever disturbing the app (`Delivery`).
"""

from __future__ import annotations

import inspect
import logging
import math
import numbers
import threading
import time
from asyncio import CancelledError
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from pydantic import JsonValue

from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import Capture, Document, DocumentsFrom, RagCall, Record

_MAX_DEPTH = 16  # the records refuse more than 64; real metadata is 2 or 3 deep
_MAX_SHOWN = 200  # characters kept of an object that is no JSON value
_MAX_PLAIN = 2**63  # the check against `numbers.Real` costs ten times as much as this one
_MAX_BITS = 8_192  # json.dumps refuses integers of more than 4,300 digits
_HEAD = 48  # characters that tell a cut document from one that was left out

# --- What a host gives, as JSON values -----------------------------------------------------


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
    return {
        key if type(key) is str else _shown(key): (
            value if type(value) is str else json_value(value, depth)
        )
        for key, value in mapping.items()
    }


def _json_number(value: numbers.Real) -> JsonValue:
    if isinstance(value, numbers.Integral):
        whole = int(value)
        return whole if whole.bit_length() <= _MAX_BITS else f"{whole.bit_length()}-bit integer"
    number = float(value)
    return number if math.isfinite(number) else str(number)


def _shown(value: object, render: Callable[[], object] | None = None) -> str:
    try:
        return str(value if render is None else render())[:_MAX_SHOWN]
    except Exception:  # noqa: BLE001 -- a host's object may do anything in its __str__
        return f"<{type(value).__name__}>"


def finite(value: object) -> float | None:
    """Read a retriever's score; None for anything but a finite number."""
    if value is None:  # nearly always; the check below is slow
        return None
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        number = float(value)
        return number if math.isfinite(number) else None
    return None


# --- Documents and prompts -----------------------------------------------------------------


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
    capture["documents_from"] = context.source
    capture["not_in_prompt"] = tuple([_document(seen) for seen in context.unused])
    fields["documents"] = tuple([_document(seen) for seen in context.documents])
    fields["capture"] = _trusted(Capture, {**_CAPTURE, **capture})
    call = _trusted(RagCall, {**_CALL, "metadata": {}, **fields})
    call.__dict__["id"] = call.row_key[:16]
    return call


_CAPTURE: dict[str, Any] = {"tags": ()}
_CALL: dict[str, Any] = {
    "id": "",
    "reference": None,
    "history": (),
    "sentences": None,
}


def _document(seen: Seen) -> Document:
    return _trusted(
        Document,
        {"text": seen.text, "id": seen.id, "metadata": seen.metadata, "score": seen.score},
    )


R = TypeVar("R", bound=Record)


def _trusted(kind: type[R], fields: dict[str, Any]) -> R:
    """Make a record of complete, valid fields without validating them.

    Everything that comes here was made JSON-safe and finite above. In a running app, where its
    code is cold, validation was a third of what capture adds to a call (180 of 490 µs on a loaded
    machine); pydantic's own `model_construct` saves little of it. A test holds the result equal
    to the validated record.
    """
    record = kind.__new__(kind)
    object.__setattr__(record, "__dict__", fields)
    object.__setattr__(record, "__pydantic_fields_set__", set(fields))
    object.__setattr__(record, "__pydantic_extra__", None)
    object.__setattr__(record, "__pydantic_private__", None)
    return record


def distinct(documents: Iterable[Seen]) -> list[Seen]:
    """Drop documents whose text was there before; the first keeps its place."""
    first: dict[str, Seen] = {}
    for document in documents:
        first.setdefault(document.text, document)
    return list(first.values())


class Place(NamedTuple):
    """Where a document stands in a prompt."""

    start: int
    whole: bool
    """False when only the document's head was found: it was cut, or changed further on."""


def reached(texts: Sequence[str], prompt: str, question: str) -> list[Place | None]:
    """Find each text in the prompt; None for one that is not there.

    Whitespace does not count. A place is given to one text only, longest first, so that a short
    document inside of a longer one, or inside of the question, is not taken for present.
    Empty texts are never found. O(prompt · texts) in C, so 100 documents in 50 kB take ~1 ms.
    """
    places = _in_order(texts, prompt, question) or _find(texts, prompt, question)
    # Normalising costs ~10 µs per kB of prompt, so it is done only where the text as it stands
    # is not found: prompts nearly always hold documents verbatim.
    if all(place or not text for place, text in zip(places, texts, strict=True)):
        return places
    return _find(
        [_normal(text) for text in texts], _normal(prompt), _normal(question), accept_heads=True
    )


def _in_order(texts: Sequence[str], prompt: str, question: str) -> list[Place | None] | None:
    """The usual case, ten times as fast: all there, one after the other; None when not so."""
    places: list[Place | None] = []
    end = 0
    for text in texts:
        start = prompt.find(text, end) if text and text not in question else -1
        if start < 0:
            return None
        places.append(Place(start, whole=True))
        end = start + len(text)
    return places


def _normal(text: str) -> str:
    return " ".join(text.split())


class _Taken:
    """Disjoint spans of the prompt, in order."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []

    def end_of_clash(self, start: int, end: int) -> int | None:
        """End of a span that overlaps [start, end); None when it is free."""
        at = bisect_right(self.starts, start)
        if at and self.ends[at - 1] > start:
            return self.ends[at - 1]
        if at < len(self.starts) and self.starts[at] < end:
            return self.ends[at]
        return None

    def take(self, start: int, end: int) -> None:
        at = bisect_right(self.starts, start)
        self.starts.insert(at, start)
        self.ends.insert(at, end)


def _free(text: str, prompt: str, taken: Sequence[_Taken]) -> int | None:
    start = prompt.find(text)
    while start >= 0:
        clashes = [spans.end_of_clash(start, start + len(text)) for spans in taken]
        ends = [end for end in clashes if end is not None]
        if not ends:
            return start
        start = prompt.find(text, max(ends))
    return None


def _occurrences(text: str, prompt: str) -> _Taken:
    found = _Taken()
    start = prompt.find(text) if text else -1
    while start >= 0:
        found.take(start, start + len(text))
        start = prompt.find(text, start + len(text))
    return found


def _find(
    texts: Sequence[str], prompt: str, question: str, *, accept_heads: bool = False
) -> list[Place | None]:
    places: list[Place | None] = [None] * len(texts)
    taken = _Taken()
    asked = _occurrences(question, prompt)
    longest_first = sorted((i for i in range(len(texts)) if texts[i]), key=lambda i: -len(texts[i]))
    for i in longest_first:
        text = texts[i]
        # A text that is part of the question must stand in the prompt outside of the question.
        start = _free(text, prompt, (taken, asked) if text in question else (taken,))
        if start is not None:
            taken.take(start, start + len(text))
            places[i] = Place(start, whole=True)
    if accept_heads:
        for i in longest_first:
            if places[i] is None and len(texts[i]) > _HEAD:
                start = _free(texts[i][:_HEAD], prompt, (taken,))
                if start is not None:
                    taken.take(start, start + _HEAD)
                    places[i] = Place(start, whole=False)
    return places


# --- Open calls, within bounds ---------------------------------------------------------------


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
        self._calls[key] = call
        return self.expire(call.began)

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


# --- Delivery --------------------------------------------------------------------------------

Target = Callable[[RagCall], object]


class Delivery:
    """Hands calls to the target; whatever goes wrong stays here, logged and counted.

    The traceback is logged at the first failure of a kind (place and exception type), so that a
    target that is down does not fill the app's log with a traceback a call.
    """

    _MAX_KINDS = 100

    def __init__(self, target: Target, logger: logging.Logger) -> None:
        if not callable(target):
            raise ConfigurationError("target", target, "should be a callable that takes a RagCall")
        if inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(
            getattr(target, "__call__", None)  # noqa: B004 -- the method itself is asked for
        ):
            raise ConfigurationError(
                "target", target, "is async; pass a plain callable that schedules its own work"
            )
        self.failed = 0
        """Failures of the target and of the capture itself."""
        self._target = target
        self._logger = logger
        self._logged: set[tuple[str, type[BaseException]]] = set()
        self._lock = threading.Lock()

    def deliver(self, call: RagCall) -> None:
        """Call the target; what it runs in either framework is not captured."""
        try:
            with suppress_capture():
                self._target(call)
        except (Exception, CancelledError) as error:  # noqa: BLE001 -- the app's call goes on
            self.failure("the target", error)

    def failure(self, where: str, error: BaseException) -> None:
        """Count a failure, and log it with its traceback if it is the first of its kind."""
        kind = (where, type(error))
        with self._lock:
            self.failed += 1
            first = kind not in self._logged and len(self._logged) < self._MAX_KINDS
            if first:
                self._logged.add(kind)
        if first:
            self._logger.error(
                "%s failed with %s; the app's call is not affected, further failures of this "
                "kind are only counted",
                where,
                type(error).__name__,
                exc_info=error,
            )
