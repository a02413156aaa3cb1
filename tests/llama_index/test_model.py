"""LlamaIndexModel: any LlamaIndex LLM, off the app's loop and never captured."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.llama_index import LlamaIndexModel
from rag_eval_integrations.models.completion import CompletionRequest, Message
from rag_eval_integrations.testing import ModelContract, labels_reply, small_call

from .conftest import Captured, Model

ASKED = CompletionRequest(messages=(Message(role="user", content="x"),))
REPLY = labels_reply(["0a", "0b", "1a"], ["a", "b"])


class Written(Model):
    """Answers what it is told, and remembers how it was called."""

    reply: str = REPLY
    raw: Any = None
    ways: list[str] = []  # noqa: RUF012  # pydantic copies it

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        self.ways.append(threading.current_thread().name)
        message = ChatMessage(role=MessageRole.ASSISTANT, content=self.reply)
        return ChatResponse(message=message, raw=self.raw)

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self.chat(messages)


class TestContract(ModelContract):
    """The contract that every model keeps, here where a model is made on each loop."""

    def model(self, reply: str) -> LlamaIndexModel:
        return LlamaIndexModel(make_llm=lambda: Written(reply=reply))


async def test_a_model_labels_a_call() -> None:
    """One request, scores by the model's name."""
    model = Written()

    evaluation = await RagEvaluator(LlamaIndexModel(model)).evaluate(small_call().call)

    assert evaluation.scores["adherence"].value == 1.0
    judge = evaluation.judge
    assert (judge.name, judge.model) == ("llama_index:custom_llm:scripted", "scripted")
    assert [way[:14] for way in model.ways] == ["rag-eval-model"]


@pytest.mark.parametrize(
    "ended", [{"choices": [{"finish_reason": "length"}]}, {"done_reason": "length"}]
)
async def test_usage_and_finish_reason_are_read_from_the_raw_reply(ended: dict[str, Any]) -> None:
    """Where integrations keep what their vendor said, under the vendor's name."""
    raw = {**ended, "usage": {"prompt_tokens": 7, "completion_tokens": 3}}

    completion = await LlamaIndexModel(Written(reply="<think>x</think>{}", raw=raw)).complete(ASKED)

    assert (completion.text, completion.finish_reason) == ("{}", "length")
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (7, 3)


async def test_the_judges_calls_are_never_captured(captured: Captured) -> None:
    """The handler is on the root dispatcher, which sees every call of the process."""
    for model in (LlamaIndexModel(Written()), LlamaIndexModel(make_llm=Written)):
        await RagEvaluator(model).evaluate(small_call().call)

    assert (captured.calls, captured.handler.open_calls) == ([], 0)


@pytest.mark.parametrize("arguments", [{}, {"llm": "gpt"}])
def test_mistakes_raise_at_construction(arguments: Any) -> None:
    """Naming the argument."""
    with pytest.raises(ConfigurationError, match="`llm`" if arguments else "`model`"):
        LlamaIndexModel(**arguments)
