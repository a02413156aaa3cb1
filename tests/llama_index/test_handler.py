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

from .conftest import (
    ANSWER,
    QUESTION,
    TOKENS,
    Captured,
    Chooses,
    Model,
    Own,
    Sections,
    Slow,
    engine,
    ids,
    nodes,
    seen,
    substance,
)


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
        assert first.score is not None
        assert first.score > 0
        assert (how.framework, how.status, how.documents_from) == ("llama_index", "ok", "prompt")
        assert how.metadata == {"user": 7, "odd": "<class 'object'>"}
        assert (how.retrievers, how.not_in_prompt) == (("VectorIndexRetriever",), ())
        assert how.run_id
        assert how.latency_s is not None
        assert how.latency_s > 0
        assert from_line(RagCall, to_line(call)) == call

    async def test_is_the_same_four_ways(self, captured: Captured) -> None:
        """Sync and async, streaming and not, give one record."""
        engine().query(QUESTION)
        await engine().aquery(QueryBundle(QUESTION))
        streaming: Any = engine(streaming=True)
        list(streaming.query(QUESTION).response_gen)
        [token async for token in (await streaming.aquery(QUESTION)).async_response_gen()]

        assert len(captured.calls) == 4
        assert [substance(call) for call in captured.calls] == [substance(captured.calls[0])] * 4


class TestContext:
    def test_is_what_postprocessors_left(self, captured: Captured) -> None:
        """Nodes that a postprocessor drops are listed as not in the prompt; its scores count."""

        def second(retrieved: list[NodeWithScore]) -> list[NodeWithScore]:
            return [NodeWithScore(node=retrieved[1].node, score=0.9)]

        engine(Sections(nodes()), postprocessors=[Chooses(choose=second)]).query(QUESTION)

        documents = captured.only.documents
        assert [(document.id, document.score) for document in documents] == [("b", 0.9)]
        assert captured.how.documents_from == "prompt"
        assert captured.left_out == ["a", "c"]

    def test_is_what_a_postprocessor_wrote(self, captured: Captured) -> None:
        """A postprocessor that puts another text into a node changes what the model sees."""

        def replace(retrieved: list[NodeWithScore]) -> list[NodeWithScore]:
            for scored in retrieved:
                scored.node.set_content("Replaced.")
            return retrieved

        engine(Sections(nodes()[:1]), postprocessors=[Chooses(choose=replace)]).query(QUESTION)

        assert [document.text for document in captured.only.documents] == ["Replaced."]

    def test_can_be_empty(self, captured: Captured) -> None:
        """A retriever that finds nothing gives a call without documents, not no call."""
        engine(Sections([])).query(QUESTION)

        assert (captured.only.documents, captured.only.response) == ((), "Empty Response")
        assert captured.how.documents_from == "retriever"

    def test_is_a_snapshot(self, captured: Captured) -> None:
        """The app may change its nodes later; the record does not."""
        kept = nodes()[:1]
        engine(Sections(kept)).query(QUESTION)

        kept[0].metadata["page"] = 99
        kept[0].set_content("changed")

        assert captured.only.documents[0].shown == "page: 3\n\nThe kettle boils in four minutes."
        assert captured.only.documents[0].metadata == {"page": 3}


class TestNoRagCall:
    def test_without_a_query_or_retrieval(self, captured: Captured) -> None:
        """A retriever or a model on its own is no call, nor a query that retrieves nothing."""
        Sections(nodes()).retrieve(QUESTION)
        Model().complete(QUESTION)
        Own(answer=lambda question: "Hello").query(QUESTION)

        assert captured.calls == []

    async def test_suppressed(self, captured: Captured) -> None:
        """What runs as part of an evaluation is not captured."""
        with suppress_capture():
            engine().query(QUESTION)
            await engine().aquery(QUESTION)
            stream: Any = engine(streaming=True).query(QUESTION)
            assert list(stream.response_gen) == TOKENS

        assert captured.calls == []


class TestStreams:
    def test_are_never_read_ahead(self, captured: Captured) -> None:
        """Nothing is delivered before the app has read its stream; its tokens are as without."""
        stream: Any = engine(streaming=True).query(QUESTION)

        assert (captured.calls, captured.handler.open_calls) == ([], 1)
        assert list(stream.response_gen) == TOKENS
        assert captured.only.response == ANSWER

    async def test_closed(self, captured: Captured) -> None:
        """A stream that the app closes is aborted, with what the app was given; async, too."""
        stream: Any = engine(streaming=True).query(QUESTION)
        given = next(stream.response_gen) + next(stream.response_gen)
        stream.response_gen.close()
        later: Any = await engine(streaming=True).aquery(QUESTION)
        then = await anext(later.response_gen)
        await later.response_gen.aclose()

        assert [call.response for call in captured.calls] == [given, then] == ["The kettle", "The"]
        assert captured.statuses == ["aborted"] * 2

    def test_that_fails(self, captured: Captured) -> None:
        """The app gets the model's error; the call is an error without a response."""
        stream: Any = engine(llm=Model(fail_after=2), streaming=True).query(QUESTION)

        with pytest.raises(RuntimeError, match="connection lost"):
            list(stream.response_gen)

        assert (captured.only.response, captured.how.status) == (None, "error")
        assert len(captured.only.documents) == 3

    def test_never_read(self, calls: list[RagCall]) -> None:
        """A stream that nobody reads is forgotten after `ttl` seconds, and still works then."""
        with RagEvalHandler(calls.append, ttl=0.01) as handler:
            stream: Any = engine(streaming=True).query(QUESTION)
            asyncio.run(asyncio.sleep(0.05))

            assert (handler.open_calls, handler.dropped) == (0, 1)
            assert list(stream.response_gen) == TOKENS
            assert calls == []

    def test_read_after_uninstall(self, calls: list[RagCall]) -> None:
        """A stream begun while installed is read along to its end."""
        with RagEvalHandler(calls.append):
            stream: Any = engine(streaming=True).query(QUESTION)

        assert list(stream.response_gen) == TOKENS
        assert [call.response for call in calls] == [ANSWER]


