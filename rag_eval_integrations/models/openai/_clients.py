"""HTTP clients of a model, one per event loop and closed with it, or a user's own."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import finalize

from pydantic import JsonValue, SecretStr

from rag_eval_integrations import _process
from rag_eval_integrations.errors import ConfigurationError, JudgeRejectedError, without_secrets
from rag_eval_integrations.models.openai._address import Address
from rag_eval_integrations.models.openai._secrets import Secrets, secrets_in_settings

if TYPE_CHECKING:
    from openai import AsyncOpenAI


MOST_BYTES = 8 * 2**20
"""Bytes of a reply that are read: above the 3 MB of 2,048 tokens with 20 log-probabilities each."""
_MOST_ERROR_BYTES = 64 * 2**10
"""Bytes of an error reply that are read."""
_MOST_REDIRECTS = 3
"""Redirects of a request that are followed; each takes the prompt and the key along."""


def _bounded_http_client(sdk: Any) -> Any:
    """Make the SDK's HTTP client, with limits on replies and redirects.

    A reply is cut after `MOST_BYTES`, and its connection closed. Replies are asked for without
    compression, since 300 kB of gzip can hold 300 MB; one that is compressed is not read. A
    redirect is followed only where it repeats the request at the same host; elsewhere it would
    carry keys in headers, and texts, to another one.
    """
    base = _stream_class(sdk)

    class Cut(base):  # type: ignore[misc, valid-type]
        """A reply's stream, that ends after a number of bytes."""

        def __init__(self, stream: Any, most: int) -> None:
            self._stream = stream
            self._left = most

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for part in self._stream:
                yield part[: self._left]
                self._left -= len(part)
                if self._left <= 0:
                    return

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def bound(response: Any) -> None:
        """Limit a reply's size, and note a refused redirect.

        The header `location` of such a redirect is removed and kept as the extension `MOVED`.
        """
        if response.has_redirect_location and not _stays(response):
            # Without this header it is an error reply, and this says what kind of.
            target = response.headers.pop("location")
            response.extensions[MOVED] = without_secrets(target)
        # One byte more than the limit shows that there was more.
        most = MOST_BYTES + 1 if response.status_code < 400 else _MOST_ERROR_BYTES
        announced = response.headers.get("content-length", "")
        response.headers.pop("content-encoding", None)
        short = len(announced) < 9 and announced.isdigit() and int(announced) <= most
        if not short:  # costs a tenth of a request's time
            response.stream = Cut(response.stream, most)

    return sdk.DefaultAsyncHttpxClient(
        event_hooks={"response": [bound]},
        headers={"accept-encoding": "identity"},
        max_redirects=_MOST_REDIRECTS,
    )


MOVED = "rag_eval_moved"
"""Extension of a reply that is a redirect elsewhere: where to."""


def _stays(response: Any) -> bool:
    """Whether a redirect repeats the request at the same host with the same method.

    A step from http to https counts as the same host, where neither URL has a port.
    """
    if response.status_code not in (307, 308):
        return False  # a GET would follow, which no chat endpoint answers
    asked = response.request.url
    try:
        target = asked.join(response.headers["location"])
    except Exception:  # noqa: BLE001 -- the client's own, of its package: it is not a URL
        return False
    if target.host != asked.host:
        return False
    upgraded = (asked.scheme, target.scheme) == ("http", "https")
    if upgraded and asked.port is None and target.port is None:
        return True
    return bool((asked.scheme, asked.port) == (target.scheme, target.port))


def _stream_class(sdk: Any) -> Any:
    """Return the base class of streams: of httpx with openai 2, of httpx2 with openai 3."""
    kinds = sdk.DefaultAsyncHttpxClient.__mro__
    client = next(kind for kind in kinds if kind.__name__ == "AsyncClient")
    return sys.modules[client.__module__.partition(".")[0]].AsyncByteStream


class GivenClient:
    """A user's client, for the one event loop that its connections belong to; not closed."""

    def __init__(self, client: AsyncOpenAI) -> None:
        # A copy shares the connections; only `ThrottledModel` retries.
        self._client = client.with_options(max_retries=0)
        self._loop: asyncio.AbstractEventLoop | None = None

    async def get(self) -> AsyncOpenAI:
        """Return the client.

        Raises:
            JudgeRejectedError: it was used on another event loop before.
        """
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        if self._loop is not loop:
            raise JudgeRejectedError(
                "the client given as `client` belongs to the event loop that used it first, and "
                "another one asks now; pass a function that makes a client: it is called once per "
                "loop, as in client=lambda: AsyncOpenAI(…)"
            )
        return self._client

    async def aclose(self) -> None:
        """Leave it open: it is the user's."""


# --- Made by settings, or given by a user


def client_maker(
    sdk: Any, address: Address, key: SecretStr, headers: Mapping[str, str], timeout: float
) -> Callable[[], AsyncOpenAI]:
    """Return a function that makes a client of these settings."""

    def make() -> AsyncOpenAI:
        """Make a client, Azure's where the address is Azure's; it does not retry by itself."""
        settings: dict[str, Any] = {
            "api_key": key.get_secret_value(),
            "base_url": address.url,
            "timeout": timeout,  # a number: openai 2 and 3 have different Timeout classes
            "max_retries": 0,  # only `ThrottledModel` retries
            "default_headers": dict(headers) or None,
            "http_client": _bounded_http_client(sdk),
        }
        query = dict(address.query)
        if address.azure:
            azure_client: AsyncOpenAI = sdk.AsyncAzureOpenAI(
                api_version=address.api_version, default_query=query or None, **settings
            )
            return azure_client
        if address.api_version is not None:
            query["api-version"] = address.api_version
        return sdk.AsyncOpenAI(default_query=query or None, **settings)  # type: ignore[no-any-return]

    return make


