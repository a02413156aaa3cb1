"""`EvaluatedQueryEngine`: the engine it wraps, and one record a query, with nothing installed."""

from __future__ import annotations

import copy
import gc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler
from llama_index.core.chat_engine import CondenseQuestionChatEngine
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import CustomQueryEngine, RouterQueryEngine
from llama_index.core.schema import QueryBundle
from llama_index.core.selectors import LLMMultiSelector
from llama_index.core.tools import QueryEngineTool
from llama_index_instrumentation import get_dispatcher

from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.llama_index import EvaluatedQueryEngine, RagEvalHandler
from rag_eval_integrations.records import RagCall

from .conftest import (
    ANSWER,
    QUESTION,
    TOKENS,
    Captured,
    Model,
    Sections,
    engine,
    memory,
    nodes,
    seen,
    substance,
)


def handlers() -> tuple[int, int]:
    root = get_dispatcher()
    return len(root.span_handlers), len(root.event_handlers)


class TestRecord:
    async def test_is_a_handlers_four_ways(self, calls: list[RagCall], captured: Captured) -> None:
        """Sync and async, streaming and not: what a handler on the same engine delivers."""
        engine().query(QUESTION)
        expected = substance(captured.only)
        captured.handler.uninstall()
        plain = EvaluatedQueryEngine(engine(), calls.append)
        streaming = EvaluatedQueryEngine(engine(streaming=True), calls.append)
        before = handlers()

        assert str(plain.query(QUESTION)) == ANSWER
        assert str(await plain.aquery(QueryBundle(QUESTION))) == ANSWER
        streamed: Any = streaming.query(QUESTION)
        assert handlers() != before
        assert list(streamed.response_gen) == TOKENS
        astreamed: Any = await streaming.aquery(QUESTION)
        assert [token async for token in astreamed.async_response_gen()] == TOKENS

        assert handlers() == before
        assert [substance(call) for call in calls] == [expected] * 4
        assert streaming.handler.open_calls == 0

    def test_is_its_own_queries_alone(self, calls: list[RagCall]) -> None:
        """What other threads ask other engines meanwhile is not seen."""
        other = engine()

        class Slow(Sections):
            def _retrieve(self, query_bundle: QueryBundle) -> Any:
                with ThreadPoolExecutor(1) as pool:
                    pool.submit(other.query, "Somebody else's question?").result()
                return super()._retrieve(query_bundle)

        EvaluatedQueryEngine(engine(Slow(nodes())), calls.append).query(QUESTION)

        assert [call.question for call in calls] == [QUESTION]

    def test_is_one_each_in_many_threads(self, calls: list[RagCall]) -> None:
        """Twenty queries in ten threads, streaming and not: no cross-talk, nothing left."""
        wrapped = EvaluatedQueryEngine(engine(streaming=True), calls.append)

        def ask(number: int) -> str:
            return str(wrapped.query(f"Question {number}?"))

        with ThreadPoolExecutor(10) as pool:
            assert set(pool.map(ask, range(20))) == {ANSWER}

        assert {call.question for call in calls} == {f"Question {n}?" for n in range(20)}
        assert len(calls) == 20
        assert {call.response for call in calls} == {ANSWER}
        assert wrapped.handler.open_calls == wrapped.handler.failed == 0

    def test_is_made_while_others_come_and_go(self, captured: Captured) -> None:
        """Wrappers, and a handler, that go on the dispatcher and off it at the same time."""
        before = handlers()

        def ask(number: int) -> int:
            own: list[RagCall] = []
            wrapped = EvaluatedQueryEngine(engine(Sections(nodes())), own.append)
            for _ in range(3):
                wrapped.query(f"Question {number}?")
                captured.handler.install()
            return len(own)

        with ThreadPoolExecutor(10) as pool:
            assert set(pool.map(ask, range(10))) == {3}

        assert handlers() == before
        assert len(captured.calls) == 30

    def test_says_what_became_of_errors_and_streams(self, calls: list[RagCall]) -> None:
        """The app's exception is the app's; the record has the status."""
        failing = EvaluatedQueryEngine(engine(llm=Model(error="no model")), calls.append)
        streaming = EvaluatedQueryEngine(engine(streaming=True), calls.append)

        with pytest.raises(RuntimeError, match="no model"):
            failing.query(QUESTION)
        response: Any = streaming.query(QUESTION)
        next(response.response_gen)
        response.response_gen.close()

        ends = [(seen(call).status, call.response) for call in calls]
        assert ends == [("error", None), ("aborted", TOKENS[0])]

    def test_is_not_made_of_what_is_no_question(self, calls: list[RagCall]) -> None:
        """A judge's query is none of the app's; an engine that retrieves nothing is no RAG."""

        class Fixed(CustomQueryEngine):
            def custom_query(self, query_str: str) -> str:
                return "four"

        with suppress_capture():
            EvaluatedQueryEngine(engine(), calls.append).query(QUESTION)
        before = handlers()
        assert str(EvaluatedQueryEngine(Fixed(), calls.append).query(QUESTION)) == "four"

        assert (calls, handlers()) == ([], before)


