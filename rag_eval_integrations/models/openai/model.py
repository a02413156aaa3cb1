"""`OpenAIModel`: asks any OpenAI-compatible endpoint, and learns its capabilities.

It negotiates with the endpoint until a form of the request is accepted.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import platform
import re
import zlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import JsonValue, SecretStr

from rag_eval_integrations.errors import (
    ConfigurationError,
    JudgeOutputError,
    JudgeRejectedError,
    JudgeUnavailableError,
    whole_number,
    without_secrets,
)
from rag_eval_integrations.models.completion import Completion, CompletionRequest
from rag_eval_integrations.models.openai._address import (
    Address,
    address_of,
    environment_problem,
    proxy_of,
    proxy_passwords,
    why_unreachable,
)
from rag_eval_integrations.models.openai._bodies import (
    Defaults,
    Sent,
    blocked_completion,
    body_of,
    completion_of,
    is_without_json,
)
from rag_eval_integrations.models.openai._capabilities import Capabilities, endpoint_of
from rag_eval_integrations.models.openai._clients import (
    MOST_BYTES,
    MOVED,
    GivenClient,
    LoopClients,
    client_maker,
    secrets_of,
    user_clients,
    version_of,
)
from rag_eval_integrations.models.openai._failures import ErrorReply, failure_of, lesson_of
from rag_eval_integrations.models.openai._secrets import secrets_in_settings
from rag_eval_integrations.records import Usage
from rag_eval_integrations.records._json import is_amount

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_DEFAULT_URL = "https://api.openai.com/v1"
_NO_KEY = "EMPTY"  # the client requires a key, local servers do not
# More than there are parameters: an endpoint that refuses everything cannot keep us in a loop.
_MOST_REQUESTS = 16
_FROM_A_PROXY = (407, 502, 503, 504)
"""Statuses that a proxy on the way gives by itself."""


class OpenAIModel:
    """A model behind an OpenAI-compatible chat endpoint.

    Parameters that the endpoint refuses are not sent any more; `Completion.warnings` names them.
    Nothing is retried here: wrap it in `ThrottledModel`. May be used from several loops and
    threads. Keys, header values and the URL's query appear in no message, record or `repr`.

    Args:
        model: the endpoint's name for the model (Azure: of the deployment).
        base_url: URL up to and including `/v1`, or of an Azure resource; by default
            OPENAI_BASE_URL, else OpenAI's. A query is sent with every request.
        api_key: by default OPENAI_API_KEY (Azure: AZURE_OPENAI_API_KEY). An endpoint given by
            `base_url` needs none.
        timeout: seconds for one answer, above 0, including requests that the endpoint refuses.
        temperature: for requests without one, at least 0; None leaves it to the model, as
            reasoning models require.
        seed: for requests without one.
        max_tokens: for requests without one, from 1.
        extra_body: more fields of the request body, such as `{"reasoning_effort": "low"}` or vLLM's
            `chat_template_kwargs`; sent unchanged.
        default_headers: headers of every request, such as a gateway's; not part of cache keys.
        api_version: Azure's API version, such as `2024-10-21`; also read from `?api-version=` in
            `base_url`. Not needed for an Azure URL that ends in `/openai/v1`.
        client: an `AsyncOpenAI` or `AsyncAzureOpenAI` to ask through, instead of `base_url`,
            `api_key`, `default_headers` and `api_version`. It serves the one event loop that uses
            it first (with the sync facades, the library's own), and is not closed. Or a function
            that makes one: it is called once per event loop, and its clients are closed.

    Raises:
        ConfigurationError: for a wrong argument, a missing key, or an environment variable
            (certificates, proxy) that no connection can be made with.
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
        default_headers: Mapping[str, str] | None = None,
        api_version: str | None = None,
        client: AsyncOpenAI | Callable[[], AsyncOpenAI] | None = None,
    ) -> None:
        if type(model) is not str or not model.strip():
            raise ConfigurationError("model", model, "should name a model, as in 'gpt-4o-mini'")
        _check_numbers(timeout, temperature, max_tokens)
        self._defaults = Defaults(temperature, seed, max_tokens, _checked_body(extra_body))
        # Imported here, which takes a second, because at the first request it would block the
        # loop, and at the top `import rag_eval_integrations` would load it.
        import openai  # noqa: PLC0415

        # The client asks for it in a thread of its own at the first request. A child that is forked
        # meanwhile would wait for ever for a lock of Python's in there.
        platform.platform()
        self._sdk = openai
        self._own = client is None
        self._clients: GivenClient | LoopClients
        if client is None:
            given_url = base_url or os.environ.get("OPENAI_BASE_URL")
            self._address = address_of(given_url or _DEFAULT_URL, api_version)
            headers = _checked_headers(default_headers)
            key = _key_for(api_key, self._address, needed=given_url is None)
            problem = environment_problem()
            if problem is not None:
                raise ConfigurationError(*problem)
            self._secrets = secrets_in_settings(
                [
                    key.get_secret_value(),
                    os.environ.get("AZURE_OPENAI_AD_TOKEN", ""),
                    *proxy_passwords(),
                ],
                headers=headers,
                query=self._address.query,
                body=self._defaults.extra_body,
            )
            # Not a method of self: without a cycle the clients close as soon as the model is
            # dropped.
            self._clients = LoopClients(
                client_maker(openai, self._address, key, headers, float(timeout))
            )
        else:
            for field, value in (
                ("base_url", base_url),
                ("api_key", api_key),
                ("api_version", api_version),
                ("default_headers", default_headers),
            ):
                if value is not None:
                    raise ConfigurationError(field, "…", "is a setting of `client`; pass one")
            first, self._clients = user_clients(openai, client)
            url = without_secrets(str(first.base_url)).rstrip("/")
            self._address = Address(url, api_version=version_of(first))
            self._secrets = secrets_of(first, self._defaults.extra_body)
        self.base_url: str = self._address.url
        self.name = f"openai:{model}"
        self.model: str = model
        self._timeout = float(timeout)
        self.version = _version(self._defaults, self._address)
        self._endpoint = endpoint_of(self.base_url, model)
        self._who = f"{model} at {urlsplit(self.base_url).netloc}"

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities learned about the endpoint; shared by all models of this process."""
        return self._endpoint.capabilities

    def __repr__(self) -> str:
        version = self._address.api_version
        setting = "" if version is None else f", api_version={version!r}"
        return f"OpenAIModel({self.model!r}, base_url={self.base_url!r}{setting})"

    async def complete(self, request: CompletionRequest) -> Completion:
        """Ask the endpoint by one HTTP request; one more for each parameter that it newly refuses.

        A prompt that a content filter stops gives an empty answer with `content_filter`. A reply
        that is too long, or whose output the server could not read, is asked for once more.

        Raises:
            JudgeUnavailableError: 429, 5xx, no connection, no answer in time, a broken reply.
            JudgeRejectedError: a wrong key, an unknown model, a request that is refused.
            JudgeOutputError: twice, the server could not read its own model's output, or the reply
                was above 8 MB.
        """
        try:
            async with asyncio.timeout(self._timeout):
                return await self._complete(request)
        except TimeoutError:
            raise JudgeUnavailableError(
                f"{self._who} did not answer within {self._timeout:g} s"
            ) from None

    def not_sent(self, request: CompletionRequest) -> tuple[str, ...]:
        """Name nothing: what the endpoint refuses is a warning of the completion."""
        return ()

    async def aclose(self) -> None:
        """Close the connections of the running loop; otherwise they close with the loop.

        A client that was given as `client` stays open.
        """
        await self._clients.aclose()

    async def _complete(self, request: CompletionRequest) -> Completion:
        """Ask until a form of the request is accepted, or nothing is left to leave out.

        Raises:
            JudgeOutputError: a reply was too long or unreadable for its server, twice.
            JudgeRejectedError: the request is refused, or 16 forms of it.
            JudgeUnavailableError: no reply, or one that may be another later.
        """
        client = await self._client()
        with self._endpoint.negotiate() as wait:
            refused = asked_again = False
            for requests in range(1, _MOST_REQUESTS + 1):
                await wait(refused)
                known = self._endpoint.capabilities
                sent = body_of(self.model, request, self._defaults, known)
                reply = await self._post(client, sent)
                bad = _bad_reply(reply)
                if bad is not None:
                    if asked_again:
                        usage = Usage(requests=requests)
                        raise JudgeOutputError(f"{self._who} {bad}, twice", "", usage=usage)
                    asked_again = True
                    continue
                if isinstance(reply, bytes):
                    completion = completion_of(reply, sent, requests, self._who)
                    self._observe(sent, completion)
                    return completion
                if reply.blocked:
                    return blocked_completion(sent, requests)
                lesson = lesson_of(reply, sent)
                if lesson is None:
                    raise self._error(reply)
                # Known before the request was sent: there is nothing left to leave out.
                if not self._endpoint.learn(lesson) and self._endpoint.capabilities is known:
                    raise self._error(reply)
                refused = True
        raise JudgeRejectedError(f"{self._who} refused {_MOST_REQUESTS} forms of the request")

    async def _client(self) -> AsyncOpenAI:
        """Return the running loop's client.

        Raises:
            JudgeUnavailableError: none can be made, since the environment has changed.
            JudgeRejectedError: the user's client belongs to another event loop.
        """
        try:
            return await self._clients.get()
        except (OSError, ImportError, ValueError) as error:
            problem = environment_problem()
            why = (
                f"{type(error).__name__}" if problem is None else "`{}` = {!r} {}".format(*problem)
            )
        # The environment has changed since this model was made.
        raise JudgeUnavailableError(
            f"no connection to {self._who} can be made: {why}", connected=False
        )

    async def _post(self, client: AsyncOpenAI, sent: Sent) -> bytes | ErrorReply:
        """Make one HTTP request; return the body, or the error reply of a status from 300.

        `create()` would check and copy the body and build objects of the reply. That is a third of
        the client's time (2.7 against 4.0 ms), and both are done here already.

        Secrets in either are replaced by `***`.

        Raises:
            JudgeUnavailableError: no connection, no reply in time, or a damaged body.
            JudgeRejectedError: the endpoint redirects without end.
        """
        try:
            content = await client.post("/chat/completions", cast_to=bytes, body=sent.body)
            return self._secrets.hide_in_reply(content)
        except self._sdk.APIStatusError as error:
            reply = error.response
            moved = reply.extensions.get(MOVED)
            words = reply.text if moved is None else f"a redirect to {moved}, which is not followed"
            text = self._hide(client, words)
            return failure_of(reply.status_code, reply.headers, text)
        except zlib.error:
            why, connected, status = "its compressed body is damaged", False, 200
        except self._sdk.APIConnectionError as error:  # timeouts too
            proxy = proxy_of(self.base_url) if self._own else None
            why, connected = why_unreachable(error, self.base_url, proxy)
            status = None
        # Raised outside the except block: the client's exception holds the request and its key.
        if why.startswith("TooManyRedirects"):
            why = f"{self._who} redirects without end; is base_url {self.base_url!r} right?"
            raise JudgeRejectedError(why)
        why = self._hide(client, f"no reply from {self._who}: {why}")
        raise JudgeUnavailableError(why, status=status, connected=connected)

    def _error(self, failure: ErrorReply) -> Exception:
        """Make the exception of an error reply, with a hint about the URL or the proxy."""
        who = self._who
        if failure.status in _FROM_A_PROXY and self._own:
            proxy = proxy_of(self.base_url)
            who += "" if proxy is None else f", asked through the proxy {proxy},"
        return failure.error(who, self._address.hint(failure.status, failure.message))

    def _observe(self, sent: Sent, completion: Completion) -> None:
        """Record for the endpoint which accepted parameters had an effect.

        These are `logprobs`, `n` and, where the answer has text, `response_format`.
        """
        if "logprobs" in sent.body:
            given = any(choice.tokens for choice in completion.choices)
            self._endpoint.observe("logprobs", given=given)
        if "n" in sent.body:
            self._endpoint.observe("n", given=len(completion.choices) >= sent.body["n"])
        if "response_format" in sent.body and completion.text:
            given = not is_without_json(sent, completion.choices[0])
            self._endpoint.observe("response_format", given=given)

    def _hide(self, client: AsyncOpenAI, text: str) -> str:
        """Replace the secrets in a text."""
        text = self._secrets.hide(text)
        # A user's client may have fetched a token since.
        return text if self._own else secrets_of(client).hide(text)


def _bad_reply(reply: bytes | ErrorReply) -> str | None:
    """Say why a reply is neither an answer nor a refusal nor an outage; None if it may be one."""
    if isinstance(reply, bytes):
        too_long = len(reply) > MOST_BYTES
        return f"replied with more than {MOST_BYTES >> 20} MB" if too_long else None
    return f"replied {reply.status}: {reply.message}" if reply.bad_reply else None


def _version(defaults: Defaults, address: Address) -> str:
    """Return all that answers depend on besides model and endpoint: `1`, and the settings.

    Of `extra_body` it holds a digest only.
    """
    given = {
        "temperature": defaults.temperature,
        "seed": defaults.seed,
        "max_tokens": defaults.max_tokens,
        "api_version": address.api_version,
    }
    parts = ["1", *(f"{name}={value}" for name, value in given.items() if value is not None)]
    if defaults.extra_body:
        canonical = json.dumps(defaults.extra_body, sort_keys=True)
        parts.append(f"extra={hashlib.sha256(canonical.encode()).hexdigest()[:8]}")
    return ";".join(parts)


# --- Checks of arguments


def _check_numbers(timeout: float, temperature: float | None, max_tokens: int | None) -> None:
    """Refuse a timeout of 0 or less, a temperature below 0, and a `max_tokens` below 1."""
    if not is_amount(timeout):
        raise ConfigurationError("timeout", timeout, "should be a number of seconds above 0")
    if temperature is not None and not is_amount(temperature, or_zero=True):
        raise ConfigurationError("temperature", temperature, "should be a number from 0")
    if max_tokens is not None:
        whole_number("max_tokens", max_tokens)


def _checked_body(fields: Mapping[str, JsonValue] | None) -> dict[str, JsonValue]:
    """Return a copy of the extra fields, which JSON must be able to hold; empty for None.

    Raises:
        ConfigurationError: it cannot, or they are not a mapping.
    """
    if not isinstance(fields, Mapping | None):
        raise ConfigurationError("extra_body", type(fields).__name__, "should be a mapping")
    body = dict(fields or {})
    try:
        json.dumps(body, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        why = f"holds what JSON cannot ({type(error).__name__})"
        raise ConfigurationError("extra_body", [*map(str, body)], why) from None
    return body


_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def _checked_headers(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return a copy of the headers, which HTTP must be able to hold; empty for None.

    Raises:
        ConfigurationError: it cannot, or they are not a mapping.
    """
    if not isinstance(headers, Mapping | None):
        kind = type(headers).__name__
        raise ConfigurationError("default_headers", kind, "should map names to texts")
    for name, value in (headers or {}).items():
        if not _HEADER_NAME.fullmatch(str(name)):
            raise ConfigurationError("default_headers", name, "is not a header's name")
        if type(value) is not str or not (value.isascii() and value.isprintable()):
            field = f"default_headers[{name!r}]"
            raise ConfigurationError(field, "***", "should be one line of ASCII text")
    return dict(headers or {})


def _key_for(given: str | None, address: Address, *, needed: bool) -> SecretStr:
    """Return the key: the one given, else of the environment, else a dummy where none is needed.

    For Azure, its own variable goes first. Refuses a key that a header cannot hold, and a missing
    one. A key that is only spaces is missing; a given one is not replaced by the environment's.
    """
    variables = ["OPENAI_API_KEY"]
    if address.azure or "azure" in urlsplit(address.url).netloc:
        variables.insert(0, "AZURE_OPENAI_API_KEY")
    keys = (os.environ.get(name, "").strip() for name in variables)
    key = next(filter(None, keys), "") if given is None else given.strip()
    if not key and needed:
        raise ConfigurationError(
            "api_key",
            None,
            f"no API key: set the environment variable {' or '.join(variables)}",
            missing=True,
        )
    if not (key.isascii() and key.isprintable()):
        raise ConfigurationError("api_key", "***", "has characters that an HTTP header cannot")
    return SecretStr(key or _NO_KEY)
