"""`rag-eval pull`: calls of the traces that a tool holds, by its own client over loopback."""

from __future__ import annotations

import gc
import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pytest
from exported_traces import ANSWER, QUESTION, TEXTS, observations, rest, runs
from trace_tools import Answer, LangfuseService, LangSmithService, PhoenixService, running

from rag_eval_integrations.cli import main
from rag_eval_integrations.cli import pull as module
from rag_eval_integrations.records import RagCall

pytestmark = pytest.mark.filterwarnings("ignore:.*unclosed")


class Phoenix(PhoenixService):
    """Answers `get_spans` of five traces; refuses as often as it is told to."""

    traces: list[str] = [f"t{number}" for number in range(5)]  # noqa: RUF012  # of each test
    refusals = 0
    young = -1
    """The number of the trace that ended just now."""

    def answer(self, method: str, path: str, body: Any) -> Answer:
        if self.refusals and "spans" in path:
            self.refusals -= 1
            return 503, {"detail": "not now"}
        if method == "POST":
            return super().answer(method, path, body)
        if path == "/arize_phoenix_version":
            return 200, b"20.26.0"
        asked = parse_qs(urlsplit(path).query)
        now = datetime.now(UTC).isoformat()
        spans = []
        for number, trace in enumerate(self.traces):
            for span in rest():
                ids = {**span["context"], "trace_id": trace}
                ended = now if number == self.young else span["end_time"]
                spans.append({**span, "context": ids, "end_time": ended, "span_kind": "CHAIN"})
        if "parent_id" in asked:
            spans = [span for span in spans if span["parent_id"] is None]
        if "trace_id" in asked:
            spans = [span for span in spans if span["context"]["trace_id"] in asked["trace_id"]]
        return 200, {"data": spans, "next_cursor": None}


class Langfuse(LangfuseService):
    """Answers the second version of the observations' API, a page of two each."""

    def answer(self, method: str, path: str, body: Any) -> Answer:
        asked = parse_qs(urlsplit(path).query)
        rows: list[dict[str, Any]] = [
            {**row, "projectId": "p", "isRootObservation": row["parentObservationId"] is None}
            for row in observations()
        ]
        if asked.get("isRootObservation") == ["true"]:
            rows = [row for row in rows if row["isRootObservation"]]
        start = int(asked.get("cursor", ["0"])[0])
        more = start + 2 < len(rows)
        meta = {"cursor": str(start + 2)} if more else {}
        return 200, {"data": rows[start : start + 2], "meta": meta}


class LangSmith(LangSmithService):
    """Answers the query of runs."""

    def answer(self, method: str, path: str, body: Any) -> Answer:
        if path.endswith("/runs/query"):
            rows = [{**run, "session_id": str(UUID(int=9)), "dotted_order": "d"} for run in runs()]
            rows = (
                [run for run in rows if run["parent_run_id"] is None]
                if body.get("is_root")
                else rows
            )
            return 200, {"runs": rows, "cursors": {}}
        return super().answer(method, path, body)


@pytest.fixture
def phoenix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Phoenix]:
    pytest.importorskip("phoenix.client")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "pause_after", lambda tries: 0.01)
    service = Phoenix()
    with running(service):
        monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", service.url)
        yield service


