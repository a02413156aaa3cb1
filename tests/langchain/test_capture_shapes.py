"""One record, whatever way a chain is called, and whatever goes in and comes out."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, ChatMessage, FunctionMessage, HumanMessage
from langchain_core.runnables import RunnableBranch, RunnableLambda, RunnablePassthrough
from pydantic import BaseModel

from .apps import QUESTION, calls_tool, scripted
from .conftest import ANSWER, PROMPT, Captured, Sections, ids, joined, model, rag_chain


class Ask(BaseModel):
    """An input that is a pydantic model."""

    question: str


class Reply(BaseModel):
    """An output that is a pydantic model."""

    answer: str
    confidence: float


class Minutes(BaseModel):
    """An output in which no field is known to be the answer."""

    minutes: int


BLOCKS: list[Any] = [
    {"type": "reasoning", "reasoning": "Hm."},
    {"type": "text", "text": "Four "},
    {"type": "text", "text": "minutes."},
]

RETRIEVES = RunnablePassthrough.assign(
    context=RunnableLambda(lambda given: given["question"]) | Sections()
)


class TestWays:
    def test_one_config_an_item(self, captured: Captured) -> None:
        """Items of a batch keep their own metadata and run id."""
        configs: Any = [{**captured.config, "metadata": {"user": i}} for i in range(3)]

        rag_chain().batch([f"q{i}" for i in range(3)], configs)

        captures = {call.question: call.capture for call in captured.calls if call.capture}
        users = {question: capture.metadata for question, capture in captures.items()}
        assert users == {f"q{i}": {"user": i} for i in range(3)}
        assert len({capture.run_id for capture in captures.values()}) == 3

    def test_map_is_one_call(self, captured: Captured) -> None:
        """A mapped chain is one root; its answers are several, so none is given."""
        context = Sections() | RunnableLambda(joined)
        inputs: Any = {"context": context, "question": RunnablePassthrough()}
        chain = inputs | PROMPT | scripted("One.", "Two.")

        chain.map().invoke(["first?", "second?"], captured.config)

        assert captured.only.response is None


class TestShapes:
    @pytest.mark.parametrize(
        "given",
        [
            Ask(question=QUESTION),
            {"user_query": QUESTION},
            {"question": HumanMessage([{"type": "text", "text": QUESTION}])},
            {"input": HumanMessage(QUESTION)},
            {"query": {"question": QUESTION}},
            {"messages": QUESTION},
            {"messages": [QUESTION]},
            {"messages": [("system", "Be brief."), ("human", QUESTION)]},
            [HumanMessage("Hi"), AIMessage("Hello"), HumanMessage(QUESTION)],
            [{"role": "user", "content": QUESTION}],
            HumanMessage([{"type": "text", "text": QUESTION}, {"type": "image", "url": "x"}]),
        ],
        ids=str,
    )
    def test_question(self, captured: Captured, given: Any) -> None:
        """Texts, models, messages in any shape, blocks, and dicts of the usual keys have it."""
        (RunnableLambda(lambda _: "rephrased") | rag_chain()).invoke(given, captured.config)

        assert captured.only.question == QUESTION

    @pytest.mark.parametrize(
        ("given", "turns"),
        [
            (
                {
                    "messages": [
                        ("system", "Be brief."),
                        HumanMessage("Hi"),
                        calls_tool("kettle"),
                        {"role": "tool", "content": "Found.", "tool_call_id": "1"},
                        FunctionMessage(content="Called.", name="f"),
                        ChatMessage(content="Meanwhile", role="narrator"),
                        AIMessage("Hello"),
                        {"role": "user", "content": QUESTION},
                    ]
                },
                [
                    ("system", "Be brief."),
                    ("user", "Hi"),
                    ("tool", "Found."),
                    ("tool", "Called."),
                    ("assistant", "Hello"),
                ],
            ),
            (
                {"question": QUESTION, "chat_history": [("Hi", "Hello"), ("a", "b", "c"), 7]},
                [("user", "Hi"), ("assistant", "Hello")],
            ),
            ({"question": QUESTION, "chat_history": "Human: hi"}, []),
        ],
        ids=["messages", "pairs", "a text"],
    )
    def test_earlier_turns(self, captured: Captured, given: Any, turns: Any) -> None:
        """What was said before the question, without empty texts and roles that are unknown."""
        chain: Any = RunnableLambda(lambda _: "q") | rag_chain()
        chain.invoke(given, captured.config)

        assert captured.only.question == QUESTION
        assert [(turn.role, turn.content) for turn in captured.only.history] == turns

    @pytest.mark.filterwarnings("ignore:.*deprecated")
    def test_history_that_a_wrapper_keeps(self, captured: Captured) -> None:
        """Turns that a wrapper puts in, below the root, are the history, too."""
        from langchain_core.chat_history import InMemoryChatMessageHistory
        from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
        from langchain_core.runnables.history import RunnableWithMessageHistory

        kept = InMemoryChatMessageHistory()
        prompt = ChatPromptTemplate.from_messages(
            [("system", "{context}"), MessagesPlaceholder("history"), ("human", "{question}")]
        )
        remembering = RunnableWithMessageHistory(
            RETRIEVES.assign(context=lambda given: joined(given["context"])) | prompt | model(),
            lambda session_id: kept,
            input_messages_key="question",
            history_messages_key="history",
        )
        config: Any = {**captured.config, "configurable": {"session_id": "1"}}

        remembering.invoke({"question": "And the lid?"}, config)
        remembering.invoke({"question": QUESTION}, config)

        first, second = captured.calls
        assert first.history == ()
        turns = [("user", "And the lid?"), ("assistant", ANSWER)]
        assert [(turn.role, turn.content) for turn in second.history] == turns
        # The earlier answer's words are those of a document, which was retrieved again.
        assert ids(second.documents) == ["a", "b", "c"]

    @pytest.mark.parametrize(
        ("output", "response"),
        [
            (Reply(answer="Four.", confidence=1), "Four."),
            (Minutes(minutes=4), '{"minutes":4}'),
            ({"answer": Reply(answer="Four.", confidence=1)}, "Four."),
            (AIMessage(BLOCKS), "Four minutes."),
            ({"generation": "Four."}, "Four."),
            ({"messages": [HumanMessage("q"), AIMessage("Four.")]}, "Four."),
            ({"result": {"output": "Four."}}, "Four."),
            ({"unheard_of": 1}, ANSWER),  # the model's own text
            ({"unheard_of": AIMessage(ANSWER)}, ANSWER),
        ],
        ids=str,
    )
    def test_response(self, captured: Captured, output: Any, response: str) -> None:
        """Structured answers are read by their usual fields, or else kept whole as JSON."""
        (rag_chain() | RunnableLambda(lambda _: output)).invoke(QUESTION, captured.config)

        assert captured.only.response == response

    def test_branch_and_assign(self, captured: Captured) -> None:
        """Branches and assignments change nothing."""
        shown: Any = RunnablePassthrough.assign(context=lambda given: joined(given["context"]))
        inner: Any = RETRIEVES.assign(answer=shown | PROMPT | model()).pick(["answer", "context"])
        branching = RunnableBranch((lambda given: "question" in given, inner), rag_chain())

        branching.invoke({"question": QUESTION}, captured.config)

        assert captured.only.response == ANSWER
        assert captured.ids == ["a", "b", "c"]
