"""HTTP clients of a model, one per event loop and closed with it, or a user's own; `Secrets`."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import json
import re
import sys
import threading
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from weakref import finalize

from pydantic import JsonValue, SecretStr

from rag_eval_integrations import _process
from rag_eval_integrations.errors import ConfigurationError, JudgeRejectedError, without_secrets
from rag_eval_integrations.models.openai._address import Address

if TYPE_CHECKING:
    from openai import AsyncOpenAI


MOST_BYTES = 8 * 2**20
"""Bytes of a reply that are read: above the 3 MB of 2,048 tokens with 20 log-probabilities each."""
_MOST_ERROR_BYTES = 64 * 2**10
"""Bytes of an error reply that are read."""
_MOST_REDIRECTS = 3
"""Redirects of a request that are followed; each takes the prompt and the key along."""


def _bounded_http_client(sdk: Any) -> Any:
    """Make the SDK's HTTP client, with limits of what a server can make it do.

    A reply is cut after `MOST_BYTES`, and its connection closed. They are counted after
    decompression: 300 kB of gzip can hold 300 MB. A redirect is followed only where it repeats the
    request at the same host; elsewhere it would carry keys in headers, and texts, to another one.
    """
    base = _stream_class(sdk)

    class Cut(base):  # type: ignore[misc, valid-type]
        """A reply's stream, decompressed, that ends after a number of bytes."""

        def __init__(self, stream: Any, most: int, encoding: str) -> None:
            self._stream = stream
            self._left = most
            self._inflated = Inflated() if encoding in _INFLATED else None

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for part in self._stream:
                for piece in (part,) if self._inflated is None else self._inflated.pieces(part):
                    yield piece[: self._left]
                    self._left -= len(piece)
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
        encoding = response.headers.pop("content-encoding", "").strip().lower()
        short = len(announced) < 9 and announced.isdigit() and int(announced) <= most
        if not short or encoding in _INFLATED:  # costs a tenth of a request's time
            response.stream = Cut(response.stream, most, encoding)

    return sdk.DefaultAsyncHttpxClient(
        event_hooks={"response": [bound]},
        headers={"accept-encoding": "gzip, deflate"},
        max_redirects=_MOST_REDIRECTS,
    )


MOVED = "rag_eval_moved"
"""Extension of a reply that is a redirect elsewhere: where to."""


def _stays(response: Any) -> bool:
    """Whether a redirect repeats the request, with its method, at the same host.

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


_INFLATED = ("gzip", "x-gzip", "deflate")
"""Encodings that are asked for. A reply in another one is not decompressed, and so not JSON."""
_PIECE = 64 * 2**10


class Inflated:
    """Decompresses a stream of gzip or deflate, a bounded piece at a time."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, by its header
        self._begun = False

    def pieces(self, part: bytes) -> Iterator[bytes]:
        """Yield the content of a part.

        Raises:
            zlib.error: the stream is damaged.
        """
        while True:
            try:
                piece = self._inflate.decompress(part, _PIECE)
            except zlib.error:
                if self._begun:
                    raise
                self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)  # deflate without a header
                piece = self._inflate.decompress(part, _PIECE)
            self._begun = True
            part = self._inflate.unconsumed_tail
            if piece:
                yield piece
            if not part and len(piece) < _PIECE:
                return


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


