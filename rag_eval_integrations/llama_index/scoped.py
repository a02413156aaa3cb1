"""Stage 1 for one wrapper: a handler that sees only what is called through it.

LlamaIndex's dispatcher belongs to the process, so a handler on it sees everybody's spans. This one
is on it only while a call of its own runs or a stream of its own is unread, and takes a span only
in a context that is inside of such a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.span import active_span_id

from rag_eval_integrations.llama_index.dispatcher import CHANGING, detach
from rag_eval_integrations.llama_index.handler import RagEvalHandler
from rag_eval_integrations.llama_index.observers import EventObserver
from rag_eval_integrations.llama_index.recorder import Recorder
from rag_eval_integrations.llama_index.stream import reading

if TYPE_CHECKING:
    from rag_eval_integrations._observe import OpenCalls
    from rag_eval_integrations.background.attachment import Target
    from rag_eval_integrations.llama_index.call import Call
    from rag_eval_integrations.llama_index.hooks import Hooks
    from rag_eval_integrations.records import Evaluation

_inside: ContextVar[tuple[Recorder, ...]] = ContextVar("rag_eval_integrations_scopes", default=())


class ScopedHandler(RagEvalHandler):
    """Calls `target` with a `RagCall` for every call made inside of `watching()`.

    It goes on to the dispatcher and off it by itself, so nothing is to be installed; queries that
    run elsewhere in the process are not seen. Streams end, and are delivered, when the app has
    read them, or drops them.
    """

    def __init__(
        self,
        target: Target,
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
