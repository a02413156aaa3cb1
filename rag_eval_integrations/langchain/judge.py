"""Any LangChain chat model as a judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges.borrowed import Borrowed
from rag_eval_integrations.judges.completion import (
    Choice,
    Completion,
    CompletionRequest,
    FinishReason,
    Message,
)
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
    (see `judges/borrowed.py`), and its calls are never captured as RAG calls. What LangChain has
    no common word for (a schema, log-probabilities, the number of answers) is left out with a
    warning; the labelling prompt asks for its JSON in words too.

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

        def sync(model: BaseChatModel) -> BaseMessage:
            return model.invoke(messages)

        async def native(model: BaseChatModel) -> BaseMessage:
            return await model.ainvoke(messages)

        replies = [await self._borrowed.ask(self.name, sync, native) for _ in range(request.n)]
        return Completion(
            choices=tuple(_choice(reply) for reply in replies),
            usage=_usage(replies),
            model=_answered_by(replies[0]) or self.model,
            warnings=_left_out(request),
        )


def _as_langchain(messages: Sequence[Message]) -> list[BaseMessage]:
    return [_MESSAGES[message.role](content=message.content) for message in messages]


def _choice(reply: BaseMessage) -> Choice:
    metadata = reply.response_metadata
    reason = str(metadata.get("finish_reason") or metadata.get("stop_reason") or "").lower()
    refusal = reply.additional_kwargs.get("refusal")
    return Choice(
        text=answer_in(str(reply.text)).text,
        finish_reason=_FINISHED.get(reason, "unknown"),
        refusal=refusal if isinstance(refusal, str) and refusal else None,
    )


def _usage(replies: Sequence[BaseMessage]) -> Usage:
    found = [reply.usage_metadata for reply in replies if isinstance(reply, AIMessage)]
    return Usage(
        requests=len(replies),
        prompt_tokens=sum(usage["input_tokens"] for usage in found if usage),
        completion_tokens=sum(usage["output_tokens"] for usage in found if usage),
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


def _left_out(request: CompletionRequest) -> tuple[str, ...]:
    asked = {"log-probabilities": request.top_logprobs, "a seed": request.seed}
    return tuple(f"LangChain models are not asked for {name}" for name, it in asked.items() if it)
