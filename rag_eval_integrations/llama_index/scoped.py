"""Stage 1 for one wrapper: a handler that sees only what is called through it.

LlamaIndex's dispatcher belongs to the process, so a handler on it sees everybody's spans. This one
is on it only while a call of its own runs or a stream of its own is unread, and takes a span only
in a context that is inside of such a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.span import active_span_id

from rag_eval_integrations._observe import Delivery, OpenCalls
from rag_eval_integrations.llama_index.dispatcher import CHANGING, detach
from rag_eval_integrations.llama_index.handler import RagEvalHandler
from rag_eval_integrations.llama_index.hooks import Hooks
from rag_eval_integrations.llama_index.observers import EventObserver, SpanObserver
from rag_eval_integrations.llama_index.recorder import Recorder
from rag_eval_integrations.llama_index.stream import reading

if TYPE_CHECKING:
    from rag_eval_integrations.evaluator import RagEvaluator
    from rag_eval_integrations.llama_index.call import Call
    from rag_eval_integrations.records import CaptureStatus, Evaluation, RagCall

_MAX_OPEN = 10_000
_TTL = 3600.0  # seconds; both as of `RagEvalHandler`

_inside: ContextVar[tuple[Recorder, ...]] = ContextVar("rag_eval_integrations_scopes", default=())


class ScopedHandler(RagEvalHandler):
    """Calls `target` with a `RagCall` for every call made inside of `watching()`.

    It goes on to the dispatcher and off it by itself, so nothing is to be installed; queries that
    run elsewhere in the process are not seen. Streams end, and are delivered, when the app has
    read them.
    """

    def __init__(
        self,
        target: Callable[[RagCall], object] | RagEvaluator,
        *,
        on_evaluation: Callable[[Evaluation], object] | None = None,
    ) -> None:
        """Make a handler; arguments are those of `RagEvalHandler`."""
        super().__init__(target, on_evaluation=on_evaluation)
        self._recorder = _ScopedRecorder(self._delivery, self._leave_when_idle)
        self._span_handler = SpanObserver(self._recorder)
        self._event_handler = EventObserver(self._recorder)
        self._running = 0

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
        target = self._delivery._target
        return any(
            one.delivery._target == target
            for one in _recorders()
            if not isinstance(one, _ScopedRecorder) or one in _inside.get()
        )

    def _leave_when_idle(self) -> None:
        with CHANGING:
            if not self._running and not len(self._recorder.calls):
                detach(self._span_handler, self._event_handler)


class _ScopedRecorder(Recorder):
    """Opens calls only inside of `watching()`, and says when one has ended: it may be the last."""

    def __init__(self, delivery: Delivery, ended: Callable[[], None]) -> None:
        super().__init__(delivery, OpenCalls(_MAX_OPEN, _TTL), Hooks(delivery.failure))
        self._ended = ended

    def _enter_root(self, *arguments: Any) -> None:
        # What has a parent is its parent's affair, and what a stream does its reader's.
        if self in _inside.get():
            super()._enter_root(*arguments)

    def end(self, call: Call, status: CaptureStatus, response: str | None) -> None:
        """End a call as any recorder does, then say so."""
        super().end(call, status, response)
        self._ended()


def _recorders() -> list[Recorder]:
    observers = get_dispatcher().event_handlers
    return [one._recorder for one in observers if isinstance(one, EventObserver)]


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
