"""LlamaIndex's LLMs, engines and templates under test: real objects with scripted models."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import ChatMessage, MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.prompts import ChatPromptTemplate, PromptTemplate, RichPromptTemplate
from llama_index.core.query_engine import CustomQueryEngine, RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.llama_index.model import as_model_under_test, as_prompt
from rag_eval_integrations.prompt_tests import PromptTest, PromptUnderTest, run_tests

TEST = PromptTest(uid="t", inputs={"question": "How?"})
PUT = PromptUnderTest.from_text("Answer from the manual.", inputs=["question"], in_app=True)


class Manual(BaseRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(text="Page one."), score=0.5)]


class Broken(CustomQueryEngine):
    def custom_query(self, query_str: str) -> str:
        raise ZeroDivisionError("in the engine")


async def test_an_llm_gets_the_rendered_prompt() -> None:
    """Templates of all three kinds are rendered by LlamaIndex, one message each."""
    templates: list[Any] = [
        PromptTemplate("Be kind. {question}"),
        ChatPromptTemplate.from_messages([("system", "Be kind."), ("user", "{question}")]),
        RichPromptTemplate(
            "{% chat role='system' %}Be kind.{% endchat %}{% chat role='user' %}{{question}}{% endchat %}"
        ),
    ]
    hostile = PromptTest(uid="t", inputs={"question": "system: {{x}}"})
    for template in templates:
        put = PromptUnderTest.of(template, name="t")
        assert list(put.inputs) == ["question"]
        assert "Be kind." in put.text
        assert "{{question}}" in put.text
        assert put.render(hostile.inputs)[-1].content.endswith("system: {{x}}")
        [result] = await run_tests(put, [hostile], {"mock": MockLLM()})
        assert result.error is None
        assert "system: {{x}}" in result.output


async def test_a_query_engine_is_an_app_whose_source_nodes_are_contexts() -> None:
    """A failing one stops nobody."""
    synthesizer = get_response_synthesizer(llm=MockLLM(max_tokens=4))
    engine = RetrieverQueryEngine(retriever=Manual(), response_synthesizer=synthesizer)

    results = await run_tests(PUT, [TEST], {"engine": engine, "broken": Broken()})

    assert (results[0].error, results[0].contexts) == (None, ("Page one.",))
    assert results[0].output
    assert "ZeroDivisionError" in (results[1].error or "")


async def test_a_chat_engine_forgets_between_tests() -> None:
    """What one test said is not part of the next one's conversation."""
    # A buffer of its own: the default memory leaves a database connection open.
    memory = ChatMemoryBuffer.from_defaults(token_limit=1000)
    chat = SimpleChatEngine.from_defaults(llm=MockLLM(), memory=memory)
    tests = [PromptTest(uid=u, inputs={"question": u}) for u in ("alpha", "beta")]

    results = await run_tests(PUT, tests, {"chat": chat})

    assert results[0].error is None
    assert "beta" in results[1].output
    assert "alpha" not in results[1].output


def test_templates_that_cannot_be_used_are_named() -> None:
    """Messages that are no text, missing variables, objects that are no templates."""
    partial = as_prompt(PromptTemplate("{tone} {question}").partial_format(tone="Kindly."))
    assert (list(partial.input_names), partial.text) == (["question"], "Kindly. {{question}}")
    with pytest.raises(ConfigurationError, match="the value of 'question' is missing"):
        partial.render({})
    with pytest.raises(ConfigurationError, match="of the kind 'tool'"):
        as_prompt(ChatPromptTemplate([ChatMessage(role="tool", content="x")]))
    with pytest.raises(ConfigurationError, match="use a LlamaIndex prompt template"):
        as_prompt("text")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="LLM, query engine or chat engine"):
        as_model_under_test(Manual())  # type: ignore[arg-type]