def user_clients(
    sdk: Any, client: AsyncOpenAI | Callable[[], AsyncOpenAI]
) -> tuple[AsyncOpenAI, GivenClient | LoopClients]:
    """Return a user's first client, and the holder that has a client for each event loop.

    The user's function is called once here, and its client serves the first event loop.

    Raises:
        ConfigurationError: it is synchronous, or neither a client nor a function that makes one.
    """
    if isinstance(client, sdk.AsyncOpenAI):
        return client, GivenClient(client)
    if isinstance(client, sdk.OpenAI):
        why = "is synchronous; pass an AsyncOpenAI or AsyncAzureOpenAI"
        raise ConfigurationError("client", type(client).__name__, why)
    first: Any = client() if callable(client) else client
    if not callable(client) or not isinstance(first, sdk.AsyncOpenAI):
        why = "is not an AsyncOpenAI or AsyncAzureOpenAI, nor a function that makes one"
        raise ConfigurationError("client", type(first).__name__, why)
    waiting = [first]

    def make() -> AsyncOpenAI:
        """Return the user's client, or a copy for another loop."""
        own = waiting.pop() if waiting else client()
        return own.with_options(max_retries=0)

    return first, LoopClients(make)


def secrets_of(client: AsyncOpenAI, body: Mapping[str, JsonValue] | None = None) -> Secrets:
    """Collect the secrets of a user's client: key, token, its own headers and query.

    Standard headers such as `user-agent`, and the API version, are not hidden.
    """
    headers = {
        name: value
        for name, value in client.default_headers.items()
        if isinstance(value, str) and not _PLAIN_HEADER.match(name)
    }
    query = {name: str(value) for name, value in client.default_query.items()}
    query.pop("api-version", None)
    keys = (client.api_key, vars(client).get("_azure_ad_token"))
    given = [key for key in keys if isinstance(key, str)]
    return secrets_in_settings(given, headers=headers, query=query, body=body)


_PLAIN_HEADER = re.compile(r"accept|content-type|user-agent|x-stainless", re.IGNORECASE)


def version_of(client: AsyncOpenAI) -> str | None:
    """Return the API version of a user's Azure client; None of another one."""
    version = client.default_query.get("api-version")
    return version if isinstance(version, str) else None


# --- One client per event loop

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
        finalize(self, _start_closing, self._kept).atexit = False
        _process.register(self)

    def after_fork(self) -> None:
        """Leave the parent's clients alone: their loops seem to run here, but have no thread."""
        self._of_parent = (self._of_parent, dict(self._kept))
        self._kept.clear()
        self._lock = threading.Lock()

    async def get(self) -> AsyncOpenAI:
        """Return the running loop's client; made at the loop's first request.

        Clients of loops that were closed are dropped then.
        """
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
            _abandon(old)
        await anext(keeper)
        return client

    async def aclose(self) -> None:
        """Close the running loop's client, if it has one; the next request makes a new one."""
        with self._lock:
            kept = self._kept.pop(asyncio.get_running_loop(), None)
        if kept is not None:
            await kept[1].aclose()


async def _closed_at_the_end(client: AsyncOpenAI) -> AsyncGenerator[None, None]:
    """Keep a client open until this generator is closed."""
    try:
        yield
    finally:
        await client.close()


def _abandon(client: AsyncOpenAI) -> None:
    """Run a client's `close()` up to its first wait, which marks it as closed, and drop the rest.

    The rest needs the loop that the client lived on, which is closed. A client that is not marked
    would close itself, when it is collected, as a task of whatever loop runs then, and log an
    error.
    """
    closing = client.close()
    with contextlib.suppress(StopIteration, RuntimeError):
        closing.send(None)
    with contextlib.suppress(RuntimeError):
        closing.close()


async def _close(keeper: AsyncGenerator[None, None]) -> None:
    await keeper.aclose()


def _close_and_wait(kept: _Kept) -> None:
    """Close the clients, wait up to a second for each, and empty `kept`."""
    for closed in _start_closing(kept):
        closed.wait(_AT_EXIT)


def _start_closing(kept: _Kept) -> list[threading.Event]:
    """Have each running loop close its client; return the events that are set when done.

    Empties `kept`; clients of loops that do not run are dropped without an event.
    """
    begun = []
    while kept:
        loop, (_, keeper) = kept.popitem()
        if loop.is_running():
            closed = threading.Event()
            with contextlib.suppress(RuntimeError):  # the loop was closed just now
                loop.call_soon_threadsafe(_close_on_loop, loop, keeper, closed)
                begun.append(closed)
    return begun


_closing: set[asyncio.Task[None]] = set()  # a loop refers to its tasks weakly


def _close_on_loop(
    loop: asyncio.AbstractEventLoop, keeper: AsyncGenerator[None, None], closed: threading.Event
) -> None:
    """Close a client on its loop, and set the event when done."""
    task = loop.create_task(_close(keeper))
    _closing.add(task)
    task.add_done_callback(_closing.discard)
    task.add_done_callback(lambda _: closed.set())
