"""Stage 1 for LlamaIndex: a handler on the root dispatcher that turns calls into `RagCall`s.

observers.py   what the dispatcher calls, for every span and event of the process
recorder.py    which call a span or event belongs to; when a call begins and ends
call.py        what was seen in one call, and its record: tree.py, context.py, extract.py
stream.py      streams that the app reads; chat.py: streams that chat engines write
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.base import BaseEvent
from llama_index_instrumentation.event_handlers import BaseEventHandler
from llama_index_instrumentation.span import BaseSpan, active_span_id
from llama_index_instrumentation.span_handlers import BaseSpanHandler

from rag_eval_integrations.capture._calls import OpenCalls
from rag_eval_integrations.capture._outlet import Captures, Outlet
from rag_eval_integrations.llama_index._hooks import (
    DocumentsHook,
    Hooks,
    QuestionHook,
    ResponseHook,
)
from rag_eval_integrations.llama_index._recorder import WANTED, Recorder
from rag_eval_integrations.llama_index._stream import reading

if TYPE_CHECKING:
    from rag_eval_integrations.background.attachment import TargetOrEvaluator
    from rag_eval_integrations.capture._calls import OpenCalls
    from rag_eval_integrations.llama_index._call import Call
    from rag_eval_integrations.llama_index._hooks import Hooks
    from rag_eval_integrations.llama_index._recorder import Recorder
    from rag_eval_integrations.records import Evaluation


# --- On and off LlamaIndex's root dispatcher, which belongs to the whole process


# Reentrant, and no other lock is taken inside: a garbage collection can end a stream, and with it
# a handler's last call, at any place, also where a recorder's lock is held.
CHANGING = threading.RLock()


def attach(spans: BaseSpanHandler[BaseSpan], events: BaseEventHandler) -> None:
    """Put handlers on the root dispatcher; does nothing where they are."""
    root = get_dispatcher()
    with CHANGING:
        # New lists, so that a thread that goes through the old ones is not disturbed.
        if not any(one is spans for one in root.span_handlers):
            root.span_handlers = [*root.span_handlers, spans]
        if not any(one is events for one in root.event_handlers):
            root.event_handlers = [*root.event_handlers, events]


def detach(spans: BaseSpanHandler[BaseSpan], events: BaseEventHandler) -> None:
    """Take handlers off the root dispatcher."""
    root = get_dispatcher()
    with CHANGING:
        root.span_handlers = [one for one in root.span_handlers if one is not spans]
        root.event_handlers = [one for one in root.event_handlers if one is not events]


# --- It calls these two for every span and event


class SpanObserver(BaseSpanHandler[BaseSpan]):
    """Hands spans on; LlamaIndex's own bookkeeping of spans is not used."""

    # The recorder's own methods, called without a step in between: some 28 times a query. In
    # slots, because a pydantic model's private attributes cost 1 µs a read.
    __slots__ = ("span_drop", "span_enter", "span_exit")

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        object.__setattr__(self, "span_enter", recorder.enter)
        object.__setattr__(self, "span_exit", recorder.exit)
        object.__setattr__(self, "span_drop", recorder.drop)

    @classmethod
    def class_name(cls) -> str:
        """Name it in traces."""
        return "RagEvalSpanHandler"

    def new_span(self, *args: Any, **kwargs: Any) -> None:
        """Not used; the base class asks for it."""
        return None

    def prepare_to_exit_span(self, *args: Any, **kwargs: Any) -> None:
        """Not used; the base class asks for it."""
        return None

    def prepare_to_drop_span(self, *args: Any, **kwargs: Any) -> None:
        """Not used; the base class asks for it."""
        return None


class EventObserver(BaseEventHandler):
    """Hands on the few events that are of use: prompts, and what a chat engine streams."""

    __slots__ = ("recorder",)
    if TYPE_CHECKING:
        recorder: Recorder

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        object.__setattr__(self, "recorder", recorder)

    @classmethod
    def class_name(cls) -> str:
        """Name it in traces."""
        return "RagEvalEventHandler"

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        """Look at an event."""
        name = type(event).__name__
        if name in WANTED:
            self.recorder.event(name, event)


