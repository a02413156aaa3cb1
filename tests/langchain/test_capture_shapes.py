"""One record, whatever way a chain is called, and whatever goes in and comes out."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import (
    RunnableBranch,
    RunnableLambda,
    RunnablePassthrough,
    chain,
)
from pydantic import BaseModel

from rag_eval_integrations.records import RagCall

from .apps import QUESTION, Scripted, ids, says
from .conftest import ANSWER, PROMPT, Captured, Sections, joined, model, rag_chain


def substance(call: RagCall) -> dict[str, Any]:
    """A record without what differs from run to run."""
    content = call.model_dump(exclude={"started_at"})
    del content["capture"]["run_id"], content["capture"]["latency_s"]
    return content


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


class TestWays:
    async def test_events(self, captured: Captured) -> None:
        """`astream_events` gives the record of `invoke`."""
        rag_chain().invoke(QUESTION, captured.config)

        events = rag_chain().astream_events(QUESTION, captured.config, version="v2")
        seen = [event async for event in events]

        assert seen
        assert len(captured.calls) == 2
        assert substance(captured.calls[1]) == substance(captured.calls[0])

    async def test_transform(self, captured: Captured) -> None:
        """A chain may be given a stream."""
        list(rag_chain().transform(iter([QUESTION]), captured.config))

        assert captured.only.question == QUESTION
        assert captured.only.response == ANSWER

    def test_one_config_an_item(self, captured: Captured) -> None:
        """Items of a batch keep their own metadata and run id."""
        configs: Any = [{**captured.config, "metadata": {"user": i}} for i in range(3)]

        rag_chain().batch([f"q{i}" for i in range(3)], configs)

        captures = [call.capture for call in captured.calls if call.capture is not None]
        users = {call.question: call.capture.metadata for call in captured.calls if call.capture}
        assert users == {f"q{i}": {"user": i} for i in range(3)}
        assert len({capture.run_id for capture in captures}) == 3

    def test_batch_as_completed(self, captured: Captured) -> None:
        """So do items that come back in any order."""
        questions = [f"q{i}" for i in range(5)]

        answers = list(rag_chain().batch_as_completed(questions, captured.config))

        assert len(answers) == 5
        assert sorted(call.question for call in captured.calls) == questions

    def test_map_is_one_call(self, captured: Captured) -> None:
        """A mapped chain is one root; its answers are several, so none is given."""
        echo: Any = rag_chain(llm=Scripted(replies=[says("One."), says("Two.")]))

        echo.map().invoke(["first?", "second?"], captured.config)

        assert len(captured.calls) == 1
        assert captured.only.response is None


class TestShapes:
    @pytest.mark.parametrize(
        ("given", "question"),
        [
            (Ask(question=QUESTION), QUESTION),
            ({"user_query": QUESTION}, QUESTION),
            ({"messages": QUESTION}, QUESTION),
            ([HumanMessage("Hi"), AIMessage("Hello"), HumanMessage(QUESTION)], QUESTION),
            ({"question": HumanMessage([{"type": "text", "text": QUESTION}])}, QUESTION),
        ],
        ids=["pydantic", "key", "string", "list", "blocks"],
    )
    def test_question(self, captured: Captured, given: Any, question: str) -> None:
        """The question is found in models, lists and blocks too."""
        (RunnableLambda(lambda _: "rephrased") | rag_chain()).invoke(given, captured.config)

        assert captured.only.question == question

    def test_earlier_turns(self, captured: Captured) -> None:
        """What was said before the question is the history, tool calls without text left out."""
        call = {"name": "search", "args": {}, "id": "1"}
        messages = [
            ("system", "Be brief."),
            HumanMessage("Hi"),
            AIMessage("", tool_calls=[call]),
            AIMessage("Hello"),
            {"role": "user", "content": QUESTION},
        ]

        chain: Any = RunnableLambda(lambda _: "q") | rag_chain()
        chain.invoke({"messages": messages}, captured.config)

        assert captured.only.question == QUESTION
        assert [(turn.role, turn.content) for turn in captured.only.history] == [
            ("system", "Be brief."),
            ("user", "Hi"),
            ("assistant", "Hello"),
        ]

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
        asking = (
            RunnablePassthrough.assign(
                context=RunnableLambda(lambda given: given["question"])
                | Sections()
                | RunnableLambda(joined)
            )
            | prompt
            | model()
        )
        remembering = RunnableWithMessageHistory(
            asking,
            lambda session_id: kept,
            input_messages_key="question",
            history_messages_key="history",
        )
        config: Any = {**captured.config, "configurable": {"session_id": "1"}}

        remembering.invoke({"question": "And the lid?"}, config)
        remembering.invoke({"question": QUESTION}, config)

        first, second = captured.calls
        assert first.history == ()
        assert [(turn.role, turn.content) for turn in second.history] == [
            ("user", "And the lid?"),
            ("assistant", ANSWER),
        ]
        # The earlier answer's words are those of a document, which was retrieved again.
        assert ids(second.documents) == ["a", "b", "c"]

    def test_pairs_of_strings_as_history(self, captured: Captured) -> None:
        """A chat history of `(question, answer)` pairs is two turns each."""
        given = {"question": QUESTION, "chat_history": [("Hi", "Hello")]}

        chain: Any = RunnableLambda(lambda _: "q") | rag_chain()
        chain.invoke(given, captured.config)

        assert [(turn.role, turn.content) for turn in captured.only.history] == [
            ("user", "Hi"),
            ("assistant", "Hello"),
        ]

    @pytest.mark.parametrize(
        ("output", "response"),
        [
            (Reply(answer="Four.", confidence=1), "Four."),
            (Minutes(minutes=4), '{"minutes":4}'),
            ({"answer": Reply(answer="Four.", confidence=1)}, "Four."),
            (
                AIMessage(
                    [
                        {"type": "reasoning", "reasoning": "Hm."},
                        {"type": "text", "text": "Four "},
                        {"type": "text", "text": "minutes."},
                    ]
                ),
                "Four minutes.",
            ),
            ({"generation": "Four."}, "Four."),
        ],
        ids=["pydantic", "unknown fields", "nested", "blocks", "key"],
    )
    def test_response(self, captured: Captured, output: Any, response: str) -> None:
        """Structured answers are read by their usual fields, or else kept whole as JSON."""
        (rag_chain() | RunnableLambda(lambda _: output)).invoke(QUESTION, captured.config)

        assert captured.only.response == response

    def test_answer_under_a_name_of_its_own(self, captured: Captured) -> None:
        """An output under an unknown key is the answer if a model wrote it."""
        outputs: Any = RunnableLambda(lambda answer: {"reply_text": answer, "n": "1"})

        (rag_chain() | outputs).invoke(QUESTION, captured.config)

        assert captured.only.response == ANSWER

    def test_branch_and_assign(self, captured: Captured) -> None:
        """Branches and assignments change nothing."""
        assigned: Any = (
            RunnablePassthrough.assign(
                context=RunnableLambda(lambda given: given["question"]) | Sections()
            )
            | RunnablePassthrough.assign(
                answer=RunnableLambda(  # type: ignore[arg-type]
                    lambda given: {
                        "context": joined(given["context"]),
                        "question": given["question"],
                    }
                )
                | PROMPT
                | model()
            )
            | RunnableLambda(lambda given: {"answer": given["answer"], "context": given["context"]})
        )
        branching = RunnableBranch((lambda given: "question" in given, assigned), rag_chain())

        branching.invoke({"question": QUESTION}, captured.config)

        assert captured.only.response == ANSWER
        assert ids(captured.only.documents) == ["a", "b", "c"]

    async def test_function_that_calls_everything(self, captured: Captured) -> None:
        """What a decorated function calls is in its call, though it passes no config on."""

        @chain
        async def ask(question: str) -> str:
            found = await Sections().ainvoke(question)
            filled = PROMPT.invoke({"context": joined(found), "question": question})
            return (await model().ainvoke(filled)).text

        await ask.ainvoke(QUESTION, captured.config)

        assert captured.only.response == ANSWER
        assert ids(captured.only.documents) == ["a", "b", "c"]

    def test_listeners(self, captured: Captured) -> None:
        """Other observers of the chain do not disturb."""
        ended: list[Any] = []

        rag_chain().with_listeners(on_end=ended.append).invoke(QUESTION, captured.config)

        assert len(ended) == 1
        assert captured.only.response == ANSWER

    def test_tool_that_only_retrieves(self, captured: Captured) -> None:
        """A retriever's tool on its own answers nothing."""
        from langchain_core.tools import create_retriever_tool

        create_retriever_tool(Sections(), "search", "Searches.").invoke(QUESTION, captured.config)

        assert captured.calls == []
