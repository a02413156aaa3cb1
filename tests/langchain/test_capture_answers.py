"""The answer, and the models that wrote it, where it is not simply the last model's text."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState
from langgraph.prebuilt import ToolNode
from pydantic import BaseModel

from .apps import QUESTION, Named, State, agent, asked, calls_tool, graph, retriever_tool, scripted
from .conftest import ANSWER, PROMPT, Captured, Sections, joined, model, rag_chain, run, sections


class Minutes(BaseModel):
    """A structured answer."""

    minutes: int


STRUCTURED = AIMessage("", tool_calls=[{"name": "Minutes", "args": {"minutes": 4}, "id": "1"}])
"""A model's answer by a call of a tool."""


DRAFT = "A draft about the kettle."


class TestWriters:
    @pytest.mark.parametrize(
        ("answer", "replies", "shown"),
        [
            ("Yes", ["Yes", "Yes, that is grounded."], ["a"]),  # the second text holds it, too
            (ANSWER, [json.dumps({"answer": ANSWER, "sure": True}), "Fine"], ["a"]),
            (ANSWER, [*map(json.dumps, [[ANSWER], {"answer": ANSWER}]), "Fine"], ["b"]),
            ("Fast.", ["  Fast.\n", "Fine"], ["a"]),
            (f"{DRAFT} And so on.\nEnd.", [DRAFT, f"{DRAFT} And so on."], ["b"]),
            ("4", ["The answer is 4", "Fine"], ["a"]),
            ("4", ["The answer is 4", "4 is fine"], ["b"]),
            ("4", ["The answer is 4", "4 is fine", "Fine"], ["a", "b"]),
        ],
        ids=["short", "json", "two jsons", "stripped", "rewritten", "part", "parts", "of any"],
    )
    def test_document_of_the_writer(
        self, captured: Captured, answer: str, replies: list[str], shown: list[str]
    ) -> None:
        """An answer that was taken out of a model's text is that model's, not a later one's.

        A draft that the final text repeats is not what was answered. A short answer that is a part
        of several texts may be of any: the last model's documents are taken, or all models' where
        the last saw none.
        """
        writer = scripted(*replies)

        def ask(question: str) -> str:
            for document in Sections().invoke(question)[:2]:
                writer.invoke(f"{question} {document.page_content}")
            for _ in replies[2:]:
                writer.invoke("Is that fine?")
            return answer

        RunnableLambda(ask).invoke(QUESTION, captured.config)

        assert (captured.only.response, captured.ids) == (answer, shown)


FIXED = "Sorry, nothing was found in our manual."
NO = AIMessage("", tool_calls=[{"name": "Grade", "args": {"score": "no"}, "id": "1"}])


class TestUnwritten:
    """An answer that no model wrote: fixed, or in place of one that a model wrote."""

    @pytest.mark.parametrize("together", [False, True], ids=["one by one", "together"])
    @pytest.mark.parametrize("rewrites", [False, True])
    @pytest.mark.parametrize(
        "verdicts",
        [["no"] * 3, ['{"score": "no"}'] * 3, [NO] * 3, ["Off.", "No use.", "It is not."]],
    )
    def test_after_graders(
        self, captured: Captured, verdicts: list[Any], rewrites: bool, together: bool
    ) -> None:
        """No grader's prompt is evidence: the documents are all that were found, not the last."""
        grader = scripted(*verdicts)

        def ask(question: str) -> str:
            retrieved = Sections().invoke(question)
            for documents in [retrieved] if together else [[document] for document in retrieved]:
                grader.invoke(f"Is this relevant? {joined(documents)}")
            if rewrites:
                model("Kettle speed?").invoke(f"Rewrite: {question}")
            return FIXED

        RunnableLambda(ask).invoke(QUESTION, captured.config)

        assert captured.only.response == FIXED
        drafted = together and verdicts[0] == "Off."  # which may have been an answer
        assert captured.found == (["a", "b", "c"], "prompt" if drafted else "dataflow", [])

    @pytest.mark.parametrize("kept", [1, 2])
    def test_in_place_of_a_models(self, captured: Captured, kept: int) -> None:
        """A guardrail's refusal has the evidence of the answer that it replaces."""
        checker = scripted("yes", "no", "no", '{"grounded": false}')

        def ask(question: str) -> str:
            retrieved = Sections().invoke(question)
            for document in retrieved:
                checker.invoke(f"Is this relevant? {document.page_content}")
            draft = model().invoke(joined(retrieved[:kept])).text
            checker.invoke(f"Is this grounded? {draft}")
            return FIXED

        RunnableLambda(ask).invoke(QUESTION, captured.config)

        assert captured.found == (["a", "b"][:kept], "prompt", ["b", "c"][kept - 1 :])

    def test_after_drafts(self, captured: Captured) -> None:
        """A draft that was refined with each document rests on all of them."""
        writer = scripted(*(f"Draft number {number} of it." for number in range(3)))

        def ask(question: str) -> str:
            draft = ""
            for document in Sections().invoke(question):
                draft = writer.invoke(f"Refine {draft}: {document.page_content}").text
            return FIXED

        RunnableLambda(ask).invoke(QUESTION, captured.config)

        assert captured.found == (["a", "b", "c"], "prompt", [])


