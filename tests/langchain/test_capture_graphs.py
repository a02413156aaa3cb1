"""LangGraph graphs and `create_agent` agents: nodes, tools, turns, pauses and fan-outs."""

import asyncio
import subprocess
import sys
from typing import Annotated, Any

import pytest
from langchain.agents import AgentState, create_agent
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, InjectedToolCallId, create_retriever_tool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt

from rag_eval_integrations.langchain import RagEvalCallbackHandler
from rag_eval_integrations.records import RagCall

from .apps import (
    QUESTION,
    Gathering,
    Scripted,
    State,
    Store,
    calls_tool,
    ids,
    says,
)
from .conftest import ANSWER, PROMPT, Captured, Sections, joined, rag_chain, sections


def retriever_tool(response_format: Any = "content", retriever: Any = None) -> BaseTool:
    return create_retriever_tool(
        retriever or Sections(), "search", "Searches.", response_format=response_format
    )


def agent(*replies: AIMessage, tools: Any = None, **options: Any) -> Any:
    model = Scripted(replies=list(replies) or [calls_tool("kettle"), says()])
    return create_agent(model, [retriever_tool()] if tools is None else tools, **options)


def asked(question: str = QUESTION) -> dict[str, Any]:
    return {"messages": [("user", question)]}


def substance(call: RagCall) -> dict[str, Any]:
    """A record without what differs from run to run."""
    content = call.model_dump(exclude={"started_at"})
    del content["capture"]["run_id"], content["capture"]["latency_s"]
    return content


def status_of(call: RagCall) -> str:
    assert call.capture is not None
    return call.capture.status


def source_of(call: RagCall) -> str:
    assert call.capture is not None
    return call.capture.documents_from


