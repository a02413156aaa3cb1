"""Stage 1 for LlamaIndex, by wrapping: a retriever that is scored where nothing else is."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType
from llama_index_instrumentation.dispatcher import active_instrument_tags

from rag_eval_integrations._observe import Seen, distinct, json_object
from rag_eval_integrations.capture.outlet import Captures, Outlet
from rag_eval_integrations.capture.retrieval import Retrieval, added_to_block, retrieving
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.llama_index.extract import nodes_of, snapshot
from rag_eval_integrations.llama_index.scoped import in_captured_call
from rag_eval_integrations.llama_index.wrapping import Wrapper, no_span
from rag_eval_integrations.records import Document, Evaluation, RagCall

if TYPE_CHECKING:
    from rag_eval_integrations.background.attachment import Target

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
        target: Target,
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
