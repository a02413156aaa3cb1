"""`rag-eval run --judge openai:MODEL` against a real endpoint on loopback."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ferries import CALL, LABELS, Command, read, write
from loopback import Behaviour, Body, LoopbackServer, Reply

from rag_eval_integrations.testing import labels_reply

from .conftest import in_process

TWO = "The ferry leaves at nine. It is green."
CALLS = [
    CALL | {"id": str(n), "question": f"When does ferry {n} leave?", "documents": [TWO]}
    for n in range(12)
]


@pytest.fixture
def calls() -> Path:
    return write(Path("calls.jsonl"), *CALLS)


def test_every_call_takes_one_request(rag_eval: Command, calls: Path, out: Path) -> None:
    """Four metrics from one answer; who judged, by which prompt, and what it cost.

    With a cache, no request is made twice, and the scores are the same.
    """
    second, cache = Path("second.jsonl"), ("--cache", "c.db")
    with LoopbackServer(LABELS) as server:
        done = rag_eval("run", calls, "-o", out, *cache, judge=server, code=0)
        rag_eval("run", calls, "-o", second, *cache, judge=server, code=0)
        requests = len(server.requests)

    assert requests == len(CALLS)
    evaluations = read(out)
    assert [e.id for e in evaluations] == [call["id"] for call in CALLS]
    assert {e.scores["adherence"].value for e in evaluations} == {1.0}
    by = evaluations[0].scores["adherence"].by
    assert (by.judge, by.model, by.prompt_version) == ("openai:small", "small", "labels-1")
    assert sum(e.usage.requests for e in evaluations) == len(CALLS)
    assert f"{len(CALLS)} judge requests" in done.out
    assert "cost unknown" in done.out
    assert [e.scores for e in evaluations] == [e.scores for e in read(second)]
    assert sum(e.usage.requests for e in read(second)) == 0


def test_faults_cost_no_row(rag_eval: Command, calls: Path, out: Path) -> None:
    """429 with Retry-After, 500 and 503: every row is scored in the end, every request told."""
    faulty = Behaviour(
        content=LABELS.content, statuses=(429, 500, 503, 429), headers={"retry-after-ms": "20"}
    )
    with LoopbackServer(faulty) as server:
        done = rag_eval("run", calls, "-o", out, judge=server, code=0)
        requests = len(server.requests)

    assert all(e.error is None for e in read(out))
    assert requests == len(CALLS) + 4 == sum(e.usage.requests for e in read(out))
    assert "16 judge requests, 4 failed" in done.out


def test_an_answer_that_is_no_json_is_unscored(rag_eval: Command, calls: Path, out: Path) -> None:
    """With its reason; the run goes on and exits 0."""

    def respond(body: Body) -> Reply | None:
        message = {"content": "No JSON today."}
        prose = {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
        return Reply.json(prose) if "ferry 3" in json.dumps(body) else None

    with LoopbackServer(LABELS, respond) as server:
        done = rag_eval("run", calls, "-o", out, judge=server, code=0)

    codes = [e.scores["adherence"].unscored for e in read(out)]
    assert codes == [None] * 3 + ["judge_output_invalid"] + [None] * 8
    assert "11/12" in done.out


def test_a_dry_run_counts_what_a_run_would_ask(rag_eval: Command) -> None:
    """Retrieval alone is asked about; a call without response, question or documents is not."""
    alone = {"capture": {"framework": "plain", "status": "ok"}, "response": None}
    changes: list[dict[str, Any]] = [
        {}, alone, {"response": ""}, {"question": " "}, {"documents": []},
    ]  # fmt: skip
    calls = write(Path("odd.jsonl"), *(CALLS[0] | change for change in changes))

    with LoopbackServer(LABELS) as server:
        dry = rag_eval("run", calls, "-o", "e", "--dry-run", judge=server)
        assert server.requests == []
        rag_eval("run", calls, "-o", "e", judge=server)
        assert len(server.requests) == 2
    assert "about 2 requests" in dry.out


def test_doctor_tries_the_endpoint(rag_eval: Command) -> None:
    """It works; calling an invented sentence supported is said."""
    with LoopbackServer(Behaviour(content=labels_reply(["0a", "0b"], ["a", "b"]))) as server:
        done = rag_eval("doctor", judge=server, code=0)
    assert "openai:small: works, but calls an invented sentence supported" in done.out


def test_the_prompt_may_be_the_users_too(rag_eval: Command, calls: Path, out: Path) -> None:
    """Instructions of a file follow ours; every row has them, and no other run goes on with it."""
    Path("doses.txt").write_text("Dosages must match exactly.\n")
    words = ("run", calls, "-o", out, "--explanations", "unsupported", "--instructions")
    with LoopbackServer(LABELS) as server:
        rag_eval(*words, "@doses.txt", judge=server, code=0)
        again = rag_eval(*words, "Dosages may differ.", "--resume", judge=server, code=2)
        told = {body["messages"][0]["content"] for body in server.requests}

    assert all(text.endswith("\nDosages must match exactly.") for text in told)
    assert len(told) == 1
    evaluations = read(out)
    assert {e.judge.instructions for e in evaluations} == {"Dosages must match exactly."}
    versions = {e.scores["adherence"].by.prompt_version for e in evaluations}
    assert versions == {"labels-1/explanations-1/instructions-2859c2c0"}
    assert "another evaluator" in again.err


def test_the_prompt_of_a_cascades_model_may_be_the_users_too(rag_eval: Command, out: Path) -> None:
    """And of a worker's, and of the model that `calibrate`, `rescore` and `doctor` ask."""
    calls = write(Path("one.jsonl"), CALL | {"response": "A king of bridges paints it in gold."})
    with LoopbackServer(LABELS) as server:
        asked = ("--base-url", server.base_url, "--instructions", "Be strict.")
        name = "openai:small"
        rag_eval("run", calls, "-o", out, "--judge", f"cascade:embedded,{name}", *asked, code=0)
        rag_eval("doctor", "--judge", name, *asked, code=0)
        told = [body["messages"][0]["content"] for body in server.requests]

    assert len(told) == 2
    assert all(text.endswith("\nBe strict.") for text in told)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--instructions", "Be strict."), "`--instructions` = 'Be strict.': is for openai:MODEL"),
        (("--explanations", "all"), "`--explanations` = 'all': is for openai:MODEL, not for judge"),
        (("--instructions", "@none.txt", "--judge", "openai:m"), "none.txt: no such file"),
        (("--instructions", "x" * 2_001, "--judge", "openai:m"), "has 2,001 characters"),
        (("--explanations", "few", "--judge", "openai:m"), "`--explanations` = 'few': use all or"),
        (
            ("--instructions", "x", "--judge", "cascade:openai:a,openai:b"),
            "openai:a is a model, which does not say how sure it is",
        ),
    ],
)
def test_a_prompt_that_cannot_be_is_refused(
    rag_eval: Command, calls: Path, out: Path, options: tuple[str, ...], said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """By the option's name, before anything is asked or written."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    ran = rag_eval("run", calls, "-o", out, *options, code=2)

    assert said in ran.err
    assert not out.exists()


def test_a_run_says_which_limit_to_raise(calls: Path, out: Path) -> None:
    """Where every answer is cut off: once, after five calls; the others take two requests."""
    with LoopbackServer(Behaviour(finish_reason="length")) as server:
        judge = ("--judge", "openai:small", "--base-url", server.base_url, "--max-tokens", 5)
        command = in_process("run", calls, "-o", out, "--max-concurrency", 1, *judge)
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        requests = len(server.requests)

    assert {score.unscored for e in read(out) for score in e.scores.values()} == {"truncated"}
    assert requests <= 6 * 3 + 6 * 2  # the sixth call begins before the fifth has ended
    assert ended.stderr.count("cut off its answers to 5 calls in a row") == 1
    assert "(--max-tokens, or" in ended.stderr
