"""`CallableModel`: any function from messages to text."""

from __future__ import annotations

import contextvars
import inspect
from collections.abc import Awaitable, Callable
from functools import partial

from rag_eval_integrations._contain import contained
from rag_eval_integrations._loop import Threads
from rag_eval_integrations.errors import ConfigurationError, JudgeOutputError
from rag_eval_integrations.models.completion import (
    Choice,
    Completion,
    CompletionRequest,
    ModelBase,
)
from rag_eval_integrations.records import Usage
from rag_eval_integrations.records._json import excerpt

Messages = list[dict[str, str]]
"""`[{"role": "system" | "user" | "assistant", "content": "…"}, …]`"""


_THREADS = 16
"""Concurrent calls of a plain function."""


class CallableModel(ModelBase):
    """Asks any `async (messages) -> str`: a gateway, a local model, a function of your own.

    A coroutine function runs on the loop that awaits the evaluation: the app's under `await`, so it
    may use the app's HTTP session; the library's own under the `_sync` methods, and the background
    thread's in a `BackgroundEvaluator`. A plain function runs in a thread, so that it may block.

    The function receives only the messages: no schema, temperature, seed or token limit. When
    log-probabilities are requested, a warning of the completion says that there are none. An
    exception of the function becomes the error of the evaluation.

    Args:
        function: answers a list of messages with text. Called concurrently, once per answer.
        name: the model's name, stamped on every score.

    Raises:
        ConfigurationError: for something that cannot be called, a class, or an empty name.
    """

    def __init__(
        self,
        function: Callable[[Messages], Awaitable[str]] | Callable[[Messages], str],
        *,
        name: str = "callable",
    ) -> None:
        if not callable(function):
            raise ConfigurationError("function", function, "use a function of messages")
        if isinstance(function, type):
            raise ConfigurationError("function", function, "is a class; pass an object of it")
        if not name:
            raise ConfigurationError("name", name, "use a name that identifies the model")
        self._function = function
        self._is_async = any(
            inspect.iscoroutinefunction(target) for target in (function, type(function).__call__)
        )
        self._threads = Threads(_THREADS, "rag-eval-callable")
        self.name = name

    async def complete(self, request: CompletionRequest) -> Completion:
        """Answer a request by one call of the function per answer, one after the other.

        Every answer counts as finished (`stop`). A warning says that log-probabilities are not
        available, if they were requested.

        Raises:
            JudgeOutputError: when the function does not return text.
            Exception: whatever the function raises.
        """
        choices = []
        for number in range(1, request.n + 1):
            # Each answer has a list of its own, which the function may change.
            messages = [{"role": m.role, "content": m.content} for m in request.messages]
            text = await self._answer(messages)
            if not isinstance(text, str):
                why, usage = f"{self.name} returned {type(text).__name__}", Usage(requests=number)
                raise JudgeOutputError(why, excerpt(text), usage=usage)
            choices.append(Choice(text=text, finish_reason="stop"))
        warnings = ("log-probabilities are not available",) if request.top_logprobs else ()
        return Completion(
            choices=tuple(choices), usage=Usage(requests=request.n), warnings=warnings
        )

    async def _answer(self, messages: Messages) -> object:
        """Call the user's function: on this loop, or in a thread.

        What a plain function returns is awaited on this loop if it can be.
        """
        if self._is_async:
            return await self._function(messages)  # type: ignore[misc]  # known by `_is_async`
        # In a copy of the context, so that nothing is captured in the thread either.
        run = contextvars.copy_context().run
        answer = await self._threads.run(partial(run, self._call, messages))
        # Such as a lambda or a partial object around a coroutine function.
        return await answer if inspect.isawaitable(answer) else answer

    def _call(self, messages: Messages) -> object:
        """Call the user's function in this thread."""
        with contained:  # in the thread: a `StopIteration` would not come out of it
            return self._function(messages)
