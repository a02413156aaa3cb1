"""Workflows that run as long as a conversation: each message of a person is a question."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.tools import QueryEngineTool
from llama_index.core.workflow import (
    HumanResponseEvent,
    InputRequiredEvent,
    StartEvent,
    StopEvent,
    Workflow,
    step,
)

from .apps import agent, condense_plus
from .conftest import ANSWER, QUESTION, Captured, engine

OTHER = "How does the lid open?"


class Session(Workflow):
    """Asks an agent or a chat engine each message of a person, until that is the last one."""

    asks_an_agent = True

    @step
    async def begin(self, ev: StartEvent) -> InputRequiredEvent:
        return InputRequiredEvent()

    @step
    async def reply(self, ev: HumanResponseEvent) -> InputRequiredEvent | StopEvent:
        if ev.response == "exit":
            return StopEvent(result={"message": "The session has ended."})
        if self.asks_an_agent:
            tool = QueryEngineTool.from_defaults(engine(), name="docs", description="The manual.")
            script: list[Any] = [[("docs", {"input": "a query"})], ANSWER]
            await agent(*script, tools=[tool]).run(ev.response)
        else:
            await condense_plus().achat(ev.response)
        return InputRequiredEvent()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("asks_an_agent", [False, True])
async def test_each_message(captured: Captured, asks_an_agent: bool) -> None:
    """The run itself has no question; what it returns at the end is no answer."""
    workflow = Session(timeout=20)
    workflow.asks_an_agent = asks_an_agent
    messages = iter([QUESTION, OTHER, "exit"])
    handler = workflow.run(index_name="manual")
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            handler.ctx.send_event(HumanResponseEvent(**{"response": next(messages)}))
    await handler

    assert captured.questions == [QUESTION, OTHER]
    assert captured.responses == [ANSWER, ANSWER]
    assert captured.statuses == ["ok", "ok"]
    assert [len(call.documents) for call in captured.calls] == [3, 3]
    assert captured.handler.uncaptured == 0


async def test_of_one_question(captured: Captured) -> None:
    """A person's leave, given while a question is worked on, is no question."""

    class Asks(Workflow):
        @step
        async def plan(self, ev: StartEvent) -> InputRequiredEvent:
            return InputRequiredEvent()

        @step
        async def answer(self, ev: HumanResponseEvent) -> StopEvent:
            return StopEvent(result=await engine().aquery("a query"))

    handler = Asks(timeout=20).run(topic=QUESTION)
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            handler.ctx.send_event(HumanResponseEvent(**{"response": "Go on."}))
    await handler

    assert len(captured.calls) == 1
    assert captured.ended == (ANSWER, "ok")
    assert str(captured.how.run_id).startswith("Asks.run-")