class TestAgent:
    @pytest.mark.parametrize("response_format", ["content", "content_and_artifact"])
    @pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream", "batch", "events"])
    async def test_is_one_call(self, captured: Captured, response_format: str, way: str) -> None:
        """An agent's question, its tool's documents and its last message are one call."""
        graph = agent(tools=[retriever_tool(response_format)])

        await run(graph, asked(), way, captured.config)

        call = captured.only
        assert len(captured.calls) == 1
        assert call.question == QUESTION
        assert ids(call.documents) == ["a", "b", "c"]
        assert call.response == ANSWER
        assert (status_of(call), source_of(call)) == ("ok", "prompt")
        assert call.capture is not None
        assert call.capture.retrievers == ("Sections",)
        assert call.history == ()

    @pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
    async def test_events_of_version_3(self, captured: Captured) -> None:
        """The newest event streams, which only graphs have, give the record of `invoke`."""
        graph = agent()
        if not hasattr(graph, "stream_events"):
            pytest.skip("this langchain-core has no stream_events")
        graph.invoke(asked(), captured.config)

        list(agent().stream_events(asked(), captured.config, version="v3"))
        events = await agent().astream_events(asked(), captured.config, version="v3")
        assert [event async for event in events]

        assert [substance(call) for call in captured.calls] == [substance(captured.calls[0])] * 3

    @pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
    async def test_stream_of_version_3_that_is_left(self, captured: Captured) -> None:
        """A stream of that kind that the app leaves is aborted, once something was retrieved."""
        searched: list[str] = []

        class Noted(Sections):
            def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
                searched.append(query)
                return sections()

        graph = agent(tools=[retriever_tool(retriever=Noted())])
        if not hasattr(graph, "stream_events"):
            pytest.skip("this langchain-core has no stream_events")
        stream = graph.stream_events(asked(), captured.config, version="v3")
        for _ in stream:
            if searched:
                break
        stream.abort()

        assert status_of(captured.only) == "aborted"
        assert captured.only.question == QUESTION
        assert captured.only.response is None

    @pytest.mark.parametrize("mode", ["values", "updates", "messages", "custom", "debug"])
    def test_stream_modes(self, captured: Captured, mode: Any) -> None:
        """What the app wants to see of a stream changes nothing."""
        list(agent().stream(asked(), captured.config, stream_mode=mode))

        assert captured.only.response == ANSWER
        assert ids(captured.only.documents) == ["a", "b", "c"]

    @pytest.mark.parametrize(
        "message",
        [
            ("human", QUESTION),
            {"role": "user", "content": QUESTION},
            HumanMessage(QUESTION),
            QUESTION,
        ],
        ids=["pair", "dict", "object", "string"],
    )
    def test_shapes_of_the_question(self, captured: Captured, message: Any) -> None:
        """A message may be given in any shape that LangChain takes."""
        agent().invoke({"messages": [message]}, captured.config)

        assert captured.only.question == QUESTION

    def test_several_calls_of_the_tool(self, captured: Captured) -> None:
        """Documents of one retrieval after the other, and of two at once, are all there."""

        class Named(Sections):
            def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
                return [Document(id=query, page_content=f"All about {query}, and no more.")]

        search = retriever_tool(retriever=Named())
        graph = agent(calls_tool("lid", "base"), calls_tool("cord"), says(), tools=[search])

        graph.invoke(asked(), captured.config)

        assert set(ids(captured.only.documents)) == {"lid", "base", "cord"}
        assert captured.only.response == ANSWER
        assert captured.only.capture is not None
        assert captured.only.capture.retrievers == ("Named",) * 3

    def test_artifact_without_a_retriever(self, captured: Captured) -> None:
        """A tool that searches a store by itself shows its documents as its message's artifact."""

        @tool(response_format="content_and_artifact")
        def search(query: str) -> tuple[str, list[Document]]:
            """Searches."""
            found = Store().similarity_search(query)
            return joined(found), found

        agent(tools=[search]).invoke(asked(), captured.config)

        call = captured.only
        assert ids(call.documents) == ["a", "b", "c"]
        assert source_of(call) == "prompt"
        assert call.capture is not None
        assert call.capture.retrievers == ()

    def test_artifact_with_scores(self, captured: Captured) -> None:
        """An artifact may hold `(document, score)` pairs, or a dict of lists."""

        @tool(response_format="content_and_artifact")
        def search(query: str) -> tuple[str, dict[str, Any]]:
            """Searches."""
            found = Store().similarity_search_with_score(query)
            return joined([document for document, _ in found]), {"hits": found}

        agent(tools=[search]).invoke(asked(), captured.config)

        assert [document.score for document in captured.only.documents] == [0.75] * 3

    def test_tool_that_writes_the_state(self, captured: Captured) -> None:
        """A tool may answer with a command that puts its documents into the state."""

        class WithContext(AgentState[Any]):
            context: list[Document]

        @tool
        def search(query: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
            """Searches."""
            found = Store().similarity_search(query)
            message = ToolMessage(joined(found), tool_call_id=tool_call_id)
            return Command(update={"context": found, "messages": [message]})

        agent(tools=[search], state_schema=WithContext).invoke(asked(), captured.config)

        assert ids(captured.only.documents) == ["a", "b", "c"]
        assert source_of(captured.only) == "prompt"

    def test_text_tool_is_no_rag_call(self, captured: Captured) -> None:
        """A tool that gives nothing but text: no documents are known, and none are made up."""

        @tool
        def search(query: str) -> str:
            """Searches."""
            return joined(sections())

        agent(tools=[search]).invoke(asked(), captured.config)

        assert captured.calls == []

    def test_without_retrieval(self, captured: Captured) -> None:
        """An agent that answers without a search is no RAG call."""
        agent(says()).invoke(asked(), captured.config)

        assert captured.calls == []

    def test_second_turn(self, captured: Captured) -> None:
        """With a checkpointer: this turn's question, documents and answer, and what was before."""

        class Named(Sections):
            def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
                return [Document(id=query, page_content=f"All about {query}, and no more.")]

        graph = agent(
            calls_tool("lid"),
            says("It opens."),
            calls_tool("base"),
            says("It turns."),
            tools=[retriever_tool(retriever=Named())],
            checkpointer=InMemorySaver(),
        )
        config = {**captured.config, "configurable": {"thread_id": "1"}}

        graph.invoke(asked("And the lid?"), config)
        graph.invoke(asked("And the base?"), config)

        first, second = captured.calls
        assert (first.question, first.response, ids(first.documents)) == (
            "And the lid?", "It opens.", ["lid"],
        )  # fmt: skip
        assert (second.question, second.response, ids(second.documents)) == (
            "And the base?", "It turns.", ["base"],
        )  # fmt: skip
        assert first.history == ()
        assert [(turn.role, turn.content) for turn in second.history] == [
            ("user", "And the lid?"),
            ("tool", "All about lid, and no more."),
            ("assistant", "It opens."),
        ]

    def test_structured_response(self, captured: Captured) -> None:
        """What an agent was told to answer with is the answer."""
        from pydantic import BaseModel

        class Reply(BaseModel):
            minutes: int

        structured = AIMessage(
            "", tool_calls=[{"name": "Reply", "args": {"minutes": 4}, "id": "r"}]
        )
        graph = agent(calls_tool("kettle"), structured, response_format=Reply)

        graph.invoke(asked(), captured.config)

        assert captured.only.response == '{"minutes":4}'
        assert ids(captured.only.documents) == ["a", "b", "c"]

    def test_tool_error_is_got_over(self, captured: Captured) -> None:
        """A search that failed leaves no documents; the one that was tried next does."""

        class Flaky(Sections):
            tries: list[int] = []  # noqa: RUF012 -- a pydantic field

            def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
                self.tries.append(1)
                if len(self.tries) == 1:
                    raise ConnectionError("index is gone")
                return sections()[:1]

        search = retriever_tool(retriever=Flaky())
        graph = agent_with_node(
            search,
            Scripted(replies=[calls_tool("kettle"), calls_tool("again"), says()]),
        )

        graph.invoke(asked(), captured.config)

        assert captured.only.response == ANSWER
        assert ids(captured.only.documents) == ["a"]
        assert status_of(captured.only) == "ok"


def agent_with_node(search: BaseTool, model: Scripted) -> Runnable[Any, Any]:
    """The loop of an agent, written by hand."""

    def tools(state: MessagesState) -> dict[str, Any]:
        (call,) = state["messages"][-1].tool_calls  # type: ignore[union-attr]  # an AIMessage
        try:
            return {"messages": [search.invoke(call)]}
        except ConnectionError as error:
            return {"messages": [ToolMessage(str(error), tool_call_id=call["id"])]}

    def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    def goes_on(state: MessagesState) -> str:
        return "tools" if getattr(state["messages"][-1], "tool_calls", None) else END

    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("tools", tools)
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", goes_on, ["tools", END])
    graph.add_edge("tools", "think")
    return graph.compile()


async def run(graph: Any, given: Any, way: str, config: Any) -> None:
    if way == "invoke":
        graph.invoke(given, config)
    elif way == "ainvoke":
        await graph.ainvoke(given, config)
    elif way == "stream":
        list(graph.stream(given, config))
    elif way == "astream":
        [chunk async for chunk in graph.astream(given, config)]
    elif way == "batch":
        graph.batch([given], config)
    else:
        [event async for event in graph.astream_events(given, config, version="v2")]


def generate(state: Any) -> dict[str, Any]:
    filled = PROMPT.invoke({"context": joined(state["context"]), "question": state["question"]})
    return {"answer": Scripted(replies=[says()]).invoke(filled).text}


def rag_graph(retrieve: Any, schema: Any = State, **options: Any) -> Any:
    graph = StateGraph(schema)
    graph.add_node("retrieve", retrieve)
    graph.add_node("generate", generate)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "generate")
    graph.add_edge("generate", END)
    return graph.compile(**options)


