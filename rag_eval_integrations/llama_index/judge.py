"""Any LlamaIndex LLM as a judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llama_index.core.llms import LLM, ChatMessage, ChatResponse

from rag_eval_integrations.errors import ConfigurationError, JudgeError
from rag_eval_integrations.judges.borrowed import Borrowed, answered
from rag_eval_integrations.judges.completion import (
    Choice,
    Completion,
    CompletionRequest,
    FinishReason,
    Token,
)
from rag_eval_integrations.judges.extras import Extras, fewer, left_out
from rag_eval_integrations.judges.openai.logprobs import tokens_of
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
    (see `judges/borrowed.py`), and its calls are never captured as RAG calls. A request for
    log-probabilities or for several answers sets `logprobs`, `seed` and `temperature` where the
    model has settings of these names (`OpenAI` and its kind), until it refuses them; else
    log-probabilities are left out with a warning. LlamaIndex gives one answer a request, so
    several are asked for one by one. A schema is left out: prompts ask for their JSON in words.

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
        self._extras = Extras()
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

        while True:
            sent: dict[str, Any] = {}
            try:
                replies = await self._ask(messages, request, sent)
            except JudgeError as error:
                if not self._extras.learn(error, sent):
                    raise
                continue
            warnings = [*left_out(request, sent, "the LlamaIndex model"), *fewer(request, replies)]
            return Completion(
                choices=tuple(_choice(reply, sent, warnings) for reply in replies),
                usage=_usage(replies),
                model=self.model,
                warnings=tuple(dict.fromkeys(warnings)),
            )

    async def _ask(
        self, messages: list[ChatMessage], request: CompletionRequest, sent: dict[str, Any]
    ) -> list[ChatResponse]:
        """Get all answers, a request each; `sent` is filled in."""

        def settings(llm: LLM) -> dict[str, Any]:
            # `n` would be answered, and all answers but one dropped.
            sent.update(self._extras.of(request, set(type(llm).model_fields) - {"n"}))
            return sent

        def sync(llm: LLM) -> ChatResponse:
            return llm.chat(messages, **settings(llm))

        async def native(llm: LLM) -> ChatResponse:
            return await llm.achat(messages, **settings(llm))

        first = await self._borrowed.ask(self.name, sync, native)
        others = (self._borrowed.ask(self.name, sync, native) for _ in range(request.n - 1))
        return [first, *await answered(others)]


def _choice(reply: ChatResponse, sent: Mapping[str, Any], warnings: list[str]) -> Choice:
    raw = _mapping(reply.raw)
    choices = raw.get("choices")
    first = _mapping(choices[0]) if isinstance(choices, Sequence) and choices else {}
    reason = first.get("finish_reason") or raw.get("stop_reason") or ""
    written = reply.message.content or ""
    answer = answer_in(written)
    tokens = None
    if "logprobs" in sent:
        given = _mapping(first.get("logprobs"))
        tokens = tokens_of(given, written, answer.start, answer.text, warnings)
        tokens = tokens or _tokens_of_response(reply)
        if tokens is None:
            warnings.append("log-probabilities were asked for and accepted, but not given")
    return Choice(
        text=answer.text, finish_reason=_FINISHED.get(str(reason), "unknown"), tokens=tokens
    )


def _tokens_of_response(reply: ChatResponse) -> tuple[Token, ...] | None:
    """Read LlamaIndex's own list: alternatives by position, the likeliest first.

    Which of them was sampled is not said; at temperature 0, where they are asked for, it is the
    first. Where it is not, the tokens do not spell the answer, and G-Eval does not use them.
    """
    tokens = []
    for position in reply.logprobs or ():
        top = tuple((item.token, item.logprob) for item in position)
        if not top:
            return None
        tokens.append(Token(text=top[0][0], logprob=top[0][1], top=top))
    return tuple(tokens) or None


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
