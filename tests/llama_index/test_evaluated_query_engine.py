"""`EvaluatedQueryEngine`: the engine it wraps, and one record a query, with nothing installed."""

from __future__ import annotations

import copy
import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler
from llama_index.core.chat_engine import CondenseQuestionChatEngine
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RouterQueryEngine
from llama_index.core.schema import QueryBundle
from llama_index.core.selectors import LLMMultiSelector
from llama_index.core.tools import QueryEngineTool
from llama_index_instrumentation import get_dispatcher

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.llama_index import EvaluatedQueryEngine, RagEvalHandler
from rag_eval_integrations.records import RagCall

from .apps import Own, memory
from .conftest import ANSWER, QUESTION, TOKENS, Captured, Model, Sections, engine, nodes, substance


def handlers() -> tuple[int, int]:
    root = get_dispatcher()
    return len(root.span_handlers), len(root.event_handlers)


class TestRecord:
    async def test_is_a_handlers_four_ways(self, calls: list[RagCall], captured: Captured) -> None:
        """Sync and async, streaming and not: what a handler on the same engine delivers."""
        engine().query(QUESTION)
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
        assert [substance(call) for call in calls] == captured.substances * 4
        assert streaming.handler.open_calls == 0

    def test_is_its_own_queries_alone(self, calls: list[RagCall]) -> None:
        """What other threads ask other engines meanwhile is not seen."""
        other = engine()

        class Slow(Sections):
            def _retrieve(self, query_bundle: QueryBundle) -> Any:
                with ThreadPoolExecutor(1) as pool:
                    pool.submit(other.query, "Somebody else's question?").result()
                return super()._retrieve(query_bundle)

        EvaluatedQueryEngine(engine(Slow()), calls.append).query(QUESTION)

        assert [call.question for call in calls] == [QUESTION]

    def test_is_made_while_others_come_and_go(
        self, calls: list[RagCall], captured: Captured
    ) -> None:
        """Wrappers, one of all threads, and a handler, that go on the dispatcher and off it."""
        before, shared = handlers(), engine(Sections(), streaming=True)
        of_all = EvaluatedQueryEngine(shared, calls.append)

        def ask(question: str) -> int:
            own: list[RagCall] = []
            wrapped = EvaluatedQueryEngine(of_all, own.append)
            for _ in range(3):
                assert str(wrapped.query(question)) == ANSWER
                captured.handler.install()
            return len(own)

        with ThreadPoolExecutor(10) as pool:
            assert [*pool.map(ask, "0123456789")] == [3] * 10

        assert handlers() == before
        asked = sorted("0123456789" * 3)
        assert sorted(captured.questions) == sorted(call.question for call in calls) == asked
        assert of_all.handler.open_calls == of_all.handler.failed == 0

    def test_is_not_made_where_nothing_is_retrieved(self, calls: list[RagCall]) -> None:
        """An engine that retrieves nothing is no RAG."""
        engine = EvaluatedQueryEngine(Own(answer=lambda question: "four"), calls.append)

        assert (str(engine.query(QUESTION)), calls) == ("four", [])


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

        parts = [engine(Sections([node])) for node in nodes()[:2]]
        wrapped = [EvaluatedQueryEngine(part, calls.append) for part in parts]
        tools = [QueryEngineTool.from_defaults(part) for part in wrapped]
        selector = LLMMultiSelector.from_defaults(llm=Both())
        RouterQueryEngine(selector, tools, llm=Model(), verbose=False).query(QUESTION)

        assert sorted(call.documents[0].id or "" for call in calls) == ["a", "b"]
        assert len(captured.ids) == 2

    def test_a_chat_engine(self, calls: list[RagCall]) -> None:
        """A condense-question engine asks it, streaming."""
        wrapped = EvaluatedQueryEngine(engine(streaming=True), calls.append)
        chat = CondenseQuestionChatEngine.from_defaults(wrapped, llm=Model(), memory=memory())

        assert "".join(chat.stream_chat(QUESTION).response_gen) == ANSWER
        assert [call.response for call in calls] == [ANSWER]
