"""Stage 1 for LlamaIndex: turn spans and events into calls, without failures that reach the app.

Spans give the tree of calls, events the prompts. The dispatcher discards every exception of a
handler silently, so failures are logged and counted here.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from inspect import BoundArguments
from types import AsyncGeneratorType, GeneratorType
from typing import Any

from rag_eval_integrations._suppress import suppress_capture, suppressed
from rag_eval_integrations.capture._calls import OpenCalls
from rag_eval_integrations.capture._delivery import TargetDelivery
from rag_eval_integrations.capture._retrieval import in_retrieval
from rag_eval_integrations.capture._tool_results import ToolResults
from rag_eval_integrations.capture._traces import CallTraces
from rag_eval_integrations.capture._uncaptured import Uncaptured
from rag_eval_integrations.capture.record import open_call
from rag_eval_integrations.llama_index._call import CallSpan, RootSpan
from rag_eval_integrations.llama_index._stream import (
    holds_stream,
    is_written_in_background,
    read_along,
    read_result_along,
    reading,
)
from rag_eval_integrations.llama_index._tree import ROOTS, Writing, stage_of
from rag_eval_integrations.llama_index._values import (
    LlamaIndexHooks,
    prompt_of,
    question_of,
    unwrapped,
)
from rag_eval_integrations.records.call import CaptureStatus

# --- Queries of evaluators, which are not a user's questions


__all__ = ["asked_by_evaluator", "suppress_capture"]

_EVALUATORS = (
    "llama_index.core.evaluation.context_relevancy",
    "llama_index.core.evaluation.faithfulness",
    "llama_index.core.evaluation.relevancy",
)
"""The modules whose evaluators query an engine; each has both templates."""


def asked_by_evaluator(engine: object) -> bool:
    """Return whether one of LlamaIndex's own evaluators made this query engine; takes 2 µs.

    No span, tag or context variable marks their queries. But they make an engine for each, with
    their templates, which are constants; an evaluator with an `eval_template` of the user's still
    has its own `refine_template`. An engine's public `get_prompts()` would do as well, but copies
    all its prompts, which takes 870 µs.
    """
    synthesizer = getattr(engine, "__dict__", {}).get("_response_synthesizer")
    prompts = getattr(synthesizer, "__dict__", {})
    text_qa = prompts.get("_text_qa_template")
    if text_qa is None:
        return False
    refine = prompts.get("_refine_template") or text_qa
    for name in _EVALUATORS:
        known = getattr(sys.modules.get(name), "__dict__", {})
        if text_qa is known.get("DEFAULT_EVAL_TEMPLATE"):
            return True
        if refine is known.get("DEFAULT_REFINE_TEMPLATE"):
            return True
    return False


_MAX_LATE = 4_096
_MODEL_STARTS = frozenset({"LLMCompletionStartEvent", "LLMChatStartEvent"})
_DELTA = "StreamChatDeltaReceivedEvent"
_CANCELLED = "SpanCancelledEvent"
_GENERATORS = frozenset({GeneratorType, AsyncGeneratorType})
_MODEL_ENDS = frozenset({"LLMCompletionEndEvent", "LLMChatEndEvent"})
WANTED = _MODEL_STARTS | _MODEL_ENDS | {_DELTA, _CANCELLED}
"""Names of the events that are used; there are hundreds of others, some sent per token."""


# --- Spans and events


class Recorder:
    """The open calls and their spans; a call is delivered when it has ended."""

    def __init__(
        self,
        delivery: TargetDelivery,
        calls: OpenCalls[RootSpan],
        hooks: LlamaIndexHooks | None,
        *,
        may_open: Callable[[], bool],
        on_end: Callable[[], None],
        uncaptured: Uncaptured | None,
        takes_text: Callable[[str], bool] | None,
    ) -> None:
        """Make a recorder.

        Args:
            delivery: receives the records; of two recorders whose deliveries have the same target,
                one delivers a call.
            calls: the open calls.
            hooks: the user's extractors, if any.
            may_open: returns whether a call may be opened in this context.
            on_end: called when a call has ended.
            uncaptured: counts the calls that look like RAG and could not be captured.
            takes_text: decides by a tool's name whether its text is a document.
        """
        self.delivery = delivery
        self.calls = calls
        self.spans: dict[str, CallSpan] = {}
        """Spans by id; a span that is not relevant is mapped to its nearest relevant ancestor."""
        self._hooks = hooks
        self.may_open = may_open
        self._on_end = on_end
        self._uncaptured = uncaptured
        self._takes_text = takes_text
        # Spans that go on after their call has ended or was dropped: a span that starts under them
        # is not a new call. Only ids, and a limited number, since some spans never end.
        self._late: dict[str, None] = {}
        self._tool_results = ToolResults()
        # Whether a call has ever left its stream to the app: an app without streams does not pay
        # for looking, at every span, whether a stream is being read (27,000 of the 646,000
        # instructions that were added to a query; 497,000 are left).
        self._streamed = False
        # Reentrant: a garbage collection inside a locked region can close a stream.
        self.lock = threading.RLock()

    # --- called by the dispatcher -----------------------------------------------------------

    def enter(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: object = None,
        parent_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **kwargs: object,
    ) -> None:
        """Handle a span's start: it joins a call, opens one, or is ignored."""
        try:
            parent = self.spans.get(parent_id or "")
            if self._streamed and (streams := reading()):
                parent = self._parent_in_stream(streams, parent)
            if parent is None:
                self._enter_root(id_, bound_args, instance, parent_id, tags)
                return
            if not parent.call.traces.begun:
                parent.call.traces.look_inside()
            # A retriever may ask a query engine, whose answer it returns as a node.
            relevant = not parent.closed or parent.stage == "retrieve"
            stage = stage_of(id_, instance) if relevant else None
            if (
                stage is None
                or (parent.closed and stage != "answer")
                # A step may be called `query` as well; outside of a call, an app's own function
                # begins one.
                or (instance is None and stage == "answer")
            ):
                self.spans[id_] = parent
                parent.call.open.add(id_)
                if parent.call.is_unasked:
                    parent.call.note_human_message(bound_args.arguments)
            elif stage == "answer" and parent.call.is_session and question_of(bound_args.arguments):
                self._enter_root(id_, bound_args, instance, None, tags)
            elif not suppressed():
                if stage == "answer" and asked_by_evaluator(instance):
                    stage = "judge"
                call = parent.call
                span = self.spans[id_] = CallSpan(id_, parent, stage)
                span.call = call
                call.open.add(id_)
                call.record_start(span, bound_args.arguments, instance)
        except Exception as error:  # noqa: BLE001 -- the boundary
            self.delivery.failure("capture (span start)", error)

    def exit(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: object = None,
        result: object = None,
        **kwargs: object,
    ) -> None:
        """Handle a span's end; the end of the root ends the call, unless a stream follows.

        A span that makes a generator stays until the call ends.
        """
        span = self.spans.get(id_)
        if span is None:
            self._forget_span(id_, span)
            return
        call = span.call
        call.open.discard(id_)
        if span.id != id_:  # not relevant, as most spans
            if call.is_run:
                call.record_event(result, bound_args.arguments)
            if type(result) in _GENERATORS:
                call.producing.append(id_)
            else:
                self.spans.pop(id_, None)
            return
        try:
            if span.parent is None:  # the root stays, so that later spans can join its call
                self._end_root(call, result)
                return
            if type(result) in _GENERATORS or (span.stage == "synthesize" and holds_stream(result)):
                call.producing.append(id_)
            else:
                self.spans.pop(id_, None)
            if span.writing is not None:
                self._end_writing(call, span.writing, "ok")
            else:
                call.record_result(span, result)
        except Exception as error:  # noqa: BLE001 -- the boundary
            self.delivery.failure("capture (span end)", error)
            if span.parent is None:
                self.close(call)

    def drop(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: object = None,
        err: BaseException | None = None,
        **kwargs: object,
    ) -> None:
        """Handle a span's end by an exception, which ends the call if it is the root."""
        span = self.spans.get(id_)
        if span is None or span.id != id_:
            self._forget_span(id_, span)
            return
        span.call.open.discard(id_)
        span.failed = True
        aborted = err is not None and not isinstance(err, Exception)
        status: CaptureStatus = "aborted" if aborted else "error"
        if span.parent is None:
            span.call.traces.look_at_end()
            self.end(span.call, status, None)
            return
        span.call.part_failed = True
        self.spans.pop(id_, None)
        if span.writing is not None:
            self._end_writing(span.call, span.writing, status)

    def event(self, name: str, event: Any) -> None:
        """Handle an event whose name is in `WANTED`: of a model, a token, a cancellation."""
        try:
            span = self.spans.get(event.span_id or "")
            if name in _MODEL_STARTS:
                if span is None and self._streamed and (streams := reading()):
                    span = self._parent_in_stream(streams, None)
                if span is not None and not suppressed():
                    span.call.record_prompt(span, *prompt_of(event))
            elif span is None:
                return
            elif name in _MODEL_ENDS:
                span.call.record_reply(span, event.response)
            elif name == _DELTA:
                if span.writing is not None:
                    span.writing.add(event.delta)
            elif event.span_id == span.call.key:  # the run itself was cancelled, and not a step
                span.call.cancelled = True
        except Exception as error:  # noqa: BLE001 -- the boundary
            self.delivery.failure(f"capture ({name})", error)

    # --- roots and their ends ---------------------------------------------------------------

    def _parent_in_stream(
        self, streams: tuple[RootSpan, ...], parent: CallSpan | None
    ) -> CallSpan | None:
        """Return a span's parent: in the call whose stream now produces a token, if any does."""
        for call in streams:
            if self.calls.holds(call.key, call):
                return parent if parent is not None and parent.call is call else call.root
        return parent

    def _enter_root(
        self,
        span_id: str,
        bound_args: BoundArguments,
        instance: object,
        parent_id: str | None,
        tags: dict[str, Any] | None,
    ) -> None:
        """Open a call for a root span, if it is of a kind that answers or retrieves.

        Not for spans that come late, while capture is suppressed, or inside of an evaluator.
        """
        self.delivery.unreached = ""
        if not self.may_open():
            return
        if parent_id is not None and parent_id in self._late:
            self._note_late(span_id)
            return
        stage = stage_of(span_id, instance)
        if stage not in ROOTS or suppressed():
            return
        if stage == "answer" and asked_by_evaluator(instance):
            stage = "judge"
        if stage == "retrieve" and in_retrieval():  # an `EvaluatedRetriever` captures it
            stage = "judge"
        call = RootSpan(span_id, stage, bound_args.arguments, instance, tags, self._hooks)
        call.traces = CallTraces(self.delivery)
        call.takes_text = self._takes_text
        call.tool_results = self._tool_results
        call.unread = None if self._uncaptured is None else self._uncaptured.note_unread
        with self.lock:
            self.forget(self.calls.add(span_id, call))
        self.spans[span_id] = call.root

    def _end_root(self, call: RootSpan, result: object) -> None:
        """End a call with the result of its root, or once the result's stream has ended."""
        call.traces.look_at_end()
        if result is None and call.is_run:  # a workflow that succeeds returns its stop event
            self.end(call, "aborted" if call.cancelled else "error", None)
            return
        response = unwrapped(result)
        call.record_root_result(result, response)
        is_stream = type(response) in _GENERATORS  # a model's, as a workflow may return it
        if not is_stream and not holds_stream(response):
            self.end(call, "ok", call.answer(result, response))
        elif is_written_in_background(response):
            call.awaited = response
            writing = call.writing_of(response)
            if writing is not None:  # the writing may have ended already
                self._end_if_written(call, writing)
        else:
            self._streamed = True
            if (
                read_result_along(result, response, call, self.end)
                if is_stream
                else read_along(response, call, self.end)
            ):
                call.read_by_app = True
            else:
                self.end(call, "ok", call.answer(result, response))

    def _end_writing(self, call: RootSpan, writing: Writing, status: CaptureStatus) -> None:
        """Record how the writing of a stream ended; end the call if it waits for this stream."""
        writing.end(status)
        if call.awaited is writing.response:
            self._end_if_written(call, writing)

    def _end_if_written(self, call: RootSpan, writing: Writing) -> None:
        """End a call if the writing of its answer has ended."""
        if writing.status is not None:
            self.end(call, writing.status, writing.text)

    def end(self, call: RootSpan, status: CaptureStatus, response: str | None) -> None:
        """Make the record of a call and deliver it, once per call.

        One that looks like RAG and is not captured is counted.
        """
        if not self.close(call):
            return
        try:
            ended = call.finish(status, response, self._count_failed_record)
            if ended is not None:
                self.delivery.deliver(ended)
            elif status == "ok" and self._uncaptured is not None and open_call() is None:
                self._note_uncaptured(call, self._uncaptured)
        except Exception as error:  # noqa: BLE001 -- the boundary
            self.delivery.failure("capture (call end)", error)
        self._on_end()

    def _count_failed_record(self, error: Exception) -> None:
        """Count a record that could not be made."""
        self.delivery.failure("capture (record)", error)

    def _note_uncaptured(self, call: RootSpan, uncaptured: Uncaptured) -> None:
        """Count a call that was not captured, if there are signs of a retrieval."""
        stage = call.root.stage
        if stage == "retrieve":
            uncaptured.note("retriever", call.key[:-37])
        elif stage == "answer":
            earlier = {name: True for name, *_ in call.earlier}
            uncaptured.note_answered(call.tools, call.prompts_of_question(), earlier)

    # --- releasing calls --------------------------------------------------------------------

    def close(self, call: RootSpan) -> bool:
        """Remove a call; return False if it was removed before."""
        with self.lock:
            if self.calls.close(call.key) is None:
                return False
            self.forget([call])
            return True

    def forget(self, calls: list[RootSpan]) -> None:
        """Release the spans of calls; a span that starts under one of them is not a new call."""
        for call in calls:
            self.spans.pop(call.key, None)
            for span_id in list(call.open):
                self.spans.pop(span_id, None)
                self._note_late(span_id)
            call.open.clear()
            for span_id in call.producing:
                self.spans.pop(span_id, None)
            call.producing.clear()

    def abandon(self) -> None:
        """Remove all calls but those whose streams the app is reading."""
        with self.lock:
            for call in {span.call for span in list(self.spans.values())}:
                if call.read_by_app:
                    self.forget([call])
                else:
                    self.close(call)
            self._late.clear()

    def _forget_span(self, span_id: str, ancestor: CallSpan | None) -> None:
        """Forget an ended span that is not relevant, or that belongs to no open call."""
        if ancestor is not None:
            ancestor.call.open.discard(span_id)
            self.spans.pop(span_id, None)
        elif self._late:
            self._late.pop(span_id, None)

    def _note_late(self, span_id: str) -> None:
        """Remember a span that goes on after its call; the oldest of too many are forgotten."""
        self._late[span_id] = None
        while len(self._late) > _MAX_LATE:
            self._late.pop(next(iter(self._late)), None)
