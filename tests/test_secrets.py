"""A secret planted wherever a user can put one comes out nowhere: screen, files, logs, reprs."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import openai
import pytest
from loopback import Body, LoopbackServer, Reply

from rag_eval_integrations import RagEvaluator, Trace
from rag_eval_integrations.background import BackgroundEvaluator
from rag_eval_integrations.cli import main
from rag_eval_integrations.errors import ConfigurationError, JudgeError, RagEvalError
from rag_eval_integrations.judges import LLMJudge, judge_from
from rag_eval_integrations.metrics.geval import GEval
from rag_eval_integrations.models import CachedModel, ThrottledModel
from rag_eval_integrations.models.completion import CompletionRequest, Message
from rag_eval_integrations.models.openai import OpenAIModel
from rag_eval_integrations.ray import EvaluatorConfig
from rag_eval_integrations.sinks import JsonlSink
from rag_eval_integrations.testing import labels_reply, small_call

MARK = "Zq8PLANTED"
KEY, QUERY, HEADER, TOKEN, EXTRA, PROXY = (
    f"{MARK}-{place}-0417" for place in ("key", "query", "header", "token", "extra", "proxy")
)
PROMPT = "---\nname: Shout\n---\nsystem:\nRepeat the text in capitals.\nuser:\n{{text}}\n"


@pytest.fixture(autouse=True)
def _planted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "http_proxy", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", TOKEN)
    monkeypatch.setenv("HTTP_PROXY", f"http://me:{PROXY}@127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")


Serve = Callable[[int], LoopbackServer]
Shell = Callable[..., str]
Logged = Callable[[], list[str]]
Words = list[object]


@pytest.fixture
def echo() -> Iterator[Serve]:
    """Makes a server that repeats all of a request, in an error or, with 200, in its answer."""
    running = ExitStack()

    def serve(status: int) -> LoopbackServer:
        def respond(body: Body) -> Reply:
            # Whatever arrived, and what may have arrived by another way.
            seen = json.dumps([server.headers[-1], server.paths[-1], body, PROXY, TOKEN])
            if status != 200:
                return Reply.json({"error": {"message": f"refused: {seen}", "code": KEY}}, status)
            labels = json.loads(labels_reply(["0a"], ["a"]))
            labels["relevance_explanation"] = seen.replace('"', "'")
            message = {"role": "assistant", "content": json.dumps(labels)}
            choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
            return Reply.json({"choices": choices, "model": f"m {KEY}"})

        server = LoopbackServer(respond=respond)
        return running.enter_context(server)

    with running:
        yield serve


def planted(server: LoopbackServer, **changes: Any) -> OpenAIModel:
    """A model with a secret in every setting."""
    settings: dict[str, Any] = {
        "base_url": f"{server.base_url}?key={QUERY}",
        "api_key": KEY,
        "default_headers": {"X-Api-Key": HEADER, "X-Auth": f"Bearer {TOKEN}"},
        "extra_body": {"user": EXTRA, "gateway": [{"token": TOKEN}]},
    }
    return OpenAIModel("m", **{**settings, **changes})


def clean(*texts: object) -> None:
    """No planted value is in any of the texts, nor a piece of one."""
    for text in texts:
        assert MARK not in str(text), str(text)[max(0, str(text).find(MARK) - 200) :][:400]


def clean_files(folder: Path) -> None:
    for path in folder.rglob("*"):
        clean(path)
        if path.is_file():
            clean(path.read_bytes().decode("latin-1"))


def clean_error(error: BaseException) -> None:
    """Nor is one in what an exception holds or its traceback shows."""
    clean(repr(vars(error)), "".join(traceback.format_exception(error)))


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Logged:
    """What the library has logged."""
    caplog.set_level(logging.DEBUG, logger="rag_eval_integrations")
    return lambda: [r.getMessage() for r in caplog.records if r.name.startswith("rag_eval")]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Runs a command; what it prints on both streams."""

    def run(*words: object) -> str:
        monkeypatch.setattr(sys, "argv", ["rag-eval", *map(str, words)])
        with pytest.raises(SystemExit):
            main()
        return "\n".join(capsys.readouterr())

    return run


@pytest.fixture
def run(tmp_path: Path) -> Words:
    """The words that evaluate a small call."""
    (tmp_path / "calls.jsonl").write_text(small_call().call.model_dump_json() + "\n")
    return ["run", tmp_path / "calls.jsonl", "-o", tmp_path / "e.jsonl"]


@pytest.mark.parametrize("status", [200, 400, 401, 404])
@pytest.mark.parametrize("stage", ["run", "doctor", "generate"])
def test_no_command_shows_or_stores_one(
    echo: Serve, tmp_path: Path, run: Words, command: Shell, logged: Logged, status: int, stage: str
) -> None:
    """Key, query and proxy password: not on the screen, in rows, caches, folders or our logs."""
    server = echo(status)
    prompt = tmp_path / "p.prompty"
    prompt.write_text(PROMPT)
    cache = tmp_path / "cache.sqlite"
    words: dict[str, Words] = {
        "run": [*run, "--judge", "openai:m", "--cache", cache, "--metrics", "trace,geval:coherence"],
        "doctor": ["doctor", "--judge", "openai:m"],
        "generate": ["prompt-tests", "generate", prompt, "-o", tmp_path / "out", "--model", "openai:m"],
    }  # fmt: skip

    shown = command(*words[stage], "--base-url", f"{server.base_url}?key={QUERY}")

    assert server.requests
    assert f"key={QUERY}" in server.paths[0]
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    clean(shown, *logged())
    clean_files(tmp_path)


