"""The response of a workflow by what it is: by its name, else as what the last model wrote."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import QueryEngineTool
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from pydantic import BaseModel

from .apps import agent
from .conftest import ANSWER, QUESTION, Captured, Model, Sections, engine


class Reply(BaseModel):
    answer_text: str
    sources: list[str] = []


class Told(BaseModel):
    markdown: str
    minutes: int = 4


@dataclass
class Result:
    final_answer: str
    nodes: list[Any] = field(default_factory=list)


class AnswerText(StopEvent):
    answer_text: str
    attempts: int = 1


class FinalAnswer(StopEvent):
    final_answer: str


class Nested(StopEvent):
    reply: Any


def stop(value: Any) -> StopEvent:
    return StopEvent(result=value)


FORMS: dict[str, Callable[[str, list[Any]], StopEvent]] = {
    "text": lambda text, nodes: stop(text),
    "decorated text": lambda text, nodes: stop(f"Answer: {text}"),
    "answer": lambda text, nodes: stop({"answer": text, "nodes": nodes}),
    "response": lambda text, nodes: stop({"response": text}),
    "output": lambda text, nodes: stop({"output": text, "n": 1}),
    "text of a dict": lambda text, nodes: stop({"text": text}),
    "message": lambda text, nodes: stop(ChatMessage(role="assistant", content=text)),
    "answer_text": lambda text, nodes: AnswerText(answer_text=text),
    "final_answer": lambda text, nodes: FinalAnswer(final_answer=text),
    "model": lambda text, nodes: stop(Reply(answer_text=text)),
    "model without a name": lambda text, nodes: stop(Told(markdown=text)),
    "nested model": lambda text, nodes: Nested(reply=Reply(answer_text=text)),
    "nested model without a name": lambda text, nodes: Nested(reply=Told(markdown=text)),
    "dict": lambda text, nodes: stop({"final_answer": text, "sources": ["a.pdf"]}),
    "dataclass": lambda text, nodes: stop(Result(text, nodes)),
    "tuple": lambda text, nodes: stop((text, nodes)),
    "list": lambda text, nodes: stop([text]),
    "unknown name": lambda text, nodes: stop({"md": text, "question": QUESTION}),
}


def workflow(end: Callable[[str, list[Any]], StopEvent], way: str = "acomplete") -> Workflow:
    """Make a workflow that retrieves, asks a model in one of the ways, and ends so."""

    async def say(self: Any, ev: StartEvent) -> Any:
        nodes = await Sections().aretrieve(ev.query)
        prompt = "\n".join([*(node.text for node in nodes), ev.query])
        if way == "stream_complete":
            text = [part.text for part in Model().stream_complete(prompt)][-1]
        elif way == "astream_complete":
            text = [part.text async for part in await Model().astream_complete(prompt)][-1]
        elif way == "complete":
            text = Model().complete(prompt).text
        else:
            text = (await Model().acomplete(prompt)).text
        return end(text, nodes)

    say.__qualname__, say.__annotations__["return"] = "Rag.say", type(end("", []))
    made: Workflow = type("Rag", (Workflow,), {"say": step(say)})(timeout=20)
    return made


class TestForms:
    @pytest.mark.parametrize("form", FORMS)
    async def test_written_by_the_model(self, captured: Captured, form: str) -> None:
        """Whatever a workflow calls the model's text, and wherever it puts it, it is the response."""
        await workflow(FORMS[form]).run(query=QUESTION)

        said = f"Answer: {ANSWER}" if form == "decorated text" else ANSWER
        assert captured.ended == (said, "ok")
        assert captured.found == (["a", "b", "c"], "prompt", [])

    @pytest.mark.parametrize("way", ["complete", "stream_complete", "astream_complete"])
    async def test_ways_to_ask(self, captured: Captured, way: str) -> None:
        """A model may be asked in any way, also for tokens."""
        await workflow(FORMS["unknown name"], way).run(query=QUESTION)

        assert captured.responses == [ANSWER]

    @pytest.mark.parametrize("form", ["answer_text", "nested model", "dataclass", "dict"])
    async def test_by_name(self, captured: Captured, form: str) -> None:
        """A name goes before what the model wrote."""
        await workflow(lambda text, nodes: FORMS[form]("Four.", nodes)).run(query=QUESTION)

        assert captured.responses == ["Four."]

    async def test_is_told(self, captured: Captured, caplog: pytest.LogCaptureFixture) -> None:
        """Where no answer can be told, one line names the fields and the hook."""
        for _ in range(2):
            await workflow(lambda text, nodes: stop({"md": "4", "n": 1})).run(query=QUESTION)

        assert captured.responses == [None, None]
        (record,) = caplog.records
        assert record.levelno == logging.WARNING
        assert "'md', 'n'" in caplog.text
        assert "response=" in caplog.text

    @pytest.mark.parametrize("returned", ["", None, {"content": True}])
    async def test_handed_out_before(self, captured: Captured, returned: Any) -> None:
        """A workflow that has streamed its answer may return no text."""
        await workflow(lambda text, nodes: stop(returned), "astream_complete").run(query=QUESTION)

        assert captured.responses == [ANSWER]

    async def test_is_told_where_it_is_empty(
        self, captured: Captured, caplog: pytest.LogCaptureFixture
    ) -> None:
        """An empty text is no answer where a model has written one."""
        await workflow(lambda text, nodes: stop("")).run(query=QUESTION)

        assert captured.responses == [None]
        assert "response=" in caplog.text

    async def test_nodes_are_none(self, captured: Captured) -> None:
        """A workflow that returns nodes has not streamed an answer, but a query, say."""
        await workflow(lambda text, nodes: stop(nodes), "astream_complete").run(query=QUESTION)

        assert captured.responses == [None]

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    async def test_nothing_said(self, captured: Captured) -> None:
        """An agent whose model ends without a word has an empty answer, whatever it said before."""
        tool = QueryEngineTool.from_defaults(engine(), name="docs", description="The manual.")
        script: list[Any] = [[("docs", {"input": "a query"})], ""]
        await agent(*script, tools=[tool]).run(QUESTION)

        assert captured.responses == [""]
