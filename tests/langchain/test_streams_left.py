"""Streams that the app leaves early: with the whole answer, before it, and at an interrupt."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from .apps import QUESTION, State, agent, asked, calls_tool, graph
from .conftest import ANSWER, Captured, Sections, joined, model


async def leave(
    app: Any, given: Any, captured: Captured, way: str, when: Callable[[Any], bool], **options: Any
) -> None:
    """Read a stream until an item is the one that the app waits for, and let it go."""
    if way == "stream":
        for item in app.stream(given, captured.remembering, **options):
            if when(item):
                break
    else:
        items = app.astream(given, captured.remembering, **options)
        async for item in items:
            if when(item):
                break
        del items
    for _ in range(3):
        gc.collect()
        await asyncio.sleep(0.01)
    assert captured.handler.open_calls == 0


def generate(state: State) -> State:
    return {"answer": model().invoke(joined(state["context"])).text}


def find(state: State) -> State:
    return {"context": Sections().invoke(state["question"])}


def title(state: State) -> State:
    model("Kettles").invoke(f"Title of {state['answer']}")
    return {}


@pytest.mark.parametrize("way", ["stream", "astream"])
class TestLeft:
    @pytest.mark.parametrize("mode", ["values", "updates", ["updates", "values"]])
    async def test_with_the_answer(self, captured: Captured, way: str, mode: Any) -> None:
        """A graph that is left when it has given the answer is `ok`, and has it."""
        app = graph(State, find=find, generate=generate, title=title)
        await leave(
            app,
            {"question": QUESTION},
            captured,
            way,
            lambda s: "'answer'" in str(s),
            stream_mode=mode,
        )

        assert captured.ended == (ANSWER, "ok")
        assert captured.found == (["a", "b", "c"], "prompt", [])

    async def test_agent(self, captured: Captured, way: str) -> None:
        """So is an agent, by its last message."""
        await leave(
            agent(), asked(), captured, way, lambda s: s["messages"][-1].text == ANSWER,
            stream_mode="values",
        )  # fmt: skip

        assert (captured.exchange, captured.ended) == ((QUESTION, ANSWER), (ANSWER, "ok"))

    @pytest.mark.parametrize("steps", [2, 3])
    @pytest.mark.parametrize("text", ["", "Let me search the manual."])
    async def test_before_the_answer(
        self, captured: Captured, way: str, text: str, steps: int
    ) -> None:
        """One that is left earlier is aborted, whatever its model wrote beside a call of a tool."""
        left = iter(range(steps, 0, -1))
        built = agent(calls_tool("kettle"), calls_tool("lid", text=text), ANSWER)
        await leave(
            built, asked(), captured, way, lambda s: next(left) == 1,
            stream_mode="updates",
        )  # fmt: skip

        assert captured.statuses == ["aborted"]

    async def test_amid_tokens(self, captured: Captured, way: str) -> None:
        """A graph that is left at a token is aborted, though its model may have gone on."""
        llm = FakeListChatModel(responses=[ANSWER])

        def write(state: State) -> State:
            return {"answer": llm.invoke(joined(state["context"])).text}

        app = graph(State, find=find, write=write)
        await leave(
            app, {"question": QUESTION}, captured, way, lambda s: True, stream_mode="messages"
        )

        assert captured.statuses == ["aborted"]

    @pytest.mark.parametrize("breakpoint_", [False, True])
    async def test_at_an_interrupt(self, captured: Captured, way: str, breakpoint_: bool) -> None:
        """One that is left when it waits for its user is `interrupted`; what resumes it is `ok`."""
        options: dict[str, Any] = {"approve": lambda s: interrupt("Go on?") and {}}
        if breakpoint_:
            pytest.importorskip("langgraph.callbacks", reason="this LangGraph tells nobody")
            options = {"interrupt_before": ["generate"]}
        app = graph(State, find=find, **options, generate=generate, checkpointer=InMemorySaver())
        await leave(app, {"question": QUESTION}, captured, way, lambda s: "__interrupt__" in s)
        app.invoke(None if breakpoint_ else Command(resume="yes"), captured.remembering)

        assert captured.statuses == ["interrupted", "ok"]
        assert captured.responses == [None, ANSWER]
