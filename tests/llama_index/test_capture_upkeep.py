"""What capture leaves behind (nothing), and what it does with spans that come late or never."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from llama_index.core.base.response.schema import Response
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index_instrumentation.dispatcher import instrument_tags

from rag_eval_integrations.llama_index import RagEvalHandler
from rag_eval_integrations.llama_index._recorder import _MAX_LATE
from rag_eval_integrations.llama_index._tree import _KNOWN, stage_of
from rag_eval_integrations.records import RagCall

from .conftest import ANSWER, Captured, Model, Own, Sections, Slow, engine, ids, nodes, seen

QUESTION = "How fast is the kettle?"


class TestState:
    async def test_nothing_stays(self) -> None:
        """After queries, errors, cancellations and streams of all kinds, no state is left."""
        with RagEvalHandler(lambda call: None) as handler:
            for _ in range(3):
                engine(Sections(nodes())).query(QUESTION)
                with pytest.raises(RuntimeError):
                    engine(Sections([], error="gone")).query(QUESTION)
                streaming: Any = engine(Sections(nodes()), streaming=True)
                list(streaming.query(QUESTION).response_gen)
                closed = streaming.query(QUESTION)
                next(closed.response_gen)
                closed.response_gen.close()
                task = asyncio.create_task(engine(Slow([])).aquery(QUESTION))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task

            assert (handler._recorder.spans, handler._recorder._late) == ({}, {})
            assert (handler.open_calls, handler.dropped, handler.failed) == (0, 0, 0)

    def test_memory_is_flat(self) -> None:
        """Queries leave no objects behind that they would not leave without a handler."""

        def left_by(times: int) -> int:
            asked = engine(Sections(nodes()))
            for _ in range(5):
                asked.query(QUESTION)
            gc.collect()
            before = len(gc.get_objects())
            for _ in range(times):
                asked.query(QUESTION)
            gc.collect()
            return len(gc.get_objects()) - before

        # Other tests' objects come and go meanwhile: what each round leaves is a leak.
        without = max(left_by(30) for _ in range(3))
        with RagEvalHandler(lambda call: None):
            with_ours = min(left_by(30) for _ in range(3))

        assert with_ours - without < 25

    def test_names_of_spans_are_bounded(self) -> None:
        """Names that no class has twice do not fill the memory of names."""
        uuid = "-" + "0" * 36
        for i in range(10_050):
            assert stage_of(f"Made{i}.retrieve{uuid}", None) == "own"

        assert len(_KNOWN) <= 10_000


class TestLateSpans:
    async def test_of_an_ended_call(self, captured: Captured) -> None:
        """What a step that nobody waited for does after its call is no call of its own."""
        tasks: list[asyncio.Task[Any]] = []
        go = asyncio.Event()
        inner = engine(Sections(nodes()))

        class Later(Own):
            async def acustom_query(self, query_str: str) -> Any:
                return await self.answer(query_str)

        async def wait(question: str) -> Any:
            await go.wait()
            return await inner.aquery("Late?")

        async def start(question: str) -> Any:
            tasks.append(asyncio.create_task(Later(answer=wait).aquery("Background?")))
            await asyncio.sleep(0)
            return Response("Done", source_nodes=Sections(nodes()).retrieve(question))

        await Later(answer=start).aquery(QUESTION)
        assert captured.handler._recorder._late
        go.set()
        await tasks[0]

        assert [call.question for call in captured.calls] == [QUESTION]
        assert captured.handler._recorder._late == {}

    async def test_of_a_dropped_call(self, calls: list[RagCall]) -> None:
        """A call that took too long is gone; its last spans do no harm."""
        with RagEvalHandler(calls.append, ttl=0.01) as handler:
            task = asyncio.create_task(engine(Slow(nodes(), wait=0.05)).aquery(QUESTION))
            await asyncio.sleep(0.03)
            assert handler.open_calls == 0
            await task

            assert (handler._recorder.spans, handler._recorder._late) == ({}, {})
        assert (calls, handler.dropped) == ([], 1)

    def test_are_bounded(self) -> None:
        """Spans that never end are not remembered for ever."""
        handler = RagEvalHandler(lambda call: None)
        for i in range(_MAX_LATE + 10):
            handler._recorder._note_late(str(i))

        assert len(handler._recorder._late) == _MAX_LATE

    def test_of_calls_in_flight_at_uninstall(self, calls: list[RagCall]) -> None:
        """A query in flight when the handler goes is forgotten."""
        handler = RagEvalHandler(calls.append)
        handler.install()

        class Leaves(Sections):
            def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
                handler.uninstall()
                return super()._retrieve(query_bundle)

        assert str(engine(Leaves(nodes())).query(QUESTION)) == ANSWER
        assert (handler.open_calls, handler._recorder.spans, calls) == (0, {}, [])


class TestFailures:
    def test_in_every_event(self, calls: list[RagCall], caplog: pytest.LogCaptureFixture) -> None:
        """Nodes that break whatever is read from them break neither the app nor the capture."""

        class Broken(TextNode):
            def get_content(self, metadata_mode: Any = None) -> str:
                raise OSError("no text")

        def answer(question: str) -> Any:
            return Response("Done", source_nodes=Sections([Broken(text="x")]).retrieve(question))

        with RagEvalHandler(calls.append) as handler:
            for _ in range(3):
                assert str(Own(answer=answer).query(QUESTION)) == "Done"
            engine(Sections(nodes())).query(QUESTION)

            assert handler.open_calls == 0
        assert handler.failed >= 3
        assert "no text" in caplog.text
        assert ids(calls[-1]) == ["a", "b", "c"]

    def test_record_that_cannot_be_made(
        self, calls: list[RagCall], caplog: pytest.LogCaptureFixture
    ) -> None:
        """A question that cannot be read costs the record, not the app's answer."""

        class Odd(QueryBundle):
            def __getattribute__(self, name: str) -> Any:
                if name == "query_str" and armed:
                    raise OSError("no question")
                return super().__getattribute__(name)

        armed = False
        bundle = Odd(QUESTION)

        def answer(question: str) -> Any:
            nonlocal armed
            retrieved = Sections(nodes()).retrieve(question)
            armed = True
            return Response("Done", source_nodes=retrieved)

        with RagEvalHandler(calls.append) as handler:
            assert str(Own(answer=answer).query(bundle)) == "Done"

        assert (handler.failed, handler.open_calls) == (1, 0)
        assert "no question" in caplog.text

    def test_odd_nodes(self, captured: Captured) -> None:
        """Empty nodes, scores that are no numbers, and things that are no nodes."""

        def answer(question: str) -> Any:
            Sections(nodes()[:1]).retrieve(question)
            sources: Any = [
                NodeWithScore(node=TextNode(id_="e", text=""), score=float("nan")),
                NodeWithScore(node=nodes()[1], score=None),
                "no node",
            ]
            return Response("Done", source_nodes=sources)

        Own(answer=answer).query(QUESTION)

        assert captured.ids == ["e", "b"]
        assert [document.score for document in captured.only.documents] == [None, None]


