"""Runs that look like RAG and cannot be captured are told once; a tool's text as a document."""

from __future__ import annotations

import logging
import pydoc
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any

import pytest
from langchain.agents.middleware import dynamic_prompt
from langchain_core.callbacks import CallbackManager
from langchain_core.documents import Document
from langchain_core.messages import ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableSerializable
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver

from rag_eval_integrations import capture_call
from rag_eval_integrations.langchain import EvaluatedRetriever
from rag_eval_integrations.records import RagCall

from .apps import QUESTION, Named, Store, agent, asked, calls_tool, retriever_tool
from .conftest import ANSWER, Captured, Sections, capture_of, joined, model, rag_chain, sections


@tool
def search(query: str) -> str:
    """Search the manual."""
    return joined(Store().similarity_search(query))


@tool
def weather(query: str) -> str:
    """Tell the weather."""
    return "It is sunny."


@dynamic_prompt
def context(request: Any) -> str:
    """Put documents into the system prompt, which no event shows."""
    retrieved = joined(Store().similarity_search(QUESTION))
    return f"You are helpful. Use the following context in your response:\n\n{retrieved}"


def calling(called: BaseTool) -> Any:
    """An agent that calls a tool, and answers."""
    return agent(calls_tool("kettle", called.name), ANSWER, tools=[called])


def talking(**options: Any) -> Any:
    """An agent without tools."""
    return agent(ANSWER, tools=[], **options)


class Classic(RunnableSerializable[str, dict[str, Any]]):
    """As LangChain's chains of old: what its constructor is given hears the root alone."""

    callbacks: Any = None

    def invoke(self, input: str, config: Any = None, **kwargs: Any) -> dict[str, Any]:
        manager = CallbackManager.configure((config or {}).get("callbacks"), self.callbacks)
        run = manager.on_chain_start({}, {"query": input}, name="RetrievalQA")
        answer = rag_chain().invoke(input, {"callbacks": run.get_child()})
        outputs = {"query": input, "result": answer}
        run.on_chain_end(outputs)
        return outputs


@contextmanager
def pool() -> Iterator[tuple[Callable[..., Any], Callable[..., Any]]]:
    """Call a function in another thread: without the context of the app, and with it."""
    with ThreadPoolExecutor(2) as threads:

        def submit(*call: Any) -> Any:
            return threads.submit(*call).result()

        yield submit, lambda *call: submit(copy_context().run, *call)


def in_one_function(question: str) -> str:
    return model().invoke(f"Context:\n{joined(sections())}\n\nQuestion: {question}").text


LOOKS_LIKE_RAG: dict[str, tuple[Callable[[], Any], Any, str]] = {
    "a tool": (lambda: calling(search), asked(), "the tool 'search' was called"),
    "a middleware": (lambda: talking(middleware=[context]), asked(), "'context in your response:'"),
    "one function": (lambda: RunnableLambda(in_one_function), QUESTION, "'Context:'"),
    "a bare retriever": (Sections, QUESTION, "'Sections' ran by itself"),
    "a bare model": (
        model,
        f"Answer from these documents:\n{joined(sections())}\n\n{QUESTION}",
        "'documents:'",
    ),
}


class TestWhereNothingArrives:
    def test_of_a_constructor(self, captured: Captured, caplog: pytest.LogCaptureFixture) -> None:
        """Its handler hears the root alone, which is told; passed to the call, it hears all."""
        for _ in range(2):
            Classic(callbacks=[captured.handler]).invoke(QUESTION)
        assert (captured.calls, captured.handler.uncaptured) == ([], 2)
        (record,) = caplog.records
        assert "'RetrievalQA' answered, and nothing that runs in it" in record.getMessage()
        assert 'config={"callbacks": [handler]}' in record.getMessage()

        Classic().invoke(QUESTION, captured.config)
        assert (captured.exchange, captured.handler.uncaptured) == ((QUESTION, ANSWER), 2)

    @pytest.mark.parametrize("kept", [False, True], ids=["lost", "copied"])
    async def test_of_threads(
        self, captured: Captured, caplog: pytest.LogCaptureFixture, kept: bool
    ) -> None:
        """A retriever in a pool lacks the context: of a tool, a node, a lambda; the log says it."""
        with pool() as ways:
            submit = ways[kept]

            @tool
            def search(query: str) -> str:
                """Search the manual."""
                return joined(submit(Sections().invoke, query))

            def step(question: str) -> str:
                prompt = f"Context:\n{joined(submit(Sections().invoke, question))}\n\n{question}"
                return model().invoke(prompt).text

            def all_in_a_pool(question: str) -> str:
                return str(submit(rag_chain().invoke, question))

            await calling(search).ainvoke(asked(), captured.config)
            RunnableLambda(step).invoke(QUESTION, captured.config)
            RunnableLambda(all_in_a_pool).invoke(QUESTION, captured.config)

        assert captured.ids_by_call == ([["a", "b", "c"]] * 3 if kept else [])
        assert captured.handler.uncaptured == (0 if kept else 3)
        told = ["contextvars.copy_context().run" in line for line in caplog.messages]
        assert told == ([] if kept else [True] * 3)

    def test_what_only_passes_a_text_on_is_not_told(self, captured: Captured) -> None:
        """A parser, and what makes a prompt."""
        StrOutputParser().invoke(ANSWER, captured.config)
        ChatPromptTemplate.from_template("{q}").invoke({"q": QUESTION}, captured.config)

        assert captured.handler.uncaptured == 0


