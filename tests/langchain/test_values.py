"""Messages in every shape: who said what, and what a prompt holds."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.outputs import Generation, LLMResult

from rag_eval_integrations.langchain._values import (
    generated_text,
    last_text,
    message_of,
    prompt_texts,
    turns_before_last_question,
    turns_of,
)

HUMAN = frozenset({"human", "user"})


class TestMessage:
    @pytest.mark.parametrize(
        ("item", "expected"),
        [
            (HumanMessage("x"), ("human", "x")),
            (ChatMessage(content="x", role="user"), ("user", "x")),
            (("human", "x"), ("human", "x")),
            ({"role": "user", "content": "x"}, ("user", "x")),
            ({"type": "human", "content": ["x", {"text": "y"}, {"url": "z"}]}, ("human", "xy")),
            (("a", "b", "c"), None),
            ((1, "b"), None),
            ({"role": "user"}, None),
            ({"role": "user", "content": 7}, None),
            (7, None),
            (None, None),
        ],
    )
    def test_shapes(self, item: Any, expected: Any) -> None:
        """Objects, pairs and dicts are messages; anything else is none."""
        assert message_of(item) == expected

    def test_last_of_a_role(self) -> None:
        """The last message of the role counts; without one there is no text."""
        assert last_text([("human", "a"), ("ai", "b"), ("human", "c"), ("ai", "d")], HUMAN) == "c"
        assert last_text([("ai", "b"), 7], HUMAN) is None


class TestTurns:
    def test_roles(self) -> None:
        """Each kind of message has its role; unknown kinds and empty texts are left out."""
        messages = [
            SystemMessage("s"),
            HumanMessage("h"),
            AIMessage("a"),
            AIMessage(""),
            ToolMessage("t", tool_call_id="1"),
            FunctionMessage(content="f", name="f"),
            ChatMessage(content="c", role="narrator"),
            7,
        ]

        assert [(turn.role, turn.content) for turn in turns_of(messages)] == [
            ("system", "s"),
            ("user", "h"),
            ("assistant", "a"),
            ("tool", "t"),
            ("tool", "f"),
        ]

    @pytest.mark.parametrize("items", ["Human: hi", None, 7, {}])
    def test_no_list(self, items: Any) -> None:
        """A history that is no list of messages is not read."""
        assert turns_of(items) == ()

    def test_before_the_question(self) -> None:
        """Only what came before the last question is a turn before it."""
        messages = [("human", "a"), ("ai", "b"), ("human", "c"), ("ai", "d")]

        assert [turn.content for turn in turns_before_last_question(messages)] == ["a", "b"]
        assert turns_before_last_question(messages[:1]) == ()
        assert turns_before_last_question([("ai", "b")]) == ()


class TestPrompt:
    @pytest.mark.parametrize(
        ("started", "texts"),
        [
            (["one", "two"], ("one", "two")),
            ([[SystemMessage("s"), HumanMessage("h")]], ("s", "h")),
            ([[("human", "pair"), {"role": "user", "content": "dict"}, 7]], ("pair", "dict")),
            ([7, [None]], ()),
            ("no list", ()),
            ([[HumanMessage([{"type": "image", "url": "x"}, "bare"])]], ("bare",)),
        ],
    )
    def test_texts(self, started: Any, texts: tuple[str, ...]) -> None:
        """Prompts are read whether they are strings or messages; what is no text is left out."""
        assert prompt_texts(started) == texts

    def test_blocks_within_blocks_end(self) -> None:
        """Blocks that hold themselves are read to a depth, not for ever."""
        block: dict[str, Any] = {"type": "search_result", "content": []}
        block["content"].append(block)
        message = HumanMessage("x").model_copy(update={"content": [block, {"text": "end"}]})

        assert prompt_texts([[message]]) == ("end",)


class TestGenerated:
    @pytest.mark.parametrize(
        ("result", "text"),
        [
            (LLMResult(generations=[[Generation(text="x"), Generation(text="y")]]), "x"),
            (LLMResult(generations=[]), None),
            (LLMResult(generations=[[]]), None),
            (None, None),
        ],
    )
    def test_first_text(self, result: Any, text: str | None) -> None:
        """The first generation's text, if there is any."""
        assert generated_text(result) == text
