"""Runs that look like RAG and cannot be captured are told once; a tool's text as a document."""

from __future__ import annotations

import logging
import pydoc
import re
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import dynamic_prompt
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool, create_retriever_tool, tool
from langgraph.checkpoint.memory import InMemorySaver

from rag_eval_integrations import capture_call
from rag_eval_integrations.langchain import EvaluatedRetriever, RagEvalCallbackHandler
from rag_eval_integrations.records import RagCall

from .apps import QUESTION, Named, Scripted, Store, calls_tool, ids, says
from .conftest import ANSWER, Captured, Sections, joined, model, rag_chain, sections

MESSAGES = {"messages": [("human", QUESTION)]}


@tool
def search(query: str) -> str:
    """Search the manual."""
    return joined(Store().similarity_search(query))


@tool
def weather(query: str) -> str:
    """Tell the weather."""
    return "It is sunny."


@dynamic_prompt
def with_context(request: Any) -> str:
    """Put documents into the system prompt, which no event shows."""
    retrieved = joined(Store().similarity_search(QUESTION))
    return f"You are helpful. Use the following context in your response:\n\n{retrieved}"


def agent(one: BaseTool | None = None, **options: Any) -> Any:
    called = [] if one is None else [calls_tool("kettle", name=one.name)]
    tools = [] if one is None else [one]
    return create_agent(Scripted(replies=[*called, says()]), tools, **options)


def in_one_function(question: str) -> str:
    return model().invoke(f"Context:\n{joined(sections())}\n\nQuestion: {question}").text


LOOKS_LIKE_RAG: dict[str, tuple[Callable[[], Any], Any, str]] = {
    "a tool": (lambda: agent(search), MESSAGES, "the tool 'search' was called"),
    "a middleware": (
        lambda: agent(middleware=[with_context]),
        MESSAGES,
        "'context in your response:'",
    ),
    "one function": (lambda: RunnableLambda(in_one_function), QUESTION, "'Context:'"),
    "a bare retriever": (Sections, QUESTION, "'Sections' ran by itself"),
    "a bare model": (
        model,
        f"Answer from these documents:\n{joined(sections())}\n\n{QUESTION}",
        "'documents:'",
    ),
}


class TestLooksLikeRag:
    @pytest.mark.parametrize("name", LOOKS_LIKE_RAG)
    def test_is_told_once(
        self, captured: Captured, caplog: pytest.LogCaptureFixture, name: str
    ) -> None:
        """One log line for each kind, with the docstring to read; every run is counted."""
        make, given, expected = LOOKS_LIKE_RAG[name]
        for _ in range(3):
            make().invoke(given, captured.config)

        assert captured.calls == []
        assert captured.handler.uncaptured == 3
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        assert expected in caplog.text
        (shown,) = re.findall(r"`python -m pydoc (\S+)`", caplog.text)
        assert "Not captured" in pydoc.render_doc(shown)

    @pytest.mark.parametrize(
        ("make", "given"),
        [
            (lambda: agent(weather), MESSAGES),
            (lambda: agent(), MESSAGES),
            (lambda: ChatPromptTemplate.from_template("Tell me {question}") | model(), QUESTION),
            (model, f"Summarize this document:\n{joined(sections())}"),
            (rag_chain, QUESTION),
            (lambda: rag_chain(Sections(error="gone")).with_fallbacks([rag_chain()]), QUESTION),
        ],
    )
    def test_other_runs_are_not(
        self, captured: Captured, caplog: pytest.LogCaptureFixture, make: Any, given: Any
    ) -> None:
        """A chat, another tool, a summary and a captured call are no such runs."""
        make().invoke({"question": given} if "Prompt" in repr(make) else given, captured.config)

        assert captured.handler.uncaptured == 0
        assert caplog.text == ""

    def test_what_is_captured_otherwise_is_not(self, captured: Captured) -> None:
        """Neither is the retriever of an `EvaluatedRetriever` or of a `capture_call` block."""
        calls: list[RagCall] = []
        EvaluatedRetriever(Sections(), calls.append).invoke(QUESTION, captured.config)
        with capture_call(calls.append, QUESTION):
            Sections().invoke(QUESTION, captured.config)

        assert len(calls) == 2
        assert captured.handler.uncaptured == 0


def captured_with(tool_documents: Any, one: BaseTool) -> list[RagCall]:
    calls: list[RagCall] = []
    handler = RagEvalCallbackHandler(calls.append, tool_documents=tool_documents)
    agent(one).invoke(MESSAGES, {"callbacks": [handler]})
    assert handler.failed == 0
    return calls


