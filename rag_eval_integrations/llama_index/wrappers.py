"""What wrappers of LlamaIndex objects have in common: they behave as what they wrap.

They open no spans and send no events of their own: to LlamaIndex, and to whoever traces it, the
wrapped object is called directly.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

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

from rag_eval_integrations.capture._calls import Seen, distinct, json_object
from rag_eval_integrations.capture._outlet import Captures, Outlet
from rag_eval_integrations.capture._retrieval import Retrieval, added_to_block, retrieving
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.llama_index._values import nodes_of, snapshot
from rag_eval_integrations.llama_index.handler import ScopedHandler, in_captured_call
from rag_eval_integrations.records import Document, Evaluation, RagCall

if TYPE_CHECKING:
    from rag_eval_integrations.background.attachment import TargetOrEvaluator

M = TypeVar("M", bound=Callable[..., Any])


def no_span(method: M) -> M:
    """Keep LlamaIndex from making a span of an overridden method: the wrapped one makes its own."""
    setattr(method, DISPATCHER_SPAN_DECORATED_ATTR, True)
    return method


class Wrapper:
    """What both wrappers pass on: prompts, callbacks, and whatever the base classes lack."""

    _wrapped: Any

    def __getattr__(self, name: str) -> Any:
        if name == "_wrapped" or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)  # while it is being copied or unpickled, nothing is wrapped
        return getattr(self._wrapped, name)

    @property
    def callback_manager(self) -> CallbackManager:
        """The wrapped object's."""
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


# --- An engine that is captured wherever it is called


class EvaluatedQueryEngine(Captures, Wrapper, BaseQueryEngine):
    """A query engine that answers as another does; each of its queries is captured.

    Nothing is to be installed. Queries, streams, errors, events and attributes are those of the
    wrapped engine. Inside of a larger call (a router, an agent) each query through the wrapper is
    a call of its own, in the documents that this engine gave. Where a `RagEvalHandler`, or another
    wrapper around this one, has the same target (a callable or a `BackgroundEvaluator`), that one
    delivers the call, and this one does not. A `RagEvaluator` as target is run in the background
    for this wrapper alone.

    Args:
        engine: what answers.
        target: a callable that takes a `RagCall`, a `BackgroundEvaluator`, or a `RagEvaluator`:
            see `flush` and `evaluations`.
        on_evaluation: called with every evaluation; only with a `RagEvaluator`.

    Raises:
        ConfigurationError: `engine` is no query engine, or the target cannot be used.
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
        """What captures: its counters say what is in flight, was dropped or failed."""
        return self._handler

    @property
    def _outlet(self) -> Outlet:
        return self._handler._outlet

    @no_span
    def query(self, str_or_query_bundle: QueryType) -> RESPONSE_TYPE:
        """Answer a question."""
        with self._handler.watching():
            return self._wrapped.query(str_or_query_bundle)

    @no_span
    async def aquery(self, str_or_query_bundle: QueryType) -> RESPONSE_TYPE:
        """Answer a question."""
        with self._handler.watching():
            return await self._wrapped.aquery(str_or_query_bundle)

    # Retry engines call these; through `query` the answer is still one call to be captured.

    @no_span
    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return self.query(query_bundle)

    @no_span
    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return await self.aquery(query_bundle)

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Retrieve as the wrapped engine does; no answer is asked for, so nothing is captured."""
        return self._wrapped.retrieve(query_bundle)

    def synthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Synthesize as the wrapped engine does; not captured: nothing was retrieved."""
        return self._wrapped.synthesize(query_bundle, nodes, additional_source_nodes)

    async def asynthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Synthesize as the wrapped engine does; not captured: nothing was retrieved."""
        return await self._wrapped.asynthesize(query_bundle, nodes, additional_source_nodes)


# --- A retriever that is scored where nothing else is


_LOGGER = logging.getLogger("rag_eval_integrations.llama_index")


class EvaluatedRetriever(Captures, Wrapper, BaseRetriever):
    """A retriever that finds what another does and takes part in capture.

    Inside of a captured call its documents are that call's: a `RagEvalHandler`, or an
    `EvaluatedQueryEngine`, sees them pass, and the block or function of a `capture_call` around it
    gets them added to `call.documents`. Alone, each retrieval is a call of its own, with no
    response: a `RagEvaluator` scores its `context_relevance` and leaves the rest unscored
    (`empty_response`). An exception gives status `error`, a cancellation `aborted`.

    What goes wrong in the target is logged and counted, never seen by the app.

    Args:
        retriever: what retrieves.
        target: as of `EvaluatedQueryEngine`.
        on_evaluation: called with every evaluation; only with a `RagEvaluator`.

    Raises:
        ConfigurationError: `retriever` is none, or the target cannot be used.
    """

    def __init__(
        self,
        retriever: BaseRetriever,
        target: TargetOrEvaluator,
        *,
        on_evaluation: Callable[[Evaluation], object] | None = None,
    ) -> None:
        if not isinstance(retriever, BaseRetriever):
            raise ConfigurationError("retriever", retriever, "should be a retriever")
        self._wrapped: BaseRetriever = retriever
        self._outlet = Outlet(target, _LOGGER, on_evaluation)

    @property
    def object_map(self) -> dict[Any, Any]:
        """The wrapped retriever's: what its index nodes stand for."""
        return self._wrapped.object_map

    @object_map.setter
    def object_map(self, objects: dict[Any, Any]) -> None:
        self._wrapped.object_map = objects

    @no_span
    def retrieve(self, str_or_query_bundle: QueryType) -> list[NodeWithScore]:
        """Retrieve nodes."""
        with self._watched(str_or_query_bundle) as retrieval:
            retrieval.documents = found = self._wrapped.retrieve(str_or_query_bundle)
        return found

    @no_span
    async def aretrieve(self, str_or_query_bundle: QueryType) -> list[NodeWithScore]:
        """Retrieve nodes."""
        with self._watched(str_or_query_bundle) as retrieval:
            retrieval.documents = found = await self._wrapped.aretrieve(str_or_query_bundle)
        return found

    # For who calls these directly: without the objects that index nodes stand for.

    @no_span
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        with self._watched(query_bundle) as retrieval:
            retrieval.documents = found = self._wrapped._retrieve(query_bundle)
        return found

    @no_span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        with self._watched(query_bundle) as retrieval:
            retrieval.documents = found = await self._wrapped._aretrieve(query_bundle=query_bundle)
        return found

    # --- as a capture ---------------------------------------------------------------------------

    def _watched(self, query: QueryType) -> AbstractContextManager[Retrieval]:
        """Take part in the call around, or deliver one; to be given the nodes found."""
        question = query if isinstance(query, str) else query.query_str
        return retrieving(question, self._outlet.delivery, self._call_of)

    def _call_of(self, retrieval: Retrieval) -> RagCall | None:
        def seen() -> list[Seen]:
            return [snapshot(node, score) for node, score in nodes_of(retrieval.documents)]

        if added_to_block(lambda: [_document(one) for one in distinct(seen())], _text_of):
            return None
        if in_captured_call():
            return None
        name = type(self._wrapped).__name__
        return retrieval.record(
            name,
            seen(),
            framework="llama_index",
            run_id=f"{name}.retrieve-{uuid.uuid4()}",
            tags=(),
            metadata=json_object(active_instrument_tags.get()),
        )


def _document(one: Seen) -> tuple[str, Document]:
    return one.text, Document(text=one.text, id=one.id, metadata=one.metadata, score=one.score)


def _text_of(document: object) -> str | None:
    return document.text if isinstance(document, Document) else None
