"""`OpenAIModel`: asks any OpenAI-compatible endpoint, and learns its capabilities.

It negotiates with the endpoint until a form of the request is accepted. `LoopClients` gives it one
HTTP client per event loop, closed with its loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import math
import os
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from weakref import finalize

from pydantic import JsonValue, SecretStr

from rag_eval_integrations import _process
from rag_eval_integrations.errors import (
    ConfigurationError,
    JudgeRejectedError,
    JudgeUnavailableError,
)
from rag_eval_integrations.models.completion import Completion, CompletionRequest
from rag_eval_integrations.models.openai._capabilities import Capabilities, endpoint_of
from rag_eval_integrations.models.openai._failures import Failure, failure_of, lesson_of
from rag_eval_integrations.models.openai._reply import (
    blocked_completion,
    completion_of,
    is_without_json,
)
from rag_eval_integrations.models.openai._request import Defaults, Sent, body_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_DEFAULT_URL = "https://api.openai.com/v1"
_NO_KEY = "EMPTY"  # the client requires a key, local servers do not
# More than there are parameters: an endpoint that refuses everything cannot keep us in a loop.
_MOST_REQUESTS = 16


class OpenAIModel:
    """A model behind an OpenAI-compatible chat endpoint.

    Parameters that the endpoint refuses are not sent any more; `Completion.warnings` names them.
    Nothing is retried here: wrap it in `ThrottledModel`. May be used from several loops and
    threads.

    Args:
        model: the endpoint's name for the model (Azure: of the deployment).
        base_url: URL up to and including `/v1`; by default OPENAI_BASE_URL, else OpenAI's.
        api_key: by default OPENAI_API_KEY. An endpoint given by `base_url` needs none.
        timeout: seconds for one answer, above 0, including requests that the endpoint refuses.
        temperature: for requests without one, at least 0; None leaves it to the model, as
            reasoning models require.
        seed: for requests without one.
        max_tokens: for requests without one, from 1.
        extra_body: more fields of the request body, such as `{"reasoning_effort": "low"}` or vLLM's
            `chat_template_kwargs`; sent unchanged.

    Raises:
        ConfigurationError: for a wrong argument, or a missing key.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
        temperature: float | None = None,
        seed: int | None = None,
        max_tokens: int | None = None,
        extra_body: Mapping[str, JsonValue] | None = None,
    ) -> None:
        if type(model) is not str or not model.strip():
            raise ConfigurationError("model", model, "should name a model, as in 'gpt-4o-mini'")
        _check_numbers(timeout, temperature, max_tokens)
        given_url = base_url or os.environ.get("OPENAI_BASE_URL")
        self.base_url: str = _checked_url(given_url or _DEFAULT_URL)
        self._key = _key_for(api_key, needed=given_url is None)
        self.name = f"openai:{model}"
        self.model: str = model
        self._timeout = float(timeout)
        self._defaults = Defaults(temperature, seed, max_tokens, dict(extra_body or {}))
        self.version = _version(self._defaults)
        self._endpoint = endpoint_of(self.base_url, model)
        self._who = f"{model} at {urlsplit(self.base_url).netloc}"
        # Imported here, which takes a second, because at the first request it would block the
        # loop, and at the top `import rag_eval_integrations` would load it.
        import openai  # noqa: PLC0415

        self._sdk = openai
        # Not a method of self: without a cycle the clients close as soon as the model is dropped.
        self._clients = LoopClients(
            partial(_client, openai.AsyncOpenAI, self._key, self.base_url, self._timeout)
        )

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities learned about the endpoint; shared by all models of this process."""
        return self._endpoint.capabilities

    def __repr__(self) -> str:
        parts = urlsplit(self.base_url)  # a query may hold a key
        shown = f"{parts.scheme}://{parts.netloc}{parts.path}"
        return f"OpenAIModel({self.model!r}, base_url={shown!r})"

    async def complete(self, request: CompletionRequest) -> Completion:
        """Ask the endpoint by one HTTP request; one more for each parameter that it newly refuses.

        Raises:
            JudgeUnavailableError: 429, 5xx, no connection, no answer in time, a broken reply.
            JudgeRejectedError: a wrong key, an unknown model, a request that is refused.
        """
        try:
            async with asyncio.timeout(self._timeout):
                return await self._complete(request)
        except TimeoutError:
            raise JudgeUnavailableError(
                f"{self._who} did not answer within {self._timeout:g} s"
            ) from None

    async def aclose(self) -> None:
        """Close the connections of the running loop; otherwise they close with the loop."""
        await self._clients.aclose()

    async def _complete(self, request: CompletionRequest) -> Completion:
        client = await self._clients.get()
        with self._endpoint.negotiate() as negotiation:
            refused = False
            for requests in range(1, _MOST_REQUESTS + 1):
                await negotiation.wait(refused=refused)
                known = self._endpoint.capabilities
                sent = body_of(self.model, request, self._defaults, known)
                reply = await self._post(client, sent)
                if isinstance(reply, bytes):
                    completion = completion_of(reply, sent, requests, self._who)
                    self._observe(sent, completion)
                    return completion
                if reply.blocked:
                    return blocked_completion(sent, requests)
                lesson = lesson_of(reply, sent)
                if lesson is None:
                    raise reply.error(self._who)
                # Known before the request was sent: there is nothing left to leave out.
                if not self._endpoint.learn(lesson) and self._endpoint.capabilities is known:
                    raise reply.error(self._who)
                refused = True
        raise JudgeRejectedError(f"{self._who} refused {_MOST_REQUESTS} forms of the request")

    async def _post(self, client: AsyncOpenAI, sent: Sent) -> bytes | Failure:
        """Make one HTTP request.

        `create()` would check and copy the body and build objects of the reply. That is a third of
        the client's time (2.7 against 4.0 ms), and both are done here already.
        """
        try:
            return await client.post("/chat/completions", cast_to=bytes, body=sent.body)
        except self._sdk.APIStatusError as error:
            reply = error.response
            text = self._hide_key(reply.text)
            return failure_of(reply.status_code, reply.headers, text)
        except self._sdk.APIConnectionError as error:  # timeouts too
            cause = error.__cause__ or error
            why = f"no reply from {self._who}: {type(cause).__name__}: {cause}"
        # Raised outside the except block: the client's exception holds the request and its key.
        raise JudgeUnavailableError(self._hide_key(why))

    def _observe(self, sent: Sent, completion: Completion) -> None:
        if "logprobs" in sent.body:
            given = any(choice.tokens for choice in completion.choices)
            self._endpoint.observe("logprobs", given=given)
        if "n" in sent.body:
            self._endpoint.observe("n", given=len(completion.choices) >= sent.body["n"])
        if "response_format" in sent.body and completion.finish_reason == "stop":
            given = not is_without_json(sent, completion.choices[0])
            self._endpoint.observe("response_format", given=given)

    def _hide_key(self, text: str) -> str:
        key = self._key.get_secret_value()
        return text.replace(key, "***") if key != _NO_KEY else text


def _version(defaults: Defaults) -> str:
    """Return all that answers depend on besides model and endpoint: `1`, and the settings."""
    given = {
        "temperature": defaults.temperature,
        "seed": defaults.seed,
        "max_tokens": defaults.max_tokens,
    }
    parts = ["1", *(f"{name}={value}" for name, value in given.items() if value is not None)]
    if defaults.extra_body:
        canonical = json.dumps(defaults.extra_body, sort_keys=True)
        parts.append(f"extra={hashlib.sha256(canonical.encode()).hexdigest()[:8]}")
    return ";".join(parts)


def _client(kind: type[AsyncOpenAI], key: SecretStr, base_url: str, timeout: float) -> AsyncOpenAI:
    return kind(
        api_key=key.get_secret_value(),
        base_url=base_url,
        timeout=timeout,  # a number: openai 2 and 3 have different Timeout classes
        max_retries=0,  # only `ThrottledModel` retries
    )


def _check_numbers(timeout: float, temperature: float | None, max_tokens: int | None) -> None:
    if type(timeout) not in (int, float) or not 0 < timeout < math.inf:
        raise ConfigurationError("timeout", timeout, "should be a number of seconds above 0")
    if temperature is not None and not 0 <= temperature < math.inf:
        raise ConfigurationError("temperature", temperature, "should be at least 0")
    if max_tokens is not None and max_tokens < 1:
        raise ConfigurationError("max_tokens", max_tokens, "should be at least 1")


def _checked_url(url: str) -> str:
    parts = urlsplit(url)
    if "@" in parts.netloc:
        shown = f"{parts.scheme}://***@{parts.hostname}"
        raise ConfigurationError("base_url", shown, "contains a password; pass `api_key` instead")
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ConfigurationError("base_url", url, "should begin with http:// or https://")
    return url.rstrip("/")


def _key_for(given: str | None, *, needed: bool) -> SecretStr:
    key = (os.environ.get("OPENAI_API_KEY", "") if given is None else given).strip()
    if not key and needed:
        raise ConfigurationError(
            "api_key", given, "is missing: pass it, or set the environment variable OPENAI_API_KEY"
        )
    if not (key.isascii() and key.isprintable()):
        raise ConfigurationError("api_key", "***", "has characters that an HTTP header cannot")
    return SecretStr(key or _NO_KEY)


# --- One HTTP client per event loop

_Client = tuple["AsyncOpenAI", AsyncGenerator[None, None]]
_Kept = dict[asyncio.AbstractEventLoop, _Client]
_AT_EXIT = 1.0  # seconds to wait, at exit, for the loop of another thread


class LoopClients(_process.ProcessObserver):
    """Makes one client per event loop, and closes it in its loop.

    Each client is kept by an async generator, because a loop that ends normally (`asyncio.run`)
    closes its generators first. A loop that keeps running closes the client when this object is
    dropped; the library's own loop, in a daemon thread, closes it when the process ends. A loop
    that was closed in any other way leaves its sockets to the garbage collector.
    """

    def __init__(self, make: Callable[[], AsyncOpenAI]) -> None:
        self._make = make
        self._lock = threading.Lock()
        # Weak keys would not help: a client refers to its loop. `get` drops closed loops.
        self._kept: _Kept = {}
        self._of_parent: tuple[object, ...] = ()
        # The finalizers hold the clients, so that one garbage collection cannot take the model
        # and its open sockets together. Of the two, the later runs first and leaves the other
        # nothing to do; at exit only the first one runs.
        finalize(self, _close_and_wait, self._kept)
        finalize(self, _close_soon, self._kept).atexit = False
        _process.register(self)

    def after_fork(self) -> None:
        """Leave the parent's clients alone: their loops seem to run here, but have no thread."""
        self._of_parent = (self._of_parent, dict(self._kept))
        self._kept.clear()

    async def get(self) -> AsyncOpenAI:
        """Return the running loop's client."""
        loop = asyncio.get_running_loop()
        kept = self._kept.get(loop)
        if kept is not None:
            return kept[0]
        client = self._make()
        keeper = _closed_at_the_end(client)
        with self._lock:
            closed = [other for other in self._kept if other.is_closed()]
            left = [self._kept.pop(other)[0] for other in closed]
            self._kept[loop] = (client, keeper)
        for old in left:
            _give_up(old)
        await anext(keeper)
        return client

    async def aclose(self) -> None:
        """Close the running loop's client; the next request makes a new one."""
        with self._lock:
            kept = self._kept.pop(asyncio.get_running_loop(), None)
        if kept is not None:
            await kept[1].aclose()


