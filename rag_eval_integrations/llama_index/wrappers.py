"""Stage 1 for LlamaIndex: capture a query engine or a retriever by a wrapper around it.

A wrapper behaves like the wrapped object. It opens no spans and sends no events of its own: for
LlamaIndex and its tracers the wrapped object is called directly.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.callbacks import CallbackManager
from llama_index.core.prompts.mixin import PromptDictType, PromptMixinType
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType
from llama_index_instrumentation.dispatcher import (
    DISPATCHER_SPAN_DECORATED_ATTR,
    active_instrument_tags,
)

from rag_eval_integrations._visible import logger_of
from rag_eval_integrations.capture._calls import Snapshot, distinct, json_object
from rag_eval_integrations.capture._delivery import (
    Captures,
    TargetDelivery,
    TargetOrEvaluator,
    delivery_to,
)
from rag_eval_integrations.capture._retrieval import (
    OpenRetrieval,
    add_to_block,
    gold_by_question,
    retrieving,
)
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.llama_index._values import document_snapshot, nodes_of
from rag_eval_integrations.llama_index.handler import (
    ScopedHandler,
    dispatch_evaluation,
    in_captured_call,
)
from rag_eval_integrations.records import Document, Evaluation, RagCall

_LOGGER = logger_of("rag_eval_integrations.llama_index")

M = TypeVar("M", bound=Callable[..., Any])

# --- The base class of both wrappers


def no_span(method: M) -> M:
    """Keep LlamaIndex from opening a span for a method, since the wrapped object opens its own."""
    setattr(method, DISPATCHER_SPAN_DECORATED_ATTR, True)
    return method


class Wrapper:
    """Passes prompts, callbacks and unknown attributes on to the wrapped object."""

    _wrapped: Any

    def __getattr__(self, name: str) -> Any:
        if name == "_wrapped" or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)  # a copy or unpickling in progress has no wrapped object yet
        return getattr(self._wrapped, name)

    @property
    def callback_manager(self) -> CallbackManager:
        """The callback manager of the wrapped object."""
        manager: CallbackManager = self._wrapped.callback_manager
        return manager

    @callback_manager.setter
    def callback_manager(self, manager: CallbackManager) -> None:
        self._wrapped.callback_manager = manager

    def _get_prompts(self) -> PromptDictType:
        prompts: PromptDictType = self._wrapped._get_prompts()
        return prompts

    def _get_prompt_modules(self) -> PromptMixinType:
        modules: PromptMixinType = self._wrapped._get_prompt_modules()
        return modules

    def _update_prompts(self, prompts: PromptDictType) -> None:
        self._wrapped._update_prompts(prompts)


# --- A query engine that is captured whenever it is called


class EvaluatedQueryEngine(Captures, Wrapper, BaseQueryEngine):
    """A query engine that wraps another one and captures each of its queries.

    No handler has to be installed. Queries, streams, errors, events and attributes are those of the
    wrapped engine. Inside a larger call (a router, an agent) each query through the wrapper is a
    call of its own, with the documents of this engine. If a `RagEvalHandler`, or another wrapper
    around this one, has the same target (a callable or a `BackgroundEvaluator`), only that one
    delivers the call. A `RagEvaluator` as target evaluates it for each of them.

    Args:
        engine: the query engine to wrap.
        target: a callable that takes a `RagCall`, a `BackgroundEvaluator`, or a `RagEvaluator`,
            which is then run in the background: see `flush` and `evaluations`.
        on_evaluation: called with every evaluation; only with a `RagEvaluator` as target.

    Raises:
        ConfigurationError: `engine` is not a query engine, or the target cannot be used.
    """

    def __init__(
        self,
        engine: BaseQueryEngine,
        target: TargetOrEvaluator,
        *,
        on_evaluation: Callable[[Evaluation], object] | None = None,
    ) -> None:
        if not isinstance(engine, BaseQueryEngine):
            raise ConfigurationError("engine", engine, "should be a query engine")
        self._wrapped: BaseQueryEngine = engine
        self._handler = ScopedHandler(target, on_evaluation=on_evaluation)

    @property
    def handler(self) -> ScopedHandler:
        """The handler, with the numbers of calls in flight, dropped calls and failures."""
        return self._handler

    @property
    def _delivery(self) -> TargetDelivery:
        return self._handler._delivery

    @no_span
    def query(self, str_or_query_bundle: QueryType) -> RESPONSE_TYPE:
        """Answer a question."""
        with self._handler.watching():
            return self._wrapped.query(str_or_query_bundle)

    @no_span
    async def aquery(self, str_or_query_bundle: QueryType) -> RESPONSE_TYPE:
        """Answer a question, from async code."""
        with self._handler.watching():
            return await self._wrapped.aquery(str_or_query_bundle)

    # Retry engines call these methods; through `query` the answer is captured as one call.

    @no_span
    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return self.query(query_bundle)

    @no_span
    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return await self.aquery(query_bundle)

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Retrieve as the wrapped engine does; not captured, since no answer is requested."""
        return self._wrapped.retrieve(query_bundle)

    def synthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Synthesize as the wrapped engine does; not captured, since nothing is retrieved."""
        return self._wrapped.synthesize(query_bundle, nodes, additional_source_nodes)

    async def asynthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Synthesize as the wrapped engine does; not captured, since nothing is retrieved."""
        return await self._wrapped.asynthesize(query_bundle, nodes, additional_source_nodes)


