"""The call while it runs: what the app sets on it, and how code inside finds it."""

from __future__ import annotations

import logging
import time
from collections.abc import (
    Iterable,
    Mapping,
)
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from rag_eval_integrations._suppress import suppressed

_LOGGER = logging.getLogger("rag_eval_integrations.capture")


class CallInProgress:
    """What is known of a call so far: set what you have; it is read once, when the call ends.

    Nothing is checked or copied before the end. What cannot be used then (a wrong type, a field
    that does not exist) is logged and counted, and the call is delivered without it.
    """

    question: str
    """The user's question; empty when it is not known."""
    documents: Iterable[object] | None
    """What the model was shown, in order; None as long as it is not set. Strings, `Document`s,
    dicts with `text`, `page_content` or `content`, LangChain documents, LlamaIndex nodes, or
    `(document, score)` pairs. A list, not an iterator: reading one would take it from the app."""
    response: str | None
    """The answer; dropped when the call ends with an exception."""
    id: str | int | None
    """Your label; None for the first 16 hex digits of the call's `row_key`."""
    reference: str | None
    """The expected answer, for metrics that compare with one."""
    history: Iterable[object]
    """Earlier turns: `Turn`s, dicts with `role` and `content`, or `(role, content)` pairs."""
    app: str | None
    """Name of the app; of a decorated function its own, unless given."""
    metadata: Mapping[str, object]
    """Kept as `capture.metadata`, as JSON values."""
    tags: Iterable[str]

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
        # Also true of a call that is not to be delivered at all.
        self._ended = False
        self._outer: CallInProgress | None = None
        self._started_at = datetime.now(UTC)
        self._began = time.perf_counter()

    def _enter(self) -> None:
        self._outer = _innermost_open()
        CURRENT.set(self)

    def _leave(self) -> None:
        # Without a token: a block may end in another context than it began in (web frameworks run
        # the two halves of a generator dependency in two threads), where resetting one raises.
        if CURRENT.get() is self:
            CURRENT.set(self._outer)


CURRENT: ContextVar[CallInProgress | None] = ContextVar("rag_eval_integrations_call", default=None)
FIELDS = frozenset(vars(CallInProgress()))


def _innermost_open() -> CallInProgress | None:
    call = CURRENT.get()
    while call is not None and call._ended:  # left behind by an end in another context
        call = call._outer
    return call


def open_call() -> CallInProgress | None:
    """The innermost call that is captured in this context; None where nothing is."""
    return None if suppressed() else _innermost_open()


def current_call() -> CallInProgress:
    """The innermost call that is captured in this context; in tasks started from it as well.

    Outside of one (nothing is captured, or a thread pool that does not copy the context) it is a
    call that is never delivered, so that code which sets fields runs either way. In a generator
    that opens a block itself, use the block's own `call`: a generator shares its reader's context.
    """
    call = open_call()
    if call is None:
        _LOGGER.debug("current_call() outside of a captured call: what is set is not kept")
        call = CallInProgress()
        call._ended = True
    return call
