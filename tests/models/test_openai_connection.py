"""Why no connection was made, in words: the URL, file or proxy that is at fault."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from loopback import LoopbackServer

from rag_eval_integrations.errors import (
    ConfigurationError,
    JudgeRejectedError,
    JudgeUnavailableError,
)
from rag_eval_integrations.models.completion import CompletionRequest, Message
from rag_eval_integrations.models.openai import OpenAIModel

QUESTION = CompletionRequest(messages=(Message(role="user", content="Is it so?"),))
PASSWORD = "Zq8-planted-Secret-77"
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXIES, *map(str.lower, PROXIES), "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def failure(url: str) -> JudgeUnavailableError:
    with pytest.raises(JudgeUnavailableError) as caught:
        await OpenAIModel("m", base_url=url, timeout=20).complete(QUESTION)
    return caught.value


async def test_a_closed_port_and_an_unknown_host(closed_port: int) -> None:
    """Nobody listens, or is known by that name (`.invalid` never is): no waiting will help."""
    closed = await failure(f"http://127.0.0.1:{closed_port}/v1")
    unknown = await failure("http://no-such-host.invalid/v1")

    assert (closed.connected, unknown.connected) == (False, False)
    assert f"127.0.0.1:{closed_port}: connection refused: nothing listens there" in str(closed)
    assert f"is base_url 'http://127.0.0.1:{closed_port}/v1' right?" in str(closed)
    assert "unknown host" in str(unknown)
    assert "http://no-such-host.invalid/v1" in str(unknown)


# --- Proxies -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_a_dead_proxy(monkeypatch: pytest.MonkeyPatch, closed_port: int, name: str) -> None:
    """It is the proxy that is dead, not the server: its URL, its variable, its password not."""
    monkeypatch.setenv(name, f"http://me:{PASSWORD}@127.0.0.1:{closed_port}")
    with LoopbackServer() as server:
        error = await failure(server.base_url)

    assert not error.connected
    assert f"the proxy http://***@127.0.0.1:{closed_port} (from {name})" in str(error)
    assert "connection refused" in str(error)
    assert "should 127.0.0.1 be in NO_PROXY?" in str(error)
    assert PASSWORD not in str(error)


async def test_no_proxy_is_obeyed(monkeypatch: pytest.MonkeyPatch, closed_port: int) -> None:
    """Also in the words: the server itself is dead then."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    error = await failure(f"http://127.0.0.1:{closed_port}/v1")

    assert "proxy" not in str(error)


async def test_a_reply_of_a_proxy_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """407 comes from the proxy alone."""
    with LoopbackServer() as server:
        server.behave(statuses=(407,))
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{server.port}")
        model = OpenAIModel("m", base_url="http://far.invalid/v1")
        with pytest.raises(JudgeRejectedError, match=r"through the proxy .*HTTP_PROXY.*407"):
            await model.complete(QUESTION)


@pytest.mark.parametrize("url", [f"socks5://me:{PASSWORD}@127.0.0.1:1", "ftp://127.0.0.1:1"])
def test_a_proxy_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Said at construction, by the variable's name."""
    monkeypatch.setenv("ALL_PROXY", url)

    with pytest.raises(ConfigurationError, match=r"`ALL_PROXY` = .*proxy") as caught:
        OpenAIModel("m", base_url="http://127.0.0.1:1/v1")

    assert PASSWORD not in str(caught.value)


# --- Certificates --------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [None, "no certificate"])
async def test_a_certificate_file_that_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None
) -> None:
    """Said at construction, with the variable and the file; later, by the first request."""
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    model = OpenAIModel("m", base_url="http://127.0.0.1:1/v1")
    monkeypatch.setenv("SSL_CERT_FILE", str(path))

    with pytest.raises(ConfigurationError, match=r"`SSL_CERT_FILE` = .*ca\.pem"):
        OpenAIModel("m", base_url="http://127.0.0.1:1/v1")
    with pytest.raises(JudgeUnavailableError, match=r"`SSL_CERT_FILE` = .*ca\.pem") as caught:
        await model.complete(QUESTION)
    assert not caught.value.connected


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the program openssl, which makes a certificate")
    folder = tmp_path_factory.mktemp("tls")
    key, path = folder / "key.pem", folder / "cert.pem"
    words = f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=me -keyout {key} -out {path}"
    subprocess.run(["openssl", *words.split()], check=True, capture_output=True)
    return path, key


@asynccontextmanager
async def listening(context: ssl.SSLContext | None) -> AsyncIterator[int]:
    async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"no TLS here\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(close, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_a_self_signed_certificate(
    monkeypatch: pytest.MonkeyPatch, certificate: tuple[Path, Path]
) -> None:
    """Which variable to set; another client's variable is named as not read."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    async with listening(context) as port:
        error = await failure(f"https://127.0.0.1:{port}/v1")
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/missing/ca.pem")
        other = await failure(f"https://127.0.0.1:{port}/v1")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
        wrong_name = await failure(f"https://127.0.0.1:{port}/v1")

    assert not error.connected
    assert "certificate is not trusted: self-signed certificate; set SSL_CERT_FILE" in str(error)
    assert "REQUESTS_CA_BUNDLE=/missing/ca.pem is not read by this client, and does not exist" in (
        str(other)
    )
    assert "not valid for '127.0.0.1'" in str(wrong_name)
    assert f"SSL_CERT_FILE={certificate[0]}" in str(wrong_name)


async def test_a_server_without_tls() -> None:
    """https:// was written where http:// is meant."""
    async with listening(None) as port:
        error = await failure(f"https://127.0.0.1:{port}/v1")

    assert not error.connected
    assert "does not speak TLS (a URL with http:// may be meant)" in str(error)
