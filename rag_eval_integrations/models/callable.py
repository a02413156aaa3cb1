"""`CallableModel`: any async function from messages to text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rag_eval_integrations.errors import ConfigurationError, JudgeOutputError
from rag_eval_integrations.models.completion import (
    Choice,
    Completion,
    CompletionRequest,
    ModelBase,
)
from rag_eval_integrations.records import Usage

Messages = list[dict[str, str]]
"""`[{"role": "system" | "user" | "assistant", "content": "…"}, …]`"""


class CallableModel(ModelBase):
    """Asks any `async (messages) -> str`: a gateway, a local model, a function of your own.

    The function receives only the messages: no schema, temperature, seed or token limit. When
    log-probabilities are requested, a warning of the completion says that there are none. An
    exception of the function becomes the error of the evaluation.

    Args:
        function: answers a list of messages with text. Called concurrently, once per answer.
        name: the model's name, stamped on every score.

    Raises:
        ConfigurationError: for something that cannot be called, or an empty name.
    """

    def __init__(
        self, function: Callable[[Messages], Awaitable[str]], *, name: str = "callable"
    ) -> None:
        if not callable(function):
            raise ConfigurationError("function", function, "use an async function of messages")
        if not name:
            raise ConfigurationError("name", name, "use a name that identifies the model")
        self._function = function
        self.name = name

    async def complete(self, request: CompletionRequest) -> Completion:
        """Answer a request.

        Raises:
            JudgeOutputError: when the function does not return text.
        """
        messages = [{"role": m.role, "content": m.content} for m in request.messages]
        choices = []
        for _ in range(request.n):
            text = await self._function(messages)
            if not isinstance(text, str):
                raise JudgeOutputError(f"{self.name} returned {type(text).__name__}", repr(text))
            choices.append(Choice(text=text, finish_reason="stop"))
        warnings = ("log-probabilities are not available",) if request.top_logprobs else ()
        return Completion(
            choices=tuple(choices), usage=Usage(requests=request.n), warnings=warnings
        )
