"""One record, whatever way a chain is called, and whatever goes in and comes out."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.messages import AIMessage, ChatMessage, FunctionMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableBranch, RunnableLambda, RunnablePassthrough
from langchain_core.runnables.history import RunnableWithMessageHistory
from pydantic import BaseModel

from .apps import QUESTION, calls_tool, scripted
from .conftest import ANSWER, PROMPT, Captured, Sections, capture_of, joined, model, rag_chain


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


PARTS = [{"type": "text", "text": text} for text in ("Four ", "minutes.")]
BLOCKS: list[Any] = [{"type": "reasoning", "reasoning": "Hm."}, *PARTS]

SAID: list[tuple[Any, tuple[str, str] | None]] = [
    (("system", "Be brief."), ("system", "Be brief.")),
    (HumanMessage("Hi"), ("user", "Hi")),
    (calls_tool("kettle"), None),
    ({"role": "tool", "content": "Found.", "tool_call_id": "1"}, ("tool", "Found.")),
    (FunctionMessage(content="Called.", name="f"), ("tool", "Called.")),
    (ChatMessage(content="Meanwhile", role="narrator"), None),
    (AIMessage("Hello"), ("assistant", "Hello")),
    ({"role": "user", "content": QUESTION}, None),
]
"""Messages, and the turns that they are."""

RETRIEVES = RunnablePassthrough.assign(
    context=RunnableLambda(lambda given: given["question"]) | Sections()
)


class TestWays:
    def test_one_config_an_item(self, captured: Captured) -> None:
        """Items of a batch keep their own metadata and run id."""
        configs: Any = [{**captured.config, "metadata": {"user": i}} for i in range(3)]

        rag_chain().batch([f"q{i}" for i in range(3)], configs)

        captures = [*map(capture_of, captured.calls)]
        users = {f"q{how.metadata['user']}": how.run_id for how in captures}
        assert [*users] == captured.questions
        assert len({*users.values()}) == 3

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
            {"user_message": QUESTION},
            {"current_query": "", "original_query": QUESTION, "search_query": "kettle"},
            {"messages": [("human", "Hi"), ("ai", "Hello")], "original_query": QUESTION},
            {"messages": [("human", QUESTION)], "current_query": "Hi"},
            {"messages": [("human", QUESTION), ("ai", "Let me see.")]},
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
            ({"messages": [message for message, _ in SAID]}, [turn for _, turn in SAID if turn]),
            (
                {"question": QUESTION, "chat_history": [("Hi", "Hello"), ("a", "b", "c"), 7]},
                [("user", "Hi"), ("assistant", "Hello")],
            ),
            ({"question": QUESTION, "chat_history": "Human: hi"}, []),
            (
                {"messages": [("human", "Hi"), ("ai", "Hello")], "original_query": QUESTION},
                [("user", "Hi"), ("assistant", "Hello")],
            ),
            ({"messages": [("human", QUESTION), ("ai", "Hello")], "question": QUESTION}, []),
        ],
        ids=["messages", "pairs", "a text", "messages before", "messages with it"],
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
        kept = InMemoryChatMessageHistory()
        turns = MessagesPlaceholder("history")
        prompt = ChatPromptTemplate([("system", "{context}"), turns, ("human", "{question}")])
        chain = RETRIEVES.assign(context=lambda given: joined(given["context"])) | prompt | model()
        keys = {"input_messages_key": "question", "history_messages_key": "history"}
        remembering = RunnableWithMessageHistory(chain, lambda session_id: kept, **keys)  # type: ignore[arg-type]  # by name
        config: Any = {**captured.config, "configurable": {"session_id": "1"}}

        remembering.invoke({"question": "And the lid?"}, config)
        remembering.invoke({"question": QUESTION}, config)

        assert captured.calls.pop(0).history == ()
        said = [("user", "And the lid?"), ("assistant", ANSWER)]
        assert [(turn.role, turn.content) for turn in captured.only.history] == said
        # The earlier answer's words are those of a document, which was retrieved again.
        assert captured.ids == ["a", "b", "c"]

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

        assert (captured.responses, captured.ids) == ([ANSWER], ["a", "b", "c"])
