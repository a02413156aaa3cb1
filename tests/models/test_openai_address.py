"""URLs, Azure, headers and a user's own client: what is sent where, and which mistakes are named."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest
from loopback import LoopbackServer, Reply

from rag_eval_integrations.errors import (
    ConfigurationError,
    JudgeRejectedError,
    JudgeUnavailableError,
)
from rag_eval_integrations.models import ThrottledModel
from rag_eval_integrations.models.openai import OpenAIModel
from rag_eval_integrations.records import Usage

from .conftest import QUESTION, Serve

SECRET = "Zq8-planted-Secret-77"


def root_of(server: LoopbackServer) -> str:
    return f"http://127.0.0.1:{server.port}"


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        (f"localhost:8000/v1?key={SECRET}", "http:// or https://"),
        (f"https://user:{SECRET}@host/v1", "contains a password"),
        (f"ftp://host/v1?key={SECRET}", "http:// or https://"),
        ("http:///v1", "name a host"),
        ("http://[::1/v1", "not a URL"),
        (f"http://host/v1#{SECRET}", "before the '#'"),
        (f"http://host/v1/chat/completions?key={SECRET}", "use 'http://host/v1'"),
        ("https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=1", "deployments/d'"),
        ("http://host/v1/models", "use 'http://host/v1'"),
        ("https://r.openai.azure.com/", "api_version"),
        ("https://r.services.ai.azure.com/", "a URL that ends in /openai/v1"),
    ],
)  # fmt: skip
def test_a_mistaken_url_says_what_to_do(url: str, hint: str) -> None:
    """The argument, the URL without its secrets, and what would be right."""
    with pytest.raises(ConfigurationError, match="`base_url` = ") as caught:
        OpenAIModel("m", base_url=url)

    assert hint in str(caught.value)
    assert SECRET not in str(caught.value) + repr(vars(caught.value))


@pytest.mark.parametrize("status", [404, 405])
async def test_a_missing_v1_is_named(serve: Serve, status: int) -> None:
    """With the path that was asked for, and the URL that is probably meant."""
    root = root_of(serve(Reply(status=status, body=b'{"detail": "Not Found"}'))[0])
    for suffix, said in (
        ("", rf"should base_url end in /v1, as in {root}/v1\?"),
        ("/v1", f"POST {root}/v1/chat/completions was asked$"),
    ):
        with pytest.raises(JudgeRejectedError, match=said):
            await OpenAIModel("m", base_url=root + suffix).complete(QUESTION)


@pytest.mark.parametrize("answers", [0, 1])
async def test_a_web_page_is_distinguished_from_an_answer(serve: Serve, answers: int) -> None:
    """What a wrong URL often gives: it is asked for once more at most, also where answers were given."""
    page = Reply(body=b"<!doctype html><p>Hi")
    server, model = serve([None] * answers + [page] * 20)
    throttled = ThrottledModel(model)
    for _ in range(answers):
        await throttled.complete(QUESTION)
    with pytest.raises(JudgeUnavailableError, match=r"page: is base_url right") as caught:
        await throttled.complete(QUESTION)

    asked = len(server.requests) - answers
    assert asked in (1, 2)  # a reply that took long is not waited for again
    assert caught.value.usage == Usage(requests=asked, failed=asked)


async def test_a_query_and_headers_go_along(serve: Serve) -> None:
    """With every request, behind the path; `base_url`, which records and keys use, is without."""
    server, _ = serve()
    url, headers = f"{server.base_url}?route=eu&key={SECRET}", {"X-Route": "a b"}
    model = OpenAIModel("m", base_url=url, default_headers=headers)
    await model.complete(QUESTION)

    assert server.paths[0].endswith(f"/v1/chat/completions?route=eu&key={SECRET}")
    assert server.headers[0]["x-route"] == "a b"
    assert model.base_url == server.base_url
    assert SECRET not in repr(vars(model)) + repr(model) + repr(model._address)


@pytest.mark.parametrize(
    ("suffix", "version", "path"),
    [
        ("", "2024-10-21", "/openai/deployments/m/chat/completions?api-version=2024-10-21"),
        ("/openai", "2024-10-21", "/openai/deployments/m/chat/completions?api-version=2024-10-21"),
        ("?api-version=2024-10-21", None, "/openai/deployments/m/chat/completions?api-version=2024-10-21"),
        ("/openai/deployments/d?api-version=x", "x", "/openai/deployments/d/chat/completions?api-version=x"),
        ("/openai/v1?api-version=preview", None, "/openai/v1/chat/completions?api-version=preview"),
    ],
)  # fmt: skip
async def test_azure(serve: Serve, suffix: str, version: str | None, path: str) -> None:
    """The model is the deployment; the version comes from either place; the key has its header."""
    server, _ = serve()
    url = root_of(server) + suffix
    model = OpenAIModel("m", base_url=url, api_version=version, api_key="k-1")
    await model.complete(QUESTION)

    assert server.paths == [path]
    assert server.headers[0].get("api-key") == (None if "/openai/v1" in suffix else "k-1")
    assert "api_version=" in model.version


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("model", {"model": ""}),
        ("timeout", {"timeout": 0}),
        ("temperature", {"temperature": "hot"}),
        ("max_tokens", {"max_tokens": 0}),
        ("api_version", {"api_version": "2024 10"}),
        ("api_version", {"api_version": "1", "base_url": "http://h/?api-version=2"}),
        ("default_headers", {"default_headers": ["X-Key"]}),
        ("default_headers", {"default_headers": {"X Key": SECRET}}),
        ("default_headers\\['X-Key'\\]", {"default_headers": {"X-Key": f"{SECRET}\nX: y"}}),
        ("extra_body", {"extra_body": {"key": SECRET, "at": object()}}),
        ("extra_body", {"extra_body": "a"}),
        ("client", {"client": lambda: SECRET, "base_url": None}),
        ("client", {"client": openai.OpenAI(api_key=SECRET), "base_url": None}),
        ("base_url", {"client": openai.AsyncOpenAI(api_key=SECRET)}),
        ("api_key", {"client": openai.AsyncOpenAI(api_key="k"), "base_url": None, "api_key": SECRET}),
    ],
)  # fmt: skip
def test_mistaken_settings_raise_at_construction(field: str, changes: dict[str, Any]) -> None:
    """Each names its argument, and shows no value that may be a secret."""
    arguments: dict[str, Any] = {"model": "m", "base_url": "http://127.0.0.1:1/v1", **changes}

    with pytest.raises(ConfigurationError, match=f"`{field}` = ") as caught:
        OpenAIModel(**arguments)

    assert SECRET not in str(caught.value) + repr(vars(caught.value))


# --- A user's client -----------------------------------------------------------------------------


async def test_a_given_client_is_used_and_left_open(serve: Serve) -> None:
    """Its URL, key and headers; its own retries would multiply with ours and are off."""
    server, _ = serve(statuses=(500,))
    url, headers = server.base_url, {"X-Own": "1"}
    client = openai.AsyncOpenAI(base_url=url, api_key=SECRET, default_headers=headers)
    model = OpenAIModel("m", client=client)
    with pytest.raises(JudgeUnavailableError, match="scripted 500"):
        await model.complete(QUESTION)
    await model.complete(QUESTION)
    await model.aclose()

    assert len(server.requests) == 2
    assert server.headers[0]["x-own"] == "1"
    assert server.headers[0]["authorization"] == f"Bearer {SECRET}"
    assert model.base_url == server.base_url
    assert not client.is_closed()
    assert SECRET not in repr(model) + repr(vars(model))
    await client.close()


async def test_a_given_azure_client_is_used(serve: Serve) -> None:
    """Its deployment is the model; its version is part of the model's."""
    server, _ = serve()
    azure: Any = {"azure_endpoint": root_of(server), "api_version": "2024-10-21"}
    async with openai.AsyncAzureOpenAI(api_key="k", **azure) as client:
        model = OpenAIModel("d", client=client)
        await model.complete(QUESTION)

    assert server.paths == ["/openai/deployments/d/chat/completions?api-version=2024-10-21"]
    assert "api_version=2024-10-21" in model.version


def test_a_given_client_serves_one_loop(serve: Serve) -> None:
    """Its connections belong to it: on another loop it would fail now and then."""
    client = openai.AsyncOpenAI(base_url=serve()[0].base_url, api_key="k")
    model = OpenAIModel("m", client=client)

    async def once() -> None:
        await model.complete(QUESTION)
        await client.close()

    asyncio.run(once())

    with pytest.raises(JudgeRejectedError, match=r"event loop.*function that makes a client"):
        asyncio.run(model.complete(QUESTION))


def test_a_function_makes_a_client_per_loop(serve: Serve) -> None:
    """Each is closed with its loop."""
    url, made = serve()[0].base_url, []

    def make() -> openai.AsyncOpenAI:
        made.append(openai.AsyncOpenAI(base_url=url, api_key="k"))
        return made[-1]

    model = OpenAIModel("m", client=make)
    for _ in range(2):
        asyncio.run(model.complete(QUESTION))

    assert [client.is_closed() for client in made] == [True, True]
