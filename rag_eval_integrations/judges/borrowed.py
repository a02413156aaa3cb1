"""Asks a model object of the user's framework without touching the app's event loop.

A framework's async client is bound to the loop it first ran on (langchain-openai shares one HTTP
client process-wide: two loops give hangs and "Event loop is closed"), so a model that the user
already has is called by its sync method in a bounded pool of threads. `make_model` builds one of
our own instead, on the loop that asks, and uses its async method there.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.errors import (
    ConfigurationError,
    JudgeError,
    JudgeRejectedError,
    JudgeUnavailableError,
)
from rag_eval_integrations.judges.openai.failures import may_pass, retry_after

M = TypeVar("M")
T = TypeVar("T")


class Borrowed(Generic[M]):
    """A framework's model: the user's own, or one made on each loop.

    Args:
        model: the user's model; its sync method is called in threads.
        make_model: makes a model for the running loop instead; its async method is awaited.
        max_threads: sync calls at once.
        timeout: seconds for one answer. A thread that is still busy then goes on in the
            background and keeps its place in the pool.
        captured: whether its calls may be captured as RAG calls: those of an app that is under
            test are, those of a judge never.

    Raises:
        ConfigurationError: unless exactly one of `model` and `make_model` is given, or for
            numbers that are not above 0.
    """

    def __init__(
        self,
        model: M | None,
        make_model: Callable[[], M] | None,
        *,
        max_threads: int,
        timeout: float,
        captured: bool = False,
    ) -> None:
        if (model is None) == (make_model is None):
            raise ConfigurationError("model", model, "give either a model or `make_model`")
        if max_threads < 1:
            raise ConfigurationError("max_threads", max_threads, "use a number from 1")
        if not timeout > 0:
            raise ConfigurationError("timeout", timeout, "use seconds above 0")
        self.model = model
        self._make_model = make_model
        self._made: WeakKeyDictionary[asyncio.AbstractEventLoop, M] = WeakKeyDictionary()
        self._max_threads = max_threads
        self._timeout = timeout
        self._captured = captured
        self._pool: ThreadPoolExecutor | None = None
        self._pid = os.getpid()

    async def ask(
        self, who: str, sync: Callable[[M], T], native: Callable[[M], Awaitable[T]] | None = None
    ) -> T:
        """Call the model one way or the other; `native` is only for one that is made.

        Raises:
            JudgeUnavailableError: no answer in time, or a failure that may pass (429, 5xx …).
            JudgeRejectedError: a failure that will not (401, 404 …).
            JudgeError: anything else that the framework raised.
        """
        try:
            async with asyncio.timeout(self._timeout):
                if self.model is None:
                    assert native is not None
                    with suppress_capture():
                        return await native(self._model_here())
                return await self._in_thread(sync, self.model)
        except TimeoutError as error:
            raise JudgeUnavailableError(f"{who}: no answer in {self._timeout:g} s") from error
        except JudgeError:
            raise
        except Exception as error:
            raise judge_error(error, who) from error

    def _model_here(self) -> M:
        assert self._make_model is not None
        loop = asyncio.get_running_loop()
        if loop not in self._made:
            self._made[loop] = self._make_model()
        return self._made[loop]

    async def _in_thread(self, sync: Callable[[M], T], model: M) -> T:
        if self._pool is None or self._pid != os.getpid():  # a fork takes no threads along
            self._pool = ThreadPoolExecutor(self._max_threads, thread_name_prefix="rag-eval-judge")
            self._pid = os.getpid()

        def call() -> T:
            if self._captured:
                return sync(model)
            with suppress_capture():
                return sync(model)

        # An empty context: a run of the app that is under way (its callbacks, its tracer's
        # parent) must not become the parent of the judge's own calls.
        context = contextvars.Context()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: context.run(call))


async def answered(asking: Iterable[Awaitable[T]]) -> list[T]:
    """Ask several times at once and give the answers; those that may come later are left out.

    One of twenty that is over a limit must not have the others paid for twice.

    Raises:
        Exception: any other failure, after all have ended.
    """
    found = await asyncio.gather(*asking, return_exceptions=True)
    for item in found:
        if isinstance(item, BaseException) and not isinstance(item, JudgeUnavailableError):
            raise item
    return [item for item in found if not isinstance(item, BaseException)]


def judge_error(error: Exception, who: str) -> JudgeError:
    """Say what a framework's exception means for asking again.

    Frameworks wrap many vendors' clients: those that speak HTTP carry `status_code` (OpenAI,
    Anthropic, Mistral, Groq), connection failures and timeouts are told by their types.
    """
    why = f"{who}: {type(error).__name__}: {str(error)[:300]}"
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        if not may_pass(status):
            return JudgeRejectedError(why, status=status)
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
        return JudgeUnavailableError(why, status=status, retry_after=retry_after(headers))
    names = " ".join(kind.__name__ for kind in type(error).__mro__)
    if "Timeout" in names or "Connect" in names:  # the built-in ones, and every client's own
        return JudgeUnavailableError(why)
    return JudgeError(why)