class RagEvalHandler(Captures):
    """Calls `target` with a `RagCall` for every outermost query, chat or run that it observes.

    Observes the whole process between `install()` and `uninstall()`, or inside of `with`: query
    engines, chat engines, agents and workflows; sync, async and streaming, any number at a time.
    Streams are passed on token by token: the call ends when the app has read, or closed, its
    stream, or when the chat engine has written it. What runs inside of a call belongs to it. A call
    in which no retriever ran and no node was seen, or that is a bare retriever, is no RAG call.

    `target` is called once a call, when the call has ended, in the thread of its last event: it
    should only hand the record on. What it raises is logged and counted, never seen by the app.
    """

    def __init__(
        self,
        target: TargetOrEvaluator,
        *,
        question: QuestionHook | None = None,
        documents: DocumentsHook | None = None,
        response: ResponseHook | None = None,
        on_evaluation: Callable[[Evaluation], object] | None = None,
        max_open: int = 10_000,
        ttl: float = 3600.0,
    ) -> None:
        """Make a handler; nothing is observed before `install()`.

        A hook that fails is logged and counted, and the handler reads the call by itself. Hooks
        run in the app's thread, so they should be quick, and must not read a stream.

        Args:
            target: Takes the `RagCall`: a plain callable, a `BackgroundEvaluator`, or a
                `RagEvaluator`, which is then run in the background.
            question: Reads the question out of what the outermost method was called with, by
                argument name; for agents and workflows the fields of the start event.
            documents: Reads the documents (nodes, records or strings) out of what the outermost
                method returned; None leaves it to the handler.
            response: Reads the answer out of what the outermost method returned, or out of the
                whole text of a stream; None leaves it to the handler.
            on_evaluation: Called with every evaluation; only with a `RagEvaluator` as target.
            max_open: At most so many calls are held in flight; the oldest is dropped.
            ttl: Seconds after which a call that never ended is dropped.

        Raises:
            ConfigurationError: an argument cannot be used; names it.
        """
        self._outlet = Outlet(target, _LOGGER, on_evaluation)
        hooks = Hooks(
            self._outlet.delivery.failure, question=question, documents=documents, response=response
        )
        self._recorder = self._make_recorder(OpenCalls(max_open, ttl), hooks if hooks.any else None)
        self._span_handler = SpanObserver(self._recorder)
        self._event_handler = EventObserver(self._recorder)

    def _make_recorder(self, calls: OpenCalls[Call], hooks: Hooks | None) -> Recorder:
        return Recorder(self._outlet.target, self._outlet.delivery, calls, hooks)

    @property
    def open_calls(self) -> int:
        """How many calls are in flight, streams that are not read to their end included."""
        with self._recorder.lock:
            self._recorder.forget(self._recorder.calls.expire())
            return len(self._recorder.calls)

    @property
    def dropped(self) -> int:
        """How many calls were dropped: never ended within `ttl`, or more than `max_open`."""
        return self._recorder.calls.dropped

    # --- on and off -------------------------------------------------------------------------

    def install(self) -> None:
        """Start to observe; does nothing when it already does."""
        attach(self._span_handler, self._event_handler)

    def uninstall(self) -> None:
        """Stop to observe; calls in flight are forgotten, queries' streams still read along."""
        detach(self._span_handler, self._event_handler)
        self._recorder.abandon()

    def __enter__(self) -> RagEvalHandler:
        self.install()
        return self

    def __exit__(self, *exception: object) -> None:
        self.uninstall()


# --- A handler that sees only what is called through it


_inside: ContextVar[tuple[Recorder, ...]] = ContextVar("rag_eval_integrations_scopes", default=())


class ScopedHandler(RagEvalHandler):
    """Calls `target` with a `RagCall` for every call made inside of `watching()`.

    It goes on to the dispatcher and off it by itself, so nothing is to be installed; queries that
    run elsewhere in the process are not seen. Streams end, and are delivered, when the app has
    read them, or drops them.
    """

    def __init__(
        self,
        target: TargetOrEvaluator,
        *,
        on_evaluation: Callable[[Evaluation], object] | None = None,
    ) -> None:
        """Make a handler; arguments are those of `RagEvalHandler`."""
        self._running = 0
        super().__init__(target, on_evaluation=on_evaluation)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Capture what is called inside; nothing where the same target gets the call anyway."""
        if self._is_covered():
            yield
            return
        with CHANGING:
            self._running += 1
            self.install()
        token = _inside.set((*_inside.get(), self._recorder))
        try:
            yield
        finally:
            _inside.reset(token)
            with CHANGING:
                self._running -= 1
            self._leave_when_idle()

    def _is_covered(self) -> bool:
        """Whether another handler, with this very target, captures what is called here."""
        target = self._recorder.target
        return any(one.target == target and one.opens_here() for one in _recorders())

    def _make_recorder(self, calls: OpenCalls[Call], hooks: Hooks | None) -> Recorder:
        return Recorder(
            self._outlet.target,
            self._outlet.delivery,
            calls,
            hooks,
            may_open=self._is_watching,
            on_end=self._leave_when_idle,
        )

    def _is_watching(self) -> bool:
        # What has a parent is its parent's affair, and what a stream does its reader's.
        return self._recorder in _inside.get()

    def _leave_when_idle(self) -> None:
        with CHANGING:
            if not self._running and not len(self._recorder.calls):
                detach(self._span_handler, self._event_handler)


def _recorders() -> list[Recorder]:
    observers = get_dispatcher().event_handlers
    return [one.recorder for one in observers if isinstance(one, EventObserver)]


def in_captured_call() -> bool:
    """Whether this context is inside of a call that some handler of ours will deliver.

    The dispatcher says which span is running, and the handlers whether it is one of theirs. A bare
    retriever's spans are theirs as well, but never become a call.
    """
    span_id = active_span_id.get()
    spans = [one.spans.get(span_id) for one in _recorders()] if span_id else []
    return bool(reading()) or any(
        span is not None and span.call.root.stage == "answer" for span in spans
    )


_LOGGER = logging.getLogger("rag_eval_integrations.llama_index")