@pytest.mark.parametrize(
    "url",
    [
        f"host/v1?key={QUERY}", f"me:{KEY}@host/v1", f"http://me:{KEY}@host/v1",
        f"http://host/v1/chat/completions?key={QUERY}",
    ],
)  # fmt: skip
@pytest.mark.parametrize("judge", ["openai:m", "embedded"])
def test_a_mistaken_url_is_shown_without_it(
    run: Words, command: Shell, url: str, judge: str
) -> None:
    """Whichever part of the program complains."""
    shown = command(*run, "--judge", judge, "--base-url", url)

    assert "base_url" in shown or "--base-url" in shown
    clean(shown)
    for make in (judge_from, EvaluatorConfig):
        with pytest.raises(ConfigurationError) as caught:
            make(judge, base_url=url)
        clean_error(caught.value)


@pytest.mark.parametrize(
    ("judge", "body", "place"),
    [
        ("openai:m", f'{{"api_key": "{TOKEN}"', "line 1 column"),
        ("openai:m", f'{{"api_key": {TOKEN}}}', "line 1 column 13"),
        ("openai:m", f'["{TOKEN}"]', "use a JSON object"),
        ("embedded", f'{{"api_key": "{TOKEN}"}}', "['api_key']: is for openai:MODEL"),
    ],
)
def test_a_mistaken_extra_field_is_named_by_its_place(
    run: Words, command: Shell, judge: str, body: str, place: str
) -> None:
    """Not by its text, which a log of a build would keep."""
    shown = command(*run, "--judge", judge, "--extra-body", body)

    assert "`--extra-body` = " in shown
    assert place in shown
    clean(shown)


def test_extra_fields_of_another_judge_are_named() -> None:
    """They are refused without their values."""
    for make in (judge_from, EvaluatorConfig):
        with pytest.raises(ConfigurationError, match=r"`extra_body` = \['api_key'\]") as caught:
            make("embedded", extra_body={"api_key": TOKEN})
        clean_error(caught.value)


@pytest.mark.parametrize("status", [200, 400, 403])
async def test_no_record_log_or_error_holds_one(
    echo: Serve, tmp_path: Path, logged: Logged, status: int
) -> None:
    """Headers and extra fields as well: scores, errors with their chains, what was learned.

    Nor what a background evaluator, to which handlers hand their calls, writes with its sink.
    """
    model = planted(echo(status), extra_body={"gateway": [{"token": TOKEN}]})
    cached = CachedModel(ThrottledModel(model), tmp_path / "cache.sqlite")
    evaluator = RagEvaluator(cached, metrics=[Trace(), GEval.coherence()])
    evaluation = await evaluator.evaluate(small_call().call)
    question = CompletionRequest(messages=(Message(role="user", content="?"),), temperature=1.0)
    try:
        clean(await model.complete(question))
    except JudgeError as error:
        clean_error(error)
    with BackgroundEvaluator(evaluator, [JsonlSink(tmp_path / "e.jsonl")]) as background:
        background.submit(small_call().call)
        assert await asyncio.to_thread(background.flush, 30)
        clean(repr(background), background.counters)
    assert (tmp_path / "e.jsonl").read_text()
    await model.aclose()
    cached.close()

    clean(evaluation.model_dump_json(), repr(evaluation), repr(model.capabilities), *logged())
    clean_files(tmp_path)


def test_no_repr_shows_one(echo: Serve, tmp_path: Path) -> None:
    """Of the model, of what is around it, and of their attributes."""
    server = echo(200)
    model = planted(server)
    url = f"{server.base_url}?key={QUERY}"
    client = openai.AsyncOpenAI(base_url=url, api_key=KEY, default_headers={"X-Key": HEADER})
    given = OpenAIModel("m", client=client)
    with CachedModel(ThrottledModel(model), tmp_path / "c.sqlite") as cached:
        for shown in (
            model, given, ThrottledModel(model), cached, LLMJudge(model), RagEvaluator(model),
            GEval.coherence(judge=model), model.capabilities,
        ):  # fmt: skip
            clean(repr(shown), repr(getattr(shown, "__dict__", "")))
            clean(getattr(shown, "version", ""), getattr(shown, "base_url", ""))
        clean(EvaluatorConfig("openai:m", base_url=url, extra_body={"gateway": {"token": TOKEN}}))
        clean(model._secrets, given._secrets)
        clean(cached.identity, cached.key(CompletionRequest(messages=())))


@pytest.mark.parametrize(
    ("key", "message", "shown"),
    [
        ("x", "it does not exist; extra text", "it does not exist; extra text"),
        ("x", "Incorrect API key provided: x.", "Incorrect API key provided: ***."),
        ("x", "got 'Bearer x' and \"x\"", "got 'Bearer ***' and \"***\""),
        ("test", "the latest test of testing", "the latest test of testing"),
        ("not-needed", "is not-needed here", "is *** here"),
        ("not-needed", "is not-needed-any-more", "is ***-any-more"),
        (KEY, f"a{KEY}b", "a***b"),
    ],
)
async def test_a_short_key_stars_out_no_words(key: str, message: str, shown: str) -> None:
    """It is hidden where it stands as a value; a key of eight characters or more, everywhere."""
    reply = Reply.json({"error": {"message": message}}, 401)
    with LoopbackServer(respond=lambda _: reply) as server:
        model = OpenAIModel("m", base_url=server.base_url, api_key=key)
        with pytest.raises(RagEvalError) as caught:
            await model.complete(CompletionRequest(messages=()))

    assert str(caught.value).endswith(f"replied 401: {shown}")
