"""`--timeout`, `--max-tokens`, `--extra-body`, and what a run counts as failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ferries import LABELS, Command
from loopback import Body, LoopbackServer, Reply

pytestmark = pytest.mark.usefixtures("calls")

RUN = ("run", "calls.jsonl", "-o", "e.jsonl", "--judge", "openai:m")
DOCTOR = ("doctor", "--judge", "openai:m")
GENERATE = ("prompt-tests", "generate", "p.md", "-o", "t", "--model", "openai:m")


def test_they_reach_the_endpoint(rag_eval: Command) -> None:
    """In the body of every request, from every command that names a model."""
    Path("p.md").write_text("Say whether {{text}} is polite.")
    options = ("--max-tokens", 77, "--extra-body", '{"reasoning_effort": "low"}', "--timeout", "30")
    with LoopbackServer(LABELS) as server:
        for command, code in ((RUN, 0), (DOCTOR, 0), (GENERATE, None)):
            rag_eval(*command, "--base-url", server.base_url, *options, code=code)
        bodies = server.requests

    assert len(bodies) > 21
    assert {body["max_tokens"] for body in bodies} == {77}
    assert {body["reasoning_effort"] for body in bodies} == {"low"}


def test_a_timeout_bounds_an_answer(rag_eval: Command) -> None:
    """The reason names the seconds."""
    hang = iter([Reply(delay=60)])
    with LoopbackServer(LABELS, lambda _: next(hang, None)) as server:
        done = rag_eval(*RUN, "--base-url", server.base_url, "--timeout", "0.2", code=0)
    assert "did not answer within 0.2 s" in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*RUN, "--timeout", "0"), "`--timeout` = 0.0: use a number of seconds above 0"),
        ((*DOCTOR, "--timeout", "nan"), "`--timeout` = nan: use a number of seconds above 0"),
        ((*GENERATE, "--max-tokens", "0"), "--max-tokens"),
        ((*RUN, "--extra-body", "{top_k: 2}"), "`--extra-body` = '…': is not JSON (Expecting"),
        ((*DOCTOR, "--extra-body", "[1]"), "use a JSON object"),
        ((*RUN, "--extra-body", '{"a": NaN}'), "NaN is not JSON"),
    ],
)
def test_mistakes_are_named(rag_eval: Command, words: tuple[str, ...], message: str) -> None:
    """With the option's name, before anything is sent or written."""
    before = sorted(Path().iterdir())
    assert message in rag_eval(*words, "--base-url", "http://127.0.0.1:9/v1", code=2).err
    assert sorted(Path().iterdir()) == before


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
    rag_eval: Command, failing: int, words: tuple[str, ...], code: int
) -> None:
    """One of twenty is 5 %, which is the default; the rows are written in any case."""

    def respond(body: Body) -> Reply | None:
        bad = any(f"ferry {n} " in json.dumps(body) for n in range(failing))
        return Reply.json({"error": {"message": "odd request"}}, 400) if bad else None

    with LoopbackServer(LABELS, respond) as server:
        done = rag_eval(*RUN, "--base-url", server.base_url, *words, code=code)

    assert len(Path("e.jsonl").read_bytes().splitlines()) == 20
    assert "odd request" in done.out
    assert (f"FAILED: {failing} of 20 calls" in done.err) == (code == 1)
