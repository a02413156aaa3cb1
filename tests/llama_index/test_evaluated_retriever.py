"""`EvaluatedRetriever`: the retriever it wraps; a call alone, and a part of one inside of one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import IndexNode, QueryBundle, TextNode
from llama_index_instrumentation.dispatcher import instrument_tags

from rag_eval_integrations import capture_call
from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.llama_index import EvaluatedRetriever
from rag_eval_integrations.records import RagCall, from_line, to_line

from .conftest import (
    ANSWER,
    QUESTION,
    Captured,
    Sections,
    Slow,
    engine,
    ids,
    nodes,
    seen,
    substance,
)


class TestAlone:
    async def test_is_a_call_without_response(self, calls: list[RagCall]) -> None:
        """Sync and async, by string or bundle: question, documents, no answer asked for."""
        wrapped = EvaluatedRetriever(Sections(nodes()), calls.append)

        with instrument_tags({"user": 7}):
            retrieved = wrapped.retrieve(QUESTION)
            again = await wrapped.aretrieve(QueryBundle(QUESTION))

        assert [scored.node.node_id for scored in (*retrieved, *again)] == [*"abcabc"]
        assert substance(calls[0]) == substance(calls[1])
        call = calls[0]
        assert (call.question, call.response, call.app) == (QUESTION, None, "Sections")
        assert call.documents[0].shown == "page: 3\n\nThe kettle boils in four minutes."
        assert call.documents[0].header == "page: 3"
        scores = [(document.id, document.score) for document in call.documents]
        assert scores == [("a", 0.5), ("b", 0.5), ("c", 0.5)]
        how = seen(call)
        assert (how.framework, how.status, how.documents_from) == ("llama_index", "ok", "retriever")
        assert (how.metadata, how.retrievers) == ({"user": 7}, ("Sections",))
        assert how.run_id
        assert from_line(RagCall, to_line(call)) == call

    async def test_says_what_became_of_it(self, calls: list[RagCall]) -> None:
        """Errors and cancellations are the app's; the record has the status."""
        slow = Slow([])

        with pytest.raises(RuntimeError, match="no index"):
            EvaluatedRetriever(Sections([], error="no index"), calls.append).retrieve(QUESTION)
        waiting = asyncio.create_task(EvaluatedRetriever(slow, calls.append).aretrieve(QUESTION))
        await slow.begun()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

        ends = [(seen(call).status, call.documents) for call in calls]
        assert ends == [("error", ()), ("aborted", ())]

    def test_is_not_a_judges(self, calls: list[RagCall]) -> None:
        """What a judge retrieves is no call of the app."""
        with suppress_capture():
            EvaluatedRetriever(Sections(nodes()), calls.append).retrieve(QUESTION)

        assert calls == []

    def test_still_retrieves_what_cannot_be_recorded(self) -> None:
        """Counted, not seen."""

        class Odd(TextNode):
            def get_content(self, *args: Any, **kwargs: Any) -> str:
                raise RuntimeError("no text")

        odd = EvaluatedRetriever(Sections([Odd(text="x")]), print)
        assert len(odd.retrieve(QUESTION)) == 1
        assert odd.failed == 1


class TestInside:
    async def test_an_observed_query_is_as_if_not_wrapped(
        self, calls: list[RagCall], captured: Captured
    ) -> None:
        """A handler's record is the same, and the wrapper delivers nothing of its own."""
        for retriever in (Sections(nodes()), EvaluatedRetriever(Sections(nodes()), calls.append)):
            engine(retriever).query(QUESTION)
            await engine(retriever).aquery(QUESTION)

        assert calls == []
        records = [substance(call) for call in captured.calls]
        assert records == [records[0]] * 4

    async def test_a_block_adds_its_documents(self, calls: list[RagCall]) -> None:
        """Several retrievals add up; a document found twice is there once."""
        own: list[RagCall] = []
        first = EvaluatedRetriever(Sections(nodes()[:2]), own.append)
        second = EvaluatedRetriever(Sections(nodes()[1:]), own.append)

        with capture_call(calls.append, QUESTION) as call:
            first.retrieve(QUESTION)
            await second.aretrieve(QUESTION)
            call.response = ANSWER

        assert own == []
        assert ids(calls[0]) == ["a", "b", "c"]
        assert calls[0].documents[0].metadata == {"page": 3}
        assert calls[0].documents[0].score == 0.5

    def test_a_block_that_sets_its_documents_has_those(self, calls: list[RagCall]) -> None:
        """What the app says goes before what was seen, in either order."""
        wrapped = EvaluatedRetriever(Sections(nodes()), print)

        with capture_call(calls.append, QUESTION) as call:
            call.documents = wrapped.retrieve(QUESTION)[:1]
            call.response = ANSWER
        with capture_call(calls.append, QUESTION) as call:
            call.documents = kept = {"not": "a list"}
            wrapped.retrieve(QUESTION)
            assert call.documents is kept

        assert ids(calls[0]) == ["a"]


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
        """Attributes, callback manager, object map, prompts."""
        inner = engine().retriever
        wrapped: Any = EvaluatedRetriever(inner, print)
        manager = CallbackManager([])

        wrapped.callback_manager = manager
        wrapped.object_map = {"t": 1}

        assert wrapped.similarity_top_k == 3
        assert inner.callback_manager is manager is wrapped.callback_manager
        assert inner.object_map == {"t": 1} == wrapped.object_map
        assert wrapped.get_prompts() == inner.get_prompts()
        wrapped.update_prompts({})
        assert isinstance(wrapped, BaseRetriever)

    def test_is_checked(self) -> None:
        """At construction."""
        with pytest.raises(ConfigurationError, match="retriever"):
            EvaluatedRetriever(engine(), print)  # type: ignore[arg-type]  # the claim