class TestTags:
    def test_of_queries(self, captured: Captured) -> None:
        """Tags are the user's metadata; a list named `tags` is the call's tags as well."""
        with instrument_tags({"tags": ["beta", "eu"], "user": {"id": 7}}):
            engine(Sections(nodes())).query(QUESTION)
        engine(Sections(nodes())).query(QUESTION)

        tagged, plain = map(seen, captured.calls)
        assert tagged.tags == ("beta", "eu")
        assert tagged.metadata == {"tags": ["beta", "eu"], "user": {"id": 7}}
        assert (plain.tags, plain.metadata) == ((), {})


class TestPrompts:
    def test_are_bounded(self, captured: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
        """Only so much prompt text is held for a call; the latest is kept."""
        monkeypatch.setattr("rag_eval_integrations.llama_index._call._MAX_PROMPT_CHARS", 100)

        def talk(question: str) -> str:
            retrieved = Sections(nodes()).retrieve(question)
            Model().complete(retrieved[0].node.get_content() + "x" * 90)
            return str(Model().complete(retrieved[1].node.get_content()))

        Own(answer=talk).query(QUESTION)

        assert captured.ids == ["b"]


class TestConcurrency:
    def test_threads_that_share_a_query(self, captured: Captured) -> None:
        """A query whose parts run in threads that know of it is one call."""

        def answer(question: str) -> str:
            def part(i: int) -> int:
                return len(Sections(nodes()[i : i + 1]).retrieve(f"{question} {i}"))

            with ThreadPoolExecutor(3) as pool:
                parts = [pool.submit(contextvars.copy_context().run, part, i) for i in range(3)]
                return str(sum(part.result() for part in parts))

        Own(answer=answer).query(QUESTION)

        assert captured.only.response == "3"
        assert sorted(captured.ids) == ["a", "b", "c"]  # type: ignore[type-var]  # no None
        assert len(captured.how.retrievers) == 3

    def test_threads_of_streams(self, captured: Captured) -> None:
        """Twenty streams read in ten threads keep their questions, nodes and answers apart."""
        ready = threading.Barrier(10)

        def read(i: int) -> str:
            node = TextNode(id_=f"n{i}", text=f"Section number {i:02} of the manual.")
            response: Any = engine(Sections([node]), streaming=True).query(f"Q{i}?")
            if i < 10:
                ready.wait(10)
            return "".join(response.response_gen)

        with ThreadPoolExecutor(10) as pool:
            assert list(pool.map(read, range(20))) == [ANSWER] * 20

        by_question = {call.question: ids(call) for call in captured.calls}
        assert by_question == {f"Q{i}?": [f"n{i}"] for i in range(20)}
        assert all(seen(call).documents_from == "prompt" for call in captured.calls)
