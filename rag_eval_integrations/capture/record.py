"""The captured call while it runs, `current_call` to find it, and the `RagCall` of its fields.

A field that cannot be used is left out, not the call.
"""

from __future__ import annotations

import time
from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from contextvars import ContextVar
from datetime import UTC, datetime
from difflib import get_close_matches
from numbers import Integral
from typing import Any, TypeVar

from pydantic import BaseModel

from rag_eval_integrations._suppress import suppressed
from rag_eval_integrations.capture._calls import (
    Context,
    Snapshot,
    finite,
    json_object,
    to_call,
)
from rag_eval_integrations.capture._delivery import (
    PROCESS_FAILURES,
    PROCESS_LOGGER,
    Target,
    TargetDelivery,
    UnusableError,
)
from rag_eval_integrations.capture._documents import document_seen
from rag_eval_integrations.capture._traces import CallTraces
from rag_eval_integrations.records import RagCall, Turn
from rag_eval_integrations.records._json import NAMES
from rag_eval_integrations.records.call import CaptureStatus, as_turn


class CallInProgress:
    """The fields of a call in progress: set those you know; they are read when the call ends.

    Nothing is checked or copied before the end. A field that cannot be used then (it has a wrong
    type, or does not exist) is logged and counted, and the call is delivered without it.
    """

    question: str
    """The user's question; empty when it is not known."""
    documents: Iterable[object] | None
    """The documents that the model was shown, in order; None when they are not known. Strings,
    `Document`s, dicts with `text`, `page_content` or `content`, LangChain documents, LlamaIndex
    nodes, or `(document, score)` pairs. A list, not an iterator, which only the app may read."""
    response: str | None
    """The answer; dropped when the call ends with an exception."""
    id: str | int | None
    """Your label of the call; None for the first 16 hex digits of its `row_key`."""
    reference: str | None
    """The expected answer, for metrics that compare with one."""
    history: Iterable[object]
    """Earlier turns: `Turn`s, dicts with `role` and `content`, or `(role, content)` pairs."""
    app: str | None
    """Name of the app; by default the name of the decorated function."""
    metadata: Mapping[str, object]
    """Stored as `capture.metadata`, as JSON values."""
    tags: Iterable[str]
    """Stored as `capture.tags`."""

    def __init__(
        self,
        question: Any = "",
        app: Any = None,
        metadata: Any = None,
        tags: Any = (),
    ) -> None:
        self.question = question
        self.documents = None
        self.response = None
        self.id = None
        self.reference = None
        self.history = ()
        self.app = app
        self.metadata = dict(metadata) if isinstance(metadata, dict) else metadata or {}
        self.tags = tags
        self._items: list[str] | None = None  # the texts of a stream so far
        # True as well for a call that is never delivered.
        self._ended = False
        self._outer: CallInProgress | None = None
        self._traces: CallTraces | None = None
        self._started_at = datetime.now(UTC)
        self._began = time.perf_counter()

    def _enter(self) -> None:
        """Make this the innermost call of the context."""
        self._outer = _innermost_open()
        CURRENT.set(self)

    def _leave(self) -> None:
        """Restore the outer call, if this is still the innermost."""
        # Not by a reset token: a block may end in another context than it began in (web frameworks
        # run the two halves of a generator dependency in two threads), where a reset raises.
        if CURRENT.get() is self:
            CURRENT.set(self._outer)


CURRENT: ContextVar[CallInProgress | None] = ContextVar("rag_eval_integrations_call", default=None)
FIELDS = frozenset(vars(CallInProgress()))


def _innermost_open() -> CallInProgress | None:
    """Return the innermost call of the context that has not ended."""
    call = CURRENT.get()
    while call is not None and call._ended:  # it ended in another context
        call = call._outer
    return call


def open_call() -> CallInProgress | None:
    """Return the innermost call that is captured in this context; None when there is none."""
    return None if suppressed() else _innermost_open()


def current_call() -> CallInProgress:
    """Return the innermost call that is captured in this context, or in tasks started from it.

    Outside of a captured call, or in a thread pool that does not copy the context, it returns a
    call that is never delivered, so that code which sets fields runs in both cases. In a generator
    that opens a block itself, use the block's own `call`: a generator shares its reader's context.
    """
    call = open_call()
    if call is None:
        PROCESS_LOGGER.debug(
            "current_call() outside of a captured call: its fields are not recorded"
        )
        call = CallInProgress()
        call._ended = True
    return call


# --- The record of a call that is over

T = TypeVar("T")
D = TypeVar("D")


def record_call(
    target: Target,
    *,
    question: str,
    documents: Iterable[object] | None,
    response: str | None,
    id: str | int | None = None,
    reference: str | None = None,
    history: Iterable[object] = (),
    app: str | None = None,
    metadata: Mapping[str, object] | None = None,
    tags: Iterable[str] = (),
    latency_s: float | None = None,
    started_at: datetime | None = None,
) -> RagCall:
    """Deliver a call that is already over.

    A field that cannot be used is logged and counted, and the call is delivered without it.

    Args:
        target: takes the `RagCall`; a plain callable that should only pass it on.
        question: the user's question.
        documents: the documents that the model was shown; None when they are not known. See
            `CallInProgress.documents`.
        response: the answer; None for a retrieval without an answer.
        id: your label; None for the first 16 hex digits of the call's `row_key`.
        reference: the expected answer.
        history: earlier turns, see `CallInProgress.history`.
        app: name of the app.
        metadata: stored as `capture.metadata`.
        tags: stored as `capture.tags`.
        latency_s: wall time of the call in seconds, at least 0.
        started_at: time at which the call began.

    Returns:
        The record, also where it was not delivered: a failure of the target, or a judge's call.

    Raises:
        ConfigurationError: `target` cannot be called, or is async.
    """
    delivery = TargetDelivery(target, PROCESS_FAILURES)
    call = CallInProgress(question, app, metadata, tags)
    call.documents = documents
    call.response = response
    call.id = id
    call.reference = reference
    call.history = history
    call._traces = CallTraces(delivery)
    record = record_of(call, "ok", latency_s, started_at, delivery)
    if not suppressed():
        delivery.deliver(record)
    return record


