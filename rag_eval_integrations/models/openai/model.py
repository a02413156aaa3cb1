"""`OpenAIModel`: asks any OpenAI-compatible endpoint, and learns what it can do."""

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


# --- One HTTP client for each event loop, closed with its loop


_Client = tuple["AsyncOpenAI", AsyncGenerator[None, None], int]  # and the process it is of
_Kept = dict[asyncio.AbstractEventLoop, _Client]
_AT_EXIT = 1.0  # seconds that the end of the process waits for another thread's loop


class LoopClients:
    """Makes a client where there is none for the running loop, and closes it in that loop.

    Each client is kept by an async generator, because a loop that ends in order (`asyncio.run`)
    closes its generators while it still can; a loop that lives on closes the client when this
    object is dropped; the library's own loop, a daemon thread, does so when the process ends.
    A loop that was closed without any of these leaves its sockets to the garbage collector.
    """

    def __init__(self, make: Callable[[], AsyncOpenAI]) -> None:
        self._make = make
        self._lock = threading.Lock()
        # Weak keys would be of no use: a client refers to its loop. Closed loops are swept.
        self._kept: _Kept = {}
        # The finalizers hold the clients, so that one garbage collection cannot take the judge
        # and its open sockets together. Of two, the later runs first and leaves the other
        # nothing to do; at the end of the process only the first runs.
        finalize(self, _close_and_wait, self._kept)
        finalize(self, _close_soon, self._kept).atexit = False

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
            self._kept[loop] = (client, keeper, os.getpid())
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
    """Mark the client of a closed loop as closed, as far as that goes without the loop.

    The SDK's client would otherwise close itself as a task of whatever loop runs when it is
    collected, and log an error about the one that is gone.
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
    """Have each running loop close its client; events tell when it has."""
    begun = []
    while kept:
        loop, (_, keeper, process) = kept.popitem()
        # In the child of a fork the parent's loops seem to run, but have no thread.
        if loop.is_running() and process == os.getpid():
            closed = threading.Event()
            with contextlib.suppress(RuntimeError):  # it was closed just now
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


_DEFAULT_URL = "https://api.openai.com/v1"
_NO_KEY = "EMPTY"  # the client insists on a key, servers on one's own machine ask for none
# More than there are things to refuse: an endpoint that always finds one more does not loop us.
_MOST_REQUESTS = 16


class OpenAIModel:
    """A model behind an OpenAI-compatible chat endpoint, as a `Model`.

    What the endpoint refuses is left out from then on and said in `Completion.warnings`. Nothing
    is retried here: wrap it in `ThrottledModel`. May be used from several loops and threads.

    Args:
        model: the endpoint's name for the model (Azure: of the deployment).
        base_url: URL up to and with `/v1`; by default OPENAI_BASE_URL, else OpenAI's.
        api_key: by default OPENAI_API_KEY. An endpoint given by `base_url` needs none.
        timeout: seconds for one answer in all, however often it takes asking to learn what the
            endpoint refuses.
        temperature: for requests that name none; None leaves it to the model, which is what
            reasoning models require.
        seed: for requests that name none.
        max_tokens: for requests that name none.
        extra_body: more fields of the request's body, such as
            `{"reasoning_effort": "low"}` or vLLM's `chat_template_kwargs`; sent as they are.

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
        # Imported now, which takes a second, and not at the first request: that would block the
        # loop. Not at the top: `import rag_eval_integrations` must not load it.
        import openai  # noqa: PLC0415

        self._sdk = openai
        # Not a method of self: without a cycle the clients close as soon as the judge is dropped.
        self._clients = LoopClients(
            partial(_client, openai.AsyncOpenAI, self._key, self.base_url, self._timeout)
        )

    @property
    def capabilities(self) -> Capabilities:
        """What was learned about the endpoint so far; shared by all judges of this process."""
        return self._endpoint.capabilities

    def __repr__(self) -> str:
        parts = urlsplit(self.base_url)  # a query may hold a key
        shown = f"{parts.scheme}://{parts.netloc}{parts.path}"
        return f"OpenAIModel({self.model!r}, base_url={shown!r})"

    async def complete(self, request: CompletionRequest) -> Completion:
        """Ask the endpoint, by one HTTP request unless it refuses something new.

        Raises:
            JudgeUnavailableError: 429, 5xx, no connection, no answer in time, a broken reply.
            JudgeRejectedError: a wrong key, an unknown model, a request that it will not take.
        """
        try:
            async with asyncio.timeout(self._timeout):
                return await self._complete(request)
        except TimeoutError:
            raise JudgeUnavailableError(
                f"{self._who} did not answer within {self._timeout:g} s"
            ) from None

    async def aclose(self) -> None:
        """Close the running loop's connections, which otherwise close with the loop."""
        await self._clients.aclose()

    async def _complete(self, request: CompletionRequest) -> Completion:
        client = await self._clients.get()
        with self._endpoint.turns() as turns:
            refused = False
            for requests in range(1, _MOST_REQUESTS + 1):
                await turns.wait(refused=refused)
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
                # Not new, and known when it was sent: there is nothing left to leave out.
                if not self._endpoint.learn(lesson) and self._endpoint.capabilities is known:
                    raise reply.error(self._who)
                refused = True
        raise JudgeRejectedError(f"{self._who} refused {_MOST_REQUESTS} forms of the request")

    async def _post(self, client: AsyncOpenAI, sent: Sent) -> bytes | Failure:
        """Make one HTTP request.

        `create()` would check and copy the body and build objects of the reply: a third of the
        client's time (2.7 against 4.0 ms), for a body that is made here and read here.
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
        # Raised out here without the client's exception, which holds the request and its key.
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
    """Name what else an answer depends on: `1`, and the settings that are not the endpoint's."""
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
        max_retries=0,  # one layer retries, and it is not this one
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
        raise ConfigurationError("base_url", shown, "holds a password; pass `api_key` instead")
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ConfigurationError("base_url", url, "should begin with http:// or https://")
    return url.rstrip("/")


def _key_for(given: str | None, *, needed: bool) -> SecretStr:
    key = (os.environ.get("OPENAI_API_KEY", "") if given is None else given).strip()
    if not key and needed:
        raise ConfigurationError(
            "api_key", given, "is missing: pass it, or set the variable OPENAI_API_KEY"
        )
    if not (key.isascii() and key.isprintable()):
        raise ConfigurationError("api_key", "***", "holds characters that no HTTP header can")
    return SecretStr(key or _NO_KEY)
