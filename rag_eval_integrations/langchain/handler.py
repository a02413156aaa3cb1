"""Stage 1 for LangChain: capture RAG calls by a callback handler, for one call or the process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

from langchain_core.callbacks import BaseCallbackHandler

from rag_eval_integrations._visible import logger_of
from rag_eval_integrations.capture._delivery import Attached, Hooks, TargetOrEvaluator, delivery_to
from rag_eval_integrations.capture._uncaptured import ToolDocuments, Uncaptured, takes_text_of
from rag_eval_integrations.langchain._events import CallEvents, Inline

if TYPE_CHECKING:
    from rag_eval_integrations.records import Evaluation


_LOGGER = logger_of("rag_eval_integrations.langchain")

# --- A `with` block as the root of a call


class CallInBlock:
    """The call of a `with` block."""

    def __init__(self) -> None:
        self.response: str | None = None
        """The app's answer; if the block does not set it, the text of the last model."""


@contextmanager
def root_of_block(
    handler: BaseCallbackHandler,
    question: str,
    name: str,
    tags: Sequence[str],
    metadata: Mapping[str, Any] | None,
) -> Iterator[CallInBlock]:
    """Make everything that LangChain runs inside the block part of one call.

    Args:
        handler: receives the events.
        question: the user's question.
        name: name of the root run.
        tags: tags of the runs.
        metadata: metadata of the runs.
    """
    # Whatever runs inside loads these modules; an app that never uses a block should not.
    from langchain_core.callbacks import CallbackManager  # noqa: PLC0415
    from langchain_core.runnables.config import var_child_runnable_config  # noqa: PLC0415

    around = var_child_runnable_config.get() or {}
    manager = CallbackManager.configure(inheritable_callbacks=around.get("callbacks"))
    # The call does not take over those of the run around it, such as `langgraph_step`.
    manager.tags, manager.inheritable_tags = list(tags), list(tags)
    manager.metadata, manager.inheritable_metadata = dict(metadata or {}), dict(metadata or {})
    if handler not in manager.handlers:
        manager.add_handler(handler)
    run = manager.on_chain_start({}, {"question": question}, name=name)
    call = CallInBlock()
    # The other settings of the run around the block stay, such as LangGraph's `configurable`.
    token = var_child_runnable_config.set({**around, "callbacks": run.get_child()})
    try:
        yield call
    except BaseException as error:
        run.on_chain_error(error)
        raise
    else:
        run.on_chain_end({} if call.response is None else {"answer": call.response})
    finally:
        with suppress(ValueError):  # a generator may end in another context than it began in
            var_child_runnable_config.reset(token)


# --- The handler


QuestionHook = Callable[[Any], str]
"""Returns the question, from the root's inputs."""
DocumentsHook = Callable[[Any, Any], Iterable[object] | None]
"""Returns the documents, from the root's inputs and outputs; None for the usual capture."""
ResponseHook = Callable[[Any], str | None]
"""Returns the response, from the root's outputs."""


