"""Stage 1 for LlamaIndex: capture RAG calls by handlers on LlamaIndex's root dispatcher.

This module holds the handlers for the process and for one scope, and the observers that the
dispatcher calls for every span and event. The private modules do the work:

_recorder   which call a span or event belongs to; when a call begins and ends
_call       the values seen in one call, and its record; with _tree, _context and _values
_stream     streams that the app reads
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.base import BaseEvent
from llama_index_instrumentation.event_handlers import BaseEventHandler
from llama_index_instrumentation.span import BaseSpan, active_span_id
from llama_index_instrumentation.span_handlers import BaseSpanHandler

from rag_eval_integrations._visible import logger_of
from rag_eval_integrations.capture._calls import OpenCalls
from rag_eval_integrations.capture._delivery import Attached, TargetOrEvaluator, delivery_to
from rag_eval_integrations.capture._uncaptured import ToolDocuments, Uncaptured, takes_text_of
from rag_eval_integrations.llama_index._recorder import WANTED, Recorder
from rag_eval_integrations.llama_index._stream import reading
from rag_eval_integrations.llama_index._values import LlamaIndexHooks
from rag_eval_integrations.records import Evaluation

if TYPE_CHECKING:
    pass

_LOGGER = logger_of("rag_eval_integrations.llama_index")

# --- The event that tells the scores


class EvaluationEvent(BaseEvent):
    """The scores of a captured call; any event handler of LlamaIndex gets it.

    It is sent from a thread of the background when the evaluation is done. The call's spans have
    ended by then, so `span_id`, by which handlers look for an open span, is None.
    """

    root_span_id: str
    """LlamaIndex's id of the call's outermost span (`capture.run_id`)."""
    scores: dict[str, float | None]
    """Score name → value in [0, 1]; None where a score is unscored or has an error."""
    evaluation: Evaluation
    """The whole evaluation, with reasons, labels and texts."""

    @classmethod
    def class_name(cls) -> str:
        """Return the name in traces."""
        return "EvaluationEvent"


def dispatch_evaluation(evaluation: Evaluation) -> None:
    """Send an `EvaluationEvent` to LlamaIndex's event handlers.

    Handlers and wrappers with a `RagEvaluator` or a judge's name as target do so themselves; give a
    `BackgroundEvaluator` the sink `CallbackSink(dispatch_evaluation)`.

    Args:
        evaluation: the evaluation; nothing is sent for one that LlamaIndex's capture did not make.
    """
    capture = evaluation.capture
    if capture is not None and capture.framework == "llama_index" and capture.run_id is not None:
        scores = {name: score.value for name, score in evaluation.scores.items()}
        get_dispatcher().event(
            EvaluationEvent(
                span_id=None, root_span_id=capture.run_id, scores=scores, evaluation=evaluation
            )
        )


# --- Handlers on LlamaIndex's root dispatcher, which serves the whole process


# Reentrant, and no other lock is taken inside: a garbage collection can end a stream, and with it
# a handler's last call, at any place, also where a recorder's lock is held.
CHANGING = threading.RLock()


def attach(spans: BaseSpanHandler[BaseSpan], events: BaseEventHandler) -> None:
    """Add handlers to the root dispatcher, unless they are there."""
    root = get_dispatcher()
    with CHANGING:
        # New lists, so that a thread that iterates over the old ones is not disturbed.
        if not any(handler is spans for handler in root.span_handlers):
            root.span_handlers = [*root.span_handlers, spans]
        if not any(handler is events for handler in root.event_handlers):
            root.event_handlers = [*root.event_handlers, events]


def detach(spans: BaseSpanHandler[BaseSpan], events: BaseEventHandler) -> None:
    """Remove handlers from the root dispatcher."""
    root = get_dispatcher()
    with CHANGING:
        root.span_handlers = [handler for handler in root.span_handlers if handler is not spans]
        root.event_handlers = [handler for handler in root.event_handlers if handler is not events]


# --- The observers that the dispatcher calls for every span and event


class SpanObserver(BaseSpanHandler[BaseSpan]):
    """Passes spans to a recorder; LlamaIndex's own bookkeeping of spans is not used."""

    # The dispatcher calls the recorder's own methods directly, some 28 times per query. They are
    # in slots, because a pydantic model's private attributes take 1 µs per read.
    __slots__ = ("span_drop", "span_enter", "span_exit")

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        object.__setattr__(self, "span_enter", recorder.enter)
        object.__setattr__(self, "span_exit", recorder.exit)
        object.__setattr__(self, "span_drop", recorder.drop)

    @classmethod
    def class_name(cls) -> str:
        """Return the name in traces."""
        return "RagEvalSpanHandler"

    def new_span(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing; the base class requires this method, which is not used."""
        return None

    def prepare_to_exit_span(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing; the base class requires this method, which is not used."""
        return None

    def prepare_to_drop_span(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing; the base class requires this method, which is not used."""
        return None


class EventObserver(BaseEventHandler):
    """Passes the few events that are used to a recorder: prompts and the text of chat streams."""

    __slots__ = ("recorder",)
    if TYPE_CHECKING:
        recorder: Recorder

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        object.__setattr__(self, "recorder", recorder)

    @classmethod
    def class_name(cls) -> str:
        """Return the name in traces."""
        return "RagEvalEventHandler"

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        """Pass an event on if it is wanted."""
        name = type(event).__name__
        if name in WANTED:
            self.recorder.event(name, event)


# --- The handler for the whole process


QuestionHook = Callable[[Mapping[str, Any]], str]
"""Returns the question, from the arguments of the outermost method."""
DocumentsHook = Callable[[Any], Iterable[Any] | None]
"""Returns the documents, from its result; None leaves them to the handler."""
ResponseHook = Callable[[Any], str | None]
"""Returns the answer, from its result or the text of a stream; None leaves it to the handler."""


class RagEvalHandler(Attached):
    """Calls `target` with a `RagCall` for every outermost query, chat or run that it observes.

    Observes the whole process between `install()` and `uninstall()`, or inside `with`: query
    engines, chat engines, agents and workflows; sync, async and streaming, any number of them
    concurrently. Streams are passed on token by token: the call ends when the app has read or
    closed its stream, or when the chat engine has written it. Everything that runs inside a call
    belongs to it. A call in which no retriever ran and no node was seen is not a RAG call, and
    neither is a bare retriever.

    `target` is called once per call, when the call has ended, in the thread of its last event: it
    should only pass the record on. Its exceptions are logged and counted, and never reach the app.

    Not captured, but counted in `uncaptured` where it is noticed, and the first of its kind logged:

    * plain code that calls a retriever and then a synthesizer or a model: make it a
      `CustomQueryEngine` or a workflow, or use `capture_call`;
    * a bare retriever: use `EvaluatedRetriever`;
    * a tool that searches by itself and returns text: have it return nodes or a response, or name
      it in `tool_documents`;
    * a follow-up that is answered from what a tool found in an earlier turn;
    * a retriever in a thread pool: give its thread `contextvars.copy_context().run`;
    * a query in which no retriever ran and no node was seen: set the hook `documents`.
    """

    _notes_uncaptured = True
    _attach = (
        "no callback manager takes it: call `install()`; LangChain is captured by "
        "`rag_eval_integrations.langchain.RagEvalCallbackHandler(target)`"
    )
    _unreached = "handler; call `install()` before the app is asked, or ask it in a `with` block"

    def __init__(
        self,
        target: TargetOrEvaluator,
        *,
        question: QuestionHook | None = None,
        documents: DocumentsHook | None = None,
        response: ResponseHook | None = None,
        tool_documents: ToolDocuments | None = None,
        on_evaluation: Callable[[Evaluation], object] | None = None,
        max_open: int = 10_000,
        ttl: float = 3600.0,
    ) -> None:
        """Make a handler; nothing is observed before `install()`.

        If a hook fails, the failure is logged and counted, and the handler reads the field itself.
        Hooks run in the app's thread, so they should be quick, and must not read a stream.

        Args:
            target: takes the `RagCall`: a plain callable, a `BackgroundEvaluator`, or a
                `RagEvaluator` or its judge's name, which is then run in the background.
            question: hook that returns the question, from the arguments of the outermost method
                by name; for agents and workflows, from the fields of the start event.
            documents: hook that returns the documents (nodes, records or strings), from the result
                of the outermost method; None leaves them to the handler.
            response: hook that returns the answer, from the result of the outermost method, or
                from the whole text of a stream; None leaves it to the handler.
            tool_documents: names of tools, or a function that takes a tool's name: the plain text
                that such a tool returns is taken as a document, unless nodes were seen in it.
            on_evaluation: called with every evaluation; only with a `RagEvaluator` as target.
            max_open: calls held in flight at most, at least 1; beyond it the oldest is dropped.
            ttl: seconds after which a call that has not ended is dropped, above 0.

        Raises:
            ConfigurationError: an argument cannot be used; the message names it.
        """
        self._delivery = delivery_to(target, _LOGGER, on_evaluation, dispatch_evaluation)
        self._delivery.unreached = self._unreached
        hooks = LlamaIndexHooks(
            self._delivery, question=question, documents=documents, response=response
        )
        self._uncaptured = Uncaptured(_LOGGER, f"{__package__}.RagEvalHandler")
        self._recorder = Recorder(
            self._delivery,
            OpenCalls(max_open, ttl),
            hooks if hooks else None,
            may_open=self._may_open,
            on_end=self._on_end,
            uncaptured=self._uncaptured if self._notes_uncaptured else None,
            takes_text=takes_text_of(tool_documents),
        )
        self._blocks = 0
        self._span_handler = SpanObserver(self._recorder)
        self._event_handler = EventObserver(self._recorder)

    def _may_open(self) -> bool:
        """Return whether a call may be opened here: always, but for a `ScopedHandler`."""
        return True

    def _on_end(self) -> None:
        """Do nothing when a call has ended; a scoped handler may uninstall itself."""

    def __repr__(self) -> str:
        return f"RagEvalHandler({self._delivery!r})"

    @property
    def open_calls(self) -> int:
        """Number of calls in flight, including streams that have not been read to their end."""
        with self._recorder.lock:
            self._recorder.forget(self._recorder.calls.expire())
            return len(self._recorder.calls)

    @property
    def dropped(self) -> int:
        """Number of calls dropped because they exceeded `ttl` or `max_open`."""
        return self._recorder.calls.dropped

    @property
    def uncaptured(self) -> int:
        """Number of runs that look like RAG calls and could not be captured; one is logged each."""
        return self._uncaptured.count

    # --- on and off -------------------------------------------------------------------------

    def install(self) -> None:
        """Start observing; does nothing if the handler is already observing."""
        attach(self._span_handler, self._event_handler)

    def uninstall(self) -> None:
        """Stop observing; calls in flight are dropped, except for streams that the app reads."""
        detach(self._span_handler, self._event_handler)
        self._recorder.abandon()

    def __enter__(self) -> RagEvalHandler:
        with CHANGING:
            self._blocks += 1
            self.install()
        return self

    def __exit__(self, *exception: object) -> None:
        with CHANGING:
            self._blocks -= 1
            if self._blocks:  # another thread or task is inside of its own block
                return
        self.uninstall()


# --- The handler for one scope


_inside: ContextVar[tuple[Recorder, ...]] = ContextVar("rag_eval_integrations_scopes", default=())


class ScopedHandler(RagEvalHandler):
    """Calls `target` with a `RagCall` for every call made inside `watching()`.

    It installs and uninstalls itself. Queries that run elsewhere in the process are not observed.
    The call of a stream is delivered when the app has read or dropped the stream.
    """

    _notes_uncaptured = False
    _unreached = "wrapper; call it in the place of what it wraps"

    def __init__(
        self,
        target: TargetOrEvaluator,
        *,
        on_evaluation: Callable[[Evaluation], object] | None = None,
    ) -> None:
        """Make a handler.

        Args:
            target: as for `RagEvalHandler`.
            on_evaluation: as for `RagEvalHandler`.
        """
        self._running = 0
        super().__init__(target, on_evaluation=on_evaluation)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Capture this context's calls inside, unless another handler delivers them to this target.

        The handler is installed for the first of concurrent uses, and for as long as one is inside.
        """
        self._delivery.unreached = ""
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
            self._on_end()

    def _is_covered(self) -> bool:
        """Return whether another handler with the same target captures calls made here."""
        target = self._delivery.target
        return any(
            recorder.delivery.target == target and recorder.may_open() for recorder in _recorders()
        )

    def _may_open(self) -> bool:
        """Return whether this context is inside a `watching` block of the handler."""
        # This decides about roots only: other spans belong to their parent's or a stream's call.
        return self._recorder in _inside.get()

    def _on_end(self) -> None:
        """Detach from LlamaIndex when no call is left."""
        with CHANGING:
            if not self._running and not len(self._recorder.calls):
                detach(self._span_handler, self._event_handler)


def _recorders() -> list[Recorder]:
    """Return the recorders that are attached to LlamaIndex."""
    observers = get_dispatcher().event_handlers
    return [observer.recorder for observer in observers if isinstance(observer, EventObserver)]


def in_captured_call() -> bool:
    """Return whether this context is inside a call that a handler of this library will deliver.

    The dispatcher knows which span is running, and the handlers know whether it belongs to a call
    of theirs. The spans of a bare retriever do as well, but such a call is never delivered.
    """
    span_id = active_span_id.get()
    spans = [recorder.spans.get(span_id) for recorder in _recorders()] if span_id else []
    return bool(reading()) or any(
        span is not None and span.call.root.stage == "answer" for span in spans
    )
