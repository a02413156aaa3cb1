"""`EvaluatedRetriever`: the retriever it wraps; a call alone, and a part of one inside of one."""

from __future__ import annotations

from typing import Any

import pytest
from captured_calls import capture_of
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import IndexNode, QueryBundle
from llama_index_instrumentation.dispatcher import instrument_tags

from rag_eval_integrations import capture_call
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.llama_index import EvaluatedRetriever
from rag_eval_integrations.records import RagCall, from_line, to_line

from .conftest import ANSWER, QUESTION, Captured, Sections, engine, ids, nodes, substance


class TestAlone:
    async def test_is_a_call_without_response(self, calls: list[RagCall]) -> None:
        """Sync and async, by string or bundle: question, documents, no answer asked for."""
        wrapped = EvaluatedRetriever(Sections(), calls.append)

        with instrument_tags({"user": 7}):
            retrieved = wrapped.retrieve(QUESTION)
            again = await wrapped.aretrieve(QueryBundle(QUESTION))

        assert [scored.node.node_id for scored in (*retrieved, *again)] == [*"abcabc"]
        assert substance(calls[0]) == substance(calls[1])
        call = calls[0]
        assert (call.question, call.response, call.app) == (QUESTION, None, "Sections")
        assert call.documents[0].shown == "page: 3\n\nThe kettle boils in four minutes."
        assert call.documents[0].header == "page: 3"
        assert [document.score for document in call.documents] == [0.5] * 3
        how = capture_of(call)
        assert (how.framework, how.status, how.documents_from) == ("llama_index", "ok", "retriever")
        assert (how.metadata, how.retrievers) == ({"user": 7}, ("Sections",))
        assert how.run_id
        assert from_line(RagCall, to_line(call)) == call


class TestInside:
    async def test_an_observed_query_is_as_if_not_wrapped(
        self, calls: list[RagCall], captured: Captured
    ) -> None:
        """A handler's record is the same, and the wrapper delivers nothing of its own."""
        for retriever in (Sections(), EvaluatedRetriever(Sections(), calls.append)):
            engine(retriever).query(QUESTION)
            await engine(retriever).aquery(QUESTION)

        assert calls == []
        assert captured.substances == [captured.substances[0]] * 4

    async def test_a_block_adds_its_documents(self, calls: list[RagCall]) -> None:
        """Several retrievals add up; a document found twice is there once."""
        first = EvaluatedRetriever(Sections(nodes()[:2]), calls.append)
        second = EvaluatedRetriever(Sections(nodes()[1:]), calls.append)

        with capture_call(calls.append, QUESTION) as call:
            first.retrieve(QUESTION)
            await second.aretrieve(QUESTION)
            call.response = ANSWER

        (made,) = calls
        assert (ids(made), made.response) == (["a", "b", "c"], ANSWER)
        assert (made.documents[0].metadata, made.documents[0].score) == ({"page": 3}, 0.5)


class TestLikeTheRetriever:
    async def test_follows_index_nodes_once(self, calls: list[RagCall]) -> None:
        """Objects that they stand for are the inner retriever's affair; private halves pass them on."""
        index_node = IndexNode(id_="i", text="See the lid.", index_id="t", obj=nodes()[1])
        wrapped = EvaluatedRetriever(Sections([index_node]), calls.append)

        retrieved = wrapped.retrieve(QUESTION)
        retrieved += wrapped._retrieve(QueryBundle(QUESTION))
        retrieved += await wrapped._aretrieve(query_bundle=QueryBundle(QUESTION))

        assert [scored.node.node_id for scored in retrieved] == ["b", "i", "i"]
        assert [ids(call) for call in calls] == [["b"], ["i"], ["i"]]

    def test_has_its_attributes_and_settings(self) -> None:
        """Attributes and the object map."""
        inner = engine().retriever
        wrapped: Any = EvaluatedRetriever(inner, print)

        wrapped.object_map = {"t": 1}

        assert wrapped.similarity_top_k == 3
        assert inner.object_map == {"t": 1} == wrapped.object_map
        assert isinstance(wrapped, BaseRetriever)

    def test_is_checked(self) -> None:
        """At construction."""
        with pytest.raises(ConfigurationError, match="retriever"):
            EvaluatedRetriever(engine(), print)  # type: ignore[arg-type]  # the claim
