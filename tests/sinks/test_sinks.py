"""The first three sinks: a file, the log, a function."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from runs import call

from rag_eval_integrations import Capture, Evaluation, Score
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import from_line
from rag_eval_integrations.sinks import CallbackSink, JsonlSink, LoggingSink


def made(id: str = "1", *, response: str = "SECRET", **more: Any) -> Evaluation:
    failed = Score(name="geval:tone", status="error", reason="SECRET")
    scores: Any = {"adherence": 1.0, "completeness": "no_relevant", "geval:tone": failed}
    return call(id, scores, question="SECRET", response=[response], documents=["SECRET"], **more)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "evals.jsonl"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What the sink logs."""
    caplog.set_level(logging.INFO, logger="rag_eval_integrations.scores")
    return caplog


def test_rows_are_lines_of_evals_jsonl(path: Path) -> None:
    """Appended in order, each readable as the evaluation it was."""
    sink = JsonlSink(path)
    assert not path.exists()
    rows = [made("1"), made("2", response="a\nb\u2028c\ud800"), made("3")]

    sink.write(rows[:1])
    sink.write(rows[1:])

    lines = path.read_bytes().split(b"\n")
    assert lines.pop() == b""
    assert [from_line(Evaluation, line) for line in lines] == rows
    assert all(json.loads(line)["schema"] == 2 for line in lines)


def test_the_path_does_not_move_with_the_app(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path is meant from where the sink was made."""
    monkeypatch.chdir(tmp_path)
    sink = JsonlSink("evals.jsonl")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")

    sink.write([made()])

    assert (tmp_path / "evals.jsonl").exists()


def test_a_rotated_file_is_made_anew(path: Path, tmp_path: Path) -> None:
    """As log rotation does it: the file is renamed, the next batch starts another."""
    sink = JsonlSink(path)
    sink.write([made("1")])
    path.rename(tmp_path / "evals.jsonl.1")
    sink.write([made("2")])

    assert from_line(Evaluation, path.read_bytes()).id == "2"


def test_a_row_cut_short_is_taken_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk raises, and leaves whole rows only."""
    sink = JsonlSink(path)
    sink.write([made("1")])
    before = path.read_bytes()
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, line: write(fd, line[:10]))

    with pytest.raises(OSError, match="10 of"):
        sink.write([made("2")])

    assert path.read_bytes() == before


def test_a_missing_folder_raises(tmp_path: Path) -> None:
    """For the background evaluator to count and log; no folder is made."""
    with pytest.raises(FileNotFoundError):
        JsonlSink(tmp_path / "none" / "evals.jsonl").write([made()])


def test_the_file_is_private_and_links_are_followed(tmp_path: Path) -> None:
    """It holds what users asked; one that exists keeps its mode."""
    path, real = tmp_path / "link.jsonl", tmp_path / "real.jsonl"
    path.symlink_to(real)
    sink = JsonlSink(path)

    for number, mode in enumerate((0o600, 0o644)):
        sink.write([made(f"{number}")])
        assert real.stat().st_mode & 0o777 == mode
        real.chmod(0o644)

    assert path.is_symlink()
    assert path.read_bytes().count(b"\n") == 2


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"schema":1,"id":"1","row_key":"2"}\n', "of schema 1, and this version writes 2"),
        (b' {"schema": 12,"id":"1"', "of schema 12"),
        (b'{"question": "q"}\n', "something else than evaluations"),
        (b"notes\n", "something else than evaluations"),
        (b"\x1f\x8b\x08\x00", "something else than evaluations"),
    ],
)
def test_evaluations_are_not_mixed_with_something_else(
    path: Path, content: bytes, why: str
) -> None:
    """Refused as the sink is made, and in every batch if the file came later; left as it is."""
    early = JsonlSink(path)
    path.write_bytes(content)

    with pytest.raises(ConfigurationError, match=why):
        JsonlSink(path)
    with pytest.raises(ConfigurationError, match=why):
        early.write([made()])

    assert path.read_bytes() == content


@pytest.mark.parametrize("left", [b"", b"\n", b"{", b'{"schema":2', b'{"schema":2,"id":"4'])
def test_what_a_killed_process_left_is_written_on(path: Path, left: bytes) -> None:
    """However little of the first row it was; the next one starts on a line of its own."""
    path.write_bytes(left)

    JsonlSink(path).write([made("5")])

    lines = path.read_bytes().splitlines()
    assert len(lines) == 1 + bool(left)
    assert from_line(Evaluation, lines[-1]).id == "5"
    JsonlSink(path).write([made("6")])


