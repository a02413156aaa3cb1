"""What a user may say about an app of their own, and what a handler can be attached to."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import Any

import pytest
from llama_index.core.tools import RetrieverTool

from rag_eval_integrations.records import Document

from .apps import Own, agent, context
from .conftest import ANSWER, QUESTION, TOKENS, Captured, Sections, engine, nodes


def captured_with(ask: Any = None, failed: int = 0, **hooks: Any) -> Captured:
    """The call of a query, or of what is asked instead, with these hooks."""
    captured = Captured(**hooks)
    with captured.handler:
        answer = ask() if ask else str(engine(Sections()).query(QUESTION))
    assert ask or answer == ANSWER
    assert captured.handler.failed == failed
    return captured


class TestHooks:
    def test_question(self) -> None:
        """The question hook reads what the outermost method was called with."""
        captured = captured_with(question=lambda given: given["str_or_query_bundle"].upper())

        assert captured.questions == [QUESTION.upper()]

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    async def test_question_of_a_run(self) -> None:
        """For an agent or workflow, it reads the start event's fields."""
        find = RetrieverTool.from_defaults(Sections(), name="find", description="d")
        captured = Captured(question=lambda fields: fields["user_msg"].upper())
        with captured.handler:
            await agent([("find", {"input": "x"})], "Done", tools=[find]).run(QUESTION)

        assert captured.questions == [QUESTION.upper()]

    def test_documents(self) -> None:
        """The documents hook may give nodes, scored or not, records and strings."""

        def documents(result: Any) -> list[Any]:
            given = Document("three", "3", score=0.3, header="page: 1")
            return [result.source_nodes[0], nodes()[1], given, "four"]

        captured = captured_with(documents=documents)

        assert captured.found == (["a", "b", "3", None], "dataflow", ["c"])
        given = captured.only.documents
        assert [document.text for document in given][2:] == ["three", "four"]
        assert [document.header for document in given] == ["page: 3", None, "page: 1", None]
        assert [document.score for document in given] == [0.5, None, 0.3, None]

    def test_documents_make_a_rag_call(self) -> None:
        """An app that retrieves out of sight is a RAG app where the hook says so."""
        hidden = Own(answer=lambda question: "Four minutes.")
        captured = captured_with(partial(hidden.query, "?"), documents=lambda result: ["Hidden."])

        assert [document.text for document in captured.only.documents] == ["Hidden."]

    def test_response(self) -> None:
        """The response hook reads what the outermost method returned."""
        captured = captured_with(response=lambda result: result.response.upper())

        assert captured.responses == [ANSWER.upper()]

    def test_response_of_streams(self) -> None:
        """For a stream it gets the whole text, when it has been read: it cannot drain it."""
        streaming: Any = engine(Sections(), streaming=True)

        def query() -> None:
            assert list(streaming.query(QUESTION).response_gen) == TOKENS

        def chat() -> None:
            before = {*threading.enumerate()}
            assert list(context().stream_chat(QUESTION).response_gen) == TOKENS
            for thread in {*threading.enumerate()} - before:
                thread.join(10)  # what writes the stream

        for ask in (query, chat):
            captured = captured_with(ask, response=lambda text: text.upper())
            assert captured.responses == [ANSWER.upper()]

    def test_none_leaves_it_to_the_handler(self) -> None:
        """A hook that has nothing to say says None."""
        captured = captured_with(documents=lambda result: None, response=lambda result: None)

        assert (captured.ids, captured.responses) == (["a", "b", "c"], [ANSWER])

    @pytest.mark.parametrize("name", ["question", "documents", "response"])
    @pytest.mark.parametrize("wrong", [ZeroDivisionError, SystemExit, asyncio.CancelledError, [7]])
    def test_that_fail(self, name: str, wrong: Any, caplog: pytest.LogCaptureFixture) -> None:
        """An error, an exit or a cancellation is logged and counted; the call is read without it."""

        def hook(value: Any) -> Any:
            if wrong != [7]:
                raise wrong
            return wrong

        captured = captured_with(failed=1, **{name: hook})

        assert f"the `{name}` hook" in caplog.text
        assert (captured.questions, captured.responses) == ([QUESTION], [ANSWER])
        assert captured.ids == ["a", "b", "c"]

    @pytest.mark.parametrize("given", ["one string", {"n": "a"}, 7])
    def test_no_list_of_documents(self, given: Any) -> None:
        """Characters are not documents: such a result counts as a failure."""
        captured = captured_with(failed=1, documents=lambda result: given)

        assert captured.ids == ["a", "b", "c"]

    def test_is_not_captured(self) -> None:
        """What a hook does with LlamaIndex is no call."""

        def documents(result: Any) -> Any:
            return engine(Sections(nodes()[:1])).query("Inner?").source_nodes

        captured = captured_with(documents=documents)

        assert (captured.ids, captured.how.retrievers) == (["a"], ("Sections",))
