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

from .conftest import ANSWER, TOKENS, Captured, Model, Sections, engine, nodes

QUESTION = "How fast is the kettle?"


def substance(call: RagCall) -> dict[str, Any]:
    """A record without what differs from run to run."""
    content = call.model_dump(exclude={"started_at"})
    del content["capture"]["run_id"], content["capture"]["latency_s"]
    return content


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
        assert call.capture is not None
        assert call.capture.framework == "llama_index"
        assert call.capture.status == "ok"
        assert call.capture.documents_from == "prompt"
        assert call.capture.metadata == {"user": 7, "odd": "<class 'object'>"}
        assert call.capture.retrievers == ("VectorIndexRetriever",)
        assert call.capture.not_in_prompt == ()
        assert call.capture.run_id
        assert call.capture.latency_s is not None
        assert call.capture.latency_s > 0
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
        assert call.capture is not None
        assert call.capture.documents_from == "prompt"
        assert [document.id for document in call.capture.not_in_prompt] == ["a", "c"]

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

    @pytest.mark.parametrize("mode", ["refine", "tree_summarize", "accumulate"])
    def test_spreads_over_several_prompts(self, captured: Captured, mode: str) -> None:
        """Where the answer takes several requests, all their prompts count."""
        engine(Sections(nodes()), mode=mode).query(QUESTION)

        call = captured.only
        assert [document.id for document in call.documents] == ["a", "b", "c"]
        assert call.capture is not None
        assert call.capture.documents_from == "prompt"

    def test_without_a_model_is_what_reached_synthesis(self, captured: Captured) -> None:
        """Without a prompt to look into, the source nodes are the context."""
        engine(Sections(nodes()), mode="no_text").query(QUESTION)

        call = captured.only
        assert len(call.documents) == 3
        assert call.capture is not None
        assert call.capture.documents_from == "dataflow"

    def test_can_be_empty(self, captured: Captured) -> None:
        """A retriever that finds nothing gives a call without documents, not no call."""
        engine(Sections([])).query(QUESTION)

        call = captured.only
        assert call.documents == ()
        assert call.response == "Empty Response"
        assert call.capture is not None
        assert call.capture.documents_from == "retriever"

    def test_is_a_snapshot(self, captured: Captured) -> None:
        """The app may change its nodes later; the record does not."""
        kept = nodes()[:1]
        engine(Sections(kept)).query(QUESTION)

        kept[0].metadata["page"] = 99
        kept[0].set_content("changed")

        assert captured.only.documents[0].shown == "page: 3\n\nThe kettle boils in four minutes."
        assert captured.only.documents[0].metadata == {"page": 3}

    def test_of_a_custom_engine_is_the_retriever(self, captured: Captured) -> None:
        """A custom engine returns a bare string: what its retriever found is the context."""

        class Custom(CustomQueryEngine):
            retriever: Any

            def custom_query(self, query_str: str) -> str:
                return str(len(self.retriever.retrieve(query_str)))

        Custom(retriever=Sections(nodes())).query(QUESTION)

        call = captured.only
        assert call.response == "3"
        assert [document.id for document in call.documents] == ["a", "b", "c"]
        assert call.capture is not None
        assert call.capture.documents_from == "retriever"

    def test_of_nested_queries_is_one_call(self, captured: Captured) -> None:
        """A query inside of a query belongs to the outer one."""

        class Outer(CustomQueryEngine):
            inner: Any

            def custom_query(self, query_str: str) -> Any:
                return self.inner.query(f"{query_str} please")

        Outer(inner=engine(Sections(nodes()))).query(QUESTION)

        assert captured.only.question == QUESTION
        assert len(captured.only.documents) == 3


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

    @pytest.mark.parametrize("read", ["str", "get_response", "print"])
    def test_read_any_way(
        self, captured: Captured, read: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """str(), get_response() and printing read the same stream."""
        stream: Any = engine(streaming=True).query(QUESTION)

        if read == "str":
            text = str(stream)
        elif read == "get_response":
            text = stream.get_response().response
        else:
            stream.print_response_stream()
            text = capsys.readouterr().out

        assert text == ANSWER
        assert captured.only.response == ANSWER

    async def test_async_read_any_way(self, captured: Captured) -> None:
        """The generator itself, the method and get_response() read the same stream."""
        streaming: Any = engine(streaming=True)
        tokens = [token async for token in (await streaming.aquery(QUESTION)).response_gen]
        again = [token async for token in (await streaming.aquery(QUESTION)).async_response_gen()]
        text = (await (await streaming.aquery(QUESTION)).get_response()).response

        assert tokens == again == TOKENS
        assert text == ANSWER
        assert [call.response for call in captured.calls] == [ANSWER] * 3

    def test_closed(self, captured: Captured) -> None:
        """A stream that the app closes is aborted, with what the app was given."""
        stream: Any = engine(streaming=True).query(QUESTION)
        given = next(stream.response_gen) + next(stream.response_gen)

        stream.response_gen.close()

        call = captured.only
        assert call.response == given == "The kettle"
        assert call.capture is not None
        assert call.capture.status == "aborted"

    async def test_async_closed(self, captured: Captured) -> None:
        """The same of an async stream."""
        stream: Any = await engine(streaming=True).aquery(QUESTION)
        given = await anext(stream.response_gen)

        await stream.response_gen.aclose()

        call = captured.only
        assert call.response == given
        assert call.capture is not None
        assert call.capture.status == "aborted"

    def test_that_fails(self, captured: Captured) -> None:
        """The app gets the model's error; the call is an error without a response."""
        stream: Any = engine(llm=Model(fail_after=2), streaming=True).query(QUESTION)

        with pytest.raises(RuntimeError, match="connection lost"):
            list(stream.response_gen)

        call = captured.only
        assert call.response is None
        assert len(call.documents) == 3
        assert call.capture is not None
        assert call.capture.status == "error"

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

    def test_read_side_by_side(self, captured: Captured) -> None:
        """Two streams read in turns keep their prompts apart."""
        one: Any = engine(Sections(nodes()[:1]), streaming=True).query("One?")
        two: Any = engine(Sections(nodes()[1:]), streaming=True).query("Two?")

        assert list(zip(one.response_gen, two.response_gen, strict=True)) == [
            (token, token) for token in TOKENS
        ]

        found = {call.question: [d.id for d in call.documents] for call in captured.calls}
        assert found == {"One?": ["a"], "Two?": ["b", "c"]}
        assert all(c.capture and c.capture.documents_from == "prompt" for c in captured.calls)


class TestTrouble:
    def test_retriever_error(self, captured: Captured) -> None:
        """The user's own error comes through; the call is an error without a response."""
        with pytest.raises(RuntimeError, match="index is gone"):
            engine(Sections([], error="index is gone")).query(QUESTION)

        call = captured.only
        assert call.documents == ()
        assert call.response is None
        assert call.capture is not None
        assert call.capture.status == "error"
        assert call.capture.documents_from == "none"

    async def test_model_error(self, captured: Captured) -> None:
        """What was retrieved for a model that failed is on the record."""
        with pytest.raises(RuntimeError, match="no model"):
            await engine(llm=Model(error="no model")).aquery(QUESTION)

        call = captured.only
        assert len(call.documents) == 3
        assert call.capture is not None
        assert call.capture.status == "error"

    async def test_cancelled(self, captured: Captured) -> None:
        """A cancelled task leaves an aborted call, and nothing open."""

        class Slow(Sections):
            async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
                await asyncio.sleep(30)
                return []

        task = asyncio.create_task(engine(Slow([])).aquery(QUESTION))
        await asyncio.sleep(0.1)

        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        call = captured.only
        assert call.response is None
        assert call.capture is not None
        assert call.capture.status == "aborted"

    def test_capture_that_fails(self, caplog: pytest.LogCaptureFixture) -> None:
        """The dispatcher swallows a handler's errors without a word: ours are logged, counted."""

        class Sour(TextNode):
            def get_content(self, metadata_mode: Any = None) -> str:
                raise OSError("sour")

        class Custom(CustomQueryEngine):
            def custom_query(self, query_str: str) -> str:
                return str(len(Sections([Sour(text="x")]).retrieve(query_str)))

        with RagEvalHandler(lambda call: None) as handler:
            assert str(Custom().query(QUESTION)) == "1"

        assert handler.failed > 0
        assert "capture" in caplog.text


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

    def test_two_side_by_side(self) -> None:
        """Two handlers each get every call, of streams too, and leave each other alone."""
        one: list[RagCall] = []
        two: list[RagCall] = []
        with RagEvalHandler(one.append):
            with RagEvalHandler(two.append):
                engine().query(QUESTION)
                stream: Any = engine(streaming=True).query(QUESTION)
                assert list(stream.response_gen) == TOKENS
            engine().query(QUESTION)

        assert [substance(call) for call in one[:2]] == [substance(call) for call in two]
        assert all(call.capture and call.capture.documents_from == "prompt" for call in two)
        assert len(one) == 3

    def test_is_on_the_root_dispatcher(self) -> None:
        """`install` adds one span handler and one event handler, `uninstall` takes them away."""
        root = get_dispatcher()
        before = len(root.span_handlers), len(root.event_handlers)

        with RagEvalHandler(lambda call: None):
            during = len(root.span_handlers), len(root.event_handlers)

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
    async def test_fifty_tasks(self, captured: Captured) -> None:
        """50 concurrent queries keep their questions and nodes apart."""
        questions = [f"Question {i:02}?" for i in range(50)]
        shared = engine(Named())

        await asyncio.gather(*(shared.aquery(question) for question in questions))

        assert_no_cross_talk(captured.calls, questions)

    def test_fifty_threads(self, captured: Captured) -> None:
        """The same of 50 queries in ten threads."""
        questions = [f"Question {i:02}?" for i in range(50)]

        with ThreadPoolExecutor(10) as pool:
            list(pool.map(engine(Named()).query, questions))

        assert_no_cross_talk(captured.calls, questions)


def assert_no_cross_talk(calls: list[RagCall], questions: list[str]) -> None:
    assert sorted(call.question for call in calls) == questions
    for call in calls:
        assert [document.text for document in call.documents] == [
            f"About {call.question} number {i}" for i in range(2)
        ]
