"""Agents and workflows: one record a run, whatever tools, steps and other agents it uses."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.base.response.schema import Response
from llama_index.core.llms import ChatMessage, ChatResponse, CompletionResponse
from llama_index.core.schema import NodeWithScore
from llama_index.core.tools import FunctionTool, QueryEngineTool, RetrieverTool
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step
from llama_index_instrumentation.dispatcher import instrument_tags
from workflows.errors import WorkflowCancelledByUser

from rag_eval_integrations.records import Turn

from .apps import Slow, ToolCaller, agent, memory
from .conftest import ANSWER, QUESTION, Captured, Model, Sections, engine, nodes, synthesizer

# LlamaIndex's agents look at every attribute of their own pydantic model when they are made, and
# call what the workflows package has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

FINAL = "It takes four minutes."


def docs(llm: Any = None, **options: Any) -> Any:
    asked = engine(Sections(nodes()[:2]), llm=llm)
    return QueryEngineTool.from_defaults(asked, name="docs", description="The manual.", **options)


def find(retriever: Any = None) -> Any:
    found = retriever or Sections(nodes()[2:])
    return RetrieverTool.from_defaults(found, name="find", description="Sections.")


def both(*script: Any) -> Any:
    return agent(*script, tools=[docs(), find()])


def asked(captured: Captured) -> tuple[str | None, str, str | None]:
    """What ran, the question, and the answer of the one call."""
    return captured.only.app, captured.only.question, captured.only.response


TURNS = (Turn(role="user", content="Hello"), Turn(role="assistant", content="Hi"))
EARLIER = [ChatMessage(role=turn.role, content=turn.content) for turn in TURNS]
ASK = ("docs", {"input": "kettle speed"})
FIND = ("find", {"input": "kettle base"})


class TestFunctionAgent:
    async def test_query_engine_tool(self, captured: Captured) -> None:
        """The run is the call: the user's words, the agent's answer, the tool's nodes."""
        answer = await both([ASK], FINAL).run(user_msg=QUESTION)

        assert str(answer) == FINAL
        assert asked(captured) == ("FunctionAgent", QUESTION, FINAL)
        assert captured.found == (["a", "b"], "prompt", [])
        assert (captured.how.status, captured.how.retrievers) == ("ok", ("Sections",))

    @pytest.mark.parametrize("script", [([ASK, FIND], FINAL), ([ASK], [FIND], FINAL)])
    async def test_several_tools(self, captured: Captured, script: Any) -> None:
        """Tools side by side and one after the other: all their nodes."""
        await both(*script).run(QUESTION)

        assert sorted(captured.ids) == ["a", "b", "c"]  # type: ignore[type-var]  # no None
        assert captured.only.response == FINAL
        assert captured.how.retrievers == ("Sections", "Sections")

    async def test_no_tool(self, captured: Captured) -> None:
        """An agent that looks nothing up makes no RAG call."""
        await both(FINAL).run(QUESTION)

        assert captured.calls == []

    async def test_earlier_turns(self, captured: Captured) -> None:
        """A chat history that is given, and what a memory keeps, are earlier turns."""
        answering, kept = both([ASK], FINAL), memory()
        await answering.run(QUESTION, chat_history=EARLIER, memory=kept)
        await answering.run("And the lid?", memory=kept)

        answered = (Turn(role="user", content=QUESTION), Turn(role="assistant", content=FINAL))
        turns = [(call.question, call.history) for call in captured.calls]
        assert turns == [(QUESTION, TURNS), ("And the lid?", (*TURNS, *answered))]

    async def test_question_in_the_history(self, captured: Captured) -> None:
        """Without a message of its own, the run is asked by the last one of the history."""
        question = ChatMessage(role="user", content=QUESTION)
        await both([ASK], FINAL).run(chat_history=[*EARLIER, question])

        assert (captured.only.question, captured.only.history) == (QUESTION, TURNS)

    async def test_tags(self, captured: Captured) -> None:
        """The user's tags are kept, LlamaIndex's own are not."""
        with instrument_tags({"user": 7, "tags": ["beta", 1]}):
            await both([ASK], FINAL).run(QUESTION)

        assert captured.how.metadata == {"user": 7, "tags": ["beta", 1]}
        assert captured.how.tags == ("beta",)

    async def test_function_tool_with_nodes(self, captured: Captured) -> None:
        """A tool that returns nodes without any retriever: they were seen."""

        def look_up(about: str) -> list[NodeWithScore]:
            """Look something up."""
            return [NodeWithScore(node=nodes()[1], score=0.7)]

        await agent([("look_up", {"about": "lid"})], FINAL, tools=[look_up]).run(QUESTION)

        (document,) = captured.only.documents
        assert (document.id, document.score, captured.how.retrievers) == ("b", 0.7, ())

    async def test_function_tool_that_retrieves(self, captured: Captured) -> None:
        """A tool that retrieves inside and passes one text on: that one reached the model."""

        async def look_up(about: str) -> str:
            """Look something up."""
            return str((await Sections().aretrieve(about))[2].node.get_content())

        tool = FunctionTool.from_defaults(async_fn=look_up, name="look_up")
        await agent([("look_up", {"about": "lid"})], FINAL, tools=[tool]).run(QUESTION)

        assert captured.found == (["c"], "prompt", ["a", "b"])

    async def test_return_direct(self, captured: Captured) -> None:
        """A tool's answer may be the agent's."""
        await agent([ASK], tools=[docs(return_direct=True)]).run(QUESTION)

        assert (captured.only.response, captured.ids) == (ANSWER, ["a", "b"])

    @pytest.mark.parametrize(("reply", "answer"), [(FINAL, FINAL), ("", '{"city": "Köln"}')])
    async def test_structured_output(self, captured: Captured, reply: str, answer: str) -> None:
        """An agent with a structured result answers in words, or else the result is the answer."""
        structured: Any = {"structured_output_fn": lambda messages: {"city": "Köln"}}
        await agent([ASK], reply, tools=[docs()], **structured).run(QUESTION)

        assert captured.only.response == answer

    async def test_silent_model(self, captured: Captured) -> None:
        """A model that sends no events still has spans: its prompt is read there."""

        class Silent(ToolCaller):
            async def astream_chat(self, messages: Any, **kwargs: Any) -> Any:
                async def replies() -> Any:
                    yield self._reply()

                return replies()

        await FunctionAgent(tools=[find()], llm=Silent(script=[[FIND], FINAL])).run(QUESTION)

        assert captured.found == (["c"], "prompt", [])

    async def test_query_that_fails_after_retrieval(self, captured: Captured) -> None:
        """Nodes of an attempt that failed are no context of the answer that came otherwise."""
        failing = docs(Model(error="no model"))
        await agent([ASK], [FIND], FINAL, tools=[failing, find()]).run(QUESTION)

        assert captured.ids == ["c"]