class Wider(State, total=False):
    """State of a graph in which several models write."""

    better: str
    drafts: list[str]
    final_report: str
    final_summary: str
    final_answer: str
    final_context: str
    final_grade: str


class TestResponse:
    @pytest.mark.parametrize(
        ("shape", "response"),
        [
            (lambda call: call.tool_calls[0]["args"], {"minutes": 4}),
            (lambda call: {"kept": call.tool_calls[0]["args"], "n": 1}, {"minutes": 4}),
            (lambda call: {"kept": Minutes(minutes=4)}, {"minutes": 4}),
            (lambda call: {"raw": call, "parsed": Minutes(minutes=4)}, {"minutes": 4}),
            (lambda call: {"minutes": 5, "why": {}}, None),
        ],
        ids=["dict", "in a dict", "object in a dict", "with raw", "other values"],
    )
    def test_structured_by_a_tool_call(self, captured: Captured, shape: Any, response: Any) -> None:
        """What the model called its tool with is the answer, as JSON; other values are none."""
        chain = Sections() | RunnableLambda(joined) | scripted(STRUCTURED)

        (chain | RunnableLambda(shape)).invoke(QUESTION, captured.config)

        assert json.loads(captured.only.response or "null") == response

    def test_tool_that_answers(self, captured: Captured) -> None:
        """What a tool with `return_direct` gives back is what the user gets."""

        @tool(return_direct=True)
        def search(query: str) -> str:
            """Searches."""
            return rag_chain().invoke(query)

        agent(calls_tool("kettle"), tools=[search]).invoke(asked(), captured.config)

        assert captured.only.response == ANSWER
        assert captured.ids == ["a", "b", "c"]

    def test_query_that_a_model_wrote(self, captured: Captured) -> None:
        """Of two texts in a state without a known key, the retriever's query is no answer."""
        app = graph(
            Wider,
            better=lambda s: {"better": model("kettle time").invoke("q").text},
            find=lambda s: {"context": Sections().invoke(s["better"])},
            write=lambda s: {"final_report": model().invoke(joined(s["context"])).text},
        )
        app.invoke({"question": QUESTION}, captured.config)

        assert captured.responses == [ANSWER]

    @pytest.mark.parametrize("key", ["final_summary", "final_answer"])
    def test_final_key(self, captured: Captured, key: str) -> None:
        """Of several texts that models wrote, the one under a `final_…` key is the answer."""
        app = graph(
            Wider,
            find=lambda s: {"context": Sections().invoke(s["question"])},
            draft=lambda s: {"drafts": [model("A draft of it.").invoke(joined(s["context"])).text]},
            gather=lambda s: {"final_context": joined(s["context"]), "final_grade": "yes"},
            write=lambda s: {key: model().invoke(joined(s["context"])).text},
        )
        app.invoke({"question": QUESTION}, captured.config)

        assert captured.only.response == ANSWER
        assert captured.ids == ["a", "b", "c"]


def agentic(*replies: AIMessage | str, **options: Any) -> Any:
    """An agent's graph whose last node returns the `str` of a parser, as LangGraph's notebook."""
    llm = scripted(*replies)

    def generate(state: MessagesState) -> Any:
        question, found = state["messages"][0].text, state["messages"][-1].text
        chain = PROMPT | llm | StrOutputParser()
        return {"messages": [chain.invoke({"context": found, "question": question})]}

    return graph(
        MessagesState,
        agent=lambda state: {"messages": [llm.invoke(state["messages"])]},
        search=ToolNode([retriever_tool()]),
        generate=generate,
        **options,
    )