class TestTarget:
    def test_gets_a_call_once_however_often_it_is_given(self, calls: list[RagCall]) -> None:
        """A handler, or a wrapper around, with the same target: one delivery."""
        inner = EvaluatedQueryEngine(engine(), calls.append)
        outer = EvaluatedQueryEngine(inner, calls.append)

        outer.query("First?")
        with RagEvalHandler(calls.append):
            inner.query("Second?")
            outer.query("Third?")
        inner.query("Fourth?")

        assert [call.question for call in calls] == ["First?", "Second?", "Third?", "Fourth?"]

    def test_needs_an_engine(self) -> None:
        """Checked at construction."""
        with pytest.raises(ConfigurationError, match="engine"):
            EvaluatedQueryEngine(Sections([]), print)  # type: ignore[arg-type]  # the claim


class TestLikeTheEngine:
    def test_has_its_attributes_and_settings(self) -> None:
        """Attributes, or errors, also in a copy; callbacks, sent once; prompts, set in place."""
        inner = engine()
        wrapped = EvaluatedQueryEngine(inner, print)
        debug = LlamaDebugHandler(print_trace_on_end=False)
        template = PromptTemplate("Say it: {context_str} {query_str}")

        assert wrapped.retriever is inner.retriever
        assert not hasattr(wrapped, "nothing")
        assert copy.copy(wrapped).retriever is inner.retriever
        assert not hasattr(object.__new__(EvaluatedQueryEngine), "retriever")
        wrapped.callback_manager = CallbackManager([debug])
        wrapped.query(QUESTION)
        assert inner.callback_manager is wrapped.callback_manager
        assert [str(pair[0].event_type.value) for pair in debug.get_event_pairs()] == ["query"]
        assert wrapped.get_prompts().keys() == inner.get_prompts().keys()
        wrapped.update_prompts({"response_synthesizer:text_qa_template": template})
        assert inner.get_prompts()["response_synthesizer:text_qa_template"] == template

    async def test_retrieves_and_synthesizes(self, calls: list[RagCall]) -> None:
        """By itself, neither is a call; what asks its private halves, as retry engines, makes some."""
        wrapped = EvaluatedQueryEngine(engine(), calls.append)
        bundle = QueryBundle(QUESTION)

        retrieved = wrapped.retrieve(bundle)

        assert len(retrieved) == len(await wrapped.aretrieve(bundle)) == 3
        assert str(wrapped.synthesize(bundle, retrieved)) == ANSWER
        assert str(await wrapped.asynthesize(bundle, retrieved)) == ANSWER
        assert calls == []
        assert str(wrapped._query(bundle)) == str(await wrapped._aquery(bundle)) == ANSWER
        assert len(calls) == 2

    def test_is_garbage_when_dropped(self) -> None:
        """Nothing in the process keeps a wrapper alive."""
        import weakref

        wrapped = EvaluatedQueryEngine(engine(), print)
        wrapped.query(QUESTION)
        gone = weakref.ref(wrapped)
        del wrapped
        gc.collect()

        assert gone() is None


class TestInside:
    def test_a_router_is_a_call_of_its_own(self, calls: list[RagCall], captured: Captured) -> None:
        """Each wrapped engine delivers its part; a handler delivers the whole."""

        class Both(Model):
            def predict(self, *args: Any, **kwargs: Any) -> str:
                return '[{"choice": 1, "reason": "r"}, {"choice": 2, "reason": "r"}]'

        parts = [
            EvaluatedQueryEngine(engine(Sections([node])), calls.append) for node in nodes()[:2]
        ]
        tools = [
            QueryEngineTool.from_defaults(part, name=f"part{i}") for i, part in enumerate(parts)
        ]
        selector = LLMMultiSelector.from_defaults(llm=Both())
        RouterQueryEngine(selector, tools, llm=Model(), verbose=False).query(QUESTION)

        assert sorted(call.documents[0].id or "" for call in calls) == ["a", "b"]
        assert len(captured.only.documents) == 2

    def test_a_chat_engine(self, calls: list[RagCall]) -> None:
        """A condense-question engine asks it, streaming as well."""
        for streaming in (False, True):
            wrapped = EvaluatedQueryEngine(engine(streaming=streaming), calls.append)
            chat = CondenseQuestionChatEngine.from_defaults(wrapped, llm=Model(), memory=memory())
            if streaming:
                assert "".join(chat.stream_chat(QUESTION).response_gen) == ANSWER
            else:
                assert str(chat.chat(QUESTION)) == ANSWER

        assert [call.response for call in calls] == [ANSWER, ANSWER]
