"""What a server may make the client unpack, where it may send it, and why there is no connection."""

from __future__ import annotations

import asyncio
import gzip
import json
import shutil
import socket
import ssl
import subprocess
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from loopback import LoopbackServer, Reply

from rag_eval_integrations.errors import (
    ConfigurationError,
    JudgeError,
    JudgeRejectedError,
    JudgeUnavailableError,
)
from rag_eval_integrations.models import ThrottledModel
from rag_eval_integrations.models.openai import OpenAIModel

from .conftest import QUESTION, Serve

KEY = "sk-Pl4nted/With+Signs=0417"
ANSWER = json.dumps({"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]})


async def ask(reply: Reply, **settings: Any) -> str:
    with LoopbackServer(respond=lambda _: reply) as server:
        model = OpenAIModel("m", base_url=server.base_url, **settings)
        try:
            return (await model.complete(QUESTION)).text
        finally:
            await model.aclose()


async def test_a_reply_is_asked_for_without_compression() -> None:
    """So that its size is what is read; one that is compressed nevertheless is a broken reply."""
    with LoopbackServer(respond=lambda _: Reply(body=ANSWER.encode())) as server:
        model = OpenAIModel("m", base_url=server.base_url)
        assert (await model.complete(QUESTION)).text == "yes"
        await model.aclose()
        (headers,) = server.headers
    assert headers["accept-encoding"] == "identity"
    packed = gzip.compress(ANSWER.encode())
    with pytest.raises(JudgeUnavailableError):
        await ask(Reply(body=packed, headers={"Content-Encoding": "gzip"}))


# --- Redirects


@pytest.mark.parametrize("status", [302, 308])
async def test_no_redirect_takes_a_key_to_another_server(status: int) -> None:
    """Nor the texts: it is refused at once, and says where it would have gone."""
    with LoopbackServer(respond=lambda _: Reply(body=ANSWER.encode())) as other:
        target = f"http://localhost:{other.port}/elsewhere?token=t"
        reply = Reply(status=status, headers={"Location": target})
        why = f"{status}: a redirect to http://localhost"
        with pytest.raises(JudgeRejectedError, match=why) as caught:
            await ask(reply, api_key=KEY, default_headers={"X-Api-Key": KEY})
        assert not other.headers

    assert "token=t" not in str(caught.value)
    assert "base_url" in str(caught.value)


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_on_the_same_server_is_followed(serve: Serve, status: int) -> None:
    """Such as one that adds a slash: the same request is sent again."""
    server, model = serve([Reply(status=status, headers={"Location": "/final"})])

    assert (await model.complete(QUESTION)).text == '{"ok": true}'
    assert server.paths[1:] == ["/final"]
    assert server.requests[0] == server.requests[1]


async def test_a_circle_of_redirects_is_left_after_three(serve: Serve) -> None:
    """Each takes the prompt and the key along; asking again would not help."""
    server, model = serve(Reply(status=307, headers={"Location": "/v1/chat/completions"}))
    with pytest.raises(JudgeRejectedError, match="redirects without end; is base_url"):
        await ThrottledModel(model).complete(QUESTION)

    assert len(server.requests) == 4


@pytest.mark.parametrize("target", ["http://[::1", ""])
async def test_a_redirect_to_nowhere_is_an_error_reply(target: str) -> None:
    """Whatever its address is."""
    with pytest.raises(JudgeError):
        await ask(Reply(status=307, headers={"Location": target}), timeout=20)


# --- What a server repeats


@pytest.mark.parametrize("written", [KEY, quote(KEY, safe="")], ids=["as it is", "in a URL"])
@pytest.mark.parametrize("status", [200, 401])
async def test_a_key_that_a_server_repeats_is_hidden(written: str, status: int) -> None:
    """In an answer and in an error."""
    if status == 200:
        body = ANSWER.replace("yes", f"your key is {written}")
        text = await ask(Reply(body=body.encode()), api_key=KEY)
    else:
        body = '{"error": {"message": "Incorrect API key: ' + written + '"}}'
        with pytest.raises(JudgeRejectedError) as caught:
            await ask(Reply(status=status, body=body.encode()), api_key=KEY)
        text = str(caught.value)

    assert "***" in text
    assert "Pl4nted" not in text


async def test_a_traceback_with_locals_shows_no_extra_field() -> None:
    """Test runners and error trackers print the locals of our frames."""
    token = "tok-Pl4nted-0417-body"
    with pytest.raises(JudgeRejectedError) as caught:
        await ask(Reply(status=400), api_key=KEY, extra_body={"gateway": {"token": token}})
    ours = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    frames = [frame for frame in ours.stack if "rag_eval_integrations" in frame.filename]
    assert frames
    assert not [frame for frame in frames if "Pl4nted" in str(frame.locals)]


async def test_a_name_that_only_sounds_like_a_secret_stays_in_answers() -> None:
    """The values of `author`, `keywords` and `tokenizer` are no secrets; that of `auth_key` is."""
    said = "Jane-Doe-77 asked for 3D-printing of org/Model-4 with Pl4nted-5"
    body = ANSWER.replace("yes", said)
    fields = {"author": "Jane-Doe-77", "keywords": ["3D-printing"], "tokenizer": "org/Model-4"}

    text = await ask(Reply(body=body.encode()), extra_body={**fields, "auth_key": "Pl4nted-5"})

    assert text == said.replace("Pl4nted-5", "***")


# --- Why no connection was made, in words: the URL, file or proxy that is at fault

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


# --- Proxies -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_a_dead_proxy(monkeypatch: pytest.MonkeyPatch, closed_port: int, name: str) -> None:
    """It is the proxy that is dead, not the server: its URL, its variable, its password not."""
    monkeypatch.setenv(name, f"http://me:{PASSWORD}@127.0.0.1:{closed_port}")

    error = await failure("http://127.0.0.1:1/v1")

    assert not error.connected
    proxy = f"the proxy http://***@127.0.0.1:{closed_port} (from {name})"
    for said in (proxy, "connection refused", "should 127.0.0.1 be in NO_PROXY?"):
        assert said in str(error)
    assert PASSWORD not in str(error)


async def test_no_proxy_is_obeyed(monkeypatch: pytest.MonkeyPatch, closed_port: int) -> None:
    """Also in the words: the server itself is dead then."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    assert "proxy" not in str(await failure(f"http://127.0.0.1:{closed_port}/v1"))


async def test_a_reply_of_a_proxy_names_it(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """407 comes from the proxy alone."""
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{serve(statuses=(407,))[0].port}")
    with pytest.raises(JudgeRejectedError, match=r"through the proxy .*HTTP_PROXY.*407"):
        await OpenAIModel("m", base_url="http://far.invalid/v1").complete(QUESTION)


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
    for failed, said in (
        (error, "certificate is not trusted: self-signed certificate; set SSL_CERT_FILE"),
        (
            other,
            "REQUESTS_CA_BUNDLE=/missing/ca.pem is not read by this client, and does not exist",
        ),
        (wrong_name, "not valid for '127.0.0.1'"),
        (wrong_name, f"SSL_CERT_FILE={certificate[0]}"),
    ):
        assert said in str(failed)


async def test_a_server_without_tls() -> None:
    """https:// was written where http:// is meant."""
    async with listening(None) as port:
        error = await failure(f"https://127.0.0.1:{port}/v1")

    assert not error.connected
    assert "does not speak TLS (a URL with http:// may be meant)" in str(error)