def maker(
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
            made: AsyncOpenAI = sdk.AsyncAzureOpenAI(
                api_version=address.api_version, default_query=query or None, **settings
            )
            return made
        if address.api_version is not None:
            query["api-version"] = address.api_version
        return sdk.AsyncOpenAI(default_query=query or None, **settings)  # type: ignore[no-any-return]

    return make


def given(
    sdk: Any, client: AsyncOpenAI | Callable[[], AsyncOpenAI]
) -> tuple[AsyncOpenAI, GivenClient | LoopClients]:
    """Return a user's client, or the first one that the user's function makes, and all of them.

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
        made = waiting.pop() if waiting else client()
        return made.with_options(max_retries=0)

    return first, LoopClients(make)


def secrets_of(client: AsyncOpenAI, body: Mapping[str, JsonValue] | None = None) -> Secrets:
    """Return what to hide of a user's client: key, token, its own headers and query.

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
    return hidden(given, headers=headers, query=query, body=body)


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
            _give_up(old)
        await anext(keeper)
        return client

    async def aclose(self) -> None:
        """Close the running loop's client, if it has one; the next request makes a new one."""
        with self._lock:
            kept = self._kept.pop(asyncio.get_running_loop(), None)
        if kept is not None:
            await kept[1].aclose()


async def _closed_at_the_end(client: AsyncOpenAI) -> AsyncGenerator[None, None]:
    """Keep a client open for as long as this generator is; close it with it."""
    try:
        yield
    finally:
        await client.close()


def _give_up(client: AsyncOpenAI) -> None:
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
    """Have each running loop close its client; return an event for each that is set when done.

    Empties `kept`; clients of loops that do not run are dropped without an event.
    """
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
    """Close a client on its loop, and set the event when done."""
    task = loop.create_task(_close(keeper))
    _closing.add(task)
    task.add_done_callback(_closing.discard)
    task.add_done_callback(lambda _: closed.set())


# --- The values of a user's settings that no message, record or `repr` may show


_LONG = 8
"""Characters from which a value is replaced wherever it stands."""
_MARK = "***"
_SECRET_NAME = re.compile(r"(?i)key(?!w)|token(?!iz)|secret|passw|auth(?!or(?!i))|credent|cookie")
"""Not the words keyword, tokenizer and author, whose values stand in answers."""
_WORDS = re.compile(r"[a-z]+(?:[ _-][a-z]+)*")
"""An ordinary word, or several: as an extra field it is a setting, such as `json_object`."""


class Secrets:
    """Replaces secrets in texts; its own `repr` shows none.

    A value of eight characters or more is replaced wherever it stands, except inside longer words
    if it is an ordinary word itself. A shorter one is replaced only where it stands as a value:
    after `Bearer`, `:` or `=`, or in quotes. A key such as "x" would otherwise star out "exist".

    Args:
        values: keys, passwords and tokens.
        settings: values that may be secrets, but may also be the name of a model or a page. They
            are hidden in errors, and left in answers.
    """

    def __init__(self, values: Iterable[str], settings: Iterable[str] = ()) -> None:
        secret = _forms(values)
        every = secret | _forms(value for value in settings if _is_token(value))
        self._anywhere = sorted(filter(_is_token, every), key=len, reverse=True)
        self._escaped = _escaped_form(self._anywhere)
        self._escaped_bytes = _escaped_form([f for f in self._anywhere if f in secret])
        self._bytes = [form.encode() for form in self._anywhere if form in secret]
        bounded = sorted(secret.difference(self._anywhere), key=len, reverse=True)
        words = "|".join(re.escape(form) for form in bounded if len(form) >= _LONG)
        short = "|".join(re.escape(form) for form in bounded if len(form) < _LONG)
        self._as_word = re.compile(rf"(?<!\w)(?:{words})(?!\w)") if words else None
        self._as_value = (
            re.compile(rf"(Bearer\s{{1,8}}|[:=]\s{{0,8}}[\"'`]?|[\"'`])(?:{short})(?![\w-])")
            if short
            else None
        )

    def __repr__(self) -> str:
        return f"Secrets({_MARK})"

    def hide(self, text: str) -> str:
        """Replace the secrets in a text by `***`."""
        for secret in self._anywhere:
            text = text.replace(secret, _MARK)
        if self._escaped is not None and "\\" in text:
            text = re.sub(self._escaped, _MARK, text)
        if self._as_word is not None:
            text = self._as_word.sub(_MARK, text)
        if self._as_value is not None:
            text = self._as_value.sub(rf"\1{_MARK}", text)
        return text

    def hide_in_reply(self, content: bytes) -> bytes:
        """Replace unmistakable secrets in a reply, which a server may repeat from the request.

        These are `values`, not `settings`, of eight characters or more that are not ordinary words.
        """
        for secret in self._bytes:
            if secret in content:
                content = content.replace(secret, _MARK.encode())
        if self._escaped_bytes is not None and _MAY_ESCAPE.search(content):
            content = re.sub(self._escaped_bytes.encode(), _MARK.encode(), content)
        return content


_MAY_ESCAPE = re.compile(rb"\\/|\\u00[2-7]", re.IGNORECASE)


def _escaped_form(secrets: Iterable[str]) -> str | None:
    r"""Return a pattern of secrets as JSON may write them, also inside a string of other JSON.

    PHP writes `/` as `\/`, .NET `+` as `\u002B`; whoever repeats that doubles the backslashes. None
    when there is none to write; those with characters beyond ASCII are left out.
    """
    forms = [
        "".join(rf"(?:\\{{0,8}}{re.escape(c)}|\\{{1,8}}u(?i:{ord(c):04x}))" for c in secret)
        for secret in secrets
        if secret.isascii()
    ]
    return "|".join(forms) or None


def _is_token(text: str) -> bool:
    """Whether a text has 8 characters or more and is not made of ordinary words, as keys are."""
    return len(text) >= _LONG and not _WORDS.fullmatch(text)


def _forms(values: Iterable[str]) -> set[str]:
    """Return values as they stand in text, in JSON and in a URL.

    Empty values and `EMPTY`, the key of servers without one, are left out.
    """
    known = {value for value in values if value and value != "EMPTY"}
    return {f for v in known for f in (v, json.dumps(v)[1:-1], quote(v, safe=""))}


def hidden(
    values: Iterable[str],
    *,
    headers: Mapping[str, str] | None = None,
    query: Mapping[str, str] | None = None,
    body: Mapping[str, JsonValue] | None = None,
) -> Secrets:
    """Collect what to hide of a model's settings.

    A text whose field name tells a secret, such as one with `key` or `token`, is hidden everywhere;
    other settings only in errors, and only if they look like a key.

    Args:
        values: keys, passwords and tokens.
        headers: of every request; a name such as `Authorization` tells a secret.
        query: of the URL.
        body: extra fields of the request.
    """
    fields = [*_named(body or {}), *_named({**(query or {})})]
    for name, value in (headers or {}).items():
        fields += [(name, part) for part in _parts(value)]
    secret = [value for name, value in fields if _SECRET_NAME.search(name)]
    return Secrets([*values, *secret], [value for _, value in fields])


def _named(value: JsonValue | Mapping[str, JsonValue], name: str = "") -> Iterator[tuple[str, str]]:
    """Yield each text with the names of the fields that hold it, at any depth.

    Numbers, booleans and nulls are left out.
    """
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _named(inner, f"{name} {key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _named(inner, name)


def _parts(header: str) -> Iterator[str]:
    """Yield a header's value, what stands behind a word such as `Bearer`, and Basic's password."""
    yield header
    scheme, _, rest = header.partition(" ")
    if rest.strip():
        yield rest.strip()
    if scheme.lower() == "basic":
        with contextlib.suppress(binascii.Error, ValueError):
            decoded = base64.b64decode(rest, validate=True).decode()
            yield from (decoded, decoded.partition(":")[2])
