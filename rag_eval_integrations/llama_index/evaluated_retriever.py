"""Stage 1 for LlamaIndex, by wrapping: a retriever that is scored where nothing else is."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType
from llama_index_instrumentation.dispatcher import active_instrument_tags

from rag_eval_integrations._observe import Context, Delivery, Seen, distinct, json_object, to_call
from rag_eval_integrations._suppress import suppressed
from rag_eval_integrations.background.attachment import Attachment, Target
from rag_eval_integrations.capture.current import CallInProgress, open_call
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.llama_index.extract import nodes_of, snapshot
from rag_eval_integrations.llama_index.scoped import in_captured_call
from rag_eval_integrations.llama_index.wrapping import Wrapper, no_span
from rag_eval_integrations.records import CaptureStatus, Document, Evaluation, RagCall

_LOGGER = logging.getLogger("rag_eval_integrations.llama_index")
_ADDING = threading.Lock()  # retrievers of one call may run in many threads


class EvaluatedRetriever(Wrapper, BaseRetriever):
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
        self._attachment = Attachment(target, on_evaluation)
        self._delivery = Delivery(self._attachment.target, _LOGGER)

    @property
    def failed(self) -> int:
        """How often the target, or the capture itself, failed."""
        return self._delivery.failed

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """The latest evaluations, oldest first, where the target is a `RagEvaluator`."""
        return self._attachment.evaluations

    def flush(self, timeout: float = 30.0) -> bool:
        """Wait until the retrievals captured so far are evaluated.

        Args:
            timeout: seconds to wait at most.

        Returns:
            Whether it was all done in time.
        """
        return self._attachment.flush(timeout)

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
            retrieval.nodes = self._wrapped.retrieve(str_or_query_bundle)
        return retrieval.nodes

    @no_span
    async def aretrieve(self, str_or_query_bundle: QueryType) -> list[NodeWithScore]:
        """Retrieve nodes."""
        with self._watched(str_or_query_bundle) as retrieval:
            retrieval.nodes = await self._wrapped.aretrieve(str_or_query_bundle)
        return retrieval.nodes

    # For who calls these directly: without the objects that index nodes stand for.

    @no_span
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        with self._watched(query_bundle) as retrieval:
            retrieval.nodes = self._wrapped._retrieve(query_bundle)
        return retrieval.nodes

    @no_span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        with self._watched(query_bundle) as retrieval:
            retrieval.nodes = await self._wrapped._aretrieve(query_bundle=query_bundle)
        return retrieval.nodes

    # --- as a capture: nothing that fails here reaches the app --------------------------------

    @contextmanager
    def _watched(self, query: QueryType) -> Iterator[_Retrieval]:
        """Take part in the call around, or deliver one; to be given the nodes found."""
        retrieval = _Retrieval(query if isinstance(query, str) else query.query_str)
        try:
            yield retrieval
        except BaseException as error:
            retrieval.status = "error" if isinstance(error, Exception) else "aborted"
            raise
        finally:
            try:
                if not suppressed() and not _part_of_a_call(retrieval):
                    self._delivery.deliver(retrieval.record(type(self._wrapped).__name__))
            except Exception as failure:  # noqa: BLE001 -- the boundary
                self._delivery.failure("capture (retriever)", failure)


@dataclass
class _Retrieval:
    """One retrieval while it runs."""

    question: str
    nodes: list[NodeWithScore] = field(default_factory=list)
    status: CaptureStatus = "ok"
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    began: float = field(default_factory=time.monotonic)

    def record(self, name: str) -> RagCall:
        """Make a call of it: a question and its documents, for which no answer was asked."""
        tags = active_instrument_tags.get()
        return to_call(
            Context(_distinct(self.nodes), "retriever", ()),
            {
                "framework": "llama_index",
                "run_id": f"{name}.retrieve-{uuid.uuid4()}",
                "status": self.status,
                "latency_s": time.monotonic() - self.began,
                "tags": (),
                "metadata": json_object(tags),
                "retrievers": (name,),
            },
            question=self.question,
            response=None,
            started_at=self.started_at,
            app=name,
        )


def _distinct(nodes: list[NodeWithScore]) -> list[Seen]:
    return distinct([snapshot(node, score) for node, score in nodes_of(nodes)])


def _part_of_a_call(retrieval: _Retrieval) -> bool:
    """Add the documents to the block around; False when there is neither block nor handler."""
    block = open_call()
    if block is not None:
        _add(block, retrieval.nodes)
    return block is not None or in_captured_call()


def _add(call: CallInProgress, nodes: list[NodeWithScore]) -> None:
    with _ADDING:
        there = call.documents
        if there is None or isinstance(there, list | tuple):  # else it is the app's own affair
            texts = {one.text for one in there or () if isinstance(one, Document)}
            new = [
                Document(text=one.text, id=one.id, metadata=one.metadata, score=one.score)
                for one in _distinct(nodes)
                if one.text not in texts
            ]
            call.documents = [*(there or ()), *new]
