"""Stage 1 for LlamaIndex, by wrapping: an engine that is captured wherever it is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType

from rag_eval_integrations.capture.outlet import Captures, Outlet
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.llama_index.scoped import ScopedHandler
from rag_eval_integrations.llama_index.wrapping import Wrapper, no_span
from rag_eval_integrations.records import Evaluation

if TYPE_CHECKING:
    from rag_eval_integrations.background.attachment import Target


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
        target: Target,
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
