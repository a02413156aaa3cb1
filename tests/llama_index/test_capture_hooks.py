"""What a user may say about an app of their own, and what a handler can be attached to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.tools import RetrieverTool

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.llama_index import RagEvalHandler
from rag_eval_integrations.records import Document, RagCall

from .conftest import ANSWER, TOKENS, Sections, ToolCaller, context, engine, ids, nodes, seen

QUESTION = "How fast is the kettle?"


def captured_with(run: Any, **hooks: Any) -> RagCall:
    calls: list[RagCall] = []
    with RagEvalHandler(calls.append, **hooks) as handler:
        run()
    assert handler.failed == 0
    assert len(calls) == 1
    return calls[0]


class TestHooks:
    def test_question(self) -> None:
        """The question hook reads what the outermost method was called with."""

        def question(arguments: Mapping[str, Any]) -> str:
            return str(arguments["str_or_query_bundle"]).removeprefix("Q: ")

        call = captured_with(
            lambda: engine(Sections(nodes())).query(f"Q: {QUESTION}"), question=question
        )

        assert call.question == QUESTION

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    async def test_question_of_a_run(self) -> None:
        """For an agent or workflow, it reads the start event's fields."""
        calls: list[RagCall] = []
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

        call = captured_with(lambda: engine(Sections(nodes())).query(QUESTION), documents=documents)

        assert ids(call) == ["a", "b", "3", None]
        assert [document.text for document in call.documents][2:] == ["three", "four"]
        assert [document.score for document in call.documents] == [0.5, None, 0.3, None]
        assert seen(call).documents_from == "dataflow"
        assert [document.id for document in seen(call).not_in_prompt] == ["c"]

    def test_documents_make_a_rag_call(self) -> None:
        """An app that retrieves out of sight is a RAG app where the hook says so."""

        class Hidden(CustomQueryEngine):
            def custom_query(self, query_str: str) -> str:
                return "Four minutes."

        call = captured_with(lambda: Hidden().query(QUESTION), documents=lambda result: ["Hidden."])

        assert [document.text for document in call.documents] == ["Hidden."]

    def test_response(self) -> None:
        """The response hook reads what the outermost method returned."""
        call = captured_with(
            lambda: engine(Sections(nodes())).query(QUESTION),
            response=lambda result: result.response.upper(),
        )

        assert call.response == ANSWER.upper()

    def test_response_of_streams(self) -> None:
        """For a stream it gets the whole text, when it has been read: it cannot drain it."""
        call = captured_with(
            lambda: list(engine(Sections(nodes()), streaming=True).query(QUESTION).response_gen),  # type: ignore[union-attr,arg-type]  # a stream
            response=lambda text: text.upper(),
        )
        assert call.response == ANSWER.upper()

        def chat() -> None:
            before = {*threading.enumerate()}
            response = context().stream_chat(QUESTION)
            assert list(response.response_gen) == TOKENS
            for thread in {*threading.enumerate()} - before:
                thread.join(10)  # what writes the stream

        assert captured_with(chat, response=lambda text: text.upper()).response == ANSWER.upper()

    def test_none_leaves_it_to_the_handler(self) -> None:
        """A hook that has nothing to say says None."""
        call = captured_with(
            lambda: engine(Sections(nodes())).query(QUESTION),
            documents=lambda result: None,
            response=lambda result: None,
        )

        assert ids(call) == ["a", "b", "c"]
        assert call.response == ANSWER

    @pytest.mark.parametrize("name", ["question", "documents", "response"])
    @pytest.mark.parametrize("wrong", ["raises", "returns"])
    def test_that_fail(self, name: str, wrong: str, caplog: pytest.LogCaptureFixture) -> None:
        """A failing hook is logged and counted; the call is read without it."""

        def hook(value: Any) -> Any:
            if wrong == "raises":
                raise ZeroDivisionError
            return [7]

        calls: list[RagCall] = []
        with RagEvalHandler(calls.append, **{name: hook}) as handler:  # type: ignore[arg-type]  # by name
            answers = [str(engine(Sections(nodes())).query(QUESTION)) for _ in range(2)]

        assert answers == [ANSWER] * 2
        assert handler.failed == 2
        assert f"the `{name}` hook" in caplog.text
        assert [(c.question, ids(c), c.response) for c in calls] == [
            (QUESTION, ["a", "b", "c"], ANSWER)
        ] * 2

    @pytest.mark.parametrize("given", ["one string", {"text": "a"}, 7])
    def test_no_list_of_documents(self, given: Any) -> None:
        """Characters and keys are not documents: such a result counts as a failure."""
        calls: list[RagCall] = []
        with RagEvalHandler(calls.append, documents=lambda result: given) as handler:
            engine(Sections(nodes())).query(QUESTION)

        assert handler.failed == 1
        assert ids(calls[0]) == ["a", "b", "c"]

    @pytest.mark.parametrize("name", ["question", "documents", "response"])
    def test_that_leave(self, name: str) -> None:
        """A cancellation or an exit inside a hook does not reach the app either."""

        def hook(value: Any) -> Any:
            raise asyncio.CancelledError if name == "documents" else SystemExit

        calls: list[RagCall] = []
        with RagEvalHandler(calls.append, **{name: hook}) as handler:  # type: ignore[arg-type]  # by name
            assert str(engine(Sections(nodes())).query(QUESTION)) == ANSWER

        assert handler.failed == 1
        assert [call.response for call in calls] == [ANSWER]

    @pytest.mark.parametrize("name", ["question", "documents", "response"])
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

        call = captured_with(lambda: engine(Sections(nodes())).query(QUESTION), documents=documents)

        assert ids(call) == ["a"]
        assert seen(call).retrievers == ("Sections",)
