"""A judge that cannot be used is told at once, with the reason, and asked no more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ferries import LABELS, Command, read
from loopback import Behaviour, Body, LoopbackServer, Reply

# A run that repeats such requests ends after the minutes that a request is given, not within these.
pytestmark = pytest.mark.timeout(60)


def run(rag_eval: Command, calls: Path, base_url: str, *more: object, code: int) -> Any:
    words = ("--judge", "openai:small", "--base-url", base_url, *more)
    return rag_eval("run", calls, "-o", "evals.jsonl", *words, code=code)


def ended(rag_eval: Command, calls: Path, base_url: str, *more: object) -> Any:
    """What a run said that ended with exit code 1 and left no file."""
    done = run(rag_eval, calls, base_url, *more, code=1)
    assert [path.name for path in Path().iterdir()] == ["calls.jsonl"]
    return done


def test_a_refused_connection_ends_the_run(rag_eval: Command, calls: Path) -> None:
    """At once, with exit 1 and the reason, and no file is left; `doctor` and `prompt-tests` too."""
    Path("p.md").write_text("Say whether {{text}} is polite.")
    generate = ("prompt-tests", "generate", "p.md", "-o", "t", "--model", "openai:m")
    url = ("--base-url", "http://127.0.0.1:9/v1")
    doctor = rag_eval("doctor", "--judge", "openai:m", *url, code=1)
    generator = rag_eval(*generate, *url, code=1)
    done = run(rag_eval, calls, url[1], code=1)

    assert "refused" in doctor.out.lower()
    assert "refused" in generator.err.lower()
    assert done.out == ""
    assert not list(Path().glob("evals*"))
    told, failed = done.err.splitlines()
    assert told.startswith("openai:small: ")
    assert "small at 127.0.0.1:9: connection refused" in told
    assert failed.startswith("FAILED: the judge openai:small cannot be used")


WRONG = {"error": {"message": "no such thing"}}


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        (Reply.json(WRONG, 401), "replied 401: no such thing"),
        (Reply.json(WRONG, 403), "replied 403: no such thing"),
        (Reply.json(WRONG, 404), "replied 404: no such thing"),
        (Reply(body=b"<html>Welcome"), "a web page: is base_url right?"),
    ],
)
def test_a_refused_key_url_or_name_ends_the_run(
    rag_eval: Command, calls: Path, refusal: Reply, said: str
) -> None:
    """A few requests tell; the rest are not sent. A run of one call has fewer than that.

    So it is with instructions of the user.
    """
    with LoopbackServer(respond=lambda _: refusal) as server:
        done = ended(rag_eval, calls, server.base_url, "--max-concurrency", 4)
        sent = len(server.requests)
        single = ended(rag_eval, calls, server.base_url, "--limit", 1)
        ended(rag_eval, calls, server.base_url, "--instructions", "Be strict.")

    assert said in done.err
    assert sent < 12
    assert "cannot be used" in single.err


def test_a_403_of_one_call_ends_nothing(rag_eval: Command, calls: Path, out: Path) -> None:
    """A gateway's filter answers so; the others are scored, and the row says why."""

    def respond(body: Body) -> Reply | None:
        flagged = Reply.json({"error": {"message": "flagged"}}, 403)
        return flagged if "ferry 0 " in json.dumps(body) else None

    with LoopbackServer(LABELS, respond) as server:
        done = run(rag_eval, calls, server.base_url, code=0)

    assert [row.error is not None for row in read(out)] == [True] + [False] * 19
    assert "ERROR (1 call): judge: JudgeRejectedError: small at" in done.out
    assert "flagged" in done.out


def test_a_judge_that_is_gone_takes_nothing_away(rag_eval: Command, calls: Path, out: Path) -> None:
    """A resumed run keeps its rows and says so by its exit code.

    What is in the cache is scored although the judge is gone; the rest are errors.
    """
    cache = ("--cache", "answers.db")
    with LoopbackServer(LABELS) as server:
        url = server.base_url
        run(rag_eval, calls, url, "--limit", 10, *cache, code=0)
    before = out.read_bytes()
    run(rag_eval, calls, url, "--resume", code=1)
    assert out.read_bytes() == before
    assert not Path("evals.jsonl.partial").exists()

    out.unlink()
    done = run(rag_eval, calls, url, *cache, code=1)
    assert "10 of 20 calls (50.0%) ended in an error; --max-error-rate is 0.05" in done.err
    assert "10/20" in done.out


@pytest.mark.parametrize("slow", [Behaviour(latency=60), Behaviour(statuses=(503,) * 99)])
def test_doctor_does_not_wait_for_ever(rag_eval: Command, slow: Behaviour) -> None:
    """A server that is too slow or busy has a verdict when `--timeout` is over."""
    with LoopbackServer(slow) as server:
        done = rag_eval("doctor", "--timeout", 0.3, judge=server, code=1)
    assert "FAILED" in done.out
    assert "0.3 s" in done.out or "503" in done.out
