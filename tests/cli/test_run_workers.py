"""`rag-eval run --workers`: the file of one process, whatever ends the run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from ferries import Command
from other_processes import calls, runs

from rag_eval_integrations.dataset.stream import ALONE
from rag_eval_integrations.records import to_line

MAIN = "from rag_eval_integrations.cli import main; main()"

pytestmark = pytest.mark.slow  # every test starts processes


def _lines(path: Path, count: int) -> Path:
    path.write_text("".join(to_line(call) + "\n" for call in calls(count)))
    return path


def test_the_command_writes_the_same_file(rag_eval: Command) -> None:
    """And prints the same figures, whatever the number of processes."""
    path = _lines(Path("calls.jsonl"), ALONE + 40)
    tables = [
        rag_eval("run", path, "-o", f"{n}.jsonl", "--workers", n, code=0).out.split("Each sentence")
        for n in (1, 2)
    ]
    assert Path("1.jsonl").read_bytes() == Path("2.jsonl").read_bytes()
    assert tables[0][0] == tables[1][0]


def test_the_command_refuses_workers_for_a_model(
    rag_eval: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says what to raise instead."""
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    words = ("run", _lines(Path("calls.jsonl"), 1), "-o", "out.jsonl", "--judge", "openai:m")
    said = rag_eval(*words, "--workers", 2, code=2).err
    assert "--workers" in said
    assert "concurrent calls" in said


@pytest.mark.skipif(sys.platform == "win32", reason="this platform has no such signals")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_ended_goes_on(rag_eval: Command, number: signal.Signals) -> None:
    """No process is left behind, and `--resume` gives the file of a run that was not ended."""
    path, out = _lines(Path("calls.jsonl"), 20_000), Path("out.jsonl")
    command = [sys.executable, "-c", MAIN, "run", str(path), "-o", str(out), "--workers", "2"]
    partial = out.with_name("out.jsonl.partial")
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        _until(lambda: partial.exists() and partial.read_bytes().count(b"\n") > ALONE + 50)
        children = _children(process.pid)
        process.send_signal(number)
        process.communicate(timeout=60)
    kept = partial.read_bytes().count(b"\n")

    _until(lambda: not [child for child in children if runs(child)])
    assert children
    assert kept > ALONE
    short = Path("short.jsonl")
    short.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[: kept + 20]))
    assert rag_eval("run", short, "-o", out, "--workers", "1", "--resume").code == 0
    ids = [json.loads(line)["id"] for line in out.read_text().splitlines()]
    assert ids == [str(number) for number in range(kept + 20)]


def _children(number: int) -> list[int]:
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(number)], capture_output=True, text=True, check=False
    )
    return [int(word) for word in listed.stdout.split()]


def _until(happened: Callable[[], bool]) -> None:
    for _ in range(600):
        if happened():
            return
        time.sleep(0.1)
    raise AssertionError("it did not happen within a minute")
