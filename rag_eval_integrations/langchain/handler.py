"""Stage 1 for LangChain: a callback handler that turns every RAG call into a `RagCall`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, cast

from langchain_core.callbacks import BaseCallbackHandler

from rag_eval_integrations.capture._outlet import Captures, Outlet
from rag_eval_integrations.langchain._events import CallEvents
from rag_eval_integrations.langchain._hooks import (
    DocumentsHook,
    Hooks,
    QuestionHook,
    ResponseHook,
)

if TYPE_CHECKING:
    from rag_eval_integrations.background.attachment import TargetOrEvaluator
    from rag_eval_integrations.records import Evaluation


# --- A `with` block as the call's root


class CallInBlock:
    """The call that a `with` block makes."""

    def __init__(self) -> None:
        self.response: str | None = None
        """The app's answer; where the block does not set it, what the last model wrote."""


@contextmanager
def root_of_block(
    handler: BaseCallbackHandler,
    question: str,
    name: str,
    tags: Sequence[str],
    metadata: Mapping[str, Any] | None,
) -> Iterator[CallInBlock]:
    """Make everything that LangChain runs inside a part of one call."""
    # Loaded by whatever runs inside, and too heavy for an app that never does.
    from langchain_core.callbacks import CallbackManager  # noqa: PLC0415
    from langchain_core.runnables.config import var_child_runnable_config  # noqa: PLC0415

    manager = CallbackManager.configure(
        inheritable_callbacks=[handler],
        inheritable_tags=list(tags),
        inheritable_metadata=dict(metadata or {}),
    )
    run = manager.on_chain_start({}, {"question": question}, name=name)
    call = CallInBlock()
    token = var_child_runnable_config.set({"callbacks": run.get_child()})
    try:
        yield call
    except BaseException as error:
        run.on_chain_error(error)
        raise
    else:
        run.on_chain_end({} if call.response is None else {"answer": call.response})
    finally:
        var_child_runnable_config.reset(token)


_LOGGER = logging.getLogger("rag_eval_integrations.langchain")


class RagEvalCallbackHandler(Captures, CallEvents):
    """Calls `target` with a `RagCall` for every RAG call that it observes.

    Pass it per call (`config={"callbacks": [handler]}`), bind it (`with_config`), give it to an
    inner runnable, or attach it to the whole process (`attach_globally`). `invoke`, `ainvoke`,
    `batch`, `abatch`, `stream`, `astream` and `astream_events` give the same record. A root in
    which no retriever ran and no document was seen, or that is itself a bare retriever or a tool
    that only retrieves, is no RAG call. One handler serves any number of concurrent calls.

    `target` is called once a call, when the call has ended, in the thread of its last event: it
    should only hand the record on. What it raises is logged and counted, never seen by the app.

    The three hooks tell what the usual extraction cannot know of an app. They run inside of the
    app's call, as it ends (`question` as soon as the inputs are known), and should be quick:

    * `question(inputs) -> str`;
    * `documents(inputs, outputs) -> documents | None`: strings, LangChain's or our own documents,
      `(document, score)` pairs; None leaves the call to the usual capture. Where it returns
      documents, the call is a RAG call even if no retriever ran;
    * `response(outputs) -> str | None`, called when there are outputs (not of a failed call).

    `inputs` and `outputs` are those of the outermost runnable. A hook that raises is logged and
    counted in `failed`; its field is then empty (the question `""`, no documents, no response),
    nothing takes its place, and `capture.metadata["rag_eval_hook_failed"]` names it.
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
        """Make a handler.

        Args:
            target: Takes the `RagCall`: a plain callable, a `BackgroundEvaluator`, or a
                `RagEvaluator`, which is then run in the background.
            question: Tells the question of a root's inputs.
            documents: Tells the documents of a root's inputs and outputs.
            response: Tells the response of a root's outputs.
            on_evaluation: Called with every evaluation; only with a `RagEvaluator`.
            max_open: At most so many calls are held in flight; the oldest is dropped.
            ttl: Seconds after which a call that never ended is dropped.

        Raises:
            ConfigurationError: an argument cannot be used; names it.
        """
        self._outlet = Outlet(target, _LOGGER, on_evaluation)
        delivery = self._outlet.delivery
        hooks = Hooks(question, documents, response, delivery)
        super().__init__(delivery, hooks if hooks else None, max_open, ttl)

    def __deepcopy__(self, memo: object) -> RagEvalCallbackHandler:
        """Stay the same: a copied config reports to where the original does."""
        return self

    # --- ways to attach, beside LangChain's own ----------------------------------------------

    def attach_globally(self) -> None:
        """Observe every call of the process, in all of its threads, until `detach`.

        A call that the handler is also given to is observed once. Asking twice changes nothing.
        """
        attach(self)

    def detach(self) -> None:
        """Observe only the calls that the handler is given to; what has begun is finished."""
        detach(self)

    def call(
        self,
        question: str,
        *,
        name: str = "rag",
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> AbstractContextManager[CallInBlock]:
        """Make one call of what plain code runs in a `with` block, retriever and model.

            with handler.call("How fast is the kettle?") as call:
                found = retriever.invoke("kettle speed")
                call.response = model.invoke(prompt_of(found)).text

        Args:
            question: The user's question.
            name: Stands as the call's `app`.
            tags: For `capture.tags`; they reach all runs inside.
            metadata: For `capture.metadata`, likewise.
        """
        return root_of_block(self, question, name, tags, metadata)


# --- Handlers that LangChain adds to every call by itself


_LOCK = threading.Lock()


class _Idle(BaseCallbackHandler):
    """Stands in an empty slot: LangChain asks twice, and would call None the second time."""

    run_inline = True
    ignore_llm = True
    ignore_chain = True
    ignore_agent = True
    ignore_retriever = True
    ignore_chat_model = True
    ignore_custom_event = True
    ignore_retry = True


class _Slot:
    """A configure hook: gives the handler that it holds."""

    def __init__(self, handler: BaseCallbackHandler) -> None:
        self.handler = handler

    def get(self) -> BaseCallbackHandler:
        """What LangChain calls at the start of every run."""
        return self.handler


_IDLE = _Idle()
_SLOTS: list[_Slot] = []


def attach(handler: BaseCallbackHandler) -> None:
    """Have LangChain add the handler to every call of the process; once, however often asked."""
    # Its module takes a second to load, which only an app that attaches globally pays.
    from langchain_core.tracers.context import register_configure_hook  # noqa: PLC0415

    with _LOCK:
        if any(slot.handler is handler for slot in _SLOTS):
            return
        for slot in _SLOTS:
            if slot.handler is _IDLE:
                slot.handler = handler
                return
        slot = _Slot(handler)
        register_configure_hook(cast(Any, slot), inheritable=True)
        _SLOTS.append(slot)


def detach(handler: BaseCallbackHandler) -> None:
    """Take the handler out; calls that have begun go on with it."""
    with _LOCK:
        for slot in _SLOTS:
            if slot.handler is handler:
                slot.handler = _IDLE