class TestTrouble:
    @pytest.mark.parametrize(
        ("asked", "retrieved", "source"),
        [
            (engine(Sections([], error="offline")), [], "none"),
            (engine(Sections(nodes()), llm=Model(error="offline")), ["a", "b", "c"], "prompt"),
        ],
    )
    async def test_error(self, captured: Captured, asked: Any, retrieved: Any, source: str) -> None:
        """The user's own error comes through; what was retrieved until then is on the record."""
        with pytest.raises(RuntimeError, match="offline"):
            asked.query(QUESTION)
        with pytest.raises(RuntimeError, match="offline"):
            await asked.aquery(QUESTION)

        assert captured.statuses == ["error"] * 2
        for call in captured.calls:
            assert (call.response, ids(call)) == (None, retrieved)
            assert seen(call).documents_from == source

    async def test_cancelled(self, captured: Captured) -> None:
        """A cancelled task leaves an aborted call, and nothing open."""
        slow = Slow([])
        task = asyncio.create_task(engine(slow).aquery(QUESTION))
        await slow.begun()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert (captured.only.response, captured.how.status) == (None, "aborted")


class TestInstallation:
    def test_is_idempotent(self, calls: list[RagCall]) -> None:
        """Installing twice gives one record a call; uninstalling twice is harmless."""
        handler = RagEvalHandler(calls.append)

        handler.install()
        handler.install()
        engine().query(QUESTION)
        handler.uninstall()
        handler.uninstall()
        engine().query(QUESTION)

        assert len(calls) == 1

    async def test_lasts_until_the_last_block_ends(self, calls: list[RagCall]) -> None:
        """Of two tasks in `with` blocks of one handler, the first that leaves takes it from neither."""
        handler, slow = RagEvalHandler(calls.append), Slow(nodes(), wait=0.1)

        async def ask(retriever: Sections) -> None:
            with handler:
                await engine(retriever).aquery(QUESTION)

        asking = asyncio.create_task(ask(slow))
        await slow.begun()
        await ask(Sections(nodes()))
        await asking
        engine().query(QUESTION)

        assert [call.response for call in calls] == [ANSWER] * 2

    def test_is_on_the_root_dispatcher(self) -> None:
        """`install` adds one span handler and one event handler, `uninstall` takes them away."""
        root = get_dispatcher()
        before = len(root.span_handlers), len(root.event_handlers)

        with RagEvalHandler(lambda call: None):
            during = len(root.span_handlers), len(root.event_handlers)
            names = root.span_handlers[-1].class_name(), root.event_handlers[-1].class_name()

        assert names == ("RagEvalSpanHandler", "RagEvalEventHandler")
        assert during == (before[0] + 1, before[1] + 1)
        assert (len(root.span_handlers), len(root.event_handlers)) == before

    def test_target_may_query(self, calls: list[RagCall]) -> None:
        """A target that runs a query under the same handler does not call itself."""

        def target(call: RagCall) -> None:
            calls.append(call)
            engine().query("Is that so?")

        with RagEvalHandler(target):
            engine().query(QUESTION)

        assert [call.question for call in calls] == [QUESTION]


class Named(Sections):
    """Finds two nodes that name the question."""

    def __init__(self) -> None:
        super().__init__([])

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        about = query_bundle.query_str
        return [NodeWithScore(node=TextNode(text=f"About {about} number {i}")) for i in range(2)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        await asyncio.sleep(0.01)
        return self._retrieve(query_bundle)


class TestConcurrency:
    @pytest.mark.parametrize("threads", [False, True])
    async def test_many_queries(self, captured: Captured, threads: bool) -> None:
        """20 queries in as many tasks, or in ten threads, keep their questions and nodes apart."""
        questions = [f"Question {i:02}?" for i in range(20)]
        shared = engine(Named())

        if threads:
            with ThreadPoolExecutor(10) as pool:
                list(pool.map(shared.query, questions))
        else:
            await asyncio.gather(*(shared.aquery(question) for question in questions))

        assert sorted(call.question for call in captured.calls) == questions
        for call in captured.calls:
            texts = [document.text for document in call.documents]
            assert texts == [f"About {call.question} number {i}" for i in range(2)]
