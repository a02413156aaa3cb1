"""LangGraph graphs and `create_agent` agents: nodes, tools, turns, pauses and fan-outs."""

import asyncio
import operator
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import AgentState
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel

from rag_eval_integrations.langchain import RagEvalCallbackHandler

from .apps import QUESTION, Named, State, Store, agent, asked, calls_tool, graph, retriever_tool
from .conftest import ANSWER, PROMPT, Captured, Sections, joined, model, run, sections

QUESTIONS = ("And the lid?", "And the base?")
TWO_TURNS = (calls_tool("lid"), "It opens.", calls_tool("base"), "It turns.")
"""What a model says to both questions."""


class Gathering(TypedDict, total=False):
    """State of a graph whose branches retrieve side by side."""

    question: str
    context: Annotated[list[Document], operator.add]
    answer: str


class TestAgent:
    @pytest.mark.parametrize(
        ("way", "response_format"),
        [
            *[(way, "content") for way in ("invoke", "astream", "events")],
            *[(way, "content_and_artifact") for way in ("ainvoke", "stream", "batch")],
        ],
    )
    async def test_is_one_call(self, captured: Captured, response_format: str, way: str) -> None:
        """An agent's question, its tool's documents and its last message are one call."""
        built = agent(tools=[retriever_tool(response_format=response_format)])

        await run(built, asked(), way, captured.config)

        assert (captured.exchange, captured.only.history) == ((QUESTION, ANSWER), ())
        assert captured.found == (["a", "b", "c"], "prompt", [])
        assert (captured.how.status, captured.how.retrievers) == ("ok", ("Sections",))

    @pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
    async def test_events_of_version_3(self, captured: Captured) -> None:
        """The newest event streams, which only graphs have, give the record of `invoke`."""
        built = agent()
        if not hasattr(built, "stream_events"):
            pytest.skip("this langchain-core has no stream_events")
        built.invoke(asked(), captured.config)

        list(agent().stream_events(asked(), captured.config, version="v3"))
        events = await agent().astream_events(asked(), captured.config, version="v3")
        assert [event async for event in events]

        assert captured.substances == [captured.substances[0]] * 3

    @pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
    async def test_stream_of_version_3_that_is_left(self, captured: Captured) -> None:
        """A stream of that kind that the app leaves is aborted, once something was retrieved."""
        searched: list[str] = []

        @tool
        def search(query: str) -> str:
            """Searches."""
            searched.append(query)
            return joined(Sections().invoke(query))

        built = agent(tools=[search])
        if not hasattr(built, "stream_events"):
            pytest.skip("this langchain-core has no stream_events")
        stream = built.stream_events(asked(), captured.config, version="v3")
        next(event for event in stream if searched)
        stream.abort()

        assert (captured.questions, captured.ended) == ([QUESTION], (None, "aborted"))

    @pytest.mark.parametrize("scored", [False, True])
    def test_artifact_without_a_retriever(self, captured: Captured, scored: bool) -> None:
        """A tool that searches a store shows its documents in its message's artifact.

        They may be a list, or `(document, score)` pairs in a dict of lists.
        """

        @tool(response_format="content_and_artifact")
        def search(query: str) -> tuple[str, Any]:
            """Searches."""
            retrieved = Store().similarity_search_with_score(query)
            documents = [document for document, _ in retrieved]
            return joined(documents), {"hits": retrieved} if scored else documents

        agent(tools=[search]).invoke(asked(), captured.config)

        assert captured.found == (["a", "b", "c"], "prompt", [])
        assert captured.how.retrievers == ()
        assert captured.only.documents[0].score == (0.75 if scored else None)

    def test_tool_that_writes_the_state(self, captured: Captured) -> None:
        """A tool may answer with a command that puts its documents into the state."""

        class WithContext(AgentState[Any]):
            context: list[Document]

        @tool
        def search(query: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
            """Searches."""
            retrieved = Store().similarity_search(query)
            message = ToolMessage(joined(retrieved), tool_call_id=tool_call_id)
            return Command(update={"context": retrieved, "messages": [message]})

        agent(tools=[search], state_schema=WithContext).invoke(asked(), captured.config)

        assert captured.found == (["a", "b", "c"], "prompt", [])

    def test_second_turn(self, captured: Captured) -> None:
        """With a checkpointer: this turn's question and answer, and what was before."""
        built = agent(*TWO_TURNS, tools=[retriever_tool(Named())], checkpointer=InMemorySaver())

        for question in QUESTIONS:
            built.invoke(asked(question), captured.remembering)

        first, second = captured.calls
        assert captured.questions == [*QUESTIONS]
        assert captured.responses == ["It opens.", "It turns."]
        told = [("user", "And the lid?"), ("tool", "All about lid, and no more.")]
        turns = [(turn.role, turn.content) for turn in second.history]
        assert ((), [*told, ("assistant", "It opens.")]) == (first.history, turns)

    def test_structured_response(self, captured: Captured) -> None:
        """What an agent was told to answer with is the answer."""

        class Reply(BaseModel):
            minutes: int

        reply = {"name": "Reply", "args": {"minutes": 4}, "id": "r"}
        structured = AIMessage("", tool_calls=[reply])

        built = agent(calls_tool("kettle"), structured, response_format=Reply)
        built.invoke(asked(), captured.config)

        assert captured.only.response == '{"minutes":4}'
        assert captured.ids == ["a", "b", "c"]


def generate(state: Any) -> dict[str, Any]:
    filled = PROMPT.invoke({"context": joined(state["context"]), "question": state["question"]})
    return {"answer": model().invoke(filled).text}


def lookup(state: State) -> State:
    return {"context": Sections().invoke(state["question"])}


def from_store(state: Any) -> State:
    return {"context": Store().similarity_search(state["question"])}


class TestGraph:
    @pytest.mark.parametrize(
        ("retrieve", "way"),
        [
            *[(lookup, way) for way in ("invoke", "ainvoke", "astream")],
            *[(from_store, way) for way in ("stream", "batch", "events")],
        ],
    )
    async def test_search_in_a_node(self, captured: Captured, retrieve: Any, way: str) -> None:
        """A retriever that a node calls without its config, or what a node returns, is in the call."""
        app = graph(State, retrieve=retrieve, generate=generate)

        await run(app, {"question": QUESTION}, way, captured.config)

        assert (captured.exchange, captured.how.status) == ((QUESTION, ANSWER), "ok")
        assert captured.found == (["a", "b", "c"], "prompt", [])
        assert captured.how.retrievers == (("Sections",) if retrieve is lookup else ())

    def test_subgraph_with_a_pydantic_state(self, captured: Captured) -> None:
        """A graph inside of a graph is part of its call; a state may be a pydantic model."""

        class Model(BaseModel):
            question: str
            context: list[Document] = []
            answer: str = ""

        inner = graph(
            Model, retrieve=lambda s: from_store(dict(s)), write=lambda s: generate(dict(s))
        )

        graph(Model, inner=inner).invoke(Model(question=QUESTION), captured.config)

        assert captured.exchange == (QUESTION, ANSWER)
        assert captured.ids == ["a", "b", "c"]

    @pytest.mark.parametrize(
        ("way", "given"),
        [
            *[(way, Command(resume="yes")) for way in ("invoke", "ainvoke", "stream")],
            *[(way, None) for way in ("invoke", "astream")],
        ],
    )
    async def test_interrupt_and_resume(self, captured: Captured, way: str, given: Any) -> None:
        """A graph that waits is `interrupted`; what resumes it is a call with its own answer.

        So it is at a breakpoint, from which a graph goes on with no input.
        """

        def approve(state: State) -> State:
            interrupt("Go on?")
            return {}

        options: dict[str, Any] = {"approve": approve}
        if given is None:
            pytest.importorskip("langgraph.callbacks", reason="this LangGraph tells nobody")
            options = {"interrupt_before": ["generate"]}
        saver = InMemorySaver()
        waiting = graph(State, retrieve=lookup, **options, generate=generate, checkpointer=saver)

        await run(waiting, {"question": QUESTION}, way, captured.remembering)
        assert captured.handler.open_calls == 0
        await run(waiting, given, way, captured.remembering)

        assert captured.statuses == ["interrupted", "ok"]
        assert (captured.questions, captured.responses) == ([QUESTION] * 2, [None, ANSWER])
        assert captured.ids_by_call == [["a", "b", "c"]] * 2

    def test_fan_out(self, captured: Captured) -> None:
        """Branches that `Send` started each retrieve; duplicates in the state count once."""

        def branch(state: Any) -> Gathering:
            return {"context": [*Named().invoke(state["query"]), sections()[0]]}

        built = StateGraph(Gathering)
        built.add_node("branch", branch)
        built.add_node("generate", generate)
        sent = [Send("branch", {"query": query}) for query in ("lid", "base", "cord")]
        built.add_conditional_edges(START, lambda _: sent, ["branch"])
        built.add_edge("branch", "generate")

        built.compile().invoke({"question": QUESTION}, captured.config)

        assert sorted(map(str, captured.ids)) == ["a", "base", "cord", "lid"]
        assert captured.how.retrievers == ("Named",) * 3

    def test_kind_of_handler(self) -> None:
        """LangGraph's own base class is there from the start, also for an app's own subclass."""
        callbacks = pytest.importorskip("langgraph.callbacks", reason="this LangGraph tells nobody")

        class Own(RagEvalCallbackHandler):
            """An app's handler."""

        class Both(RagEvalCallbackHandler, callbacks.GraphCallbackHandler):  # type: ignore[name-defined,misc]  # imported by name
            """An app's handler that does not depend on the order of imports."""

        for kind in (RagEvalCallbackHandler, Own):
            handler = kind(print, ttl=5.0)
            assert isinstance(handler, kind)
            assert isinstance(handler, callbacks.GraphCallbackHandler)
            assert type(handler) is type(kind(print))
            assert type(handler).__name__ == kind.__name__
        assert type(Both(print)) is Both

    def test_interrupted_second_turn(self, captured: Captured) -> None:
        """A pause does not take the answer of the turn before for its own."""

        @tool
        def search(query: str) -> str:
            """Searches."""
            retrieved = Sections().invoke(query)
            if query == "base":
                interrupt("Go on?")
            return joined(retrieved)

        built = agent(*TWO_TURNS, tools=[search], checkpointer=InMemorySaver())

        for given in (*map(asked, QUESTIONS), Command(resume="yes")):
            built.invoke(given, captured.remembering)

        assert captured.statuses == ["ok", "interrupted", "ok"]
        assert captured.responses == ["It opens.", None, "It turns."]
        assert [call.question for call in captured.calls[1:]] == ["And the base?"] * 2

    async def test_step_timeout(self, captured: Captured) -> None:
        """A graph that takes too long fails with the user's own error, and is an error."""

        async def slow(state: State) -> State:
            retrieved = await Sections().ainvoke(state["question"])
            await asyncio.sleep(30)
            return {"context": retrieved}

        app = graph(State, retrieve=slow, generate=generate)
        app.step_timeout = 0.2

        with pytest.raises(TimeoutError):
            await app.ainvoke({"question": QUESTION}, captured.config)
        await asyncio.sleep(0.05)

        assert captured.ended == (None, "error")
