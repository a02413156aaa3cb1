"""Any LlamaIndex LLM as a judge."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from llama_index.core.llms import LLM, ChatMessage, ChatResponse

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.models._framework import Borrowed, FrameworkModel, Reply
from rag_eval_integrations.models.completion import CompletionRequest, Token
from rag_eval_integrations.records import Usage


class LlamaIndexModel(FrameworkModel[LLM, ChatResponse]):
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

    _who = "the LlamaIndex model"

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
        borrowed = Borrowed(llm, make_llm, max_threads=max_threads, timeout=timeout)
        kind = "llama_index" if llm is None else f"llama_index:{llm.class_name()}"
        model = llm.metadata.model_name if llm is not None else None
        super().__init__(borrowed, kind, model=model, name=name)

    def _settings(self, model: LLM) -> Collection[str]:
        # `n` would be answered, and all answers but one dropped.
        return set(type(model).model_fields) - {"n"}

    def _ask(
        self, model: LLM, request: CompletionRequest, sent: dict[str, Any]
    ) -> list[ChatResponse]:
        return [model.chat(_messages(request), **sent)]

    async def _aask(
        self, model: LLM, request: CompletionRequest, sent: dict[str, Any]
    ) -> list[ChatResponse]:
        return [await model.achat(_messages(request), **sent)]

    def _read(self, reply: ChatResponse) -> Reply:
        raw = _mapping(reply.raw)
        choices = raw.get("choices")
        first = _mapping(choices[0]) if isinstance(choices, Sequence) and choices else {}
        return Reply(
            written=reply.message.content or "",
            finished=first.get("finish_reason") or raw.get("stop_reason"),
            logprobs=_mapping(first.get("logprobs")),
            tokens=lambda: _tokens_of_response(reply),
        )

    def _usage(self, replies: Sequence[ChatResponse], requests: int) -> Usage:
        return _usage(replies)


def _messages(request: CompletionRequest) -> list[ChatMessage]:
    return [ChatMessage(role=m.role, content=m.content) for m in request.messages]


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