class RagEvalCallbackHandler(Attached, CallEvents):
    """Calls `target` with a `RagCall` for every RAG call that it observes.

    Pass it per call (`config={"callbacks": [handler]}`), bind it (`with_config`), pass it to an
    inner runnable, or attach it to the whole process (`attach_globally`). `invoke`, `ainvoke`,
    `batch`, `abatch`, `stream`, `astream` and `astream_events` give the same record. A root in
    which no retriever ran and no document was seen is not a RAG call, and neither is a bare
    retriever or a tool that only retrieves. One handler serves any number of concurrent calls.

    `target` is called once per call, when the call has ended, in the thread of its last event: it
    should only pass the record on. Its exceptions are logged and counted, and never reach the app.

    Three hooks extract what the usual capture cannot find in an app. They run inside the app's
    call when it ends (`question` as soon as the inputs are known), and should be quick:

    * `question(inputs) -> str`;
    * `documents(inputs, outputs) -> documents | None`: strings, documents of LangChain or of this
      library, or `(document, score)` pairs; None leaves the documents to the usual capture. If it
      returns documents, the call is a RAG call even if no retriever ran;
    * `response(outputs) -> str | None`, called if there are outputs (not for a failed call).

    `inputs` and `outputs` are those of the outermost runnable. If a hook raises, the failure is
    logged and counted in `failed`; its field stays empty (the question `""`, no documents, no
    response), and `capture.metadata["rag_eval_hook_failed"]` names the hook.

    Not captured, but counted in `uncaptured` where it is noticed, and the first of its kind logged:

    * plain code that calls a retriever and then a model: put it into a block of `call`, or of
      `capture_call`;
    * a bare retriever: use `EvaluatedRetriever`;
    * a tool that searches by itself and returns text: have it use a retriever or
      `response_format="content_and_artifact"`, or name it in `tool_documents`;
    * a follow-up that is answered from what a tool found in an earlier turn;
    * what the handler is not told of: pass it to the call and not to a constructor, and give a
      thread pool `contextvars.copy_context().run` or the config;
    * a search that only the prompt shows, in a middleware or inside one function: use a retriever,
      the hook `documents`, or `capture_call`.
    """

    _attach = (
        "it is LangChain's; LlamaIndex is captured by "
        "`rag_eval_integrations.llama_index.RagEvalHandler(target).install()`"
    )

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
        """Make a handler.

        Args:
            target: takes the `RagCall`: a plain callable, a `BackgroundEvaluator`, or a
                `RagEvaluator` or its judge's name, which is then run in the background.
            question: hook that returns the question, from a root's inputs.
            documents: hook that returns the documents, from a root's inputs and outputs.
            response: hook that returns the response, from a root's outputs.
            tool_documents: names of tools, or a function that takes a tool's name: the plain text
                that such a tool returns is taken as a document, unless documents were seen in it.
            on_evaluation: called with every evaluation; only with a `RagEvaluator` as target.
            max_open: calls held in flight at most, at least 1; beyond it the oldest is dropped.
            ttl: seconds after which a call that has not ended is dropped, above 0.

        Raises:
            ConfigurationError: an argument cannot be used; the message names it.
        """
        delivery = delivery_to(target, _LOGGER, on_evaluation)
        delivery.unreached = 'handler; pass it to the call by config={"callbacks": [handler]}'
        hooks = Hooks(delivery, question=question, documents=documents, response=response)
        super().__init__(
            delivery,
            hooks if hooks else None,
            max_open,
            ttl,
            uncaptured=Uncaptured(_LOGGER, f"{__package__}.RagEvalCallbackHandler"),
            takes_text=takes_text_of(tool_documents),
        )

    def __repr__(self) -> str:
        return f"RagEvalCallbackHandler({self._delivery!r})"

    def __deepcopy__(self, memo: object) -> RagEvalCallbackHandler:
        """Return the handler itself, so that a copied config reports to the same handler."""
        return self

    # --- ways to attach, in addition to LangChain's own --------------------------------------

    def attach_globally(self) -> None:
        """Observe every call of the process, in all of its threads, until `detach`.

        A call to which the handler is also passed is observed once. A second call does nothing.
        """
        attach(self)

    def detach(self) -> None:
        """Observe only the calls to which the handler is passed; calls in flight are finished."""
        detach(self)

    def call(
        self,
        question: str,
        *,
        name: str = "rag",
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> AbstractContextManager[CallInBlock]:
        """Capture a `with` block of plain code, with its retriever and model, as one call.

            with handler.call("How fast is the kettle?") as call:
                found = retriever.invoke("kettle speed")
                call.response = model.invoke(prompt_of(found)).text

        Args:
            question: the user's question.
            name: stored as the call's `app`.
            tags: stored as `capture.tags`; all runs inside get them as well.
            metadata: stored as `capture.metadata`; all runs inside get it as well.
        """
        return root_of_block(self, question, name, tags, metadata)


# --- Handlers that LangChain adds to every call of the process


_LOCK = threading.Lock()


class _Idle(Inline):
    """Fills an empty slot: LangChain reads a slot twice, and would call None the second time."""

    ignore_llm = True
    ignore_chain = True
    ignore_agent = True
    ignore_retriever = True
    ignore_chat_model = True
    ignore_custom_event = True
    ignore_retry = True


class _Slot:
    """A configure hook of LangChain that returns the handler it holds."""

    def __init__(self, handler: BaseCallbackHandler) -> None:
        self.handler = handler

    def get(self) -> BaseCallbackHandler:
        """Return the handler; LangChain calls this at the start of every run."""
        return self.handler


_IDLE = _Idle()
_SLOTS: list[_Slot] = []


def attach(handler: BaseCallbackHandler) -> None:
    """Make LangChain add the handler to every call of the process; once, if called repeatedly."""
    # This module takes a second to load, and is only needed by an app that attaches globally.
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
    """Remove the handler; calls in flight keep it."""
    with _LOCK:
        for slot in _SLOTS:
            if slot.handler is handler:
                slot.handler = _IDLE
