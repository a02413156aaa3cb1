"""Threads of several turns: which nodes are this turn's, which of earlier ones."""

from __future__ import annotations

from typing import Any

import pytest
from by_hand import ScriptedJudge, labels_of
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import RetrieverTool

from rag_eval_integrations import RagCall, RagEvaluator
from rag_eval_integrations.judges import EmbeddedJudge
from rag_eval_integrations.metrics import LabelRetrieval, Trace
from rag_eval_integrations.records import Labels, SentencizedCall

from .apps import Chooses, agent, context, memory
from .conftest import Captured, Model, Sections, ids

# LlamaIndex's agents look at every attribute of their own pydantic model when they are made, and
# call what the workflows package has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

TOPICS = {
    "warranty": "The warranty of the kettle lasts two years.",
    "filter": "Wash the filter under the tap once a week.",
    "speed": "The kettle boils a litre in four minutes.",
    "colour": "The kettle comes in blue and in silver.",
}
TURNS = ("warranty", "filter", "speed", "colour", "warranty", "filter")


class Two(Sections):
    """Finds two nodes for a topic: one about shipping, and one about the topic."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        topic = query_bundle.query_str.split()[-1].rstrip("?")
        if topic not in TOPICS:
            return []
        side = f"Orders of the {topic} page ship from the harbour on Mondays."
        found = [(f"{topic}-side", side), (topic, TOPICS[topic])]
        return [
            NodeWithScore(node=TextNode(id_=name, text=text), score=0.5) for name, text in found
        ]


def question(topic: str) -> str:
    return f"What does the manual say of the {topic}?"


def labelled(call: SentencizedCall) -> Labels:
    """A model that finds relevant what names the topic of the question."""
    topic = call.call.question.split()[-1].rstrip("?")
    relevant = [s.key for s in call.documents if topic in s.text and "ship" not in s.text]
    return labels_of(relevant, relevant, {s.key: (relevant, True) for s in call.response})


async def agent_thread(captured: Captured) -> list[RagCall]:
    """Six turns of an agent with a memory, whose model is shown all results of its tool."""
    tool = RetrieverTool.from_defaults(Two(), name="kb", description="Finds.")
    script = [step for topic in TURNS for step in ([("kb", {"input": topic})], TOPICS[topic])]
    app, kept = agent(*script, tools=[tool]), memory()
    for topic in TURNS:
        await app.run(question(topic), memory=kept)
    return captured.calls


async def chat_thread(captured: Captured) -> list[RagCall]:
    """Six turns of a chat engine, which shows its model only what it finds in this turn."""
    chat = context(Model(), Two())
    for topic in TURNS:
        chat.chat(question(topic))
    return captured.calls


async def test_six_turns_of_an_agent(captured: Captured) -> None:
    """Each turn's nodes first, then those of earlier turns, with their ids."""
    calls = await agent_thread(captured)

    assert [ids(call)[:2] for call in calls] == [[f"{topic}-side", topic] for topic in TURNS]
    assert [len(call.documents) for call in calls] == [2, 4, 6, 8, 8, 8]
    assert [call.earlier for call in calls] == [
        tuple(range(2, len(call.documents))) for call in calls
    ]
    assert all(len(set(ids(call))) == len(call.documents) for call in calls)


async def test_a_turn_that_finds_nothing(captured: Captured) -> None:
    """Its nodes are all of an earlier turn, and were seen in the prompt."""
    tool = RetrieverTool.from_defaults(Two(), name="kb", description="Finds.")
    topics = ("warranty", "nothing")
    script = [step for topic in topics for step in ([("kb", {"input": topic})], "So.")]
    app, kept = agent(*script, tools=[tool]), memory()
    for topic in topics:
        await app.run(question(topic), memory=kept)

    second = captured.calls[1]
    assert second.capture is not None
    assert ids(second) == ["warranty-side", "warranty"]
    assert (second.earlier, second.capture.documents_from) == ((0, 1), "prompt")


async def test_six_turns_of_a_chat_engine(captured: Captured) -> None:
    """None of earlier turns, since its model is not shown them again."""
    calls = await chat_thread(captured)

    assert [ids(call) for call in calls] == [[f"{topic}-side", topic] for topic in TURNS]
    assert {call.earlier for call in calls} == {()}
    assert len(calls[5].history) == 10


@pytest.mark.parametrize(
    "judge", [ScriptedJudge(labelled), EmbeddedJudge()], ids=["scripted", "embedded"]
)
@pytest.mark.parametrize("thread", [agent_thread, chat_thread])
async def test_a_long_chat_is_no_worse_retriever(
    captured: Captured, judge: Any, thread: Any
) -> None:
    """A question has the same scores in turn 5 as in turn 1, exactly."""
    evaluator = RagEvaluator(judge, [Trace(), LabelRetrieval()])
    evaluations = [await evaluator.evaluate(call) for call in await thread(captured)]

    by_turn = [
        {name: (score.value, score.estimate) for name, score in each.scores.items()}
        for each in evaluations
    ]
    rest = {"adherence", "trace_average"} if judge.name == "embedded" else set()
    for first, later in ((0, 4), (1, 5)):
        names = by_turn[first].keys() - rest
        assert {n: by_turn[later][n] for n in names} == {n: by_turn[first][n] for n in names}
    assert by_turn[4]["reciprocal_rank"][0] == 1 / 2


class Turned(Sections):
    """Finds the same nodes, the other way round in every second turn."""

    turn = 0

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.turn += 1
        found = [TextNode(id_=name, text=text) for name, text in TOPICS.items()]
        return [NodeWithScore(node=node) for node in found[:: 1 if self.turn % 2 else -1]]


async def test_order_is_this_turns(captured: Captured) -> None:
    """Nodes that are found again in another order have that order; one left out is not lost.

    Its model has seen it in an earlier turn.
    """
    firsts = Chooses(choose=lambda nodes: nodes if nodes[0].node.id_ == "warranty" else nodes[:3])
    tool = RetrieverTool.from_defaults(
        Turned(), node_postprocessors=[firsts], name="kb", description="Finds."
    )
    app, kept = agent([("kb", {"input": "all"})], "So.", tools=[tool]), memory()
    for _ in range(2):
        await app.run("What?", memory=kept)

    assert [ids(call) for call in captured.calls] == [[*TOPICS], [*TOPICS][::-1]]
    assert captured.calls[1].earlier == ()
