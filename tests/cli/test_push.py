"""`rag-eval push`: the scores of a file, once each, whatever happens in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ferries import Command
from forked import WarmPopen
from runs import MAKER, call, write
from trace_tools import LangfuseService, MLflowService, OtlpService, PhoenixService, running

from rag_eval_integrations.cli import push
from rag_eval_integrations.metrics import TRACE_SCORES
from rag_eval_integrations.records import Capture, Score

TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(push, "pause_after", lambda failures: 0.0)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")


def written(path: Path, calls: int, *, traced: bool = True) -> Path:
    """A file of evaluations; the metadata has the number of each."""
    traces: Any = {"openinference": (TRACE, f"{1:016x}"), "mlflow": (f"tr-{TRACE}", "1")}
    capture = Capture(framework="langchain", run_id="run", traces=traces if traced else {})
    scored = Score(name="x", status="scored", value=1.0, reason="It is so.", by=MAKER)
    scores = {name: scored.model_copy(update={"name": name}) for name in TRACE_SCORES}
    made = [call(f"q{n}", scores, metadata={"number": n}, capture=capture) for n in range(calls)]
    return write(path, made)


def test_every_score_is_posted_once(rag_eval: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Again with the same command, nothing is posted; rows that came since are."""
    path = written(Path("evals.jsonl"), 3)
    with running(PhoenixService()) as service:
        monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", service.url)
        first = rag_eval("push", path, "--to", "phoenix", code=0)
        again = rag_eval("push", path, "--to", "phoenix")
        extra = written(Path("more.jsonl"), 5).read_bytes().splitlines()[3:]
        path.write_bytes(path.read_bytes() + b"\n".join(extra) + b"\n")
        later = rag_eval("push", path, "--to", "phoenix")

        assert first.out == "Posted the scores of 3 calls to Phoenix\n"
        assert "Posted the scores of 0 calls to Phoenix; 3 had been posted before" in again.out
        assert "Posted the scores of 2 calls to Phoenix; 3 had been posted before" in later.out
        assert len([request for request in service.requests if request[0] == "POST"]) == 2
        assert len(service.scores) == 5 * len(TRACE_SCORES)
    assert Path("evals.jsonl.pushed").stat().st_mode & 0o777 == 0o600