def test_a_fifo_or_folder_is_refused_at_once(tmp_path: Path) -> None:
    """As the sink is made; a FIFO that comes later is not waited for."""
    early = JsonlSink(tmp_path / "fifo")
    os.mkfifo(tmp_path / "fifo")

    for path, kind in ((tmp_path / "fifo", "a FIFO"), (tmp_path, "a folder")):
        with pytest.raises(ConfigurationError, match=kind):
            JsonlSink(path)
    with pytest.raises(ConfigurationError, match="a FIFO"):
        early.write([made()])


WRITER = """
import sys; sys.path[:0] = ["tests/sinks", "tests/support"]
from test_sinks import made
from rag_eval_integrations.sinks import JsonlSink
sink = JsonlSink(sys.argv[1])
for number in range(150):
    sink.write([made(f"{sys.argv[2]}-{number}", response=sys.argv[2] * 20_000)])
"""


def test_several_processes_never_tear_a_row(path: Path, root: Path) -> None:
    """Three processes, 450 rows of 20 kB: every line is whole, and each process's in order."""
    command = [sys.executable, "-c", WRITER, str(path)]
    writers = [subprocess.Popen([*command, name], cwd=root) for name in "abc"]

    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    rows = [from_line(Evaluation, line) for line in path.read_bytes().splitlines()]
    for name in "abc":
        ids = [row.id for row in rows if row.id.startswith(name)]
        assert ids == [f"{name}-{number}" for number in range(150)]


def test_one_log_record_a_call_with_fields(log: pytest.LogCaptureFixture) -> None:
    """At INFO, with what a log pipeline needs, and no text of the user's in the message."""
    capture = Capture(framework="langchain", run_id="run-7", latency_s=1.25)
    LoggingSink().write([made("1", capture=capture), made("2")])

    first, second = log.records
    assert (first.name, first.levelname) == ("rag_eval_integrations.scores", "INFO")
    assert first.getMessage() == (
        "call 1: adherence=1.000 completeness=no_relevant geval:tone=error"
    )
    assert first.rag_eval == {  # type: ignore[attr-defined]  # given as `extra`
        "id": "1", "run_id": "run-7", "scores": {"adherence": 1.0}, "latency_s": 1.25,
        "unscored": {"completeness": "no_relevant", "geval:tone": "error"}, "judge": "by hand",
    }  # fmt: skip
    assert second.rag_eval["run_id"] is None  # type: ignore[attr-defined]  # the same
    assert "SECRET" not in log.text


def test_an_id_or_a_name_cannot_forge_a_log_line(log: pytest.LogCaptureFixture) -> None:
    """Line ends and control characters are escaped, an id is cut, a name of several words quoted."""
    name = "x\n=1.000 adherence"
    row = made().model_copy(update={"scores": {name: Score(name=name, status="scored", value=0.5)}})
    LoggingSink().write([made("1\nERROR all is lost \x1b[31m \u2028" + "x" * 500), row])

    message = log.records[0].getMessage()
    assert message.startswith("call 1\\nERROR all is lost \\x1b[31m \\u2028xxx")
    assert len(message) < 200
    assert message.isprintable()
    assert log.records[1].getMessage() == 'call 1: "x\\n=1.000 adherence"=0.500'


def test_nothing_is_made_when_nobody_listens(log: pytest.LogCaptureFixture) -> None:
    """Below INFO the sink does no work."""
    log.set_level(logging.WARNING, logger="rag_eval_integrations.scores")
    LoggingSink().write([made()])

    assert log.records == []


def test_the_callback_has_every_evaluation_in_order() -> None:
    """Also the ones after a failure, which is raised in the end."""
    seen: list[str] = []

    def function(evaluation: Evaluation) -> None:
        seen.append(evaluation.id)
        if evaluation.id in ("2", "3"):
            raise KeyError(evaluation.id)

    sink = CallbackSink(function)
    with pytest.raises(KeyError):
        sink.write([made("1"), made("2")])
    with pytest.raises(ExceptionGroup):
        sink.write([made("2"), made("3"), made("4")])

    assert seen == ["1", "2", "2", "3", "4"]


def test_a_callback_that_cannot_be_called_is_refused() -> None:
    """At construction; an async one too, which nothing would await."""

    async def later(evaluation: Evaluation) -> None: ...

    for wrong in (None, "print", later):
        with pytest.raises(ConfigurationError, match="`function`"):
            CallbackSink(wrong)  # type: ignore[arg-type]  # the point
    with pytest.raises(ConfigurationError, match="is a class; pass an object of it"):
        CallbackSink(list)


@pytest.mark.parametrize("path", [None, 5, b"evals.jsonl"])
def test_a_path_that_is_none_is_refused(path: object) -> None:
    """At construction, naming it: such as a variable of the environment that is not set."""
    with pytest.raises(ConfigurationError, match=f"`path` = {path!r}: use the path of a file"):
        JsonlSink(path)  # type: ignore[arg-type]  # the point
