"""The answer, and the models that wrote it, where it is not simply the last model's text."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import create_retriever_tool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState
from langgraph.prebuilt import ToolNode
from pydantic import BaseModel

from .apps import QUESTION, Named, Scripted, State, calls_tool, graph, ids, says
from .conftest import ANSWER, PROMPT, Captured, Sections, joined, model, rag_chain, run, sections


class Minutes(BaseModel):
    """A structured answer."""

    minutes: int


class TestWriters:
    @pytest.mark.parametrize(
        ("answer", "replies"),
        [
            ("Yes", ["Yes", "Yes, that is grounded."]),  # the second model's text holds it, too
            (ANSWER, [json.dumps({"answer": ANSWER, "sure": True}), "Fine"]),
            ("Fast.", ["  Fast.\n", "Fine"]),
        ],
        ids=["short", "out of json", "stripped"],
    )
    def test_answer_before_a_check(
        self, captured: Captured, answer: str, replies: list[str]
    ) -> None:
        """An answer that was taken out of a model's text is that model's, not a later one's."""
        judge = Scripted(replies=[says(text) for text in replies])

        def ask(question: str) -> str:
            first, second, _ = Sections().invoke(question)
            text = judge.invoke(f"{question} {first.page_content}").text
            judge.invoke(f"Check it: {second.page_content}")
            return str(json.loads(text)["answer"]) if text[0] == "{" else text.strip()

        RunnableLambda(ask).invoke(QUESTION, captured.config)

        assert captured.only.response == answer
        assert captured.ids == ["a"]

    def test_draft_that_was_rewritten(self, captured: Captured) -> None:
        """A draft that the final text repeats is not what was answered."""
        draft, other = "A draft about the kettle.", sections()[1].page_content
        writer = Scripted(replies=[says(draft), says(f"{draft} And about its lid.")])

        def revise(question: str) -> str:
            first, second, _ = Sections().invoke(question)
            writer.invoke(f"Say something about nothing: {second.page_content}")
            return writer.invoke(f"{question} {first.page_content}").text + "\nEnd."

        RunnableLambda(revise).invoke(QUESTION, captured.config)

        assert other == captured.how.not_in_prompt[0].text
        assert captured.ids == ["a"]

    def test_short_answer_that_cannot_be_told(self, captured: Captured) -> None:
        """A short answer that is a part of several texts may be of any: the last is looked at."""
        judge = Scripted(replies=[says("The answer is 4"), says("4 is fine")])

        def ask(question: str) -> str:
            retrieved = joined(Sections().invoke(question))
            judge.invoke(f"{question} {retrieved}")
            judge.invoke("Check it.")
            return "4"

        RunnableLambda(ask).invoke(QUESTION, captured.config)

        assert captured.only.response == "4"
        assert captured.ids == ["a", "b", "c"]


class TestResponse:
    @pytest.mark.parametrize(
        "shape",
        [
            lambda message: message.tool_calls[0]["args"],
            lambda message: {"kept": message.tool_calls[0]["args"], "n": 1},
            lambda message: {"kept": Minutes(**message.tool_calls[0]["args"])},
            lambda message: {
                "raw": message,
                "parsed": Minutes(**message.tool_calls[0]["args"]),
                "parsing_error": None,
            },
        ],
        ids=["dict", "in a dict", "object in a dict", "with raw"],
    )
    def test_structured_by_a_tool_call(self, captured: Captured, shape: Any) -> None:
        """What the model called its tool with is the answer, as JSON."""
        call = {"name": "Minutes", "args": {"minutes": 4}, "id": "1"}
        structured = Scripted(replies=[AIMessage("", tool_calls=[call])])
        context = Sections() | RunnableLambda(joined)
        chain = {"context": context, "question": RunnablePassthrough()} | PROMPT | structured

        (chain | RunnableLambda(shape)).invoke(QUESTION, captured.config)

        assert json.loads(captured.only.response or "") == {"minutes": 4}

    def test_values_that_are_no_arguments(self, captured: Captured) -> None:
        """Other values are not taken for an answer: it is said that there is none."""
        call = {"name": "Minutes", "args": {"minutes": 4}, "id": "1"}
        structured = Scripted(replies=[AIMessage("", tool_calls=[call])])
        chain = Sections() | RunnableLambda(joined) | structured

        (chain | RunnableLambda(lambda _: {"minutes": 5, "why": {}})).invoke(
            QUESTION, captured.config
        )

        assert captured.only.response is None

    def test_tool_that_answers(self, captured: Captured) -> None:
        """What a tool with `return_direct` gives back is what the user gets."""

        @tool(return_direct=True)
        def search(query: str) -> str:
            """Searches."""
            return rag_chain().invoke(query)

        agent: Any = create_agent(Scripted(replies=[calls_tool("kettle")]), [search])
        agent.invoke({"messages": [("user", QUESTION)]}, captured.config)

        assert captured.only.response == ANSWER
        assert captured.ids == ["a", "b", "c"]

    def test_query_that_a_model_wrote(self, captured: Captured) -> None:
        """Of two texts in a state without a known key, the retriever's query is no answer."""

        class Wider(State, total=False):
            better: str
            final_report: str

        app = graph(
            Wider,
            better=lambda s: {"better": model("kettle time").invoke("q").text},
            find=lambda s: {"context": Sections().invoke(s["better"])},
            write=lambda s: {"final_report": model().invoke(joined(s["context"])).text},
        )

        app.invoke({"question": QUESTION}, captured.config)

        assert captured.only.response == ANSWER

    @pytest.mark.parametrize("key", ["final_summary", "final_answer"])
    def test_final_key(self, captured: Captured, key: str) -> None:
        """Of several texts that models wrote, the one under a `final_…` key is the answer."""

        class Wider(State, total=False):
            drafts: list[str]
            final_summary: str
            final_answer: str
            final_context: str
            final_grade: str

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


