"""`rag-eval run --judge openai:MODEL` against a real endpoint on loopback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ferries import LABELS, Command, read
from loopback import Behaviour, Body, LoopbackServer, Reply

from rag_eval_integrations.testing import labels_reply

CALLS = [
    {
        "id": str(number),
        "question": f"When does ferry {number} leave?",
        "documents": ["The ferry leaves at nine. It is green."],
        "response": "The ferry leaves at nine.",
    }
    for number in range(12)
]


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    path = tmp_path / "calls.jsonl"
    path.write_text("".join(json.dumps(call) + "\n" for call in CALLS))
    return path


def test_every_call_takes_one_request(rag_eval: Command, calls: Path, tmp_path: Path) -> None:
    """Four metrics from one answer; who judged, by which prompt, and what it cost."""
    out = tmp_path / "evals.jsonl"
    with LoopbackServer(LABELS) as server:
        done = rag_eval(
            "run", calls, "-o", out, "--judge", "openai:small", "--base-url", server.base_url
        )
        requests = len(server.requests)

    assert done.code == 0
    assert requests == len(CALLS)
    evaluations = read(out)
    assert [e.id for e in evaluations] == [call["id"] for call in CALLS]
    assert {e.scores["adherence"].value for e in evaluations} == {1.0}
    by = evaluations[0].scores["adherence"].by
    assert (by.judge, by.model, by.prompt_version) == ("openai:small", "small", "labels-1")
    assert sum(e.usage.requests for e in evaluations) == len(CALLS)
    assert f"{len(CALLS)} judge requests" in done.out
    assert "cost unknown" in done.out


def test_the_cache_answers_a_second_run(rag_eval: Command, calls: Path, tmp_path: Path) -> None:
    """No request is made twice, and the scores are the same."""
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    with LoopbackServer(LABELS) as server:
        words = [
            "--judge",
            "openai:small",
            "--base-url",
            server.base_url,
            "--cache",
            tmp_path / "c.db",
        ]
        assert rag_eval("run", calls, "-o", first, *words).code == 0
        assert rag_eval("run", calls, "-o", second, *words).code == 0
        requests = len(server.requests)

    assert requests == len(CALLS)
    assert [e.scores for e in read(first)] == [e.scores for e in read(second)]
    assert sum(e.usage.requests for e in read(second)) == 0


def test_faults_cost_no_row(rag_eval: Command, calls: Path, tmp_path: Path) -> None:
    """429 with Retry-After, 500, bodies cut off: every row is scored in the end, every request told."""
    out = tmp_path / "evals.jsonl"
    faulty = Behaviour(
        content=LABELS.content, statuses=(429, 500, 503, 429), headers={"retry-after-ms": "20"}
    )
    with LoopbackServer(faulty) as server:
        done = rag_eval(
            "run", calls, "-o", out, "--judge", "openai:small", "--base-url", server.base_url
        )
        requests = len(server.requests)

    assert done.code == 0
    assert all(e.error is None for e in read(out))
    assert requests == len(CALLS) + 4 == sum(e.usage.requests for e in read(out))
    assert "16 judge requests, 4 failed" in done.out


def test_a_web_page_ends_the_run(rag_eval: Command, calls: Path, tmp_path: Path) -> None:
    """As a 404 does: told with its reason, no row is written, nobody is asked eight times."""
    out = tmp_path / "evals.jsonl"
    with LoopbackServer(respond=lambda _: Reply(body=b"<html>Welcome")) as server:
        done = rag_eval(
            "run", calls, "-o", out, "--judge", "openai:small", "--base-url", server.base_url
        )
        requests = len(server.requests)

    assert (done.code, out.exists()) == (1, False)
    assert "a web page: is base_url right?" in done.err
    assert requests <= 2 * len(CALLS)


def test_an_answer_that_is_no_json_is_unscored(
    rag_eval: Command, calls: Path, tmp_path: Path
) -> None:
    """With its reason; the run goes on and exits 0."""
    out = tmp_path / "evals.jsonl"

    prose = {
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "No JSON today."}}]
    }

    def respond(body: Body) -> Reply | None:
        return Reply.json(prose) if "ferry 3" in json.dumps(body) else None

    with LoopbackServer(LABELS, respond) as server:
        done = rag_eval(
            "run", calls, "-o", out, "--judge", "openai:small", "--base-url", server.base_url
        )

    assert done.code == 0
    codes = [e.scores["adherence"].unscored for e in read(out)]
    assert codes == [None] * 3 + ["judge_output_invalid"] + [None] * 8
    assert "11/12" in done.out


def test_a_dry_run_counts_what_a_run_would_ask(rag_eval: Command, tmp_path: Path) -> None:
    """Retrieval alone is asked about; a call without response, question or documents is not."""
    calls = tmp_path / "odd.jsonl"
    alone = {"capture": {"framework": "plain", "status": "ok"}, "response": None}
    changes: list[dict[str, Any]] = [
        {}, alone, {"response": ""}, {"question": " "}, {"documents": []},
    ]  # fmt: skip
    calls.write_text("".join(json.dumps(CALLS[0] | change) + "\n" for change in changes))

    with LoopbackServer(LABELS) as server:
        judge = ("--judge", "openai:small", "--base-url", server.base_url)
        dry = rag_eval("run", calls, "-o", tmp_path / "e", "--dry-run", *judge)
        assert server.requests == []
        rag_eval("run", calls, "-o", tmp_path / "e", *judge)

        assert len(server.requests) == 2
    assert "about 2 requests" in dry.out


def test_doctor_tries_the_endpoint(rag_eval: Command) -> None:
    """Works, or says why not; calling an invented sentence supported is said."""
    call = Behaviour(content=labels_reply(["0a", "0b"], ["a", "b"]))
    with LoopbackServer(call) as server:
        done = rag_eval("doctor", "--judge", "openai:small", "--base-url", server.base_url)
    with LoopbackServer(Behaviour(statuses=(401,) * 50)) as server:
        refused = rag_eval("doctor", "--judge", "openai:small", "--base-url", server.base_url)

    assert done.code == 0
    assert "openai:small: works, but calls an invented sentence supported" in done.out
    assert refused.code == 1
    assert "401" in refused.out


def test_a_foreign_cache_is_refused_and_left_alone(
    rag_eval: Command, calls: Path, tmp_path: Path
) -> None:
    """Somebody's file is not a cache."""
    cache = tmp_path / "notes.txt"
    cache.write_text("my notes")

    with LoopbackServer(LABELS) as server:
        done = rag_eval(
            "run", calls, "-o", tmp_path / "e", "--cache", cache,
            "--judge", "openai:small", "--base-url", server.base_url,
        )  # fmt: skip

    assert done.code == 2
    assert cache.read_text() == "my notes"
