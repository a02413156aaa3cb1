"""A judge that cannot be used is told at once, with the reason, and asked no more."""

from __future__ import annotations

import gc
import json
import socket
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from ferries import LABELS, Command, ferries
from loopback import Behaviour, Body, LoopbackServer, Reply

from rag_eval_integrations.records import Evaluation, from_line

# A run that repeats such requests ends after the minutes that a request is given, not within these.
pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    return ferries(tmp_path / "calls.jsonl", 60)


@contextmanager
def free_port() -> Iterator[int]:
    """A port on which nothing listens while this lasts: it is bound, and refuses."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@contextmanager
def without_tls() -> Iterator[int]:
    """A server that speaks no TLS: every handshake fails."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        stop = threading.Event()

        def serve() -> None:
            while not stop.is_set():
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                with connection:
                    connection.recv(1000)
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            stop.set()
            thread.join()


def run(rag_eval: Command, calls: Path, base_url: str, *more: object) -> Any:
    words = ("--judge", "openai:small", "--base-url", base_url, *more)
    return rag_eval("run", calls, "-o", calls.parent / "evals.jsonl", *words)


def assert_nothing_is_left(calls: Path) -> None:
    assert [path.name for path in calls.parent.iterdir()] == ["calls.jsonl"]


def test_a_refused_connection_ends_the_run(rag_eval: Command, calls: Path) -> None:
    """At once, with exit 1 and the reason, and no file is left."""
    with free_port() as port:
        done = run(rag_eval, calls, f"http://127.0.0.1:{port}/v1")

    assert (done.code, done.out) == (1, "")
    told, failed = done.err.splitlines()
    assert told.startswith("openai:small: ")
    assert f"small at 127.0.0.1:{port}: connection refused" in told
    assert failed.startswith("FAILED: the judge openai:small cannot be used")
    assert_nothing_is_left(calls)


def test_an_unknown_host_ends_the_run(
    rag_eval: Command, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The resolver's answer is made here, because a test asks no real one."""

    def unknown(*args: object, **options: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    done = run(rag_eval, calls, "http://no-such-host.invalid/v1")

    assert done.code == 1
    assert "name or service not known" in done.err.lower()
    assert_nothing_is_left(calls)


def test_a_failed_handshake_ends_the_run(rag_eval: Command, calls: Path) -> None:
    """`https` to a server that speaks none."""
    with without_tls() as port:
        done = run(rag_eval, calls, f"https://127.0.0.1:{port}/v1")
    # The run cancels the other handshakes, and httpcore leaves the sockets of those to the garbage
    # collector (it closes them for an `Exception`, which a cancellation is not).
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()

    assert done.code == 1
    assert "ssl" in done.err.lower() or "tls" in done.err.lower()
    assert_nothing_is_left(calls)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refused_key_url_or_name_ends_the_run(
    rag_eval: Command, calls: Path, status: int
) -> None:
    """A few requests tell; the rest are not sent."""

    def refuse(body: Body) -> Reply:
        return Reply.json({"error": {"message": "no such thing"}}, status)

    with LoopbackServer(respond=refuse) as server:
        done = run(rag_eval, calls, server.base_url, "--max-concurrency", 4)
        sent = len(server.requests)

    assert done.code == 1
    assert f"replied {status}: no such thing" in done.err
    assert sent < 12
    assert_nothing_is_left(calls)


def test_one_row_is_enough(rag_eval: Command, calls: Path) -> None:
    """Fewer calls than requests that tell."""
    with LoopbackServer(Behaviour(statuses=(401,) * 9)) as server:
        done = run(rag_eval, calls, server.base_url, "--limit", 1)

    assert done.code == 1
    assert "cannot be used" in done.err
    assert_nothing_is_left(calls)


def test_a_403_of_one_call_ends_nothing(rag_eval: Command, calls: Path) -> None:
    """A gateway's filter answers so; the others are scored, and the row says why."""

    def respond(body: Body) -> Reply | None:
        if "ferry 0 " not in json.dumps(body):
            return None
        return Reply.json({"error": {"message": "flagged"}}, 403)

    with LoopbackServer(LABELS, respond) as server:
        done = run(rag_eval, calls, server.base_url)

    assert done.code == 0
    rows = (calls.parent / "evals.jsonl").read_bytes().splitlines()
    errors = [from_line(Evaluation, row).error for row in rows]
    assert [error is not None for error in errors] == [True] + [False] * 59
    assert "ERROR (1 call): judge: JudgeRejectedError: small at" in done.out
    assert "flagged" in done.out


def test_a_resumed_run_keeps_what_it_had(rag_eval: Command, calls: Path) -> None:
    """A judge that is gone takes nothing away: rows and exit code say so."""
    out = calls.parent / "evals.jsonl"
    with LoopbackServer(LABELS) as server:
        run(rag_eval, calls, server.base_url, "--limit", 5)
        before = out.read_bytes()
        url = server.base_url
    done = run(rag_eval, calls, url, "--resume")

    assert done.code == 1
    assert out.read_bytes() == before
    assert not out.with_name("evals.jsonl.partial").exists()


def test_a_cache_answers_without_its_judge(rag_eval: Command, calls: Path) -> None:
    """What is in the cache is scored although the judge is gone; the rest are errors."""
    with LoopbackServer(LABELS) as server:
        cache = ("--cache", calls.parent / "answers.db")
        run(rag_eval, calls, server.base_url, "--limit", 30, *cache)
        url = server.base_url
    (calls.parent / "evals.jsonl").unlink()
    done = run(rag_eval, calls, url, *cache)

    assert done.code == 1
    assert "30 of 60 calls (50.0%) ended in an error; --max-error-rate is 0.05" in done.err
    assert "30/60" in done.out


def test_doctor_says_at_once_that_nobody_listens(rag_eval: Command) -> None:
    """And why."""
    with free_port() as port:
        done = rag_eval(
            "doctor", "--judge", "openai:m", "--base-url", f"http://127.0.0.1:{port}/v1"
        )

    assert done.code == 1
    assert "refused" in done.out.lower()


@pytest.mark.parametrize("slow", [Behaviour(latency=60), Behaviour(statuses=(503,) * 99)])
def test_doctor_does_not_wait_for_ever(rag_eval: Command, slow: Behaviour) -> None:
    """A server that is too slow or busy has a verdict when `--timeout` is over."""
    with LoopbackServer(slow) as server:
        url = ("--judge", "openai:m", "--base-url", server.base_url)
        done = rag_eval("doctor", *url, "--timeout", 0.3)

    assert done.code == 1
    assert "FAILED" in done.out
    assert "0.3 s" in done.out or "503" in done.out


def test_a_generator_that_cannot_be_reached_exits_1(rag_eval: Command, tmp_path: Path) -> None:
    """`prompt-tests` tells the same, at once."""
    prompt = tmp_path / "p.md"
    prompt.write_text("Say whether {{text}} is polite.")
    with free_port() as port:
        done = rag_eval(
            "prompt-tests", "generate", prompt, "-o", tmp_path / "t", "--model", "openai:m",
            "--base-url", f"http://127.0.0.1:{port}/v1",
        )  # fmt: skip

    assert done.code == 1
    assert "refused" in done.err.lower()
