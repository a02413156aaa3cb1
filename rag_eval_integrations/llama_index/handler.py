"""Stage 1 for LlamaIndex: a handler on the root dispatcher that turns queries into `RagCall`s.

Spans give the tree (who was called by whom), events the prompts. The dispatcher is process-wide
and swallows every exception of a handler without a word: failures are logged and counted here.
"""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import AsyncGenerator, Generator
from typing import TYPE_CHECKING, Any, cast

from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.base import BaseEvent
from llama_index_instrumentation.event_handlers import BaseEventHandler
from llama_index_instrumentation.span import BaseSpan
from llama_index_instrumentation.span_handlers import BaseSpanHandler

from rag_eval_integrations._observe import Delivery, OpenCalls, Target
from rag_eval_integrations._suppress import suppressed
from rag_eval_integrations.llama_index.extract import answer_of, is_stream, prompt_of
from rag_eval_integrations.llama_index.stream import atee, reading, tee
from rag_eval_integrations.llama_index.tree import ENTRIES, Call, Span
from rag_eval_integrations.records import CaptureStatus

_LOGGER = logging.getLogger("rag_eval_integrations.llama_index")
_MODEL_STARTS = frozenset({"LLMCompletionStartEvent", "LLMChatStartEvent"})


class RagEvalHandler:
    """Calls `target` with a `RagCall` for every outermost query that it observes.

    Observes the whole process between `install()` and `uninstall()`, or inside of `with`; sync,
    async and streaming queries, any number at a time. Streams are passed on token by token: the
    call ends when the app has read, or closed, its stream. A query in which no retriever ran and
    no node was seen is no RAG call.

    `target` is called once a call, when the call has ended, in the thread of its last event: it
    should only hand the record on. What it raises is logged and counted, never seen by the app.
    """

    def __init__(self, target: Target, *, max_open: int = 10_000, ttl: float = 3600.0) -> None:
        """Make a handler; nothing is observed before `install()`.

        Args:
            target: Takes the `RagCall`; a plain callable.
            max_open: At most so many calls are held in flight; the oldest is dropped.
            ttl: Seconds after which a call that never ended is dropped.

        Raises:
            ConfigurationError: an argument cannot be used; names it.
        """
        self._delivery = Delivery(target, _LOGGER)
        self._calls: OpenCalls[Call] = OpenCalls(max_open, ttl)
        self._spans: dict[str, Span] = {}
        # Reentrant: a garbage collection inside of a locked region can close a stream.
        self._lock = threading.RLock()
        self._span_handler = _SpanHandler(self)
        self._event_handler = _EventHandler(self)

    @property
    def open_calls(self) -> int:
        """How many calls are in flight, streams that are not read to their end included."""
        with self._lock:
            self._forget(self._calls.expire())
            return len(self._calls)

    @property
    def failed(self) -> int:
        """How often the target, or the capture itself, failed."""
        return self._delivery.failed

    @property
    def dropped(self) -> int:
        """How many calls were dropped: never ended within `ttl`, or more than `max_open`."""
        return self._calls.dropped

    # --- on and off -------------------------------------------------------------------------

    def install(self) -> None:
        """Start to observe; does nothing when it already does."""
        root = get_dispatcher()
        with self._lock:
            # New lists, so that a thread that goes through the old ones is not disturbed.
            if not any(one is self._span_handler for one in root.span_handlers):
                root.span_handlers = [*root.span_handlers, self._span_handler]
            if not any(one is self._event_handler for one in root.event_handlers):
                root.event_handlers = [*root.event_handlers, self._event_handler]

    def uninstall(self) -> None:
        """Stop to observe; queries in flight are forgotten, streams are still read along."""
        root = get_dispatcher()
        with self._lock:
            root.span_handlers = [
                one for one in root.span_handlers if one is not self._span_handler
            ]
            root.event_handlers = [
                one for one in root.event_handlers if one is not self._event_handler
            ]
            for call in {id(span.call): span.call for span in list(self._spans.values())}.values():
                self._calls.close(call.key)
                self._forget([call])

    def __enter__(self) -> RagEvalHandler:
        self.install()
        return self

    def __exit__(self, *exception: object) -> None:
        self.uninstall()

    # --- the boundary: nothing that fails here reaches the app ------------------------------

    def _enter(
        self,
        span_id: str,
        bound_args: inspect.BoundArguments,
        instance: object,
        parent_id: str | None,
        tags: dict[str, Any] | None,
    ) -> None:
        parent = self._spans.get(parent_id) if parent_id else None
        method = span_id[:-37].rpartition(".")[2]  # Class.method-<uuid of 36 characters>
        if (parent is None and method not in ENTRIES) or suppressed():
            return
        try:
            if parent is None:
                call = Call(span_id, bound_args, tags)
                with self._lock:
                    self._forget(self._calls.add(span_id, call))
            else:
                call = parent.call
            span = Span(call, parent, method)
            self._spans[span_id] = span
            call.open.add(span_id)
            call.entered(span, bound_args, instance)
        except Exception as error:  # noqa: BLE001 -- the boundary
            self._delivery.failure("capture (span start)", error)

    def _exit(self, span_id: str, instance: object, result: object) -> None:
        span = self._spans.pop(span_id, None)
        if span is None:
            return
        call = span.call
        call.open.discard(span_id)
        try:
            call.left(span, instance, result)
            if span.parent is None:
                self._forget([call])
                if is_stream(result):
                    self._read_along(result, call)
                else:
                    self._end(call, "ok", answer_of(result))
        except Exception as error:  # noqa: BLE001 -- the boundary
            self._delivery.failure("capture (span end)", error)

    def _drop(self, span_id: str, error: BaseException | None) -> None:
        span = self._spans.pop(span_id, None)
        if span is None:
            return
        span.call.open.discard(span_id)
        if span.parent is None:
            self._forget([span.call])
            aborted = error is not None and not isinstance(error, Exception)
            self._end(span.call, "aborted" if aborted else "error", None)

    def _model_started(self, event: BaseEvent) -> None:
        span = self._spans.get(event.span_id or "")
        try:
            if span is not None:
                span.call.asked(span, prompt_of(event))
                return
            for call in reading():
                if self._calls.holds(call.key, call):
                    call.asked(None, prompt_of(event))
        except Exception as error:  # noqa: BLE001 -- the boundary
            self._delivery.failure("capture (model start)", error)

    # --- the end of a call ------------------------------------------------------------------

    def _read_along(self, response: Any, call: Call) -> None:
        """Put our generator in place of the response's; the same object goes to the app."""
        tokens = response.response_gen
        call.streaming = True
        if hasattr(tokens, "__anext__"):
            response.response_gen = atee(cast("AsyncGenerator[object]", tokens), call, self._end)
        else:
            response.response_gen = tee(
                cast("Generator[object, None, object]", tokens), call, self._end
            )

    def _end(self, call: Call, status: CaptureStatus, response: str | None) -> None:
        with self._lock:
            if self._calls.close(call.key) is None:
                return
        try:
            record = call.finish(status, response)
        except Exception as error:  # noqa: BLE001 -- the boundary
            self._delivery.failure("capture (call end)", error)
            return
        if record is not None:
            self._delivery.deliver(record)

    def _forget(self, calls: list[Call]) -> None:
        for call in calls:
            for span_id in list(call.open):
                self._spans.pop(span_id, None)
            call.open.clear()


