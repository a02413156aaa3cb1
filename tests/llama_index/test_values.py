"""What is read out of LlamaIndex's objects, of every kind that an app may pass or return."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.base.response.schema import Response
from llama_index.core.llms import ChatMessage, ChatResponse, CompletionResponse
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.workflow import StartEvent

from rag_eval_integrations.llama_index._values import (
    answer_of,
    model_arguments,
    nodes_of,
    prompt_in,
    question_of,
)

SCORED = NodeWithScore(node=TextNode(id_="a", text="The kettle boils."), score=0.5)


@pytest.mark.parametrize(
    ("arguments", "question"),
    [
        ({"str_or_query_bundle": "Q?"}, "Q?"),
        ({"str_or_query_bundle": QueryBundle("Q?")}, "Q?"),
        ({"anything": "Q?"}, "Q?"),
        ({"user": "bob", "message": "Q?"}, "Q?"),
        ({"message": ChatMessage(role="user", content="Q?"), "chat_history": []}, "Q?"),
        ({"start_event": StartEvent.model_validate({"query": "Q?"})}, "Q?"),
        ({"kwargs": {"topic": 3, "question": "Q?"}}, "Q?"),
        ({"kwargs": {"chat_history": [ChatMessage(role="user", content="Q?")]}}, "Q?"),
        ({"kwargs": {"topic": "Q?"}}, ""),
        ({"number": 3}, ""),
        ({}, ""),
    ],
)
def test_question(arguments: dict[str, Any], question: str) -> None:
    """By its usual name, else the first argument; a workflow's only by name."""
    assert question_of(arguments) == question


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ("A.", "A."),
        (None, None),
        (Response("A."), "A."),
        (ChatMessage(role="assistant", content="A."), "A."),
        (ChatResponse(message=ChatMessage(role="assistant", content="A.")), "A."),
        (CompletionResponse(text="A."), "A."),
        ({"answer": CompletionResponse(text="A.")}, "A."),
        ({"response": {"result": {"output": {"text": "A."}}}}, "A."),
        ({"response": {"result": {"output": {"text": Response("too deep")}}}}, None),
        ({"score": 1}, None),
        (3, None),
    ],
)
def test_answer(result: object, answer: str | None) -> None:
    """Of strings, responses, messages, completions, and of mappings that hold one."""
    assert answer_of(result) == answer


def test_prompt() -> None:
    """A string, or the texts of messages, among a model's arguments, wrapped or not."""
    messages = [ChatMessage(role="user", content="One"), ChatMessage(role="user", content="Two")]

    assert prompt_in(*model_arguments({"prompt": "P", "formatted": True})) == "P"
    assert (
        prompt_in(*model_arguments({"_self": 1, "args": (messages,), "kwargs": {}})) == "One\nTwo"
    )
    assert prompt_in(*model_arguments({"args": (), "kwargs": {"prompt": "P"}})) == "P"
    assert prompt_in(*model_arguments({"args": (), "kwargs": {"n": 1}})) == ""


@pytest.mark.parametrize(
    "value",
    [
        [SCORED],
        (SCORED, "not a node"),
        Response("A.", source_nodes=[SCORED]),
        {"answer": "A.", "notes": ["x"], "nodes": [SCORED]},
    ],
)
def test_nodes(value: object) -> None:
    """Of a list, a response's sources, or a mapping that holds a list of them."""
    assert nodes_of(value) == [(SCORED.node, 0.5)]


@pytest.mark.parametrize(
    "value", [None, "x", 3, {}, {"nodes": "x"}, {"nodes": [1]}, Response("A.")]
)
def test_no_nodes(value: object) -> None:
    """Anything else holds none."""
    assert nodes_of(value) == []


def test_sources_that_are_no_list() -> None:
    """An app's own response may say what it likes in its fields."""

    class Strange:
        def __init__(self) -> None:
            self.source_nodes = "none"

    assert nodes_of(Strange()) == []