def agentic(*replies: AIMessage, **options: Any) -> Any:
    """An agent's graph whose last node returns the `str` of a parser, as LangGraph's notebook."""
    scripted = Scripted(replies=list(replies))
    search = create_retriever_tool(Sections(), "search", "Searches.")

    def generate(state: MessagesState) -> Any:
        question, found = state["messages"][0].text, state["messages"][-1].text
        chain = PROMPT | scripted | StrOutputParser()
        return {"messages": [chain.invoke({"context": found, "question": question})]}

    return graph(
        MessagesState,
        agent=lambda state: {"messages": [scripted.invoke(state["messages"])]},
        search=ToolNode([search]),
        generate=generate,
        **options,
    )


class TestLastMessage:
    @pytest.mark.parametrize("thought", ["", "Let me search the manual."])
    @pytest.mark.parametrize("answer", [ANSWER, "Fast."])
    @pytest.mark.parametrize("way", ["invoke", "astream"])
    async def test_written_as_users(
        self, captured: Captured, thought: str, answer: str, way: str
    ) -> None:
        """What a model wrote last is the answer, though LangGraph made a user's message of it."""
        app = agentic(calls_tool("kettle", text=thought), says(answer))
        await run(app, {"messages": [("user", QUESTION)]}, way, captured.config)

        assert (captured.only.question, captured.only.response) == (QUESTION, answer)
        assert captured.ids == ["a", "b", "c"]

    def test_second_turn(self, captured: Captured) -> None:
        """Neither is the answer that of the turn before, nor is the history lost."""
        app = agentic(
            calls_tool("lid"),
            says("It opens with a hand."),
            calls_tool("base"),
            says("It turns all the way."),
            checkpointer=InMemorySaver(),
        )
        config: Any = {**captured.config, "configurable": {"thread_id": "1"}}
        app.invoke({"messages": [("user", "And the lid?")]}, config)
        app.invoke({"messages": [("user", "And the base?")]}, config)

        first, second = captured.calls
        assert (first.response, first.history) == ("It opens with a hand.", ())
        assert (second.question, second.response) == ("And the base?", "It turns all the way.")
        assert [turn.content for turn in second.history][::2] == [
            "And the lid?",
            "It opens with a hand.",
        ]

    def test_call_of_a_tool(self, captured: Captured) -> None:
        """A message that calls a tool and says nothing is no answer."""
        chain = Sections() | RunnableLambda(joined) | Scripted(replies=[calls_tool("order")])
        chain.invoke(QUESTION, captured.config)

        assert captured.only.response is None


class Graded(BaseModel):
    """Verdict of a grader."""

    binary_score: str
    explanation: str = "It is in the documents."


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
    def test_by_itself_is_no_call(
        self, captured: Captured, asks: dict[str, str], verdict: object
    ) -> None:
        """Grading a generation against documents, as a test of that step does, answers nobody."""
        grader = model("yes") | RunnableLambda(lambda _: verdict)
        prompt: Any = RunnableLambda(lambda given: f"Context:\n{joined(given['documents'])}")
        (prompt | grader).invoke({"documents": sections(), **asks}, captured.config)

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
        prompt: Any = RunnableLambda(lambda given: joined(given["documents"]))
        chain = prompt | model("yes") | RunnableLambda(lambda _: verdict)
        chain.invoke({"documents": sections(), **asks}, captured.config)

        assert captured.ids == ["a", "b", "c"]


def two_turns(captured: Captured, find: Any, write: Any) -> None:
    """Ask a graph that remembers about the lid, then about the base."""
    app = graph(State, find=find, write=write, checkpointer=InMemorySaver())
    config: Any = {**captured.config, "configurable": {"thread_id": "1"}}

    app.invoke({"question": "lid"}, config)
    app.invoke({"question": "base"}, config)


class TestTurns:
    @pytest.mark.parametrize("retriever", [True, False], ids=["retriever", "function"])
    @pytest.mark.parametrize(
        "shown", [joined, lambda retrieved: joined(retrieved)[::-1]], ids=["prompt", "dataflow"]
    )
    def test_documents_of_the_turn_before(
        self, captured: Captured, shown: Any, retriever: bool
    ) -> None:
        """What a graph's state still holds from the turn before is no document of this one."""

        def find(state: State) -> State:
            if retriever:
                return {"context": Named().invoke(state["question"])}
            return {"context": Named()._get_relevant_documents(state["question"], run_manager=None)}

        def write(state: State) -> State:
            return {"answer": model().invoke(shown(state["context"]) + state["question"]).text}

        two_turns(captured, find, write)

        assert [ids(call.documents) for call in captured.calls] == [["lid"], ["base"]]
        assert [call.capture and call.capture.not_in_prompt for call in captured.calls] == [(), ()]

    def test_no_retrieval_in_this_turn(self, captured: Captured) -> None:
        """A turn that answers from what the state holds: these are its documents."""

        def find(state: State) -> State:
            return {} if state.get("context") else {"context": sections()}

        def write(state: State) -> State:
            return {"answer": model().invoke(joined(state["context"]) + state["question"]).text}

        two_turns(captured, find, write)

        assert [ids(call.documents) for call in captured.calls] == [["a", "b", "c"]] * 2


def test_copied_config(captured: Captured) -> None:
    """A config that is copied deep still reports to the same handler."""
    rag_chain().invoke(QUESTION, copy.deepcopy(captured.config))

    assert captured.only.response == ANSWER