class TestOtherAgents:
    async def test_workflow_with_handoff(self, captured: Captured) -> None:
        """Two agents that hand over to each other are one run; nodes of both count."""
        handoff = ("handoff", {"to_agent": "second", "reason": "base"})
        named: Any = {"name": "first", "description": "Knows speed.", "can_handoff_to": ["second"]}
        first = agent([ASK], [handoff], tools=[docs()], **named)
        second = agent([FIND], FINAL, tools=[find()], name="second", description="Knows bases.")
        await AgentWorkflow(agents=[first, second], root_agent="first").run(QUESTION)

        assert asked(captured) == ("AgentWorkflow", QUESTION, FINAL)
        assert sorted(captured.ids) == ["a", "b", "c"]  # type: ignore[type-var]  # no None

    async def test_react(self, captured: Captured) -> None:
        """An agent that reasons in text."""
        looks = 'Thought: I need the manual.\nAction: docs\nAction Input: {"input": "speed"}'
        says = f"Thought: I can answer without using any more tools.\nAnswer: {FINAL}"
        await agent(looks, says, tools=[docs()], kind=ReActAgent).run(QUESTION)

        assert asked(captured) == ("ReActAgent", QUESTION, FINAL)
        assert captured.ids == ["a", "b"]

    async def test_agent_as_a_tool(self, captured: Captured) -> None:
        """An agent inside of another belongs to the outer one."""
        inner = agent([ASK], "Four minutes.", tools=[docs()])

        async def expert(about: str) -> str:
            """Ask the expert."""
            return str(await inner.run(about))

        tools = [FunctionTool.from_defaults(async_fn=expert, name="expert")]
        await agent([("expert", {"about": "speed"})], FINAL, tools=tools).run(QUESTION)

        assert asked(captured) == ("FunctionAgent", QUESTION, FINAL)
        assert captured.ids == ["a", "b"]


