"""Any LlamaIndex LLM as a judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llama_index.core.llms import LLM, ChatMessage, ChatResponse

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges.borrowed import Borrowed
from rag_eval_integrations.judges.completion import (
    Choice,
    Completion,
    CompletionRequest,
    FinishReason,
)
from rag_eval_integrations.judges.reasoning import answer_in
from rag_eval_integrations.records import Usage

_FINISHED: dict[str, FinishReason] = {
    "stop": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "refusal": "refusal",
}


class LLMJudge:
    """Asks a LlamaIndex `LLM`; its settings are the model's own.

    The model is called by its sync `chat` in a pool of threads, never on the app's loop or ours
    (see `judges/borrowed.py`), and its calls are never captured as RAG calls. What LlamaIndex has
    no common word for (a schema, log-probabilities, the number of answers) is left out with a
    warning; the labelling prompt asks for its JSON in words too.

    Args:
        llm: the model.
        make_llm: makes a model for each loop that asks, whose async method is used; give this or
            `llm`.
        name: stands on every score; by default the model's class and model name.
        max_threads: calls at once.
        timeout: seconds for one answer.

    Raises:
        ConfigurationError: for a wrong argument.
    """

    def __init__(
        self,
        llm: LLM | None = None,
        *,
        make_llm: Callable[[], LLM] | None = None,
        name: str | None = None,
        max_threads: int = 16,
        timeout: float = 120.0,
    ) -> None:
        if llm is not None and not isinstance(llm, LLM):
            raise ConfigurationError("llm", llm, "use a LlamaIndex LLM")
        self._borrowed = Borrowed(llm, make_llm, max_threads=max_threads, timeout=timeout)
        self.model = llm.metadata.model_name if llm is not None else None
        kind = "llama_index" if llm is None else f"llama_index:{llm.class_name()}"
        self.name = name or (f"{kind}:{self.model}" if self.model else kind)

    async def complete(self, request: CompletionRequest) -> Completion:
        """Answer a request.

        Raises:
            JudgeUnavailableError: no answer; asking again may help.
            JudgeRejectedError: the model refuses the request itself.
            JudgeError: anything else that LlamaIndex raised.
        """
        messages = [ChatMessage(role=m.role, content=m.content) for m in request.messages]

        def sync(llm: LLM) -> ChatResponse:
            return llm.chat(messages)

        async def native(llm: LLM) -> ChatResponse:
            return await llm.achat(messages)

        replies = [await self._borrowed.ask(self.name, sync, native) for _ in range(request.n)]
        asked = {"log-probabilities": request.top_logprobs, "a seed": request.seed}
        return Completion(
            choices=tuple(_choice(reply) for reply in replies),
            usage=_usage(replies),
            model=self.model,
            warnings=tuple(
                f"LlamaIndex models are not asked for {name}" for name, it in asked.items() if it
            ),
        )


def _choice(reply: ChatResponse) -> Choice:
    raw = _mapping(reply.raw)
    choices = raw.get("choices")
    first = _mapping(choices[0]) if isinstance(choices, Sequence) and choices else {}
    reason = first.get("finish_reason") or raw.get("stop_reason") or ""
    return Choice(
        text=answer_in(reply.message.content or "").text,
        finish_reason=_FINISHED.get(str(reason), "unknown"),
    )


def _usage(replies: Sequence[ChatResponse]) -> Usage:
    prompt = completion = 0
    for reply in replies:
        counted = {**_mapping(_mapping(reply.raw).get("usage")), **reply.additional_kwargs}
        prompt += _count(counted, "prompt_tokens", "input_tokens")
        completion += _count(counted, "completion_tokens", "output_tokens")
    return Usage(requests=len(replies), prompt_tokens=prompt, completion_tokens=completion)


def _count(counted: Mapping[str, Any], *names: str) -> int:
    values = (counted.get(name) for name in names)
    return next((value for value in values if isinstance(value, int) and value > 0), 0)


def _mapping(value: object) -> dict[str, Any]:
    """The fields of whatever a vendor's integration keeps as its raw reply."""
    if isinstance(value, Mapping):
        return dict(value)
    fields = getattr(value, "model_dump", None)
    return fields() if callable(fields) else {}
