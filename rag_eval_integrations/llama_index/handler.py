"""Stage 1 for LlamaIndex: a handler on the root dispatcher that turns calls into `RagCall`s.

observers.py   what the dispatcher calls, for every span and event of the process
recorder.py    which call a span or event belongs to; when a call begins and ends
call.py        what was seen in one call, and its record: tree.py, context.py, extract.py
stream.py      streams that the app reads; chat.py: streams that chat engines write
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from rag_eval_integrations._observe import Delivery, OpenCalls, Target
from rag_eval_integrations.llama_index.dispatcher import attach, detach
from rag_eval_integrations.llama_index.hooks import (
    DocumentsHook,
    Hooks,
    QuestionHook,
    ResponseHook,
)
from rag_eval_integrations.llama_index.observers import EventObserver, SpanObserver
from rag_eval_integrations.llama_index.recorder import Recorder
from rag_eval_integrations.records import Evaluation, RagCall

if TYPE_CHECKING:
    from rag_eval_integrations.background.attachment import Attachment
    from rag_eval_integrations.evaluator import RagEvaluator
    from rag_eval_integrations.llama_index.call import Call

_LOGGER = logging.getLogger("rag_eval_integrations.llama_index")


class RagEvalHandler:
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
        target: Callable[[RagCall], object] | RagEvaluator,
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
        self._attachment = _attachment(target, on_evaluation)
        to = target if self._attachment is None else self._attachment.target
        self._delivery = Delivery(cast("Target", to), _LOGGER)
        hooks = Hooks(
            self._delivery.failure, question=question, documents=documents, response=response
        )
        self._recorder = self._make_recorder(
            to, OpenCalls(max_open, ttl), hooks if hooks.any else None
        )
        self._span_handler = SpanObserver(self._recorder)
        self._event_handler = EventObserver(self._recorder)

    def _make_recorder(
        self, target: object, calls: OpenCalls[Call], hooks: Hooks | None
    ) -> Recorder:
        return Recorder(target, self._delivery, calls, hooks)

    @property
    def open_calls(self) -> int:
        """How many calls are in flight, streams that are not read to their end included."""
        with self._recorder.lock:
            self._recorder.forget(self._recorder.calls.expire())
            return len(self._recorder.calls)

    @property
    def failed(self) -> int:
        """How often the target, a hook, or the capture itself, failed."""
        return self._delivery.failed

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

    # --- evaluations ------------------------------------------------------------------------

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """The latest evaluations, oldest first; empty unless the target is a `RagEvaluator`."""
        return () if self._attachment is None else self._attachment.evaluations

    def flush(self, timeout: float = 30.0) -> bool:
        """Wait until the calls delivered so far are evaluated; call it outside of the app's loop.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            Whether all was done in time; True at once for a target that is a plain callable.
        """
        return True if self._attachment is None else self._attachment.flush(timeout)


def _attachment(
    target: Callable[[RagCall], object] | RagEvaluator,
    on_evaluation: Callable[[Evaluation], object] | None,
) -> Attachment | None:
    """What runs an evaluator behind the app's back; None for a plain function.

    Evaluation costs more to import than all of capture, so it waits until it may be needed.
    """
    if on_evaluation is None and inspect.isroutine(target):
        return None
    from rag_eval_integrations.background.attachment import Attachment  # noqa: PLC0415

    return Attachment(target, on_evaluation)