# --- A retriever that is captured unless a call around it is


class EvaluatedRetriever(Captures, Wrapper, BaseRetriever):
    """A retriever that wraps another one and takes part in capture.

    Inside a captured call its documents belong to that call: a `RagEvalHandler` or an
    `EvaluatedQueryEngine` sees them pass, and a `capture_call` around it gets them added to
    `call.documents`. Otherwise each retrieval is a call of its own, without a response: a
    `RagEvaluator` scores its `context_relevance` and, if it has them, the retrieval metrics, and
    leaves the other scores unscored (`empty_response`). An exception gives the status `error`, a
    cancellation `aborted`.

    Failures of the target are logged and counted, and never reach the app.

    Args:
        retriever: the retriever to wrap.
        target: as for `EvaluatedQueryEngine`.
        on_evaluation: called with every evaluation; only with a `RagEvaluator` as target.
        relevant_ids: question → ids of the nodes that are relevant to it, for the metric
            `OpenRetrieval`; a question that is not there has none, and is not scored by it.

    Raises:
        ConfigurationError: `retriever` is not a retriever, the target cannot be used, or
            `relevant_ids` is not a dict of questions and lists of ids.
    """

    def __init__(
        self,
        retriever: BaseRetriever,
        target: TargetOrEvaluator,
        *,
        on_evaluation: Callable[[Evaluation], object] | None = None,
        relevant_ids: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        if not isinstance(retriever, BaseRetriever):
            raise ConfigurationError("retriever", retriever, "should be a retriever")
        self._gold = gold_by_question(relevant_ids)
        self._wrapped: BaseRetriever = retriever
        self._delivery = delivery_to(target, _LOGGER, on_evaluation, dispatch_evaluation)

    @property
    def object_map(self) -> dict[Any, Any]:
        """The wrapped retriever's map from index nodes to the objects that they represent."""
        return self._wrapped.object_map

    @object_map.setter
    def object_map(self, objects: dict[Any, Any]) -> None:
        self._wrapped.object_map = objects

    @no_span
    def retrieve(self, str_or_query_bundle: QueryType) -> list[NodeWithScore]:
        """Retrieve nodes."""
        with self._capturing(str_or_query_bundle) as retrieval:
            retrieval.documents = nodes = self._wrapped.retrieve(str_or_query_bundle)
        return nodes

    @no_span
    async def aretrieve(self, str_or_query_bundle: QueryType) -> list[NodeWithScore]:
        """Retrieve nodes, from async code."""
        with self._capturing(str_or_query_bundle) as retrieval:
            retrieval.documents = nodes = await self._wrapped.aretrieve(str_or_query_bundle)
        return nodes

    # For code that calls these methods directly: they do not resolve index nodes to objects.

    @no_span
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        with self._capturing(query_bundle) as retrieval:
            retrieval.documents = nodes = self._wrapped._retrieve(query_bundle)
        return nodes

    @no_span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        with self._capturing(query_bundle) as retrieval:
            retrieval.documents = nodes = await self._wrapped._aretrieve(query_bundle=query_bundle)
        return nodes

    # --- as a capture ---------------------------------------------------------------------------

    def _capturing(self, query: QueryType) -> AbstractContextManager[OpenRetrieval]:
        """Capture a `with` block's retrieval, in the surrounding call or as a call of its own."""
        question = query if isinstance(query, str) else query.query_str
        return retrieving(question, self._delivery, self._to_record)

    def _to_record(self, retrieval: OpenRetrieval) -> RagCall | None:
        """Make the call of a retrieval; None if another capture has it."""

        def snapshots() -> list[Snapshot]:
            """Make snapshots of the retrieved nodes."""
            return [document_snapshot(node, score) for node, score in nodes_of(retrieval.documents)]

        if add_to_block(lambda: map(Snapshot.document, distinct(snapshots())), _key_of):
            return None
        if in_captured_call():
            return None
        name = type(self._wrapped).__name__
        call = retrieval.record(
            name,
            snapshots(),
            framework="llama_index",
            run_id=f"{name}.retrieve-{uuid.uuid4()}",
            tags=(),
            metadata=json_object(active_instrument_tags.get()),
        )
        return call.model_copy(update={"relevant_ids": self._gold.get(call.question)})


def _key_of(document: object) -> tuple[str, str | None] | None:
    return (document.text, document.id) if isinstance(document, Document) else None