async def _closed_at_the_end(client: AsyncOpenAI) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await client.close()


def _give_up(client: AsyncOpenAI) -> None:
    """Mark the client of a closed loop as closed, as far as possible without that loop.

    The SDK's client would otherwise close itself as a task of the loop that runs when it is
    collected, and log an error about its own loop.
    """
    closing = client.close()
    with contextlib.suppress(StopIteration, RuntimeError):
        closing.send(None)
    with contextlib.suppress(RuntimeError):
        closing.close()


async def _close(keeper: AsyncGenerator[None, None]) -> None:
    await keeper.aclose()


def _close_soon(kept: _Kept) -> None:
    _start_closing(kept)


def _close_and_wait(kept: _Kept) -> None:
    for closed in _start_closing(kept):
        closed.wait(_AT_EXIT)


def _start_closing(kept: _Kept) -> list[threading.Event]:
    """Have each running loop close its client; return an event for each that is set when done."""
    begun = []
    while kept:
        loop, (_, keeper) = kept.popitem()
        if loop.is_running():
            closed = threading.Event()
            with contextlib.suppress(RuntimeError):  # the loop was closed just now
                loop.call_soon_threadsafe(_begin, loop, keeper, closed)
                begun.append(closed)
    return begun


_closing: set[asyncio.Task[None]] = set()  # a loop refers to its tasks weakly


def _begin(
    loop: asyncio.AbstractEventLoop, keeper: AsyncGenerator[None, None], closed: threading.Event
) -> None:
    task = loop.create_task(_close(keeper))
    _closing.add(task)
    task.add_done_callback(_closing.discard)
    task.add_done_callback(lambda _: closed.set())
