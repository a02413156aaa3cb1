"""Stage 1 for LlamaIndex: a handler on the root dispatcher that turns calls into `RagCall`s.

observers.py   what the dispatcher calls, for every span and event of the process
recorder.py    which call a span or event belongs to; when a call begins and ends
call.py        what was seen in one call, and its record: tree.py, context.py, extract.py
stream.py      streams that the app reads; chat.py: streams that chat engines write
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from rag_eval_integrations._observe import OpenCalls
from rag_eval_integrations.capture.outlet import Captures, Outlet
from rag_eval_integrations.llama_index.dispatcher import attach, detach
from rag_eval_integrations.llama_index.hooks import (
    DocumentsHook,
    Hooks,
    QuestionHook,
    ResponseHook,
)
from rag_eval_integrations.llama_index.observers import EventObserver, SpanObserver
from rag_eval_integrations.llama_index.recorder import Recorder

if TYPE_CHECKING:
    from rag_eval_integrations.background.attachment import Target
    from rag_eval_integrations.llama_index.call import Call
    from rag_eval_integrations.records import Evaluation

_LOGGER = logging.getLogger("rag_eval_integrations.llama_index")


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
        target: Target,
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
