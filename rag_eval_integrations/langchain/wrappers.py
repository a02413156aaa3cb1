"""Stage 1 for LangChain: capture a retriever or a runnable by a wrapper around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from copy import deepcopy
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    BaseCallbackManager,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig
from pydantic import Field, PrivateAttr

from rag_eval_integrations._visible import logger_of
from rag_eval_integrations.capture._calls import json_object
from rag_eval_integrations.capture._delivery import Captures, TargetDelivery, delivery_to
from rag_eval_integrations.capture._retrieval import (
    OpenRetrieval,
    add_to_block,
    gold_by_question,
    retrieving,
)
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.langchain._documents import snapshot
from rag_eval_integrations.langchain.handler import RagEvalCallbackHandler
from rag_eval_integrations.records import Evaluation, RagCall

_LOGGER = logger_of("rag_eval_integrations.langchain")

_OWN_SETTINGS = ("name", "tags", "metadata")

Manager = CallbackManagerForRetrieverRun | AsyncCallbackManagerForRetrieverRun


# --- A retriever that is captured unless a call around it is


class EvaluatedRetriever(Captures, BaseRetriever):
    """A retriever that wraps another one and takes part in capture.

    Inside a captured call its documents belong to that call: a `RagEvalCallbackHandler` that
    watches the chain around it sees them pass, and a `capture_call` around it gets them added to
    `call.documents`. Otherwise each retrieval is a call of its own, without a response: a
    `RagEvaluator` scores its `context_relevance` and, if it has them, the retrieval metrics, and
    leaves the other scores unscored (`empty_response`). An exception gives the status `error`, a
    cancellation `aborted`.

    Failures of the target are logged and counted, and never reach the app.

    Args:
        retriever: a retriever, or another runnable from a string to documents.
        target: a callable that takes a `RagCall`, a `BackgroundEvaluator`, or a `RagEvaluator`,
            which is then run in the background: see `flush` and `evaluations`.
        on_evaluation: called with every evaluation; only with a `RagEvaluator` as target.
        relevant_ids: question → ids of the documents that are relevant to it, for the metric
            `OpenRetrieval`; a question that is not there has none, and is not scored by it.
        **settings: `name`, `tags` and `metadata` of this retriever; all others, such as `k`, are
            passed to the wrapped retriever with every call that does not set them itself.

    Raises:
        ConfigurationError: `retriever` is not a runnable, the target cannot be used, or
            `relevant_ids` is not a dict of questions and lists of ids.
    """

    retriever: Runnable[str, list[Document]]
    """The wrapped retriever."""
    defaults: dict[str, Any] = Field(default_factory=dict)
    """Arguments passed to the wrapped retriever with every call."""

    _delivery: TargetDelivery = PrivateAttr()
    _gold: dict[str, tuple[str, ...] | None] = PrivateAttr()

    def __init__(
        self,
        retriever: Runnable[str, list[Document]],
        target: Any,
        *,
        on_evaluation: Callable[[Evaluation], object] | None = None,
        relevant_ids: Mapping[str, Iterable[str]] | None = None,
        **settings: Any,
    ) -> None:
        if not isinstance(retriever, Runnable):
            raise ConfigurationError("retriever", retriever, "should be a retriever")
        gold = gold_by_question(relevant_ids)
        delivery = delivery_to(target, _LOGGER, on_evaluation)
        own = {name: settings.pop(name) for name in _OWN_SETTINGS if name in settings}
        own.setdefault("name", retriever.get_name())
        super().__init__(retriever=retriever, defaults=settings, **own)  # type: ignore[call-arg]
        self._delivery = delivery
        self._gold = gold

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> EvaluatedRetriever:
        """Copy the wrapped retriever; the copy's calls go to the same target."""
        copied = self.model_copy()
        copied.retriever = deepcopy(self.retriever, memo)
        copied.defaults = deepcopy(self.defaults, memo)
        return copied

    # --- as a retriever ---------------------------------------------------------------------

    def invoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Retrieve documents."""
        return super().invoke(input, config, **{**kwargs, _CONFIG: config})

    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Retrieve documents, from async code."""
        return await super().ainvoke(input, config, **{**kwargs, _CONFIG: config})

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        with self._capturing(query, run_manager) as retrieval:
            config = _config_below(run_manager.get_child(), kwargs.pop(_CONFIG, None))
            documents = self.retriever.invoke(query, config, **{**self.defaults, **kwargs})
            retrieval.documents = documents
        return documents

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        with self._capturing(query, run_manager) as retrieval:
            config = _config_below(run_manager.get_child(), kwargs.pop(_CONFIG, None))
            documents = await self.retriever.ainvoke(query, config, **{**self.defaults, **kwargs})
            retrieval.documents = documents
        return documents

    # --- as a capture ---------------------------------------------------------------------------

    def _capturing(self, query: str, manager: Manager) -> AbstractContextManager[OpenRetrieval]:
        """Capture a `with` block's retrieval, in the surrounding call or as a call of its own."""

        def to_record(retrieval: OpenRetrieval) -> RagCall | None:
            """Make the call of a retrieval; None if a block or a handler has it.

            A handler that listens there leaves the run to this wrapper.
            """
            documents = retrieval.documents
            if add_to_block(lambda: documents, _key_of):
                return None
            if _seen_by_a_handler(manager):
                return None
            for handler in manager.handlers:
                if isinstance(handler, RagEvalCallbackHandler):
                    handler.leave_to_wrapper(manager.run_id)
            retrieval.traces.ask(manager.run_id, manager.handlers)
            call = retrieval.record(
                self.get_name(),
                [snapshot(document, None) for document in documents],
                framework="langchain",
                run_id=str(manager.run_id),
                tags=tuple(map(str, manager.tags)),
                metadata=json_object(manager.metadata),
            )
            return call.model_copy(update={"relevant_ids": self._gold.get(call.question)})

        return retrieving(query, self._delivery, to_record)


