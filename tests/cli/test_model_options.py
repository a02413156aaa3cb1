"""`--timeout`, `--max-tokens`, `--extra-body`, and what a run counts as failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ferries import LABELS, Command, ferries
from loopback import Body, LoopbackServer, Reply


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    return ferries(tmp_path / "calls.jsonl", 20)


def test_they_reach_the_endpoint(rag_eval: Command, calls: Path, tmp_path: Path) -> None:
    """In the body of every request, from every command that names a model."""
    prompt = tmp_path / "p.md"
    prompt.write_text("Say whether {{text}} is polite.")
    with LoopbackServer(LABELS) as server:
        words = (
            "--base-url", server.base_url, "--max-tokens", 77,
            "--extra-body", '{"reasoning_effort": "low"}', "--timeout", "30",
        )  # fmt: skip
        judge = ("--judge", "openai:m")
        assert rag_eval("run", calls, "-o", tmp_path / "e.jsonl", *judge, *words).code == 0
        assert rag_eval("doctor", *judge, *words).code == 0
        rag_eval("prompt-tests", "generate", prompt, "-o", tmp_path / "t", "--model", "openai:m",
                 *words)  # fmt: skip
        bodies = server.requests

    assert len(bodies) > 21
    assert {body["max_tokens"] for body in bodies} == {77}
    assert {body["reasoning_effort"] for body in bodies} == {"low"}


def test_a_timeout_bounds_an_answer(rag_eval: Command, calls: Path, tmp_path: Path) -> None:
    """The reason names the seconds."""
    hang = iter([True])

    def respond(body: Body) -> Reply | None:
        return Reply(delay=60) if next(hang, False) else None

    with LoopbackServer(LABELS, respond) as server:
        words = ("--judge", "openai:m", "--base-url", server.base_url, "--timeout", "0.2")
        done = rag_eval("run", calls, "-o", tmp_path / "e.jsonl", *words)

    assert done.code == 0
    assert "did not answer within 0.2 s" in done.err


@pytest.mark.parametrize(
    ("command", "words", "message"),
    [
        ("run", ("--timeout", "0"), "`--timeout` = 0.0: use a number of seconds above 0"),
        ("doctor", ("--timeout", "nan"), "`--timeout` = nan: use a number of seconds above 0"),
        ("prompt-tests", ("--max-tokens", "0"), "--max-tokens"),
        (
            "run",
            ("--extra-body", "{top_k: 2}"),
            "`--extra-body` = '…': is not JSON (Expecting property name enclosed in double quotes: "
            "line 1 column 2 (char 1))",
        ),
        ("doctor", ("--extra-body", "[1]"), "use a JSON object"),
        ("prompt-tests", ("--extra-body", '{"a": NaN}'), "NaN is not JSON"),
    ],
)
def test_mistakes_are_named(
    rag_eval: Command,
    calls: Path,
    tmp_path: Path,
    command: str,
    words: tuple[str, ...],
    message: str,
) -> None:
    """With the option's name, before anything is sent or written."""
    prompt = tmp_path / "p.md"
    prompt.write_text("Say whether {{text}} is polite.")
    before = sorted(tmp_path.iterdir())
    named = {
        "run": ("run", calls, "-o", tmp_path / "e.jsonl", "--judge", "openai:m"),
        "doctor": ("doctor", "--judge", "openai:m"),
        "prompt-tests": ("prompt-tests", "generate", prompt, "-o", tmp_path / "t",
                         "--model", "openai:m"),
    }  # fmt: skip

    done = rag_eval(*named[command], "--base-url", "http://127.0.0.1:9/v1", *words)

    assert done.code == 2
    assert message in done.err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("failing", "words", "code"),
    [
        (1, (), 0),
        (2, (), 1),
        (2, ("--max-error-rate", "0.1"), 0),
        (1, ("--max-error-rate", "0"), 1),
    ],
)
def test_more_errors_than_allowed_exit_1(
    rag_eval: Command, calls: Path, tmp_path: Path, failing: int, words: tuple[str, ...], code: int
) -> None:
    """One of twenty is 5 %, which is the default; the rows are written in any case."""

    def respond(body: Body) -> Reply | None:
        bad = any(f"ferry {n} " in json.dumps(body) for n in range(failing))
        return Reply.json({"error": {"message": "odd request"}}, 400) if bad else None

    out = tmp_path / "e.jsonl"
    with LoopbackServer(LABELS, respond) as server:
        url = ("--judge", "openai:m", "--base-url", server.base_url)
        done = rag_eval("run", calls, "-o", out, *url, *words)

    assert done.code == code
    assert len(out.read_bytes().splitlines()) == 20
    assert "odd request" in done.out
    assert (f"FAILED: {failing} of 20 calls" in done.err) == (code == 1)