class TestLooksLikeRag:
    @pytest.mark.parametrize("name", LOOKS_LIKE_RAG)
    def test_is_told(self, captured: Captured, caplog: pytest.LogCaptureFixture, name: str) -> None:
        """One log line for each kind, with the docstring to read; every run is counted."""
        make, given, expected = LOOKS_LIKE_RAG[name]
        for _ in range(3):
            make().invoke(given, captured.config)

        assert (captured.calls, captured.handler.uncaptured) == ([], 3)
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        assert expected in caplog.text
        (shown,) = re.findall(r"`python -m pydoc (\S+)`", caplog.text)
        assert "Not captured" in pydoc.render_doc(shown)

    @pytest.mark.parametrize(
        ("make", "given"),
        [
            (lambda: calling(weather), asked()),
            (talking, asked()),
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

        assert (captured.handler.uncaptured, caplog.text) == (0, "")

    @pytest.mark.parametrize("way", ["structured", "text", "bare"])
    def test_graders_are_not(self, captured: Captured, way: str) -> None:
        """A grader that the app calls by itself judges documents, and answers nobody."""
        told = (
            "You are a grader assessing relevance of a retrieved document to a user question. "
            "Give a binary score 'yes' or 'no'.\n\nRetrieved document:\n\n{document}\n\n"
            "User question: {question}"
        )
        given = {"document": joined(sections()), "question": QUESTION}
        if way == "bare":
            model("yes").invoke(told.format(**given), captured.config)
        else:
            end: Any = RunnableLambda(lambda m: {"binary_score": m.text})
            end = end if way == "structured" else RunnableLambda(lambda m: m.text)
            (ChatPromptTemplate.from_template(told) | model("yes") | end).invoke(
                given, captured.config
            )

        assert (captured.calls, captured.handler.uncaptured) == ([], 0)

    def test_what_is_captured_otherwise_is_not(self, captured: Captured) -> None:
        """Neither is the retriever of an `EvaluatedRetriever` or of a `capture_call` block."""
        calls: list[RagCall] = []
        EvaluatedRetriever(Sections(), calls.append).invoke(QUESTION, captured.config)
        with capture_call(calls.append, QUESTION):
            Sections().invoke(QUESTION, captured.config)

        assert (len(calls), captured.handler.uncaptured) == (2, 0)


def captured_with(tool_documents: Any, called: BaseTool) -> Captured:
    captured = Captured(tool_documents=tool_documents)
    calling(called).invoke(asked(), captured.config)
    assert captured.handler.failed == 0
    return captured


class TestToolDocuments:
    @pytest.mark.parametrize("chosen", [("search",), {"search"}, lambda name: name == "search"])
    def test_text_is_a_document(self, chosen: Any) -> None:
        """The text of a tool that is named, or that a function chooses, is a document; no other is."""
        captured = captured_with(chosen, search)

        (document,) = captured.only.documents
        assert (document.text, document.metadata) == (joined(sections()), {"tool": "search"})
        assert (captured.exchange, captured.how.retrievers) == ((QUESTION, ANSWER), ("search",))
        assert captured.how.documents_from == "prompt"
        assert captured_with(chosen, weather).calls == []

    def test_documents_go_before_text(self) -> None:
        """A tool whose retriever was seen gives its documents, not its text."""
        assert captured_with(("search",), retriever_tool()).ids == ["a", "b", "c"]


class Both(Named):
    """Finds the kettle in every turn, and what is asked for."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        more = super()._get_relevant_documents(query, run_manager=run_manager)
        return [sections()[0], *more]


class TestEarlierTurns:
    @pytest.mark.parametrize("response_format", ["content", "content_and_artifact"])
    @pytest.mark.parametrize("kept", [True, False], ids=["checkpointer", "app"])
    def test_follow_up_without_a_search(
        self, captured: Captured, caplog: pytest.LogCaptureFixture, response_format: str, kept: bool
    ) -> None:
        """A turn that is answered from what an earlier one found is counted, and told once."""
        saver = InMemorySaver() if kept else None
        tools = [retriever_tool(Both(), "manual", response_format)]
        app = agent(calls_tool("lid", "manual"), *"123", tools=tools, checkpointer=saver)
        state = app.invoke(asked(), captured.remembering)
        for _ in range(2):
            before = [] if saver else state["messages"]
            given = {"messages": [*before, ("human", "And then?")]}
            state = app.invoke(given, captured.remembering)

        assert (len(captured.calls), captured.handler.uncaptured) == (1, 2)
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        assert "the tool 'manual' had found in an earlier turn" in caplog.text

    def test_by_the_name_of_the_tool(self, captured: Captured) -> None:
        """What another process found is known by its tool's name; the weather is no document."""
        for name, count in (("weather", 0), ("search", 1)):
            told = ToolMessage("The kettle boils soon.", name=name, tool_call_id=f"{name}-k")
            said = [("human", "When?"), calls_tool("k", name), told, ("ai", "Soon.")]
            talking().invoke({"messages": [*said, ("human", "Sure?")]}, captured.config)

            assert (captured.calls, captured.handler.uncaptured) == ([], count)

    @pytest.mark.parametrize("response_format", ["content", "content_and_artifact"])
    def test_earlier_documents_were_seen(self, captured: Captured, response_format: str) -> None:
        """They follow those of this turn; what both turns found is there once."""
        app = agent(
            calls_tool("lid", "manual"), "1", calls_tool("base", "manual"), "2",
            tools=[retriever_tool(Both(), "manual", response_format), weather],
            checkpointer=InMemorySaver(),
        )  # fmt: skip
        app.invoke(asked(), captured.remembering)
        app.invoke(asked("And the base?"), captured.remembering)

        second = captured.calls[1]
        assert captured.ids_by_call == [["a", "lid"], ["a", "base", "lid"]]
        assert [call.earlier for call in captured.calls] == [(), (2,)]
        assert second.documents[2].text == "All about lid, and no more."
        assert capture_of(second).not_in_prompt == ()