class _SpanHandler(BaseSpanHandler[BaseSpan]):
    """What the dispatcher knows of us; LlamaIndex's own bookkeeping of spans is not used."""

    __slots__ = ("_owner",)  # a slot: pydantic's private attributes cost 1 µs a read
    if TYPE_CHECKING:  # an annotation would make it one of these
        _owner: RagEvalHandler

    def __init__(self, owner: RagEvalHandler) -> None:
        super().__init__()
        object.__setattr__(self, "_owner", owner)

    @classmethod
    def class_name(cls) -> str:
        return "RagEvalSpanHandler"

    def span_enter(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any | None = None,
        parent_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self._owner._enter(id_, bound_args, instance, parent_id, tags)

    def span_exit(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any | None = None,
        result: Any | None = None,
        **kwargs: Any,
    ) -> None:
        self._owner._exit(id_, instance, result)

    def span_drop(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any | None = None,
        err: BaseException | None = None,
        **kwargs: Any,
    ) -> None:
        self._owner._drop(id_, err)

    def new_span(self, *args: Any, **kwargs: Any) -> None:
        return None

    def prepare_to_exit_span(self, *args: Any, **kwargs: Any) -> None:
        return None

    def prepare_to_drop_span(self, *args: Any, **kwargs: Any) -> None:
        return None


class _EventHandler(BaseEventHandler):
    """Takes the prompts out of the models' start events."""

    __slots__ = ("_owner",)
    if TYPE_CHECKING:
        _owner: RagEvalHandler

    def __init__(self, owner: RagEvalHandler) -> None:
        super().__init__()
        object.__setattr__(self, "_owner", owner)

    @classmethod
    def class_name(cls) -> str:
        return "RagEvalEventHandler"

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        if type(event).__name__ in _MODEL_STARTS and not suppressed():
            self._owner._model_started(event)
