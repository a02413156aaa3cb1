"""The captured call while it runs: its fields, and `current_call` to find it."""

from __future__ import annotations

import time
from collections.abc import (
    Iterable,
    Mapping,
)
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from rag_eval_integrations._suppress import suppressed
from rag_eval_integrations._visible import logger_of
from rag_eval_integrations.capture._traces import CallTraces

_LOGGER = logger_of("rag_eval_integrations.capture")


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
        self._outer = _innermost_open()
        CURRENT.set(self)

    def _leave(self) -> None:
        # Not by a reset token: a block may end in another context than it began in (web frameworks
        # run the two halves of a generator dependency in two threads), where a reset raises.
        if CURRENT.get() is self:
            CURRENT.set(self._outer)


CURRENT: ContextVar[CallInProgress | None] = ContextVar("rag_eval_integrations_call", default=None)
FIELDS = frozenset(vars(CallInProgress()))


def _innermost_open() -> CallInProgress | None:
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
        _LOGGER.debug("current_call() outside of a captured call: its fields are not recorded")
        call = CallInProgress()
        call._ended = True
    return call
