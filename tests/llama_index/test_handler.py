"""`RagEvalHandler` on real query engines: one right record a call, and the app undisturbed."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.dispatcher import instrument_tags

from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.llama_index import RagEvalHandler
from rag_eval_integrations.records import RagCall, from_line, to_line

from .conftest import (
    ANSWER,
    TOKENS,
    Captured,
    Model,
    Sections,
    Slow,
    engine,
    nodes,
    seen,
    substance,
)

QUESTION = "How fast is the kettle?"


class TestRecord:
    def test_holds_what_design_says(self, captured: Captured) -> None:
        """Question, nodes as the model saw them, answer, and how it was observed."""
        with instrument_tags({"user": 7, "odd": object}):
            response = engine().query(QUESTION)

        call = captured.only
        assert response.response == ANSWER  # type: ignore[union-attr]  # no stream
        assert call.question == QUESTION
        assert {document.id for document in call.documents} == {"a", "b", "c"}
        first = next(document for document in call.documents if document.id == "a")
        assert first.text == "The kettle boils in four minutes."
        assert first.header == "page: 3"
        assert first.shown == "page: 3\n\nThe kettle boils in four minutes."
        assert first.metadata == {"page": 3}
        assert first.score is not None
        assert first.score > 0
        assert call.response == ANSWER
        assert call.app == "RetrieverQueryEngine"
        assert captured.how.framework == "llama_index"
        assert captured.how.status == "ok"
        assert captured.how.documents_from == "prompt"
        assert captured.how.metadata == {"user": 7, "odd": "<class 'object'>"}
        assert captured.how.retrievers == ("VectorIndexRetriever",)
        assert captured.how.not_in_prompt == ()
        assert captured.how.run_id
        assert captured.how.latency_s is not None
        assert captured.how.latency_s > 0
        assert from_line(RagCall, to_line(call)) == call

    async def test_is_the_same_four_ways(self, captured: Captured) -> None:
        """Sync and async, streaming and not, give one record."""
        engine().query(QUESTION)
        await engine().aquery(QueryBundle(QUESTION))
        streamed = engine(streaming=True).query(QUESTION)
        list(streamed.response_gen)  # type: ignore[union-attr,arg-type]  # it is a stream
        astreamed = await engine(streaming=True).aquery(QUESTION)
        async for _ in astreamed.async_response_gen():  # type: ignore[union-attr]  # the same
            pass

        assert len(captured.calls) == 4
        assert [substance(call) for call in captured.calls] == [substance(captured.calls[0])] * 4


class TestContext:
    def test_is_what_postprocessors_left(self, captured: Captured) -> None:
        """Nodes that a postprocessor drops are listed as not in the prompt; its scores count."""

        class Second(BaseNodePostprocessor):
            def _postprocess_nodes(
                self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
            ) -> list[NodeWithScore]:
                return [NodeWithScore(node=nodes[1].node, score=0.9)]

        engine(Sections(nodes()), postprocessors=[Second()]).query(QUESTION)

        call = captured.only
        assert [(document.id, document.score) for document in call.documents] == [("b", 0.9)]
        assert captured.how.documents_from == "prompt"
        assert captured.left_out == ["a", "c"]

    def test_is_what_a_postprocessor_wrote(self, captured: Captured) -> None:
        """A postprocessor that puts another text into a node changes what the model sees."""

        class Shorter(BaseNodePostprocessor):
            def _postprocess_nodes(
                self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
            ) -> list[NodeWithScore]:
                for scored in nodes:
                    scored.node.set_content("Replaced.")
                return nodes

        engine(Sections(nodes()[1:2]), postprocessors=[Shorter()]).query(QUESTION)

        assert [document.text for document in captured.only.documents] == ["Replaced."]

    def test_can_be_empty(self, captured: Captured) -> None:
        """A retriever that finds nothing gives a call without documents, not no call."""
        engine(Sections([])).query(QUESTION)

        call = captured.only
        assert call.documents == ()
        assert call.response == "Empty Response"
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
    def test_bare_retriever_and_model(self, captured: Captured) -> None:
        """A retriever or a model on its own is no call."""
        Sections(nodes()).retrieve(QUESTION)
        Model().complete(QUESTION)

        assert captured.calls == []

    def test_engine_without_retrieval(self, captured: Captured) -> None:
        """A query in which nothing is retrieved is not delivered."""

        class Chat(CustomQueryEngine):
            def custom_query(self, query_str: str) -> str:
                return "Hello"

        Chat().query(QUESTION)

        assert captured.calls == []

    async def test_suppressed(self, captured: Captured) -> None:
        """What runs as part of an evaluation is not captured."""
        with suppress_capture():
            engine().query(QUESTION)
            await engine().aquery(QUESTION)
            stream = engine(streaming=True).query(QUESTION)
            assert list(stream.response_gen) == TOKENS  # type: ignore[union-attr,arg-type]  # a stream

        assert captured.calls == []


class TestStreams:
    def test_are_never_read_ahead(self, captured: Captured) -> None:
        """Nothing is delivered before the app has read its stream; its tokens are as without."""
        stream = engine(streaming=True).query(QUESTION)

        assert captured.calls == []
        assert captured.handler.open_calls == 1
        assert list(stream.response_gen) == TOKENS  # type: ignore[union-attr,arg-type]  # a stream
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
        assert [seen(call).status for call in captured.calls] == ["aborted"] * 2

    def test_that_fails(self, captured: Captured) -> None:
        """The app gets the model's error; the call is an error without a response."""
        stream: Any = engine(llm=Model(fail_after=2), streaming=True).query(QUESTION)

        with pytest.raises(RuntimeError, match="connection lost"):
            list(stream.response_gen)

        call = captured.only
        assert call.response is None
        assert len(call.documents) == 3
        assert captured.how.status == "error"

    def test_never_read(self) -> None:
        """A stream that nobody reads is forgotten after `ttl` seconds, and still works then."""
        calls: list[RagCall] = []
        with RagEvalHandler(calls.append, ttl=0.01) as handler:
            stream: Any = engine(streaming=True).query(QUESTION)
            asyncio.run(asyncio.sleep(0.05))

            assert handler.open_calls == 0
            assert handler.dropped == 1
            assert list(stream.response_gen) == TOKENS
            assert calls == []

    def test_read_after_uninstall(self) -> None:
        """A stream begun while installed is read along to its end."""
        calls: list[RagCall] = []
        with RagEvalHandler(calls.append):
            stream: Any = engine(streaming=True).query(QUESTION)

        assert list(stream.response_gen) == TOKENS
        assert [call.response for call in calls] == [ANSWER]


