"""Threads of several turns in LangGraph: which documents are this turn's, which of earlier ones."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest
from by_hand import ScriptedJudge, labels_of
from langchain_core.documents import Document
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState

from rag_eval_integrations import RagCall, RagEvaluator
from rag_eval_integrations.judges import EmbeddedJudge
from rag_eval_integrations.metrics import LabelRetrieval, Retrieval, Trace
from rag_eval_integrations.records import Labels, SentencizedCall

from .apps import agent, asked, calls_tool, graph, retriever_tool, scripted
from .conftest import Captured, Sections, capture_of, ids, joined

TOPICS = {
    "warranty": "The warranty of the kettle lasts two years.",
    "filter": "Wash the filter under the tap once a week.",
    "speed": "The kettle boils a litre in four minutes.",
    "colour": "The kettle comes in blue and in silver.",
}
TURNS = ("warranty", "filter", "speed", "colour", "warranty", "filter")
"""The fifth and the sixth ask what the first and the second did."""


class Two(Sections):
    """Finds two documents for a topic: one about shipping, and one about the topic."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        if query not in TOPICS:
            return []
        about = Document(id=query, page_content=TOPICS[query], metadata={"page": 1})
        side = f"Orders of the {query} page ship from the harbour on Mondays."
        return [Document(id=f"{query}-side", page_content=side), about]


def thread(captured: Captured, response_format: str = "content") -> list[RagCall]:
    """Six turns of one thread; the answer is what the document says."""
    replies = [reply for topic in TURNS for reply in (calls_tool(topic, "kb"), TOPICS[topic])]
    tools = [retriever_tool(Two(), "kb", response_format)]
    app = agent(*replies, tools=tools, checkpointer=InMemorySaver())
    for topic in TURNS:
        app.invoke(asked(f"What does the manual say of the {topic}?"), captured.remembering)
    return captured.calls


def labelled(call: SentencizedCall) -> Labels:
    """A model that finds relevant what names the topic of the question."""
    topic = call.call.question.split()[-1].rstrip("?")
    relevant = [s.key for s in call.documents if topic in s.text and "ship" not in s.text]
    return labels_of(relevant, relevant, {s.key: (relevant, True) for s in call.response})


@pytest.mark.parametrize("response_format", ["content", "content_and_artifact"])
def test_six_turns(captured: Captured, response_format: str) -> None:
    """Each turn's documents first, then those of earlier turns, apart and with their ids."""
    calls = thread(captured, response_format)

    own = [[f"{topic}-side", topic] for topic in TURNS]
    assert [ids(call.documents)[:2] for call in calls] == own
    assert [len(call.documents) for call in calls] == [2, 4, 6, 8, 8, 8]
    assert [call.earlier for call in calls] == [
        tuple(range(2, len(call.documents))) for call in calls
    ]
    for call in calls:
        again = call.documents[2:]
        assert {document.id for document in again}.isdisjoint(ids(call.documents)[:2])
        assert [d.text for d in again if d.id in TOPICS] == [
            TOPICS[d.id] for d in again if d.id in TOPICS
        ]
        assert capture_of(call).documents_from == "prompt"
    (warranty,) = [document for document in calls[1].documents if document.id == "warranty"]
    assert (warranty.metadata, warranty.score) == ({"page": 1}, None)


@pytest.mark.parametrize(
    "judge", [ScriptedJudge(labelled), EmbeddedJudge()], ids=["scripted", "embedded"]
)
def test_a_long_chat_is_no_worse_retriever(captured: Captured, judge: Any) -> None:
    """A question has the same scores in turn 5 as in turn 1, exactly."""
    evaluator = RagEvaluator(judge, [Trace(), LabelRetrieval()])
    evaluations = [evaluator.evaluate_sync(call) for call in thread(captured)]

    by_turn = [
        {name: (score.value, score.estimate) for name, score in each.scores.items()}
        for each in evaluations
    ]
    rest = {"adherence", "trace_average"} if judge.name == "embedded" else set()
    for first, later in ((0, 4), (1, 5)):
        names = by_turn[first].keys() - rest
        assert {n: by_turn[later][n] for n in names} == {n: by_turn[first][n] for n in names}
        assert by_turn[later]["adherence"][0] == by_turn[first]["adherence"][0] == 1
    assert by_turn[4]["reciprocal_rank"][0] == 1 / 2


def test_a_turn_that_finds_nothing(captured: Captured) -> None:
    """Its documents are all of an earlier turn: unscored as a retrieval, 0 by gold, supported."""
    turns = (("warranty", TOPICS["warranty"]), ("nothing", TOPICS["warranty"]))
    replies = [reply for topic, said in turns for reply in (calls_tool(topic, "kb"), said)]
    app = agent(*replies, tools=[retriever_tool(Two(), "kb")], checkpointer=InMemorySaver())
    for number in range(2):
        app.invoke(asked(f"Question {number} of the warranty?"), captured.remembering)

    first, second = captured.calls
    assert second.documents == first.documents
    assert (second.earlier, capture_of(second).documents_from) == ((0, 1), "prompt")
    gold = second.model_copy(update={"relevant_ids": ("warranty",)})
    evaluator = RagEvaluator(ScriptedJudge(labelled), [Trace(), Retrieval(k=1)])
    scores = evaluator.evaluate_sync(gold).scores
    assert scores["context_relevance"].unscored == "no_context"
    assert (scores["adherence"].value, scores["mrr@1"].value) == (1, 0)


