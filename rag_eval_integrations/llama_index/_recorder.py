"""Stage 1, from LlamaIndex's spans and events to calls: the boundary, where nothing may fail.

Spans give the tree (who was called by whom), events the prompts. The dispatcher swallows every
exception of a handler without a word: failures are logged and counted here.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from inspect import BoundArguments
from typing import Any

from rag_eval_integrations._suppress import suppress_capture, suppressed
from rag_eval_integrations.capture._calls import OpenCalls
from rag_eval_integrations.capture._delivery import TargetDelivery
from rag_eval_integrations.llama_index._call import Call, CallSpan
from rag_eval_integrations.llama_index._chat import Writing, fills_itself
from rag_eval_integrations.llama_index._hooks import Hooks
from rag_eval_integrations.llama_index._stream import holds_stream, read_along, reading
from rag_eval_integrations.llama_index._tree import ROOTS, stage_of
from rag_eval_integrations.llama_index._values import prompt_of, unwrapped
from rag_eval_integrations.records import CaptureStatus

# --- What they ask is no user's question


__all__ = ["asked_by_evaluator", "suppress_capture"]

_FARTHEST = 24  # frames from the query up to the evaluator: 11 in LlamaIndex, more with wrappers
_BASE = ("llama_index.core.evaluation.base", "BaseEvaluator")


def asked_by_evaluator() -> bool:
    """Whether the calling code runs inside of an evaluator's `aevaluate` (1 µs)."""
    frame = sys._getframe(1)
    for _ in range(_FARTHEST):
        if frame.f_code.co_name == "aevaluate" and _is_evaluator(frame.f_locals.get("self")):
            return True
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False


def _is_evaluator(value: object) -> bool:
    return any((kind.__module__, kind.__name__) == _BASE for kind in type(value).__mro__)


_MAX_LATE = 4_096
_MODEL_STARTS = frozenset({"LLMCompletionStartEvent", "LLMChatStartEvent"})
_DELTA = "StreamChatDeltaReceivedEvent"
_CANCELLED = "SpanCancelledEvent"
WANTED = _MODEL_STARTS | {_DELTA, _CANCELLED}
"""Names of the events that are of use here; there are hundreds of others, some one a token."""