def record_of(
    call: CallInProgress,
    status: CaptureStatus,
    latency_s: object,
    started_at: object,
    delivery: TargetDelivery,
) -> RagCall:
    """Make the record of a call; a field that cannot be used is counted and left out.

    Args:
        call: the fields.
        status: how the call ended.
        latency_s: wall time in seconds.
        started_at: time at which the call began.
        delivery: counts the failures.
    """

    def read(field: str, reader: Callable[[Any], T], given: object, default: D) -> T | D:
        """Read a field that the app set; if that fails, count it and return the default."""
        if given is None or given is default:
            return default
        try:
            return reader(given)
        except Exception as error:  # noqa: BLE001 -- the app may set anything
            delivery.failure(f"capture ({field})", error)
            return default

    for name in vars(call).keys() - FIELDS:
        message = "capture (%s): a call has no such field, and is delivered without it; %s"
        delivery.failures.log(("capture", name), message, name, _field_hint(name))
    documents = read("documents", lambda given: _documents(given, delivery), call.documents, None)
    return to_call(
        Context(documents or (), "none" if documents is None else "dataflow", ()),
        framework="plain",
        run_id=None,
        status=status,
        latency_s=read("latency_s", _seconds, latency_s, None),
        tags=read("tags", _tags, call.tags, ()),
        metadata=read("metadata", _metadata, call.metadata, {}),
        retrievers=(),
        question=read("question", as_text, call.question, ""),
        response=read("response", as_text, call.response, None),
        reference=read("reference", as_text, call.reference, None),
        history=read("history", _turns, call.history, ()),
        app=read("app", as_text, call.app, None),
        started_at=read("started_at", _moment, started_at, None),
        label=read("id", _label, call.id, ""),
        traces=None if call._traces is None else call._traces.ids(),
    )


def _field_hint(name: str) -> str:
    """Suggest the field that an unknown name may stand for, else list all fields."""
    fields = sorted(field for field in FIELDS if not field.startswith("_"))
    known = [field for field in fields if name.lower() in NAMES.get(field, ())]
    known += get_close_matches(name, fields, 1)
    return f"did you mean `{known[0]}`?" if known else f"its fields are {', '.join(fields)}"


def as_text(given: object) -> str:
    """Return a string as a plain `str`.

    Raises:
        UnusableError: it is not a string.
    """
    if type(given) is str:
        return given
    if isinstance(given, str):
        return str.__str__(given)  # an enum's own __str__ would give its name
    raise UnusableError(f"should be a string, not {type(given).__name__}")


def _label(given: object) -> str:
    """Return an id as text; an integer may be NumPy's."""
    return str(given) if type(given) is not bool and isinstance(given, Integral) else as_text(given)


def _seconds(given: object) -> float:
    """Return a number of seconds, at least 0."""
    seconds = finite(given)
    if seconds is None or seconds < 0:
        raise ValueError(f"should be a number of seconds, at least 0, not {given!r}")
    return seconds


def _moment(given: object) -> datetime:
    """Return a datetime; refuse anything else."""
    if isinstance(given, datetime):
        return given
    raise TypeError(f"should be a datetime, not {type(given).__name__}")


def _metadata(given: object) -> dict[str, Any]:
    """Return metadata as a JSON object; refuse anything but a dict."""
    if isinstance(given, Mapping):
        return json_object(given)
    raise TypeError(f"should be a dict, not {type(given).__name__}")


def _list_from(given: object) -> Iterable[object]:
    """Return a list that a user set; refuse texts, dicts and iterators."""
    # Strings, dicts and pydantic objects (LangChain's documents) are iterable as well; an iterator
    # can be read only once, by the app.
    if type(given) is list or type(given) is tuple:  # the usual case; the checks below are slow
        return given
    if isinstance(given, Iterable) and not isinstance(
        given, str | bytes | Mapping | BaseModel | Iterator
    ):
        return given
    raise TypeError(f"should be a list, not {type(given).__name__}")


def _tags(given: object) -> tuple[str, ...]:
    """Return the tags that a user set, each checked to be a text."""
    return tuple(as_text(tag) for tag in _list_from(given))


def _turns(given: object) -> tuple[Turn, ...]:
    return tuple(_turn(item) for item in _list_from(given))


def _turn(item: Any) -> Turn:
    """Make a turn of a dict or a pair (role, content)."""
    pair = (item["role"], item["content"]) if isinstance(item, Mapping) else item
    return Turn.model_validate(as_turn(pair))


def _documents(given: object, delivery: TargetDelivery) -> list[Snapshot]:
    """Make snapshots of documents; one that cannot be read is counted and left out."""
    documents = []
    for item in _list_from(given):
        try:
            documents.append(document_seen(item))
        except Exception as error:  # noqa: BLE001 -- the other documents are kept
            delivery.failure("capture (documents)", error)
    return documents
