"""What capture leaves behind (nothing), and what it does with spans that come late or never."""

from __future__ import annotations

import asyncio
import contextvars
import gc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from llama_index.core.base.response.schema import Response
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from rag_eval_integrations.llama_index import RagEvalHandler
from rag_eval_integrations.llama_index._recorder import _MAX_LATE
from rag_eval_integrations.llama_index._tree import _KNOWN, stage_of
from rag_eval_integrations.records import RagCall

from .apps import Own, Slow
from .conftest import ANSWER, QUESTION, Captured, Model, Sections, engine, ids, nodes


class TestState:
    def test_memory_is_flat(self) -> None:
        """Queries leave no objects behind that they would not leave without a handler."""
        asked = engine(Sections())

        def objects_after(times: int) -> int:
            for _ in range(times):
                asked.query(QUESTION)
            gc.collect()
            return len(gc.get_objects())

        def left() -> int:
            before = objects_after(5)
            return objects_after(30) - before

        # Other tests' objects come and go meanwhile: what each round leaves is a leak.
        without = max(left() for _ in range(3))
        with RagEvalHandler(lambda call: None):
            assert min(left() for _ in range(3)) - without < 25

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
        inner = engine(Sections())

        class Later(Own):
            async def acustom_query(self, query_str: str) -> Any:
                return await self.answer(query_str)

        async def wait(question: str) -> Any:
            await go.wait()
            return await inner.aquery("Late?")

        async def start(question: str) -> Any:
            tasks.append(asyncio.create_task(Later(answer=wait).aquery("Background?")))
            await asyncio.sleep(0)
            return Response("Done", source_nodes=Sections().retrieve(question))

        await Later(answer=start).aquery(QUESTION)
        assert captured.handler._recorder._late
        go.set()
        await tasks[0]

        assert captured.questions == [QUESTION]
        assert captured.handler._recorder._late == {}

    async def test_of_a_dropped_call(self, calls: list[RagCall]) -> None:
        """A call that took too long is gone; its last spans do no harm."""
        with RagEvalHandler(calls.append, ttl=0.01) as handler:
            task = asyncio.create_task(engine(Slow(wait=0.05)).aquery(QUESTION))
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
            assert str(Own(answer=answer).query(QUESTION)) == "Done"
            engine(Sections()).query(QUESTION)

        assert (handler.open_calls, handler.failed > 0) == (0, True)
        assert "no text" in caplog.text
        assert ids(calls[-1]) == ["a", "b", "c"]

    def test_record_that_cannot_be_made(
        self, calls: list[RagCall], caplog: pytest.LogCaptureFixture
    ) -> None:
        """A question that cannot be read costs the record, not the app's answer."""
        armed: list[str] = []

        class Odd(QueryBundle):
            def __getattribute__(self, name: str) -> Any:
                if name == "query_str" and armed:
                    raise OSError("no question")
                return super().__getattribute__(name)

        def answer(question: str) -> Any:
            armed.append(question)
            return Response("Done", source_nodes=Sections().retrieve(question))

        with RagEvalHandler(calls.append) as handler:
            assert str(Own(answer=answer).query(Odd(QUESTION))) == "Done"

        assert (handler.failed, handler.open_calls) == (1, 0)
        assert "no question" in caplog.text

    def test_odd_nodes(self, captured: Captured) -> None:
        """Empty nodes, scores that are no numbers, and things that are no nodes."""
        empty = NodeWithScore(node=TextNode(id_="e", text=""), score=float("nan"))
        given: Any = [empty, NodeWithScore(node=nodes()[1], score=None), "no node"]
        response = Response("Done", source_nodes=given)

        Own(answer=lambda question: response).query(QUESTION)

        assert captured.ids == ["e", "b"]
        assert [document.score for document in captured.only.documents] == [None, None]


class TestPrompts:
    def test_are_bounded(self, captured: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
        """Only so much prompt text is held for a call; the latest is kept."""
        monkeypatch.setattr("rag_eval_integrations.llama_index._call._MAX_PROMPT_CHARS", 100)

        def talk(question: str) -> str:
            retrieved = Sections().retrieve(question)
            Model().complete(retrieved[0].node.get_content() + "x" * 90)
            return str(Model().complete(retrieved[1].node.get_content()))

        Own(answer=talk).query(QUESTION)

        assert captured.ids == ["b"]


class TestConcurrency:
    def test_threads_that_share_a_query(self, captured: Captured) -> None:
        """A query whose parts run in threads that know of it is one call."""

        def answer(question: str) -> str:
            finders = [Sections([node]) for node in nodes()]
            with ThreadPoolExecutor(3) as pool:
                for finder in finders:
                    pool.submit(contextvars.copy_context().run, finder.retrieve, question)
            return "Four."

        Own(answer=answer).query(QUESTION)

        assert (captured.responses, captured.how.retrievers) == (["Four."], ("Sections",) * 3)
        assert sorted(captured.ids) == ["a", "b", "c"]  # type: ignore[type-var]  # no None