class TestLastMessage:
    @pytest.mark.parametrize("thought", ["", "Let me search the manual."])
    @pytest.mark.parametrize("answer", [ANSWER, "Fast."])
    @pytest.mark.parametrize("way", ["invoke", "astream"])
    async def test_as_users(self, captured: Captured, thought: str, answer: str, way: str) -> None:
        """What a model wrote last is the answer, though LangGraph made a user's message of it."""
        app = agentic(calls_tool("kettle", text=thought), answer)
        await run(app, asked(), way, captured.config)

        assert captured.exchange == (QUESTION, answer)
        assert captured.ids == ["a", "b", "c"]

    def test_second_turn(self, captured: Captured) -> None:
        """Neither is the answer that of the turn before, nor is the history lost."""
        opens = "It opens with a hand."
        app = agentic(
            calls_tool("lid"), opens, calls_tool("base"), "It turns all the way.",
            checkpointer=InMemorySaver(),
        )  # fmt: skip
        app.invoke(asked("And the lid?"), captured.remembering)
        app.invoke(asked("And the base?"), captured.remembering)

        first, second = captured.calls
        assert captured.questions == ["And the lid?", "And the base?"]
        assert captured.responses == [opens, "It turns all the way."]
        assert first.history == ()
        assert [turn.content for turn in second.history][::2] == ["And the lid?", opens]

    def test_call_of_a_tool(self, captured: Captured) -> None:
        """A message that calls a tool and says nothing is no answer."""
        chain = Sections() | RunnableLambda(joined) | scripted(calls_tool("order"))
        chain.invoke(QUESTION, captured.config)

        assert captured.only.response is None


class Graded(BaseModel):
    """Verdict of a grader."""

    binary_score: str
    explanation: str = "It is in the documents."


def graded(captured: Captured, asks: dict[str, str], verdict: object) -> None:
    """Run a chain that shows documents to a model and makes a verdict of what it says."""
    prompt: Any = RunnableLambda(lambda given: f"Context:\n{joined(given['documents'])}")
    chain = prompt | model("yes") | RunnableLambda(lambda _: verdict)
    chain.invoke({"documents": sections(), **asks}, captured.config)


class TestGrader:
    @pytest.mark.parametrize("asks", [{}, {"question": QUESTION}])
    @pytest.mark.parametrize(
        "verdict",
        [
            Graded(binary_score="yes"), {"score": "no"}, {"binary_score": "Yes."}, {"score": 0.5},
            '{"binary_score": "yes"}', '{"is_grounded": true, "reasoning": "It is there."}',
        ],
        ids=str,
    )  # fmt: skip
    def test_is_no_call(self, captured: Captured, asks: dict[str, str], verdict: object) -> None:
        """Grading a generation against documents, as a test of that step does, answers nobody."""
        graded(captured, asks, verdict)

        assert captured.calls == []
        assert captured.handler.uncaptured == 0

    @pytest.mark.parametrize(
        ("asks", "verdict"),
        [
            ({"question": "Is it fast?"}, "Yes"),
            ({"question": "Is it fast?"}, {"answer": "yes", "score": "yes"}),
            ({}, {"summary": "A kettle.", "relevant": "yes"}),
            ({}, {"summary": "A kettle.", "relevance": 0.5}),
            ({"question": "How many?"}, {"count": 3}),
            ({}, "{kettle} boils."),
        ],
    )
    def test_answer_is_one(self, captured: Captured, asks: dict[str, str], verdict: object) -> None:
        """A yes to a question, and a text beside a grade, are answers."""
        graded(captured, asks, verdict)

        assert captured.ids == ["a", "b", "c"]


def two_turns(captured: Captured, find: Any, shown: Any = joined) -> None:
    """Ask a graph that remembers about the lid, then about the base."""

    def write(state: State) -> State:
        return {"answer": model().invoke(shown(state["context"]) + state["question"]).text}

    app = graph(State, find=find, write=write, checkpointer=InMemorySaver())
    app.invoke({"question": "lid"}, captured.remembering)
    app.invoke({"question": "base"}, captured.remembering)


class TestTurns:
    @pytest.mark.parametrize("retriever", [True, False], ids=["retriever", "function"])
    @pytest.mark.parametrize(
        "shown", [joined, lambda retrieved: joined(retrieved)[::-1]], ids=["prompt", "dataflow"]
    )
    def test_documents_of_a_turn(self, captured: Captured, shown: Any, retriever: bool) -> None:
        """What a graph's state still holds from the turn before is no document of this one."""

        def find(state: State) -> State:
            if retriever:
                return {"context": Named().invoke(state["question"])}
            return {"context": Named()._get_relevant_documents(state["question"], run_manager=None)}

        two_turns(captured, find, shown)

        assert captured.ids_by_call == [["lid"], ["base"]]
        assert not any(call.capture and call.capture.not_in_prompt for call in captured.calls)

    def test_no_retrieval_in_this_turn(self, captured: Captured) -> None:
        """A turn that answers from what the state holds: these are its documents."""

        def find(state: State) -> State:
            return {} if state.get("context") else {"context": sections()}

        two_turns(captured, find)

        assert captured.ids_by_call == [["a", "b", "c"]] * 2


def test_copied_config(captured: Captured) -> None:
    """A config that is copied deep still reports to the same handler."""
    rag_chain().invoke(QUESTION, copy.deepcopy(captured.config))

    assert captured.only.response == ANSWER