class TestTrouble:
    @pytest.mark.parametrize("where", ["retriever", "model"])
    async def test_error(self, captured: Captured, where: str) -> None:
        """The user's own error comes through; what was retrieved until then is on the record."""
        if where == "retriever":
            with pytest.raises(RuntimeError, match="index is gone"):
                engine(Sections([], error="index is gone")).query(QUESTION)
        else:
            with pytest.raises(RuntimeError, match="no model"):
                await engine(Sections(nodes()), llm=Model(error="no model")).aquery(QUESTION)

        assert captured.only.response is None
        assert captured.ids == ([] if where == "retriever" else ["a", "b", "c"])
        assert captured.how.status == "error"
        assert (captured.how.documents_from == "none") is (where == "retriever")

    async def test_cancelled(self, captured: Captured) -> None:
        """A cancelled task leaves an aborted call, and nothing open."""
        slow = Slow([])
        task = asyncio.create_task(engine(slow).aquery(QUESTION))
        await slow.begun()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert captured.only.response is None
        assert captured.how.status == "aborted"


class TestInstallation:
    def test_is_idempotent(self) -> None:
        """Installing twice gives one record a call; uninstalling twice is harmless."""
        calls: list[RagCall] = []
        handler = RagEvalHandler(calls.append)

        handler.install()
        handler.install()
        engine().query(QUESTION)
        handler.uninstall()
        handler.uninstall()
        engine().query(QUESTION)

        assert len(calls) == 1

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

    def test_target_may_query(self) -> None:
        """A target that runs a query under the same handler does not call itself."""
        calls: list[RagCall] = []

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
    async def test_many_tasks(self, captured: Captured) -> None:
        """20 concurrent queries keep their questions and nodes apart."""
        questions = [f"Question {i:02}?" for i in range(20)]
        shared = engine(Named())

        await asyncio.gather(*(shared.aquery(question) for question in questions))

        assert_no_cross_talk(captured.calls, questions)

    def test_many_threads(self, captured: Captured) -> None:
        """The same of 20 queries in ten threads."""
        questions = [f"Question {i:02}?" for i in range(20)]

        with ThreadPoolExecutor(10) as pool:
            list(pool.map(engine(Named()).query, questions))

        assert_no_cross_talk(captured.calls, questions)


def assert_no_cross_talk(calls: list[RagCall], questions: list[str]) -> None:
    assert sorted(call.question for call in calls) == questions
    for call in calls:
        assert [document.text for document in call.documents] == [
            f"About {call.question} number {i}" for i in range(2)
        ]
