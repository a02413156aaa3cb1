"""`EvaluatedRetriever`: a retriever by LangChain's own suite, and part of the call around it."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, RunnableConfig, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests

from rag_eval_integrations import capture_call
from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.langchain import EvaluatedRetriever
from rag_eval_integrations.records import RagCall

from .apps import QUESTION
from .conftest import ANSWER, Captured, Sections, cancel, capture_of, ids, rag_chain, sections


class Numbered(BaseRetriever):
    """Finds as many documents as it is asked for."""

    k: int = 2

    def _get_relevant_documents(self, query: str, **kwargs: Any) -> list[Document]:
        return [Document(f"{query} {number}") for number in range(kwargs.get("k", self.k))]


class TestByLangChainsSuite(RetrieversIntegrationTests):
    """LangChain's contract for retrievers, over the retriever that nearly everybody has."""

    @property
    def retriever_constructor(self) -> Any:
        return EvaluatedRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
        store.add_documents(sections())
        return {"retriever": store.as_retriever(), "target": [].append}

    @property
    def retriever_query_example(self) -> str:
        return "kettle"


Calls = list[RagCall]


@pytest.fixture
def calls() -> Calls:
    return []


@pytest.fixture
def retriever(calls: Calls) -> EvaluatedRetriever:
    return EvaluatedRetriever(Sections(tags=["inner"]), calls.append)


class TestAlone:
    def test_is_a_call_without_response(self, retriever: EvaluatedRetriever, calls: Calls) -> None:
        """Question, documents with id, metadata and score, and how it was observed."""
        retrieved = retriever.invoke(QUESTION, {"tags": ["t"], "metadata": {"user": 7}})

        assert retrieved == sections()
        (call,) = calls
        assert (call.question, call.response) == (QUESTION, None)
        assert ids(call.documents) == ["a", "b", "c"]
        assert (call.documents[0].metadata, call.documents[1].score) == ({"page": 3}, 0.5)
        how = capture_of(call)
        assert (how.framework, how.status, how.documents_from) == ("langchain", "ok", "retriever")
        assert (how.tags, how.metadata["user"], how.retrievers) == (("t",), 7, ("Sections",))
        assert None not in (call.started_at, how.run_id, how.latency_s)
        assert RagCall.model_validate(call.model_dump()) == call

    def test_every_way_to_run_it(self, retriever: EvaluatedRetriever, calls: Calls) -> None:
        """`invoke`, `batch`, `stream` and their async forms give one call each.

        What an evaluation runs is not captured.
        """

        async def awaited() -> None:
            assert await retriever.ainvoke(QUESTION) == sections()
            assert await retriever.abatch([QUESTION, "b"]) == [sections(), sections()]
            assert [found async for found in retriever.astream(QUESTION)] == [sections()]

        assert retriever.batch([QUESTION, "b"]) == [sections(), sections()]
        assert list(retriever.stream(QUESTION)) == [sections()]
        asyncio.run(awaited())
        with suppress_capture():
            assert retriever.invoke(QUESTION) == sections()

        assert sorted(call.question for call in calls) == [QUESTION] * 5 + ["b"] * 2

    def test_an_error_is_a_call(self, calls: Calls) -> None:
        """It goes on unchanged, and the call has no documents."""
        retriever = EvaluatedRetriever(Sections(error="closed"), calls.append)

        with pytest.raises(RuntimeError, match=r"^closed$"):
            retriever.invoke(QUESTION)

        (call,) = calls
        assert (capture_of(call).status, call.documents, call.response) == ("error", (), None)

    async def test_a_cancellation_is_a_call(self, calls: Calls) -> None:
        """LangChain fires no event for it, and the wrapper sees it all the same."""
        begun = asyncio.Event()

        class Waiting(Sections):
            async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
                begun.set()
                await asyncio.Event().wait()

        await cancel(EvaluatedRetriever(Waiting(), calls.append).ainvoke(QUESTION), begun)

        assert [capture_of(call).status for call in calls] == ["aborted"]

    async def test_what_a_call_configures_goes_through(self, calls: Calls) -> None:
        """A runnable is a retriever as well, and reads what it needs from the config of the call."""
        runnable = Numbered().configurable_fields(k=ConfigurableField(id="count"))
        retriever = EvaluatedRetriever(runnable, calls.append)
        config: RunnableConfig = {"configurable": {"count": 5}}

        assert len(retriever.invoke("x", config)) == 5
        assert len(await retriever.ainvoke("x", config)) == 5
        assert len(rag_chain(retriever).invoke("x", config)) > 0

        assert [len(call.documents) for call in calls] == [5, 5, 5]

    def test_arguments_go_through(self, calls: Calls) -> None:
        """Those of the call go before those of the wrapper."""
        retriever = EvaluatedRetriever(Numbered(), calls.append, k=3, name="mine", tags=["t"])

        assert len(retriever.invoke("x")) == 3
        assert len(retriever.invoke("x", k=1)) == 1

        how = capture_of(calls[0])
        assert (retriever.get_name(), how.retrievers, how.tags) == ("mine", ("mine",), ("t",))

    def test_what_is_no_document_costs_the_call_only(self, calls: Calls) -> None:
        """The app gets what its retriever gave; the capture counts a failure."""
        odd: Any = RunnableLambda(lambda query: [object()])
        retriever = EvaluatedRetriever(odd, calls.append)

        assert len(retriever.invoke(QUESTION)) == 1

        assert (calls, retriever.failed) == ([], 1)

    def test_user_mistakes_are_named(self) -> None:
        """At construction, with the field."""
        with pytest.raises(ConfigurationError, match="retriever"):
            EvaluatedRetriever(sections, print)  # type: ignore[arg-type]