class TestGraph:
    @pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream", "batch", "events"])
    async def test_retriever_in_a_node(self, captured: Captured, way: str) -> None:
        """A retriever that a node calls, without passing its config on, is in the call."""

        def retrieve(state: State) -> State:
            return {"context": Sections().invoke(state["question"])}

        await run(rag_graph(retrieve), {"question": QUESTION}, way, captured.config)

        call = captured.only
        assert (call.question, call.response) == (QUESTION, ANSWER)
        assert ids(call.documents) == ["a", "b", "c"]
        assert (status_of(call), source_of(call)) == ("ok", "prompt")

    @pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream", "batch", "events"])
    async def test_similarity_search_in_a_node(self, captured: Captured, way: str) -> None:
        """A store that fires no events is seen by what the node returns."""

        def retrieve(state: State) -> State:
            return {"context": Store().similarity_search(state["question"])}

        await run(rag_graph(retrieve), {"question": QUESTION}, way, captured.config)

        call = captured.only
        assert (call.question, call.response) == (QUESTION, ANSWER)
        assert ids(call.documents) == ["a", "b", "c"]
        assert call.capture is not None
        assert call.capture.retrievers == ()
        assert source_of(call) == "prompt"

    def test_grader_drops_documents(self, captured: Captured) -> None:
        """Documents that a model graded as irrelevant are not what the answer was made of."""
        verdicts = Scripted(replies=[says("yes"), says("no"), says("yes")])

        def retrieve(state: State) -> State:
            return {"context": Sections().invoke(state["question"])}

        def grade(state: State) -> State:
            kept = [d for d in state["context"] if verdicts.invoke(d.page_content).text == "yes"]
            return {"context": kept}

        graph = StateGraph(State)
        for name, node in (("retrieve", retrieve), ("grade", grade), ("generate", generate)):
            graph.add_node(name, node)
        graph.add_edge(START, "retrieve")
        graph.add_edge("retrieve", "grade")
        graph.add_edge("grade", "generate")

        graph.compile().invoke({"question": QUESTION}, captured.config)

        assert ids(captured.only.documents) == ["a", "c"]
        assert captured.only.capture is not None
        assert ids(captured.only.capture.not_in_prompt) == ["b"]

    def test_fan_out(self, captured: Captured) -> None:
        """Branches that `Send` started each retrieve; duplicates in the state count once."""

        class Named(Sections):
            def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
                own = Document(id=query, page_content=f"All about {query}, and no more.")
                return [own, sections()[0]]

        def branch(state: Any) -> Gathering:
            return {"context": Named().invoke(state["query"])}

        graph = StateGraph(Gathering)
        graph.add_node("branch", branch)
        graph.add_node("generate", generate)
        graph.add_conditional_edges(
            START,
            lambda _: [Send("branch", {"query": q}) for q in ("lid", "base", "cord")],
            ["branch"],
        )
        graph.add_edge("branch", "generate")

        graph.compile().invoke({"question": QUESTION}, captured.config)

        assert sorted(map(str, ids(captured.only.documents))) == ["a", "base", "cord", "lid"]
        assert captured.only.capture is not None
        assert captured.only.capture.retrievers == ("Named",) * 3

    def test_subgraph(self, captured: Captured) -> None:
        """A graph inside of a graph is part of its call."""
        inner = rag_graph(lambda state: {"context": Sections().invoke(state["question"])})
        graph = StateGraph(State)
        graph.add_node("inner", inner)
        graph.add_edge(START, "inner")

        graph.compile().invoke({"question": QUESTION}, captured.config)

        assert len(captured.calls) == 1
        assert ids(captured.only.documents) == ["a", "b", "c"]

    def test_pydantic_state(self, captured: Captured) -> None:
        """A state that is a pydantic model is read like one that is a dict."""
        from pydantic import BaseModel

        class Model(BaseModel):
            question: str
            context: list[Document] = []
            answer: str = ""

        def retrieve(state: Model) -> dict[str, Any]:
            return {"context": Store().similarity_search(state.question)}

        def write(state: Model) -> dict[str, Any]:
            return generate({"context": state.context, "question": state.question})

        graph = StateGraph(Model)
        graph.add_node("retrieve", retrieve)
        graph.add_node("write", write)
        graph.add_edge(START, "retrieve")
        graph.add_edge("retrieve", "write")

        graph.compile().invoke(Model(question=QUESTION), captured.config)

        call = captured.only
        assert (call.question, call.response, ids(call.documents)) == (
            QUESTION, ANSWER, ["a", "b", "c"],
        )  # fmt: skip

    def test_goto_with_an_update(self, captured: Captured) -> None:
        """A node may put documents into the state by a command."""

        def retrieve(state: State) -> Command[Any]:
            return Command(update={"context": sections()}, goto="generate")

        graph = StateGraph(State)
        graph.add_node("retrieve", retrieve, destinations=("generate",))
        graph.add_node("generate", generate)
        graph.add_edge(START, "retrieve")

        graph.compile().invoke({"question": QUESTION}, captured.config)

        assert ids(captured.only.documents) == ["a", "b", "c"]
        assert captured.only.response == ANSWER

    @pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream"])
    async def test_interrupt_and_resume(self, captured: Captured, way: str) -> None:
        """A graph that waits is `interrupted`; what resumes it is a call with its own answer."""

        def retrieve(state: State) -> State:
            return {"context": Sections().invoke(state["question"])}

        def approve(state: State) -> State:
            interrupt("Go on?")
            return {}

        graph = StateGraph(State)
        for name, node in (("retrieve", retrieve), ("approve", approve), ("generate", generate)):
            graph.add_node(name, node)
        graph.add_edge(START, "retrieve")
        graph.add_edge("retrieve", "approve")
        graph.add_edge("approve", "generate")
        waiting = graph.compile(checkpointer=InMemorySaver())
        config = {**captured.config, "configurable": {"thread_id": "1"}}

        await run(waiting, {"question": QUESTION}, way, config)

        paused = captured.only
        assert status_of(paused) == "interrupted"
        assert paused.question == QUESTION
        assert paused.response is None
        assert ids(paused.documents) == ["a", "b", "c"]
        assert captured.handler.open_calls == 0

        await run(waiting, Command(resume="yes"), way, config)

        resumed = captured.calls[1]
        assert status_of(resumed) == "ok"
        assert resumed.question == QUESTION
        assert resumed.response == ANSWER
        assert ids(resumed.documents) == ["a", "b", "c"]
        assert source_of(resumed) == "prompt"

    @pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
    async def test_breakpoint(self, captured: Captured, way: str) -> None:
        """A graph that waits at a breakpoint is `interrupted` as well; it goes on with no input."""
        pytest.importorskip("langgraph.callbacks", reason="this LangGraph tells nobody")
        waiting = rag_graph(
            lambda state: {"context": Sections().invoke(state["question"])},
            checkpointer=InMemorySaver(),
            interrupt_before=["generate"],
        )
        config = {**captured.config, "configurable": {"thread_id": "1"}}

        await run(waiting, {"question": QUESTION}, way, config)
        await run(waiting, None, way, config)

        assert [status_of(call) for call in captured.calls] == ["interrupted", "ok"]
        assert [call.response for call in captured.calls] == [None, ANSWER]
        assert [call.question for call in captured.calls] == [QUESTION] * 2
        assert [ids(call.documents) for call in captured.calls] == [["a", "b", "c"]] * 2
        assert type(captured.handler).__name__ == "RagEvalCallbackHandler"

    def test_kind_of_handler(self) -> None:
        """LangGraph's own base class is there from the start, also for an app's own subclass."""
        graph = pytest.importorskip("langgraph.callbacks", reason="this LangGraph tells nobody")

        class Own(RagEvalCallbackHandler):
            """An app's handler."""

        class Both(RagEvalCallbackHandler, graph.GraphCallbackHandler):  # type: ignore[name-defined,misc]  # imported by name
            """An app's handler that does not depend on the order of imports."""

        for kind in (RagEvalCallbackHandler, Own):
            handler = kind(print, ttl=5.0)
            assert isinstance(handler, kind)
            assert isinstance(handler, graph.GraphCallbackHandler)
            assert type(handler) is type(kind(print))
        assert type(Both(print)) is Both

    @pytest.mark.parametrize("before", ["", "import langgraph.graph; "])
    def test_does_not_load_langgraph(self, before: str) -> None:
        """A handler loads no LangGraph, and is an ordinary one where the app has not."""
        code = (
            f"{before}import sys, inspect\n"
            "from rag_eval_integrations.langchain import RagEvalCallbackHandler as Handler\n"
            "loaded = 'langgraph.callbacks' in sys.modules\n"
            "handler = Handler(print)\n"
            "print(('langgraph.callbacks' in sys.modules) == loaded,\n"
            "      (type(handler) is Handler) != loaded, 'langgraph' in sys.modules,\n"
            "      next(iter(inspect.signature(Handler).parameters)))"
        )

        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )

        assert done.stdout.split() == ["True", "True", str(bool(before)), "target"]

    def test_pause_of_an_unknown_run(self, captured: Captured) -> None:
        """LangGraph may tell of a graph that is no run of ours."""
        from types import SimpleNamespace
        from uuid import uuid4

        captured.handler.on_interrupt(SimpleNamespace(run_id=uuid4()))
        captured.handler.on_interrupt(SimpleNamespace(run_id=None))

        assert captured.calls == []

    def test_answers_in_a_list(self, captured: Captured) -> None:
        """Branches whose texts stand side by side in the state: several answers, all documents."""
        import operator
        from typing import TypedDict

        class Parts(TypedDict, total=False):
            question: str
            parts: Annotated[list[str], operator.add]

        def branch(state: Any) -> Parts:
            page = Document(id=state["query"], page_content=f"All about {state['query']}, no more.")
            model = Scripted(replies=[says(f"The part about {state['query']}.")])
            answer = rag_chain(Sections(found=[page]), llm=model).invoke(state["query"])
            return {"parts": [answer]}

        graph = StateGraph(Parts)
        graph.add_node("branch", branch)
        graph.add_conditional_edges(
            START, lambda _: [Send("branch", {"query": q}) for q in ("lid", "base")], ["branch"]
        )

        graph.compile().invoke({"question": QUESTION}, captured.config)

        assert captured.only.response is None
        assert set(ids(captured.only.documents)) == {"lid", "base"}

    def test_interrupted_second_turn(self, captured: Captured) -> None:
        """A pause does not take the answer of the turn before for its own."""

        @tool
        def search(query: str) -> str:
            """Searches."""
            found = Sections().invoke(query)
            if query == "base":
                interrupt("Go on?")
            return joined(found)

        graph = agent(
            calls_tool("lid"), says("It opens."), calls_tool("base"), says("It turns."),
            tools=[search], checkpointer=InMemorySaver(),
        )  # fmt: skip
        config = {**captured.config, "configurable": {"thread_id": "1"}}
        graph.invoke(asked("And the lid?"), config)

        graph.invoke(asked("And the base?"), config)
        graph.invoke(Command(resume="yes"), config)

        assert [status_of(call) for call in captured.calls] == ["ok", "interrupted", "ok"]
        assert [call.response for call in captured.calls] == ["It opens.", None, "It turns."]
        assert [call.question for call in captured.calls[1:]] == ["And the base?"] * 2

    async def test_step_timeout(self, captured: Captured) -> None:
        """A graph that takes too long fails with the user's own error, and is an error."""

        async def slow(state: State) -> State:
            found = await Sections().ainvoke(state["question"])
            await asyncio.sleep(30)
            return {"context": found}

        graph = rag_graph(slow)
        graph.step_timeout = 0.2

        with pytest.raises(TimeoutError):
            await graph.ainvoke({"question": QUESTION}, captured.config)
        await asyncio.sleep(0.05)

        assert status_of(captured.only) == "error"
        assert captured.only.response is None

    def test_closed_stream(self, captured: Captured) -> None:
        """A graph's stream that the app leaves is aborted."""
        graph = rag_graph(lambda state: {"context": Sections().invoke(state["question"])})
        stream = graph.stream({"question": QUESTION}, captured.config)
        next(stream)

        stream.close()

        assert status_of(captured.only) == "aborted"
        assert captured.only.response is None
        assert captured.only.question == QUESTION