def pull(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Run the command; return its exit code."""
    monkeypatch.setattr("sys.argv", ["rag-eval", "pull", *words])
    with pytest.raises(SystemExit) as end:
        main()
    gc.collect()  # the clients leave their connections to it
    return int(end.value.code or 0)


def calls_in(path: str) -> list[RagCall]:
    content = Path(path).read_bytes()
    text = gzip.decompress(content) if path.endswith(".gz") else content
    rows = [json.loads(line) for line in text.splitlines()]
    return [RagCall(**{key: row[key] for key in row if key != "schema"}) for row in rows]


def traces_in(path: str) -> list[str]:
    return [next(iter(call.capture.traces.values()))[0] for call in calls_in(path) if call.capture]


def test_calls_are_written(
    phoenix: Phoenix, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One per trace, with the numbers and the command that goes on; also gzipped and to a pipe."""
    assert pull(monkeypatch, "--from", "phoenix", "-o", "c.jsonl") == 0
    assert traces_in("c.jsonl") == phoenix.traces
    assert {(call.question, call.response) for call in calls_in("c.jsonl")} == {(QUESTION, ANSWER)}
    err = capsys.readouterr().err
    assert "15 spans, 5 traces, 5 calls" in err
    assert "next: rag-eval run c.jsonl -o evals.jsonl" in err
    assert not Path("c.jsonl.partial").exists()
    assert pull(monkeypatch, "--from", "phoenix", "-o", "c.jsonl.gz", "--limit", "2") == 0
    assert traces_in("c.jsonl.gz") == phoenix.traces[:2]
    assert pull(monkeypatch, "--from", "phoenix", "-o", "-", "--limit", "1") == 0
    assert json.loads(capsys.readouterr().out)["question"] == QUESTION
    assert {path for method, path in phoenix.requests if method != "GET"} == set()


def test_scores_go_back_onto_the_spans(
    phoenix: Phoenix, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pull, run and push: each root span has the scores of its call."""
    assert pull(monkeypatch, "--from", "phoenix", "-o", "c.jsonl", "--limit", "2") == 0
    for words in ("run c.jsonl -o e.jsonl", "push e.jsonl --to phoenix"):
        monkeypatch.setattr("sys.argv", ["rag-eval", *words.split()])
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code, capsys.readouterr().err
    gc.collect()
    assert {score["span_id"] for score in phoenix.scores} == {"a0"}
    assert {score["name"] for score in phoenix.scores} >= {"adherence", "context_relevance"}


def test_an_export_is_run_as_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it was read as is told; `--format` names the tool."""
    monkeypatch.chdir(tmp_path)
    Path("spans.jsonl").write_text("".join(f"{json.dumps(run)}\n" for run in runs()))
    for more in ((), ("--format", "langsmith")):
        words = ["rag-eval", "run", "spans.jsonl", "-o", "e.jsonl", "--overwrite", *more]
        monkeypatch.setattr("sys.argv", words)
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code
        assert "read as spans of LangSmith: 3 spans, 1 trace, 1 call" in capsys.readouterr().err


def test_a_young_trace_waits_for_the_next_pull(
    phoenix: Phoenix, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which takes what OUT lacks, and none twice."""
    phoenix.young = 3
    assert pull(monkeypatch, "--from", "phoenix", "-o", "c.jsonl", "--settle", "10m") == 0
    assert "1 trace younger than 10m: for the next pull" in capsys.readouterr().err
    assert pull(monkeypatch, "--from", "phoenix", "-o", "c.jsonl") == 2
    assert "--resume" in capsys.readouterr().err
    phoenix.young = -1
    for _ in range(2):
        assert pull(monkeypatch, "--from", "phoenix", "-o", "c.jsonl", "--resume") == 0
        assert traces_in("c.jsonl") == ["t0", "t1", "t2", "t4", "t3"]
    assert "5 calls had been pulled before" in capsys.readouterr().err
    assert pull(monkeypatch, "--from", "phoenix", "-o", "c.jsonl", "--overwrite") == 0
    assert traces_in("c.jsonl") == phoenix.traces
    assert not Path("c.jsonl.bak").exists()


def test_what_was_pulled_before_a_failure_is_kept(
    phoenix: Phoenix, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A refusal that passes is waited for; else the calls stay beside OUT, also a torn line's."""
    monkeypatch.setattr(module, "_BATCH", 2)
    phoenix.refusals = 3
    assert pull(monkeypatch, "--from", "phoenix", "-o", "a.jsonl") == 0
    assert traces_in("a.jsonl") == phoenix.traces
    answer = phoenix.answer

    def ends(method: str, path: str, body: Any) -> Answer:
        return (401, {}) if "trace_id=t2" in path else answer(method, path, body)

    monkeypatch.setattr(phoenix, "answer", ends)
    assert pull(monkeypatch, "--from", "phoenix", "-o", "b.jsonl") == 2
    err = capsys.readouterr().err
    assert "2 calls are kept in" in err
    assert "--resume" in err
    assert "401" in err
    assert not Path("b.jsonl").exists()
    partial = Path("b.jsonl.partial")
    partial.write_bytes(partial.read_bytes() + b'{"schema":1,"question":"wh')
    assert pull(monkeypatch, "--from", "phoenix", "-o", "b.jsonl") == 2
    assert "did not end" in capsys.readouterr().err
    monkeypatch.setattr(phoenix, "answer", answer)
    assert pull(monkeypatch, "--from", "phoenix", "-o", "b.jsonl", "--resume") == 0
    assert traces_in("b.jsonl") == phoenix.traces
    assert not partial.exists()


def test_mistakes_are_told(
    phoenix: Phoenix, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line each, and nothing is left behind."""
    mistakes = {
        "use one of phoenix, mlflow": ("--from", "wandb", "-o", "c.jsonl"),
        "such as 90m": ("--from", "phoenix", "-o", "c.jsonl", "--since", "soon"),
        "ends in .jsonl or .gz": ("--from", "phoenix", "-o", "c.parquet"),
    }
    for words, arguments in mistakes.items():
        assert pull(monkeypatch, *arguments) == 2
        err = capsys.readouterr().err
        assert words in err, err
        assert len(err.splitlines()) == 1
    phoenix.traces = []
    assert pull(monkeypatch, "--from", "phoenix", "-o", "c.jsonl") == 1
    assert list(Path().iterdir()) == []


def test_langfuse_is_read_page_by_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the keys of the environment, which name the project; a secret is not printed."""
    pytest.importorskip("langfuse")
    from langfuse._client.resource_manager import LangfuseResourceManager

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "of pull")  # a client per key stays
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "SECRET")
    with running(Langfuse()) as service:
        source = ("--from", "langfuse", "--url", service.url, "-o", "c.jsonl")
        assert pull(monkeypatch, *source, "--project", "p") == 2
        assert "belong to one project" in capsys.readouterr().err
        assert pull(monkeypatch, *source, "--since", "7d") == 0
    LangfuseResourceManager.reset()  # else it is the client of every later test
    (call,) = calls_in("c.jsonl")
    assert [document.text for document in call.documents] == TEXTS
    assert len(service.requests) == 3
    assert "SECRET" not in "".join(capsys.readouterr())


def test_langsmith_is_read_trace_by_trace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its roots are listed, and the runs of each trace asked for."""
    pytest.importorskip("langsmith")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LANGSMITH_API_KEY", "key")
    with running(LangSmith()) as service:
        words = ("--from", "langsmith", "--url", service.url, "--project", "app", "-o", "c.jsonl")
        assert pull(monkeypatch, *words) == 0
    (call,) = calls_in("c.jsonl")
    assert (call.question, [document.text for document in call.documents]) == (QUESTION, TEXTS)
