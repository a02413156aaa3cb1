"""LlamaIndexModel: log-probabilities, where the model has settings for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LogProb, MessageRole
from scored_tokens import chat_body, tokens

from rag_eval_integrations import GEval, RagCall
from rag_eval_integrations.llama_index import LlamaIndexModel
from rag_eval_integrations.models.completion import CompletionRequest, Message

from .conftest import Model

CALL = RagCall(question="When?", documents=[], response="At nine.")
PIECES = ['{"reason": "', "Fine", '.", "', "score", '": ', "3", "}"]
EVEN = {5: {"3": 0.6, "4": 0.4}}
MESSAGES = (Message(role="user", content="x"),)
ASKED = CompletionRequest(messages=MESSAGES, top_logprobs=5, n=2, seed=3, temperature=0.0)


class OpenAILike(Model):
    """Declares what LlamaIndex's OpenAI declares."""

    temperature: float = 0.1
    logprobs: bool | None = None
    top_logprobs: int = 0
    n: int = 1
    raw: Any = None
    listed: Any = None
    sent: list[dict[str, Any]] = []  # noqa: RUF012  # pydantic copies it

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        self.sent.append(kwargs)
        message = ChatMessage(role=MessageRole.ASSISTANT, content="".join(PIECES))
        return ChatResponse(message=message, raw=self.raw, logprobs=self.listed)

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self.chat(messages, **kwargs)


@pytest.mark.parametrize("made", [False, True], ids=["the app's model", "a made model"])
async def test_an_expectation_from_the_raw_reply(made: bool) -> None:
    """`raw` holds what OpenAI sent; the settings are those of the request."""
    model = OpenAILike(raw=chat_body(PIECES, at=EVEN))
    judge = LlamaIndexModel(make_llm=lambda: model) if made else LlamaIndexModel(model)

    score = await GEval("clarity", steps=["Judge it."]).score(CALL, judge)

    assert (score.method, score.raw) == ("logprobs", pytest.approx(3.4))
    assert model.sent == [{"logprobs": True, "top_logprobs": 20, "temperature": 0.0}]
    assert score.warnings == ()


async def test_an_expectation_from_llama_indexs_own_list() -> None:
    """Where an integration fills in `logprobs` and keeps no raw reply."""
    listed = [[LogProb(token=a, logprob=b) for a, b in token.top] for token in tokens(PIECES, EVEN)]
    judge = LlamaIndexModel(OpenAILike(listed=listed))

    score = await GEval("clarity", steps=["Judge it."]).score(CALL, judge)

    assert (score.method, score.raw) == ("logprobs", pytest.approx(3.4))


@pytest.mark.parametrize("listed", [None, [], [[]]])
async def test_log_probabilities_that_do_not_come_are_said(listed: Any) -> None:
    """Asked for, accepted, not given."""
    completion = await LlamaIndexModel(OpenAILike(listed=listed)).complete(ASKED)

    assert completion.tokens is None
    assert len(completion.choices) == 2
    assert "log-probabilities were asked for and accepted, but not given" in completion.warnings