class TestInsideOfACall:
    async def test_a_handler_s_call(
        self, retriever: EvaluatedRetriever, calls: Calls, captured: Captured
    ) -> None:
        """The chain's call has the documents, once, also of many at once; there is no other call.

        The handler need not be given with the call.
        """
        chain = rag_chain(retriever)

        await asyncio.gather(*(chain.ainvoke(f"q{i}", captured.config) for i in range(10)))
        captured.handler.attach_globally()
        try:
            chain.invoke("q10")
            retriever.invoke("alone")
        finally:
            captured.handler.detach()

        assert [call.question for call in calls] == ["alone"]
        assert set(captured.questions) == {f"q{i}" for i in range(11)}
        assert captured.ids_by_call == [["a", "b", "c"]] * 11
        assert {capture_of(call).retrievers for call in captured.calls} == {("Sections",)}

    def test_a_handler_of_the_retriever_alone(
        self, retriever: EvaluatedRetriever, calls: Calls, captured: Captured
    ) -> None:
        """To that handler a bare retriever is no call, so the wrapper delivers one.

        Of several handlers, one that has a call around it is enough.
        """
        alone = rag_chain(retriever.with_config(callbacks=[captured.handler]))
        around = Captured()
        retriever.invoke(QUESTION, captured.config)
        alone.invoke("in a chain")
        alone.invoke("in a call", around.config)

        assert captured.calls == []
        assert [call.question for call in calls] == [QUESTION, "in a chain"]
        assert around.only.question == "in a call"

    def test_a_plain_block(self, retriever: EvaluatedRetriever, calls: Calls) -> None:
        """What was retrieved inside is the block's, in order, each document once."""
        blocks: list[RagCall] = []
        more = EvaluatedRetriever(Sections(found=[Document("More.", id="d")]), calls.append)

        with capture_call(blocks.append, QUESTION) as call:
            retriever.invoke(QUESTION)
            more.batch([QUESTION])
            retriever.invoke("again")
            call.response = ANSWER

        assert calls == []
        assert [ids(block.documents) for block in blocks] == [["a", "b", "c", "d"]]

    def test_a_block_keeps_what_the_app_sets(self, retriever: EvaluatedRetriever) -> None:
        """Documents that the app sets afterwards go before; what it is reading is not touched."""
        blocks: list[RagCall] = []
        ranked = iter([Document("Ranked.")])

        with capture_call(blocks.append, QUESTION) as call:
            retriever.invoke(QUESTION)
            call.documents = ["Mine."]
        with capture_call(blocks.append, QUESTION) as call:
            call.documents = ranked
            retriever.invoke(QUESTION)
            assert call.documents is ranked
            call.documents = list(ranked)

        assert [[d.text for d in block.documents] for block in blocks] == [["Mine."], ["Ranked."]]


def test_copied(calls: Calls) -> None:
    """A deep copy retrieves for itself, and delivers to the same target."""
    retriever = EvaluatedRetriever(Numbered(), calls.append, k=1)

    copied = copy.deepcopy(retriever)

    assert copied.retriever is not retriever.retriever
    assert [found.page_content for found in copied.invoke(QUESTION)] == [f"{QUESTION} 0"]
    assert [len(call.documents) for call in calls] == [1]
