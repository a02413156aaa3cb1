"""Runs that look like RAG and cannot be captured are told once; a tool's text as a document."""

from __future__ import annotations

import logging
import pydoc
import re
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any

import pytest
from llama_index.core.tools import QueryEngineTool, RetrieverTool

from rag_eval_integrations.llama_index import EvaluatedRetriever
from rag_eval_integrations.records import RagCall

from .apps import Own, agent, memory
from .conftest import ANSWER, QUESTION, Captured, Model, Sections, engine, ids, nodes

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of agents' own

TEXT = "The kettle boils in four minutes. The lid opens with one hand."


def search_manual(input: str) -> str:
    """Search the manual."""
    return TEXT


def weather(input: str) -> str:
    """Tell the weather."""
    return "It is sunny."


def using(tool: Any, name: str) -> Any:
    """An agent that asks a tool and answers."""
    return agent([(name, {"input": "k"})], ANSWER, tools=[tool])


def says(template: str) -> Own:
    """An engine that asks a model with a prompt of its own."""
    return Own(answer=lambda query: str(Model().complete(template.format(query=query))))


def only_warning(caplog: pytest.LogCaptureFixture) -> str:
    """The one line that the library has logged."""
    name = "rag_eval_integrations.llama_index"
    (record,) = [record for record in caplog.records if record.name == name]
    assert record.levelno == logging.WARNING
    return record.getMessage()


class TestLooksLikeRag:
    async def test_tool(self, captured: Captured, caplog: pytest.LogCaptureFixture) -> None:
        """An agent whose search returns text: one log line, and every run is counted."""
        for _ in range(2):
            await using(search_manual, "search_manual").run(QUESTION)

        assert (captured.calls, captured.handler.uncaptured) == ([], 2)
        warning = only_warning(caplog)
        assert "the tool 'search_manual'" in warning
        (shown,) = re.findall(r"`python -m pydoc (\S+)`", warning)
        assert "Not captured" in pydoc.render_doc(shown)

    def test_prompt(self, captured: Captured, caplog: pytest.LogCaptureFixture) -> None:
        """A custom engine that searches a store by itself."""
        says(f"Context information:\n{TEXT}\n{{query}}").query(QUESTION)

        assert captured.handler.uncaptured == 1
        assert "'Context information:'" in caplog.text

    @pytest.mark.parametrize("kept", [False, True], ids=["lost", "copied"])
    def test_threads(
        self, captured: Captured, caplog: pytest.LogCaptureFixture, kept: bool
    ) -> None:
        """A retriever in a pool of threads is the engine's if it has the engine's context."""

        def answer(query: str) -> str:
            with ThreadPoolExecutor(1) as threads:
                run: Any = copy_context().run if kept else lambda function, *given: function(*given)
                retrieved = threads.submit(run, Sections().retrieve, query).result()
            return str(Model().complete("\n".join(each.text for each in retrieved)))

        Own(answer=answer).query(QUESTION)

        assert [ids(call) for call in captured.calls] == ([["a", "b", "c"]] if kept else [])
        assert captured.handler.uncaptured == (0 if kept else 1)
        if not kept:
            assert "`contextvars.copy_context().run`" in only_warning(caplog)

    async def test_plain_code(self, captured: Captured, caplog: pytest.LogCaptureFixture) -> None:
        """`retrieve` and then `synthesize` in plain code is no call, which is said."""
        retrieved = Sections().retrieve(QUESTION)
        engine()._response_synthesizer.synthesize(QUESTION, nodes=retrieved)
        await Sections().aretrieve(QUESTION)

        assert (captured.calls, captured.handler.uncaptured) == ([], 2)
        assert "'Sections.retrieve' ran by itself" in caplog.text
        assert "capture_call" in caplog.text

    @pytest.mark.parametrize("make", [RetrieverTool.from_defaults, QueryEngineTool.from_defaults])
    async def test_earlier_turn(
        self, captured: Captured, caplog: pytest.LogCaptureFixture, make: Any
    ) -> None:
        """A follow-up that an agent answers from what a tool found before is counted, told once."""
        source = Sections() if make.__self__ is RetrieverTool else engine()
        tool = make(source, name="manual", description="Finds.")
        asked = agent([("manual", {"input": "k"})], ANSWER, "Two.", "Three.", tools=[tool])
        kept = memory()
        for question in (QUESTION, "And then?", "And then?"):
            await asked.run(question, memory=kept)

        assert len(captured.calls) == 1
        assert captured.handler.uncaptured == 2
        assert "the tool 'manual' had found in an earlier turn" in only_warning(caplog)

    async def test_documents_of_earlier_turns_were_seen(self, captured: Captured) -> None:
        """Where this turn searches as well, what the model was shown again counts, after it."""
        parts = {"manual": Sections(nodes()[:2]), "other": Sections(nodes()[1:])}
        make = partial(RetrieverTool.from_defaults, description="Finds.")
        tools = [make(part, name=name) for name, part in parts.items()]
        script = [[(name, {"input": "k"})] for name in parts]
        asked, kept = agent(script[0], ANSWER, script[1], ANSWER, tools=tools), memory()
        await asked.run(QUESTION, memory=kept)
        await asked.run("And then?", memory=kept)

        assert [ids(call) for call in captured.calls] == [["a", "b"], ["b", "c", "a"]]
        assert [call.earlier for call in captured.calls] == [(), (2,)]

    async def test_other_runs_are_not(self, captured: Captured, calls: list[RagCall]) -> None:
        """A chat, another tool, a captured query and an `EvaluatedRetriever` are no such runs."""
        says("{query}").query(QUESTION)
        await using(weather, "weather").run(QUESTION)
        engine().query(QUESTION)
        EvaluatedRetriever(Sections(), calls.append).retrieve(QUESTION)
        await EvaluatedRetriever(Sections(), calls.append).aretrieve(QUESTION)

        assert (len(calls), len(captured.calls)) == (2, 1)
        assert captured.handler.uncaptured == 0


class TestToolDocuments:
    async def test_text_is_a_document(self) -> None:
        """The text of a tool that is named is a document."""
        captured = Captured(tool_documents=("search_manual",))
        with captured.handler:
            await using(search_manual, "search_manual").run(QUESTION)

        (document,) = captured.only.documents
        assert (document.text, document.metadata) == (TEXT, {"tool": "search_manual"})
        assert (captured.responses, captured.how.retrievers) == ([ANSWER], ("search_manual",))

    async def test_nodes_go_before_text(self) -> None:
        """A tool whose nodes were seen gives those, not its text."""
        tool = QueryEngineTool.from_defaults(
            engine(Sections()), name="search", description="Finds."
        )
        captured = Captured(tool_documents=lambda name: True)
        with captured.handler:
            await using(tool, "search").run(QUESTION)

        assert captured.ids == ["a", "b", "c"]