def test_a_dry_run_posts_nothing(rag_eval: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts, also the calls without a trace of the tool, and leaves no file."""
    monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", "http://127.0.0.1:9")
    path = written(Path("evals.jsonl"), 3)
    untraced = written(Path("untraced.jsonl"), 2, traced=False)
    path.write_bytes(path.read_bytes() + untraced.read_bytes())

    done = rag_eval("push", path, "--to", "phoenix", "--dry-run", code=0)

    assert done.out == "Would post 18 scores of 3 calls to Phoenix\n"
    assert "2 calls without a trace of openinference or otel or openllmetry" in done.err
    assert not Path("evals.jsonl.pushed").exists()


def test_only_what_is_asked_for(rag_eval: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """By `--where`; metadata and reasons by their options."""
    path = written(Path("evals.jsonl"), 3)
    with running(PhoenixService()) as service:
        monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", service.url)
        words = ("--where", "number=1", "--metadata", "number", "--texts")
        assert rag_eval("push", path, "--to", "phoenix", *words).code == 0
        none = rag_eval("push", path, "--to", "phoenix", "--where", "number=7", code=2)

        assert {score["metadata"]["number"] for score in service.scores} == {1}
        assert "It is so." in service.of("adherence")["result"]["explanation"]
    assert "none of 3 calls is so" in none.err


def test_what_the_tool_refuses_is_told(rag_eval: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 1; the others are posted and noted, and the next command tries only these.

    Where an answer is lost, the batch is posted again with the same ids: nothing is made twice.
    """
    path = written(Path("evals.jsonl"), 3)
    with running(MLflowService()) as service:
        assert isinstance(service, MLflowService)
        monkeypatch.setenv("MLFLOW_TRACKING_URI", service.url)
        service.unknown.add(f"tr-{TRACE}")
        assert "MLflow: 3 calls not posted" in rag_eval("push", path, "--to", "mlflow", code=1).err
        service.unknown.clear()
        service.lose = 1
        rag_eval("push", path, "--to", "mlflow", code=0)
        assert len(service.scores) == 3 * len(TRACE_SCORES)


def test_a_tool_that_is_down(rag_eval: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what is kept and how to go on; the same command then posts the rest."""
    monkeypatch.setattr(push, "_BATCH", 2)
    path = written(Path("evals.jsonl"), 6)
    with running(OtlpService()) as service:
        assert isinstance(service, OtlpService)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", service.url)
        answer = service.answer

        def twice(*request: Any) -> Any:
            if len(service.records) >= 4 * len(TRACE_SCORES):
                service.status = 400
                return 400, b""
            return answer(*request)

        monkeypatch.setattr(service, "answer", twice)
        ended = rag_eval("push", path, "--to", "otel", code=2)
        monkeypatch.setattr(service, "answer", answer)
        service.status = 0
        rest = rag_eval("push", path, "--to", "otel")

        assert "4 evaluations posted" in ended.err
        assert "OpenTelemetry takes no scores: ConnectionError" in ended.err
        assert "Posted the scores of 2 calls to OpenTelemetry; 4 had been posted before" in rest.out
        assert len(service.records) == 6 * len(TRACE_SCORES)


KILLED = """
import sys; sys.path[:0] = ["tests/support"]
from rag_eval_integrations.cli import main, push
push._BATCH = 10
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="this platform cannot kill so")
def test_a_kill_repeats_at_most_the_batch_in_flight(
    rag_eval: Command, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    """Also where the receiver knows no ids: events of OpenTelemetry."""
    path = written(Path("evals.jsonl"), 60)
    with running(OtlpService()) as service:
        assert isinstance(service, OtlpService)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", service.url)
        answer = service.answer
        child = WarmPopen(
            [sys.executable, "-c", KILLED, "push", str(path.resolve()), "--to", "otel"], cwd=root,
            env=os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

        def killing(*request: Any) -> Any:
            reply = answer(*request)
            if len(service.records) == 30 * len(TRACE_SCORES):
                os.kill(child.pid, signal.SIGKILL)
            return reply

        monkeypatch.setattr(service, "answer", killing)
        child.wait(120)
        assert child.returncode == -signal.SIGKILL
        assert rag_eval("push", path, "--to", "otel").code == 0

        received = len(service.records) / len(TRACE_SCORES)
        assert 60 <= received <= 70


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("e.jsonl --to jaeger", "`--to` = 'jaeger': use one of otel, langfuse, phoenix, mlf"),
        ("e.jsonl --to otel --where x", "--where"),
        ("- --to otel", "name a file: what is posted is noted beside it"),
    ],
)
def test_mistakes(rag_eval: Command, words: str, why: str) -> None:
    """Are told before anything is posted."""
    written(Path("e.jsonl"), 1)
    assert why in rag_eval("push", *words.split(), code=2).err


def test_bad_lines_are_told(rag_eval: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are posted, and the exit code is 2 unless they are to be skipped."""
    path = written(Path("evals.jsonl"), 2)
    path.write_bytes(path.read_bytes() + b'{"id": 1}\n')
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk-push")
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk-push")
    with running(LangfuseService()) as service:
        monkeypatch.setenv("LANGFUSE_BASE_URL", service.url)
        assert "1 invalid line not posted" in rag_eval("push", path, "--to", "langfuse", code=2).err
        assert len(service.scores) == 2 * len(TRACE_SCORES)
    assert rag_eval("push", path, "--to", "langfuse", "--skip-invalid").code == 0
    notes = [json.loads(line) for line in Path("evals.jsonl.pushed").read_bytes().splitlines()]
    assert len(notes[0]["langfuse"]) == 2
