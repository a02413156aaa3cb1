"""The client's limits: what a server may make it unpack, and where it may send it."""

from __future__ import annotations

import gzip
import json
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import LoopbackServer, Reply

from rag_eval_integrations.errors import JudgeError, JudgeRejectedError, JudgeUnavailableError
from rag_eval_integrations.models import ThrottledModel
from rag_eval_integrations.models.completion import CompletionRequest, Message
from rag_eval_integrations.models.openai import OpenAIModel
from rag_eval_integrations.models.openai._clients import Inflated

KEY = "sk-Pl4nted/With+Signs=0417"
QUESTION = CompletionRequest(messages=(Message(role="user", content="Is it so?"),))
ANSWER = json.dumps({"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]})


Pack = Callable[[bytes], bytes]
PACKED: dict[str, Pack] = {"gzip": gzip.compress, "x-gzip": gzip.compress, "deflate": zlib.compress}


async def ask(reply: Reply, **settings: Any) -> str:
    with LoopbackServer(respond=lambda _: reply) as server:
        model = OpenAIModel("m", base_url=server.base_url, **settings)
        try:
            return (await model.complete(QUESTION)).text
        finally:
            await model.aclose()


@pytest.mark.parametrize("encoding", [*PACKED, "identity", "", "GZIP"])
async def test_a_compressed_reply_is_read(encoding: str) -> None:
    """In the encodings that are asked for, and without any."""
    body = PACKED.get(encoding.lower(), bytes)(ANSWER.encode())
    assert await ask(Reply(body=body, headers={"Content-Encoding": encoding})) == "yes"


@pytest.mark.parametrize("status", [200, 400])
async def test_a_small_reply_does_not_unpack_to_a_large_one(status: int) -> None:
    """60 kB of gzip hold 60 MB; of those, 8 MB are read, or 64 kB of an error."""
    bomb = gzip.compress(bytes(60 * 2**20))
    reply = Reply(status=status, body=bomb, headers={"Content-Encoding": "gzip"})
    tracemalloc.start()
    with pytest.raises(JudgeError):
        await ask(reply)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert most < 40 * 2**20


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", ANSWER.encode()),
        ("gzip", gzip.compress(ANSWER.encode(), mtime=0)[:30]),
        ("deflate", b"\xff" * 40),
        ("br", ANSWER.encode()[:-1] + b"\x00"),
        ("gzip, gzip", gzip.compress(gzip.compress(ANSWER.encode(), mtime=0), mtime=0)),
    ],
)
async def test_what_cannot_be_unpacked_is_a_broken_reply(encoding: str, body: bytes) -> None:
    """Damaged, cut off, or in an encoding that was not asked for."""
    with pytest.raises(JudgeUnavailableError):
        await ask(Reply(body=body, headers={"Content-Encoding": encoding}))


@given(st.binary(max_size=3_000), st.integers(1, 500), st.sampled_from([*PACKED.values()]))
def test_any_content_is_unpacked_in_any_parts(content: bytes, size: int, pack: Any) -> None:
    """To the same bytes."""
    packed = pack(content)
    inflated = Inflated()
    parts = [packed[start : start + size] for start in range(0, len(packed), size)]
    assert b"".join(p for part in parts for p in inflated.pieces(part)) == content


# --- Redirects


@pytest.mark.parametrize("status", [302, 308])
async def test_no_redirect_takes_a_key_to_another_server(status: int) -> None:
    """Nor the texts: it is refused at once, and says where it would have gone."""
    with LoopbackServer(respond=lambda _: Reply(body=ANSWER.encode())) as other:
        target = f"http://localhost:{other.port}/elsewhere?token=t"
        with pytest.raises(JudgeRejectedError, match=f"{status}: a redirect to http://") as caught:
            await ask(
                Reply(status=status, headers={"Location": target}),
                api_key=KEY,
                default_headers={"X-Api-Key": KEY},
            )
        assert not other.requests
        assert not other.headers

    assert "localhost" in str(caught.value)
    assert "token=t" not in str(caught.value)
    assert "base_url" in str(caught.value)


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_on_the_same_server_is_followed(status: int) -> None:
    """Such as one that adds a slash: the same request is sent again."""

    def respond(_: Any) -> Reply:
        if server.paths[-1].endswith("/final"):
            return Reply(body=ANSWER.encode())
        return Reply(status=status, headers={"Location": "/final"})

    with LoopbackServer(respond=respond) as server:
        model = OpenAIModel("m", base_url=server.base_url)
        assert (await model.complete(QUESTION)).text == "yes"
        await model.aclose()

    assert [body["model"] for body in server.requests] == ["m", "m"]


async def test_a_circle_of_redirects_is_left_after_three() -> None:
    """Each takes the prompt and the key along; asking again would not help."""
    reply = Reply(status=307, headers={"Location": "/v1/chat/completions"})
    with LoopbackServer(respond=lambda _: reply) as server:
        with pytest.raises(JudgeRejectedError, match="redirects without end; is base_url"):
            await ThrottledModel(OpenAIModel("m", base_url=server.base_url)).complete(QUESTION)

        assert len(server.requests) == 4


@pytest.mark.parametrize("target", ["http://[::1", ""])
async def test_a_redirect_to_nowhere_is_an_error_reply(target: str) -> None:
    """Whatever its address is."""
    with pytest.raises(JudgeError):
        await ask(Reply(status=307, headers={"Location": target}), timeout=20)


# --- What a server repeats


@pytest.mark.parametrize(
    "written",
    [
        KEY.replace("/", "\\/"),
        KEY.replace("+", "\\u002B"),
        "".join(f"\\u{ord(letter):04x}" for letter in KEY),
        json.dumps(json.dumps(f"upstream: {KEY}").replace("/", "\\/"))[1:-1],
    ],
    ids=["php", "dotnet", "all", "twice"],
)
@pytest.mark.parametrize("status", [200, 401])
async def test_a_key_is_hidden_however_json_writes_it(written: str, status: int) -> None:
    """JSON has several ways to write `/` and `+`, and a gateway quotes JSON in JSON."""
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
    import traceback

    token = "tok-Pl4nted-0417-body"
    with pytest.raises(JudgeRejectedError) as caught:
        await ask(Reply(status=400), api_key=KEY, extra_body={"gateway": {"token": token}})
    error = caught.value
    ours = traceback.TracebackException.from_exception(error, capture_locals=True)
    frames = [frame for frame in ours.stack if "rag_eval_integrations" in frame.filename]
    assert frames
    assert not [frame for frame in frames if "Pl4nted" in str(frame.locals)]