def test_what_another_process_captured(captured: Captured) -> None:
    """Its documents are one text, of an earlier turn, without what this turn found again."""
    both = "\n\n".join([TOPICS["warranty"], TOPICS["filter"]])
    told = ToolMessage(both, name="kb", tool_call_id="kb-x")
    said = [("human", "Well?"), calls_tool("x", "kb"), told, ("ai", "So.")]
    app = agent(calls_tool("filter", "kb"), "By hand.", tools=[retriever_tool(Two(), "kb")])
    app.invoke({"messages": [*said, ("human", "And the filter?")]}, captured.config)

    assert captured.only.earlier == (2,)
    last = captured.only.documents[2]
    assert (last.text, last.id, last.metadata) == (TOPICS["warranty"], None, {"tool": "kb"})


def test_a_message_behind_the_question_is_of_this_turn(captured: Captured) -> None:
    """Though the first model of the call is shown it: a node found it, and no tool ran."""
    topics = iter([["warranty"], ["filter", "warranty"]])

    def search(state: Any) -> Any:
        retrieved = [each for topic in next(topics) for each in Two().invoke(topic)[1:]]
        told = ToolMessage(joined(retrieved), name="kb", tool_call_id="kb-q")
        return {"messages": [calls_tool("q", "kb"), told]}

    model = scripted("One.", "Two.")
    app = graph(
        MessagesState, InMemorySaver(), search=search,
        answer=lambda state: {"messages": [model.invoke(state["messages"])]},
    )  # fmt: skip
    for number in range(2):
        app.invoke(asked(f"Question {number}?"), captured.remembering)

    assert captured.ids_by_call == [["warranty"], ["filter", "warranty"]]
    assert [call.earlier for call in captured.calls] == [(), ()]
    assert {capture_of(call).documents_from for call in captured.calls} == {"prompt"}


def test_retrieved_again_and_not_repeated(captured: Captured) -> None:
    """A document that a tool leaves out, since its model has seen it, is this turn's."""
    topics, seen = iter([["warranty"], ["filter", "warranty"]]), set[str]()

    @tool
    def kb(query: str) -> str:
        """Search, and tell what is new."""
        retrieved = [each for topic in next(topics) for each in Two().invoke(topic)[1:]]
        new = [each for each in retrieved if each.id not in seen]
        seen.update(str(each.id) for each in new)
        return joined(new)

    app = agent(
        calls_tool("x", "kb"), "One.", calls_tool("y", "kb"), "Two.",
        tools=[kb], checkpointer=InMemorySaver(),
    )  # fmt: skip
    for number in range(2):
        app.invoke(asked(f"Question {number}?"), captured.remembering)

    assert captured.ids_by_call == [["warranty"], ["filter", "warranty"]]
    assert [call.earlier for call in captured.calls] == [(), ()]
    assert "warranty" not in ids(capture_of(captured.calls[1]).not_in_prompt)


@pytest.mark.parametrize("artifact", [True, False])
def test_a_resumed_turn_goes_on(captured: Captured, artifact: bool) -> None:
    """What was found before the pause is of the same turn: it stands behind the question."""

    def searches(topic: str) -> Any:
        def search(state: Any) -> Any:
            retrieved = Two().invoke(topic)[1:]
            kept = {"artifact": retrieved} if artifact else {}
            told = ToolMessage(joined(retrieved), name="kb", tool_call_id=topic, **kept)
            return {"messages": [calls_tool(topic, "kb"), told]}

        return search

    model = scripted("One.")
    app = graph(
        MessagesState, InMemorySaver(), ["more"], first=searches("warranty"),
        more=searches("filter"),
        answer=lambda state: {"messages": [model.invoke(state["messages"])]},
    )  # fmt: skip
    app.invoke(asked(), captured.remembering)
    app.invoke(None, captured.remembering)

    assert captured.ids_by_call[1] == (["filter", "warranty"] if artifact else ["filter"])
    assert captured.calls[1].earlier == ()


class Kept(TypedDict, total=False):
    """A graph's state that keeps all documents of a thread."""

    question: str
    messages: Annotated[list[Any], operator.add]
    documents: Annotated[list[Document], operator.add]
    answer: str


@pytest.mark.parametrize("key", ["messages", "question"])
def test_documents_that_a_state_keeps(captured: Captured, key: str) -> None:
    """What an earlier turn put into the state is of that turn, unless it is retrieved again."""
    plan = iter([["warranty"], ["filter"], [], ["warranty"]])
    model = scripted("Fine.")

    def retrieve(state: Any) -> Any:
        return {"documents": [doc for topic in next(plan) for doc in Two().invoke(topic)[1:]]}

    def answer(state: Any) -> Any:
        texts = list(dict.fromkeys(each.page_content for each in state["documents"]))
        return {"answer": model.invoke("\n\n".join(texts) + "\n\nAnswer.").text}

    app = graph(Kept, InMemorySaver(), retrieve=retrieve, answer=answer)
    for number in range(4):
        question = f"Question {number}?"
        given = asked(question) if key == "messages" else {"question": question}
        app.invoke(given, captured.remembering)

    assert captured.ids_by_call == [
        ["warranty"], ["filter", "warranty"], ["warranty", "filter"], ["warranty", "filter"],
    ]  # fmt: skip
    assert [call.earlier for call in captured.calls] == [(), (1,), (0, 1), (1,)]
    assert {capture_of(call).documents_from for call in captured.calls} == {"prompt"}