class Recorder:
    """Holds the open calls and their spans; hands a call on when it has ended."""

    def __init__(
        self,
        target: object,
        delivery: TargetDelivery,
        calls: OpenCalls[Call],
        hooks: Hooks | None,
        *,
        may_open: Callable[[], bool] | None = None,
        on_end: Callable[[], None] | None = None,
    ) -> None:
        """Make a recorder.

        Args:
            target: what the user gave to be called; recorders with the same one share calls.
            delivery: takes the records.
            calls: the open calls.
            hooks: the user's functions, if any.
            may_open: whether a call may be opened in this context; everywhere by default.
            on_end: called when a call has ended.
        """
        self.target = target
        self.delivery = delivery
        self.calls = calls
        self.spans: dict[str, CallSpan] = {}
        """By id; a span that does not matter stands as its nearest ancestor that does."""
        self._hooks = hooks
        self._may_open = may_open
        self._on_end = on_end
        # Spans still going when their call ended or was dropped: what starts under them is no
        # call of its own. Ids only, and bounded, since some spans never end.
        self._late: dict[str, None] = {}
        # Reentrant: a garbage collection inside of a locked region can close a stream.
        self.lock = threading.RLock()

    # --- what the dispatcher tells ----------------------------------------------------------

    def enter(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: object = None,
        parent_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **kwargs: object,
    ) -> None:
        """A span starts: it joins its call, opens one, or is none of our business."""
        try:
            parent = self.spans.get(parent_id or "")
            if streams := reading():
                parent = self._reader(streams, parent)
            if parent is None:
                self._enter_root(id_, bound_args, instance, parent_id, tags)
            elif parent.closed or (stage := stage_of(id_, instance)) is None:
                self.spans[id_] = parent
                parent.call.open.add(id_)
            elif not suppressed():
                if stage == "answer" and asked_by_evaluator():
                    stage = "judge"
                call = parent.call
                span = self.spans[id_] = CallSpan(id_, call, parent, stage)
                call.open.add(id_)
                call.entered(span, bound_args.arguments, instance)
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
        """A span ends well; the root's end is the call's, unless a stream is to come."""
        span = self.spans.get(id_)
        if span is None or span.id != id_:
            self._leave_unnoted(id_, span)
            return
        call = span.call
        call.open.discard(id_)
        try:
            if span.parent is None:  # it stays as long as others may join
                self._returned(call, result)
                return
            self.spans.pop(id_, None)
            if span.writing is not None:
                self._written(call, span.writing, "ok")
            else:
                call.left(span, result)
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
        """A span ends with an exception."""
        span = self.spans.get(id_)
        if span is None or span.id != id_:
            self._leave_unnoted(id_, span)
            return
        span.call.open.discard(id_)
        span.failed = True
        aborted = err is not None and not isinstance(err, Exception)
        status: CaptureStatus = "aborted" if aborted else "error"
        if span.parent is None:
            self.end(span.call, status, None)
            return
        span.call.part_failed = True
        self.spans.pop(id_, None)
        if span.writing is not None:
            self._written(span.call, span.writing, status)

    def event(self, name: str, event: Any) -> None:
        """An event of a name in `WANTED`."""
        try:
            span = self.spans.get(event.span_id or "")
            if name in _MODEL_STARTS:
                if span is None and (streams := reading()):
                    span = self._reader(streams, None)
                if span is not None and not suppressed():
                    span.call.asked(span, *prompt_of(event))
            elif span is None:
                return
            elif name == _DELTA:
                if span.writing is not None:
                    span.writing.add(event.delta)
            elif event.span_id == span.call.key:  # not the cancellation of a mere step
                span.call.cancelled = True
        except Exception as error:  # noqa: BLE001 -- the boundary
            self.delivery.failure(f"capture ({name})", error)

    def opens_here(self) -> bool:
        """Whether a call that begins in this context would be opened."""
        return self._may_open is None or self._may_open()

    # --- roots and their ends ---------------------------------------------------------------

    def _reader(self, streams: tuple[Call, ...], parent: CallSpan | None) -> CallSpan | None:
        """What is done to make a stream's next token belongs to the stream's call."""
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
        if not self.opens_here():
            return
        if parent_id is not None and parent_id in self._late:
            self._note_late(span_id)
            return
        stage = stage_of(span_id, instance)
        if stage not in ROOTS or suppressed():
            return
        if stage == "answer" and asked_by_evaluator():
            stage = "judge"
        call = Call(span_id, stage, bound_args.arguments, instance, tags, self._hooks)
        with self.lock:
            self.forget(self.calls.add(span_id, call))
        self.spans[span_id] = call.root

    def _returned(self, call: Call, result: object) -> None:
        if result is None and call.is_run:  # a workflow that ends well gives its stop event
            self.end(call, "aborted" if call.cancelled else "error", None)
            return
        response = unwrapped(result)
        call.returned(result, response)
        if not holds_stream(response):
            self.end(call, "ok", call.answer(result, response))
        elif fills_itself(response):
            call.awaited = response
            writing = call.writing_of(response)
            if writing is not None:  # it may have ended before
                self._end_written(call, writing)
        elif read_along(response, call, self.end):
            call.read_by_app = True
        else:
            self.end(call, "ok", call.answer(result, response))

    def _written(self, call: Call, writing: Writing, status: CaptureStatus) -> None:
        writing.end(status)
        if call.awaited is writing.response:
            self._end_written(call, writing)

    def _end_written(self, call: Call, writing: Writing) -> None:
        if writing.status is not None:
            self.end(call, writing.status, writing.text)

    def end(self, call: Call, status: CaptureStatus, response: str | None) -> None:
        """Make the record and deliver it; once a call."""
        if not self.close(call):
            return
        try:
            record = call.finish(status, response)
            if record is not None:
                self.delivery.deliver(record)
        except Exception as error:  # noqa: BLE001 -- the boundary
            self.delivery.failure("capture (call end)", error)
        if self._on_end is not None:
            self._on_end()

    # --- letting go -------------------------------------------------------------------------

    def close(self, call: Call) -> bool:
        """Take a call out; False where that has been done before."""
        with self.lock:
            if self.calls.close(call.key) is None:
                return False
            self.forget([call])
            return True

    def forget(self, calls: list[Call]) -> None:
        """Let go of calls' spans; what starts under one that still goes on is no call."""
        for call in calls:
            self.spans.pop(call.key, None)
            for span_id in list(call.open):
                self.spans.pop(span_id, None)
                self._note_late(span_id)
            call.open.clear()

    def abandon(self) -> None:
        """Forget all calls but those whose streams the app is reading."""
        with self.lock:
            for call in {span.call for span in list(self.spans.values())}:
                if call.read_by_app:
                    self.forget([call])
                else:
                    self.close(call)
            self._late.clear()

    def _leave_unnoted(self, span_id: str, ancestor: CallSpan | None) -> None:
        """A span ends that does not matter, or that belongs to no open call."""
        if ancestor is not None:
            ancestor.call.open.discard(span_id)
            self.spans.pop(span_id, None)
        elif self._late:
            self._late.pop(span_id, None)

    def _note_late(self, span_id: str) -> None:
        self._late[span_id] = None
        while len(self._late) > _MAX_LATE:
            self._late.pop(next(iter(self._late)), None)