class TestToolDocuments:
    @pytest.mark.parametrize("chosen", [("search",), {"search"}, lambda name: name == "search"])
    def test_text_is_a_document(self, chosen: Any) -> None:
        """The text of a tool that is named, or that a function chooses, is a document."""
        (call,) = captured_with(chosen, search)

        assert [document.text for document in call.documents] == [joined(sections())]
        assert call.documents[0].metadata == {"tool": "search"}
        assert (call.question, call.response) == (QUESTION, ANSWER)
        assert call.capture is not None
        assert call.capture.documents_from == "prompt"
        assert call.capture.retrievers == ("search",)

    def test_other_tools_are_not_taken(self) -> None:
        """The text of a tool with another name is none."""
        assert captured_with(("search",), weather) == []

    def test_documents_go_before_text(self) -> None:
        """A tool whose retriever was seen gives its documents, not its text."""
        (call,) = captured_with(("search",), create_retriever_tool(Sections(), "search", "Finds."))

        assert ids(call.documents) == ["a", "b", "c"]


def finds_one_more(response_format: Any, name: str = "manual") -> BaseTool:
    """A retriever's tool that finds the kettle in every turn, and what is asked for."""
    kettle = sections()[0]

    class Both(Named):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [kettle, *super()._get_relevant_documents(query, run_manager=run_manager)]

    return create_retriever_tool(Both(), name, "Finds.", response_format=response_format)


class TestEarlierTurns:
    @pytest.mark.parametrize("response_format", ["content", "content_and_artifact"])
    @pytest.mark.parametrize("kept_by", ["checkpointer", "app"])
    def test_follow_up_without_a_search(
        self,
        captured: Captured,
        caplog: pytest.LogCaptureFixture,
        response_format: str,
        kept_by: str,
    ) -> None:
        """A turn that is answered from what an earlier one found is counted, and told once."""
        replies = [calls_tool("lid", name="manual"), *(says(text) for text in "123")]
        options: dict[str, Any] = (
            {"checkpointer": InMemorySaver()} if kept_by == "checkpointer" else {}
        )
        app: Any = create_agent(
            Scripted(replies=replies), [finds_one_more(response_format)], **options
        )
        config = {**captured.config, "configurable": {"thread_id": "1"}}
        state = app.invoke(MESSAGES, config)
        for _ in range(2):
            before = [] if options else state["messages"]
            state = app.invoke({"messages": [*before, ("human", "And then?")]}, config)

        assert len(captured.calls) == 1
        assert captured.handler.uncaptured == 2
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        assert "the tool 'manual' had found in an earlier turn" in caplog.text

    def test_by_the_name_of_the_tool(self, captured: Captured) -> None:
        """What another process found is known by its tool's name; the weather is no document."""
        for name, count in (("weather", 0), ("search", 1)):
            past = [
                HumanMessage("When?"),
                calls_tool("k", name=name),
                ToolMessage("The kettle boils soon.", name=name, tool_call_id=f"{name}-0-k"),
                says("Soon."),
            ]
            agent().invoke({"messages": [*past, HumanMessage("Sure?")]}, captured.config)

            assert (captured.calls, captured.handler.uncaptured) == ([], count)

    @pytest.mark.parametrize("response_format", ["content", "content_and_artifact"])
    def test_documents_of_earlier_turns_were_seen(
        self, captured: Captured, response_format: str
    ) -> None:
        """They follow those of this turn; what both turns found is there once."""
        replies = [calls_tool("lid", name="manual"), says("1"), calls_tool("base", name="manual")]
        app: Any = create_agent(
            Scripted(replies=[*replies, says("2")]),
            [finds_one_more(response_format), weather],
            checkpointer=InMemorySaver(),
        )
        config = {**captured.config, "configurable": {"thread_id": "1"}}
        app.invoke(MESSAGES, config)
        app.invoke({"messages": [("human", "And the base?")]}, config)

        first, second = captured.calls
        lid = "All about lid, and no more."
        assert [document.text for document in first.documents] == [ANSWER, lid]
        assert [document.text for document in second.documents] == [
            ANSWER, "All about base, and no more.", lid,
        ]  # fmt: skip
        assert second.documents[2].id == (None if response_format == "content" else "lid")
        assert second.capture is not None
        assert second.capture.not_in_prompt == ()
