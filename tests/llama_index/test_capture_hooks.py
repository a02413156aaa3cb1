"""What a user may say about an app of their own, and what a handler can be attached to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.tools import RetrieverTool

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.llama_index import RagEvalHandler
from rag_eval_integrations.records import Document, RagCall

from .conftest import ANSWER, TOKENS, Own, Sections, ToolCaller, context, engine, ids, nodes, seen

QUESTION = "How fast is the kettle?"


def captured_with(ask: Any = None, **hooks: Any) -> RagCall:
    """The call of a query, or of what is asked instead, with these hooks."""
    calls: list[RagCall] = []
    with RagEvalHandler(calls.append, **hooks) as handler:
        ask() if ask else engine(Sections(nodes())).query(QUESTION)
    assert handler.failed == 0
    assert len(calls) == 1
    return calls[0]


NAMES = pytest.mark.parametrize("name", ["question", "documents", "response"])


class TestHooks:
    def test_question(self) -> None:
        """The question hook reads what the outermost method was called with."""

        def question(arguments: Mapping[str, Any]) -> str:
            return str(arguments["str_or_query_bundle"]).removeprefix("Q: ")

        asking = engine(Sections(nodes()))
        call = captured_with(lambda: asking.query(f"Q: {QUESTION}"), question=question)

        assert call.question == QUESTION

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    async def test_question_of_a_run(self, calls: list[RagCall]) -> None:
        """For an agent or workflow, it reads the start event's fields."""
        agent = FunctionAgent(
            tools=[RetrieverTool.from_defaults(Sections(nodes()), name="find", description="d")],
            llm=ToolCaller(script=[[("find", {"input": "x"})], "Done"]),
        )
        with RagEvalHandler(calls.append, question=lambda fields: fields["user_msg"].upper()):
            await agent.run(QUESTION)

        assert [call.question for call in calls] == [QUESTION.upper()]

    def test_documents(self) -> None:
        """The documents hook may give nodes, scored or not, records and strings."""

        def documents(result: Any) -> list[Any]:
            return [result.source_nodes[0], nodes()[1], Document("three", "3", score=0.3), "four"]

        call = captured_with(documents=documents)

        assert ids(call) == ["a", "b", "3", None]
        assert [document.text for document in call.documents][2:] == ["three", "four"]
        assert [document.score for document in call.documents] == [0.5, None, 0.3, None]
        assert seen(call).documents_from == "dataflow"
        assert [document.id for document in seen(call).not_in_prompt] == ["c"]

    def test_documents_make_a_rag_call(self) -> None:
        """An app that retrieves out of sight is a RAG app where the hook says so."""
        hidden = Own(answer=lambda question: "Four minutes.")
        call = captured_with(lambda: hidden.query(QUESTION), documents=lambda result: ["Hidden."])

        assert [document.text for document in call.documents] == ["Hidden."]

    def test_response(self) -> None:
        """The response hook reads what the outermost method returned."""
        call = captured_with(response=lambda result: result.response.upper())

        assert call.response == ANSWER.upper()

    def test_response_of_streams(self) -> None:
        """For a stream it gets the whole text, when it has been read: it cannot drain it."""
        streaming: Any = engine(Sections(nodes()), streaming=True)

        def query() -> None:
            assert list(streaming.query(QUESTION).response_gen) == TOKENS

        def chat() -> None:
            before = {*threading.enumerate()}
            response = context().stream_chat(QUESTION)
            assert list(response.response_gen) == TOKENS
            for thread in {*threading.enumerate()} - before:
                thread.join(10)  # what writes the stream

        for ask in (query, chat):
            call = captured_with(ask, response=lambda text: text.upper())
            assert call.response == ANSWER.upper()

    def test_none_leaves_it_to_the_handler(self) -> None:
        """A hook that has nothing to say says None."""
        call = captured_with(documents=lambda result: None, response=lambda result: None)

        assert (ids(call), call.response) == (["a", "b", "c"], ANSWER)

    @NAMES
    @pytest.mark.parametrize("wrong", [ZeroDivisionError, SystemExit, asyncio.CancelledError, [7]])
    def test_that_fail(
        self, calls: list[RagCall], name: str, wrong: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        """An error, an exit or a cancellation is logged and counted; the call is read without it."""

        def hook(value: Any) -> Any:
            if wrong != [7]:
                raise wrong
            return wrong

        with RagEvalHandler(calls.append, **{name: hook}) as handler:  # type: ignore[arg-type]  # by name
            answers = [str(engine(Sections(nodes())).query(QUESTION)) for _ in range(2)]

        assert answers == [ANSWER] * 2
        assert handler.failed == 2
        assert f"the `{name}` hook" in caplog.text
        fields = [(call.question, ids(call), call.response) for call in calls]
        assert fields == [(QUESTION, ["a", "b", "c"], ANSWER)] * 2

    @pytest.mark.parametrize("given", ["one string", {"text": "a"}, 7])
    def test_no_list_of_documents(self, calls: list[RagCall], given: Any) -> None:
        """Characters and keys are not documents: such a result counts as a failure."""
        with RagEvalHandler(calls.append, documents=lambda result: given) as handler:
            engine(Sections(nodes())).query(QUESTION)

        assert handler.failed == 1
        assert ids(calls[0]) == ["a", "b", "c"]

    @NAMES
    def test_that_cannot_be_used(self, name: str) -> None:
        """What is no plain function is refused where it is given."""

        async def later(value: Any) -> Any: ...

        class Callable:
            async def __call__(self, value: Any) -> Any: ...

        for hook in ("text", later, Callable()):
            with pytest.raises(ConfigurationError) as refused:
                RagEvalHandler(lambda call: None, **{name: hook})  # type: ignore[arg-type]  # on purpose
            assert refused.value.field == name

    def test_is_not_captured(self) -> None:
        """What a hook does with LlamaIndex is no call."""

        def documents(result: Any) -> Any:
            return engine(Sections(nodes()[:1])).query("Inner?").source_nodes

        call = captured_with(documents=documents)

        assert ids(call) == ["a"]
        assert seen(call).retrievers == ("Sections",)
