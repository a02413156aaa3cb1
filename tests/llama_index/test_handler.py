"""`RagEvalHandler` on real query engines: one right record a call, and the app undisturbed."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.dispatcher import instrument_tags

from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.llama_index import RagEvalHandler
from rag_eval_integrations.records import RagCall, from_line, to_line

from .apps import Chooses, Slow
from .conftest import ANSWER, QUESTION, Captured, Model, Sections, engine, scored


class TestRecord:
    def test_holds_what_design_says(self, captured: Captured) -> None:
        """Question, nodes as the model saw them, answer, and how it was observed."""
        with instrument_tags({"user": 7, "odd": object}):
            response = engine().query(QUESTION)

        call, how = captured.only, captured.how
        assert str(response) == call.response == ANSWER
        assert (call.question, call.app) == (QUESTION, "RetrieverQueryEngine")
        documents = {document.id: document for document in call.documents}
        assert documents.keys() == {"a", "b", "c"}
        first = documents["a"]
        assert (first.text, first.header) == ("The kettle boils in four minutes.", "page: 3")
        assert first.shown == "page: 3\n\nThe kettle boils in four minutes."
        assert first.metadata == {"page": 3}
        assert (first.score or 0) > 0
        assert (how.framework, how.status, how.documents_from) == ("llama_index", "ok", "prompt")
        assert how.metadata == {"user": 7, "odd": "<class 'object'>"}
        assert (how.retrievers, how.not_in_prompt) == (("VectorIndexRetriever",), ())
        assert how.run_id
        assert (how.latency_s or 0) > 0
        assert from_line(RagCall, to_line(call)) == call


class TestContext:
    def test_is_what_postprocessors_left(self, captured: Captured) -> None:
        """Nodes that a postprocessor drops are listed as not in the prompt; its scores count."""

        def second(retrieved: list[NodeWithScore]) -> list[NodeWithScore]:
            return [NodeWithScore(node=retrieved[1].node, score=0.9)]

        engine(Sections(), postprocessors=[Chooses(choose=second)]).query(QUESTION)

        assert captured.found == (["b"], "prompt", ["a", "c"])
        assert captured.only.documents[0].score == 0.9

    def test_can_be_empty(self, captured: Captured) -> None:
        """A retriever that finds nothing gives a call without documents, not no call."""
        engine(Sections([])).query(QUESTION)

        assert captured.only.response == "Empty Response"
        assert captured.found == ([], "retriever", [])

    def test_is_a_snapshot(self, captured: Captured) -> None:
        """The app may change its nodes later; the record does not."""
        retriever = Sections()
        engine(retriever).query(QUESTION)

        for node in retriever._nodes:
            node.metadata["page"] = 99
            node.set_content("changed")

        assert captured.only.documents[0].shown == "page: 3\n\nThe kettle boils in four minutes."
        assert captured.only.documents[0].metadata == {"page": 3}


class TestStreams:
    def test_are_never_read_ahead(self, captured: Captured) -> None:
        """Nothing is delivered before the app has read its stream; of an evaluation nothing at all."""
        stream: Any = engine(streaming=True).query(QUESTION)
        with suppress_capture():
            assert str(engine(streaming=True).query(QUESTION)) == ANSWER

        assert (captured.calls, captured.handler.open_calls) == ([], 1)
        assert "".join(stream.response_gen) == captured.only.response == ANSWER

    async def test_closed(self, captured: Captured) -> None:
        """A stream that the app closes is aborted, with what the app was given; async, too."""
        stream: Any = engine(streaming=True).query(QUESTION)
        given = next(stream.response_gen) + next(stream.response_gen)
        stream.response_gen.close()
        later: Any = await engine(streaming=True).aquery(QUESTION)
        then = await anext(later.response_gen)
        await later.response_gen.aclose()

        assert captured.responses == [given, then] == ["The kettle", "The"]
        assert captured.statuses == ["aborted"] * 2

    def test_that_fails(self, captured: Captured) -> None:
        """The app gets the model's error; the call is an error without a response."""
        stream: Any = engine(llm=Model(fail_after=2), streaming=True).query(QUESTION)

        with pytest.raises(RuntimeError, match="connection lost"):
            list(stream.response_gen)

        assert captured.ended == (None, "error")
        assert len(captured.ids) == 3


class TestTrouble:
    @pytest.mark.parametrize("way", ["query", "aquery"])
    @pytest.mark.parametrize(
        ("asked", "found"),
        [
            (engine(Sections(error="offline")), ([], "none", [])),
            (engine(Sections(), llm=Model(error="offline")), (["a", "b", "c"], "prompt", [])),
        ],
    )
    async def test_error(self, captured: Captured, asked: Any, found: Any, way: str) -> None:
        """The user's own error comes through; what was retrieved until then is on the record."""
        with pytest.raises(RuntimeError, match="offline"):
            await asked.aquery(QUESTION) if way == "aquery" else asked.query(QUESTION)

        assert (captured.ended, captured.found) == ((None, "error"), found)

    async def test_cancelled(self, captured: Captured) -> None:
        """A cancelled task leaves an aborted call, and nothing open."""
        slow = Slow()
        task = asyncio.create_task(engine(slow).aquery(QUESTION))
        await slow.begun()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert captured.ended == (None, "aborted")


class TestInstallation:
    def test_is_idempotent(self, calls: list[RagCall]) -> None:
        """Installing twice gives one record a call; uninstalling twice is harmless."""
        handler, root = RagEvalHandler(calls.append), get_dispatcher()

        handler.install()
        handler.install()
        added = root.span_handlers[-1].class_name(), root.event_handlers[-1].class_name()
        assert added == ("RagEvalSpanHandler", "RagEvalEventHandler")
        engine().query(QUESTION)
        handler.uninstall()
        handler.uninstall()
        engine().query(QUESTION)

        assert len(calls) == 1

    async def test_lasts_until_the_last_block_ends(self, calls: list[RagCall]) -> None:
        """Of two tasks in `with` blocks of one handler, the first that leaves takes it from neither."""
        handler, slow = RagEvalHandler(calls.append), Slow(wait=0.1)

        async def ask(retriever: Sections) -> None:
            with handler:
                await engine(retriever).aquery(QUESTION)

        asking = asyncio.create_task(ask(slow))
        await slow.begun()
        await ask(Sections())
        await asking
        engine().query(QUESTION)

        assert [call.response for call in calls] == [ANSWER] * 2


class Named(Sections):
    """Finds two nodes that name the question."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        about = query_bundle.query_str
        return scored([TextNode(text=f"About {about} number {i}") for i in range(2)])

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        await asyncio.sleep(0.01)
        return self._retrieve(query_bundle)


class TestConcurrency:
    @pytest.mark.parametrize("threads", [False, True])
    async def test_many_queries(self, captured: Captured, threads: bool) -> None:
        """20 queries in as many tasks, or streams in ten threads, keep questions and nodes apart."""
        questions = [f"Question {i:02}?" for i in range(20)]
        shared = engine(Named(), streaming=threads)

        if threads:
            with ThreadPoolExecutor(10) as pool:
                streams: list[Any] = [*pool.map(shared.query, questions)]
                assert {*pool.map(str, streams)} == {ANSWER}
        else:
            await asyncio.gather(*(shared.aquery(question) for question in questions))

        assert sorted(captured.questions) == questions
        for call in captured.calls:
            texts = [document.text for document in call.documents]
            assert texts == [f"About {call.question} number {i}" for i in range(2)]
