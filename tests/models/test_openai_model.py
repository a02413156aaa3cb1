"""Construction, the key, and one client per loop."""

from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from loopback import LoopbackServer, Reply

from rag_eval_integrations.errors import ConfigurationError, JudgeError
from rag_eval_integrations.models.openai import OpenAIModel

from .conftest import QUESTION, Serve

KEY = "sk-very-secret-0123456789"


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def test_a_missing_key_raises_at_construction() -> None:
    """It names the argument and the variable."""
    with pytest.raises(ConfigurationError, match=r"`api_key`: no API key: .*OPENAI_API_KEY"):
        OpenAIModel("gpt-4o-mini")


async def test_an_endpoint_of_ones_own_needs_no_key(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client insists on one, so a dummy is sent; the variable's is used where it is set."""
    server, _ = serve()
    await OpenAIModel("m", base_url=server.base_url + "/").complete(QUESTION)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    await OpenAIModel("m", base_url=server.base_url).complete(QUESTION)
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    await OpenAIModel("m", api_key=" other\n").complete(QUESTION)

    sent = [headers["authorization"] for headers in server.headers]
    assert sent == ["Bearer EMPTY", f"Bearer {KEY}", "Bearer other"]
    assert len(set(server.paths)) == 1


async def test_the_key_appears_nowhere(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    """Not in repr, attributes, logs, errors, their chains, warnings or the learned record."""
    caplog.set_level(logging.DEBUG)
    echo = {"message": f"temperature: key {KEY} may not", "param": "temperature"}
    replies = [Reply.json({"error": echo}, status) for status in (400, 401)]
    server, model = serve(replies, settings={"api_key": KEY})
    with pytest.raises(JudgeError) as caught:
        await model.complete(QUESTION.model_copy(update={"temperature": 1.0}))

    error = caught.value
    shown = [repr(model), repr(vars(model)), repr(model.capabilities), str(error), caplog.text]
    model = OpenAIModel("m", base_url=f"{server.base_url}?key={KEY}", api_key=KEY)
    shown += [repr(model), str(model), model.version, model.name]
    shown += ["".join(traceback.format_exception(error)), repr(vars(error))]
    assert error.__cause__ is None
    assert error.__context__ is None
    assert "key *** may not" in str(error)
    assert not [text for text in shown if KEY in text]


def test_the_version_says_what_an_answer_depends_on() -> None:
    """Two models that may answer differently must not share a version."""

    def version(**settings: Any) -> str:
        return OpenAIModel("m", base_url="http://127.0.0.1:1/v1", **settings).version

    assert version() == "1"
    assert version(temperature=0.0, seed=3) == "1;temperature=0.0;seed=3"
    assert version(extra_body={"a": 1}).startswith("1;extra=")
    assert version(extra_body={"a": 1}) != version(extra_body={"a": 2})


async def test_defaults_are_sent_where_the_request_says_nothing(serve: Serve) -> None:
    """The request's own values win; extra fields go along."""
    defaults = {"temperature": 0.0, "seed": 3, "max_tokens": 50}
    extra = {"reasoning_effort": "low"}
    server, model = serve(settings={**defaults, "extra_body": extra})

    await model.complete(QUESTION)
    await model.complete(QUESTION.model_copy(update={"temperature": 1.0, "max_tokens": 5}))

    first, second = server.requests
    assert first.items() >= {**defaults, **extra}.items()
    assert (second["temperature"], second["max_tokens"]) == (1.0, 5)


def test_one_model_on_two_loops_at_once(serve: Serve) -> None:
    """The app's loop and the library's own."""
    server, model = serve(latency=0.02)

    async def many() -> list[str]:
        asked = [model.complete(QUESTION) for _ in range(20)]
        return [completion.text for completion in await asyncio.gather(*asked)]

    with ThreadPoolExecutor(3) as pool:
        answers = [*pool.map(lambda _: asyncio.run(many()), range(3))]

    assert answers == [['{"ok": true}'] * 20] * 3
    _settled(server)


async def test_connections_are_used_again(serve: Serve) -> None:
    """Ten questions one after the other take one connection."""
    server, model = serve()
    for _ in range(10):
        await model.complete(QUESTION)

    assert server.connected == 1
    await model.aclose()
    await model.aclose()
    await model.complete(QUESTION)
    assert server.connected == 2


async def test_a_dropped_model_closes_its_connections() -> None:
    """While its loop runs on, and also from inside of a reference cycle."""
    with LoopbackServer() as server:
        cycle: list[Any] = [OpenAIModel("m", base_url=server.base_url)]
        await cycle[0].complete(QUESTION)
        cycle.append(cycle)

        del cycle
        gc.collect()
        await asyncio.sleep(0.1)

        assert server.open_connections == 0


def test_a_loop_that_was_closed_carelessly_does_no_harm(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    """Its client is given up without touching the next loop: nothing fails, nothing is logged."""
    server, model = serve()
    loop = asyncio.new_event_loop()
    loop.run_until_complete(model.complete(QUESTION))
    loop.close()

    def again() -> None:
        asyncio.run(model.complete(QUESTION))
        gc.collect()

    with pytest.warns(ResourceWarning):
        again()

    assert caplog.text == ""
    _settled(server)


def test_a_process_ends_without_warnings(root: Path) -> None:
    """Also when the model lives on the library's own loop, a daemon thread that nobody stops."""
    code = f"""
import asyncio, sys
sys.path[:0] = [{str(root)!r}, {str(root / "tests" / "support")!r}]
from loopback import LoopbackServer
from rag_eval_integrations import _loop
from rag_eval_integrations.models.completion import CompletionRequest, Message
from rag_eval_integrations.models.openai import OpenAIModel
server = LoopbackServer().__enter__()
request = CompletionRequest(messages=(Message(role="user", content="?"),))
first, second = (OpenAIModel("m", base_url=server.base_url) for _ in range(2))
print(asyncio.run(first.complete(request)).text)
print(_loop.run(second.complete(request)).text)
"""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert done.stdout.split("\n") == ['{"ok": true}', '{"ok": true}', ""]
    assert done.stderr == ""


def _settled(server: LoopbackServer) -> None:
    """All connections are closed, or will be in a moment."""
    for _ in range(50):
        if server.open_connections == 0:
            return
        threading.Event().wait(0.02)
    assert server.open_connections == 0


def test_a_key_that_no_header_can_hold_is_refused_and_not_shown() -> None:
    """A line pasted with its neighbour, for example."""
    with pytest.raises(ConfigurationError, match="characters") as caught:
        OpenAIModel("m", api_key=f"{KEY}\nOTHER=1")

    assert KEY not in str(caught.value)