class TestTrouble:
    @pytest.mark.parametrize("how", ["run", "task"])
    async def test_cancelled(self, captured: Captured, how: str) -> None:
        """A run that is called off, or whose task is cancelled, is aborted; nothing stays open."""
        slow = Slow()
        running = agent([FIND], FINAL, tools=[find(slow)]).run(QUESTION)
        await slow.begun()
        if how == "run":
            await running.cancel_run()
        else:
            running.cancel()
        with pytest.raises((WorkflowCancelledByUser, asyncio.CancelledError)):
            await running
        await asyncio.sleep(0.1)

        assert captured.questions == [QUESTION]
        assert captured.ended == (None, "aborted")

    async def test_too_many_steps(self, captured: Captured) -> None:
        """An agent that never comes to an end is an error, with what it had found."""
        with pytest.raises(Exception, match="iterations"):
            await agent([ASK], tools=[docs()]).run(QUESTION, max_iterations=3)

        assert (captured.how.status, captured.ids) == ("error", ["a", "b"])


class Retrieved(Event):
    nodes: list[NodeWithScore]


class Steps(Workflow):
    """A RAG app as a workflow of its own."""

    @step
    async def find(self, ev: StartEvent) -> Retrieved:
        return Retrieved(nodes=await Sections().aretrieve(ev.query))

    @step
    async def answer(self, ev: Retrieved) -> StopEvent:
        return await self.say(ev.nodes)

    async def say(self, retrieved: list[NodeWithScore]) -> StopEvent:
        return StopEvent(result=(await Model().acomplete(retrieved[1].node.get_content())).text)


class TestWorkflows:
    async def test_plain(self, captured: Captured) -> None:
        """Retrieve, then ask a model: the nodes in its prompt are the context."""
        await Steps().run(query=QUESTION)

        assert asked(captured) == ("Steps", QUESTION, ANSWER)
        assert captured.found == (["b"], "prompt", ["a", "c"])

    @pytest.mark.parametrize("streaming", [False, True])
    async def test_synthesizer(self, captured: Captured, streaming: bool) -> None:
        """A response, streamed or not, may be a workflow's result."""

        class Synthesis(Steps):
            async def say(self, retrieved: list[NodeWithScore]) -> StopEvent:
                parts = synthesizer(streaming=streaming)
                return StopEvent(result=await parts.asynthesize(QUESTION, retrieved[:2]))

        result: Any = await Synthesis().run(query=QUESTION)
        if streaming:
            assert captured.calls == []
            assert "".join([token async for token in result.async_response_gen()]) == ANSWER

        assert captured.only.response == ANSWER
        assert captured.found == (["a", "b"], "prompt", ["c"])

    @pytest.mark.parametrize(
        ("result", "answer"),
        [
            ({"answer": FINAL, "sources": 3}, FINAL),
            (ChatMessage(role="assistant", content=FINAL), FINAL),
            (ChatResponse(message=ChatMessage(role="assistant", content=FINAL)), FINAL),
            ({"answer": CompletionResponse(text=FINAL)}, FINAL),
            ({"response": {"result": {"output": {"text": Response("too deep")}}}}, None),
            ({"sources": 3}, None),
            (SimpleNamespace(source_nodes="none"), None),
            (3, None),
            (None, None),
        ],
    )
    async def test_results(self, captured: Captured, result: Any, answer: str | None) -> None:
        """The answer is read from what workflows usually return, never guessed."""

        class Fixed(Steps):
            async def say(self, retrieved: list[NodeWithScore]) -> StopEvent:
                return StopEvent(result=result)

        await Fixed().run(query=QUESTION)

        assert captured.ended == (answer, "ok")
        assert captured.found == (["a", "b", "c"], "retriever", [])

    async def test_own_events(self, captured: Captured) -> None:
        """Start and stop events of the app's own, with declared fields."""

        class Ask(StartEvent):
            question: str

        class Answered(StopEvent):
            answer: str

        class Own(Workflow):
            @step
            async def only(self, ev: Ask) -> Answered:
                Sections().retrieve("kettle")
                return Answered(answer=FINAL)

        await Own().run(start_event=Ask(question=QUESTION))

        assert asked(captured) == ("Own", QUESTION, FINAL)