_CONFIG = "rag_eval_config"
"""Keyword that carries a call's config through `BaseRetriever`, which does not pass it on."""


def _config_below(callbacks: BaseCallbackManager, config: RunnableConfig | None) -> RunnableConfig:
    """Return the config for the wrapped retriever: this run's callbacks, and `configurable`."""
    below: RunnableConfig = {"callbacks": callbacks}
    if config is not None and "configurable" in config:
        below["configurable"] = config["configurable"]
    return below


def _seen_by_a_handler(manager: Manager) -> bool:
    """Return whether a `RagEvalCallbackHandler` has this run below the root of a call.

    It is not enough that the run has such a handler: for a handler that is bound to this retriever
    alone the run is a root, a bare retriever, which it does not deliver.
    """
    return any(
        isinstance(handler, RagEvalCallbackHandler) and handler.has_inside(manager.run_id)
        for handler in manager.handlers
    )


def _key_of(document: object) -> tuple[str, object] | None:
    """Return a document's text and id."""
    text = getattr(document, "page_content", None)
    return None if text is None else (text, getattr(document, "id", None))


# --- A runnable that is captured whenever it is called


class EvaluatedRunnable(Captures, RunnableBinding[Any, Any]):
    """A runnable with a `RagEvalCallbackHandler` bound to it; made by `evaluated`.

    Everything else is the runnable's own: its methods, its name, its attributes, its schemas. The
    results of `bind`, `with_config`, `with_types`, `with_listeners` and `with_retry` are captured
    by the same handler as well.
    """

    def __init__(self, *, bound: Runnable[Any, Any], **settings: Any) -> None:
        # `get_name()` already is the bound runnable's; `.name` would be None.
        super().__init__(bound=bound, **{"name": getattr(bound, "name", None), **settings})

    @property
    def handler(self) -> RagEvalCallbackHandler:
        """The handler, with the numbers of calls in flight, dropped calls and failures."""
        return next(
            factory.handler
            for factory in self.config_factories
            if isinstance(factory, _WithHandler)
        )

    @property
    def _delivery(self) -> TargetDelivery:
        return self.handler._delivery

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Return False: LangChain can serialise neither handlers nor functions."""
        return False


class _WithHandler:
    """A config factory that adds the handler to a call's config.

    The handler is not part of the bound config: bound callbacks hide those of the surrounding
    runnable, so that its stream of events, or a tracer's tree, would end here (measured on 1.7.2),
    and `with_config(callbacks=…)` replaces them.
    """

    def __init__(self, handler: RagEvalCallbackHandler) -> None:
        self.handler = handler

    def __call__(self, config: RunnableConfig) -> RunnableConfig:
        given = config.get("callbacks")
        there = given if isinstance(given, list) else getattr(given, "handlers", ())
        return {} if self.handler in there else {"callbacks": [self.handler]}


def evaluated(runnable: Runnable[Any, Any], target: Any, **options: Any) -> EvaluatedRunnable:
    """Wrap a runnable so that every RAG call through it is captured.

    Results, streams, events and errors are those of the runnable itself. The wrapper can be part
    of a larger runnable, of which it captures its own part. A handler that the app passes captures
    the calls as well.

    Args:
        runnable: a chain, an agent or a graph. A bare retriever is not a RAG call: wrap it in an
            `EvaluatedRetriever`.
        target: a callable that takes a `RagCall`, a `BackgroundEvaluator`, or a `RagEvaluator`,
            which is then run in the background: see `flush` and `evaluations`.
        **options: the other arguments of `RagEvalCallbackHandler`.

    Raises:
        ConfigurationError: `runnable` is not a runnable, or an argument of the handler cannot be
            used.
    """
    if not isinstance(runnable, Runnable):
        raise ConfigurationError(
            "runnable", runnable, "should be a runnable; capture a function with `capture_call`"
        )
    handler = RagEvalCallbackHandler(target, **options)
    handler._delivery.unreached = "wrapper; call what `evaluated` returned in the runnable's place"
    return EvaluatedRunnable(bound=runnable, config_factories=[_WithHandler(handler)])
