"""Any LangChain chat model as a judge."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.globals import get_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from rag_eval_integrations.errors import ConfigurationError, JudgeError
from rag_eval_integrations.judges.borrowed import Borrowed, answered
from rag_eval_integrations.judges.completion import (
    Choice,
    Completion,
    CompletionRequest,
    FinishReason,
    Message,
)
from rag_eval_integrations.judges.extras import Extras, fewer, left_out
from rag_eval_integrations.judges.openai.logprobs import tokens_of
from rag_eval_integrations.judges.reasoning import answer_in
from rag_eval_integrations.records import Usage

_MESSAGES: dict[str, type[BaseMessage]] = {
    "system": SystemMessage,
    "user": HumanMessage,
    "assistant": AIMessage,
}
_FINISHED: dict[str, FinishReason] = {
    "stop": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_calls": "stop",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "refusal": "refusal",
}


class ChatModelJudge:
    """Asks a LangChain `BaseChatModel`; its settings are the model's own.

    The model is called by its sync method in a pool of threads, never on the app's loop or ours
    (see `judges/borrowed.py`), and its calls are never captured as RAG calls. A request for
    log-probabilities or for several answers sets `logprobs`, `n`, `seed` and `temperature` where
    the model has settings of these names (`ChatOpenAI` and its kind), until it refuses them; else
    log-probabilities are left out with a warning, and several answers are asked for one by one,
    past LangChain's cache, which would give the first one again. A schema is left out: prompts ask
    for their JSON in words too.

    Args:
        model: the model.
        make_model: makes a model for each loop that asks, whose async method is used; give this
            or `model`. A `ChatOpenAI` made so needs an `http_async_client` of its own: all that
            have none share one, whatever loop they are on.
        name: stands on every score; by default the model's class and model name.
        max_threads: calls at once.
        timeout: seconds for one answer.

    Raises:
        ConfigurationError: for a wrong argument.
    """

    def __init__(
        self,
        model: BaseChatModel | None = None,
        *,
        make_model: Callable[[], BaseChatModel] | None = None,
        name: str | None = None,
        max_threads: int = 16,
        timeout: float = 120.0,
    ) -> None:
        if model is not None and not isinstance(model, BaseChatModel):
            raise ConfigurationError("model", model, "use a LangChain chat model")
        self._borrowed = Borrowed(model, make_model, max_threads=max_threads, timeout=timeout)
        self._extras = Extras()
        self.model = _model_name(model)
        kind = "langchain" if model is None else f"langchain:{type(model).__name__}"
        self.name = name or (f"{kind}:{self.model}" if self.model else kind)

    async def complete(self, request: CompletionRequest) -> Completion:
        """Answer a request.

        Raises:
            JudgeUnavailableError: no answer; asking again may help.
            JudgeRejectedError: the model refuses the request itself.
            JudgeError: anything else that LangChain raised.
        """
        messages = _as_langchain(request.messages)
        while True:
            sent: dict[str, Any] = {}
            try:
                replies, requests = await self._ask(messages, request, sent)
            except JudgeError as error:
                if not self._extras.learn(error, sent):
                    raise
                continue
            warnings = [*left_out(request, sent, "the LangChain model"), *fewer(request, replies)]
            return Completion(
                choices=tuple(_choice(reply, sent, warnings) for reply in replies),
                usage=_usage(replies, requests),
                model=_answered_by(replies[0]) or self.model,
                warnings=tuple(dict.fromkeys(warnings)),
            )

    async def _ask(
        self, messages: list[BaseMessage], request: CompletionRequest, sent: dict[str, Any]
    ) -> tuple[list[BaseMessage], int]:
        """Get all answers, and say how many requests that took; `sent` is filled in."""

        def settings(model: BaseChatModel) -> dict[str, Any]:
            sent.update(self._extras.of(request, type(model).model_fields))
            return sent

        def sync(model: BaseChatModel) -> LLMResult:
            given = settings(model)
            return _asked(model, request, given).generate([messages], **given)

        async def native(model: BaseChatModel) -> LLMResult:
            given = settings(model)
            return await _asked(model, request, given).agenerate([messages], **given)

        first = _messages(await self._borrowed.ask(self.name, sync, native))
        missing = 0 if "n" in sent else request.n - len(first)
        others = await answered(self._borrowed.ask(self.name, sync, native) for _ in range(missing))
        replies = first + [message for result in others for message in _messages(result)]
        return replies, 1 + len(others)


def _asked(
    model: BaseChatModel, request: CompletionRequest, sent: Mapping[str, Any]
) -> BaseChatModel:
    """Give the model, without its cache where answers have to be independent of each other."""
    several = request.n > 1 and "n" not in sent
    another = request.seed is not None and "seed" not in sent
    if not (several or another) or model.cache is False:
        return model
    if model.cache is None and get_llm_cache() is None:
        return model
    uncached = copy.copy(model)
    uncached.cache = False
    return uncached


def _messages(result: LLMResult) -> list[BaseMessage]:
    found = [item.message for item in result.generations[0] if isinstance(item, ChatGeneration)]
    output = result.llm_output or {}
    for message in found:
        # `generate` leaves to `invoke` what all answers have in common.
        message.response_metadata = {**output, **message.response_metadata}
    return found


def _as_langchain(messages: Sequence[Message]) -> list[BaseMessage]:
    return [_MESSAGES[message.role](content=message.content) for message in messages]


def _choice(reply: BaseMessage, sent: Mapping[str, Any], warnings: list[str]) -> Choice:
    metadata = reply.response_metadata
    reason = str(metadata.get("finish_reason") or metadata.get("stop_reason") or "").lower()
    refusal = reply.additional_kwargs.get("refusal")
    written = str(reply.text)
    answer = answer_in(written)
    tokens = None
    if "logprobs" in sent:
        given = metadata.get("logprobs")
        tokens = tokens_of(given, written, answer.start, answer.text, warnings)
        if tokens is None:
            warnings.append("log-probabilities were asked for and accepted, but not given")
    return Choice(
        text=answer.text,
        finish_reason=_FINISHED.get(reason, "unknown"),
        tokens=tokens,
        refusal=refusal if isinstance(refusal, str) and refusal else None,
    )


def _usage(replies: Sequence[BaseMessage], requests: int) -> Usage:
    found = [reply.usage_metadata for reply in replies if isinstance(reply, AIMessage)]
    if requests == 1:  # what several answers took together stands on each of them
        found = found[:1]
    # LangChain's cache leaves the counts, if there were any, and says that it cost nothing.
    hits = [usage for usage in found if usage and usage.get("total_cost") == 0]
    paid = [usage for usage in found if usage and usage not in hits]
    return Usage(
        requests=requests - len(hits),
        prompt_tokens=sum(usage["input_tokens"] for usage in paid),
        completion_tokens=sum(usage["output_tokens"] for usage in paid),
    )


def _answered_by(reply: BaseMessage) -> str | None:
    name = reply.response_metadata.get("model_name") or reply.response_metadata.get("model")
    return name if isinstance(name, str) else None


def _model_name(model: BaseChatModel | None) -> str | None:
    for field in ("model_name", "model", "model_id"):
        name = getattr(model, field, None)
        if isinstance(name, str) and name:
            return name
    return None
