"""`rag-eval run --workers`: the file of one process, whatever ends the run."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from ferries import Command
from forked import WarmPopen
from other_processes import calls, runs
from processes import until

from rag_eval_integrations import Evaluations
from rag_eval_integrations.dataset.stream import ALONE
from rag_eval_integrations.records import to_line

from .conftest import in_process

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
    one, two = (Evaluations.load(f"{n}.jsonl") for n in (1, 2))
    assert [row.model_copy(update={"run": one[0].run}) for row in two] == one
    assert tables[0][0] == tables[1][0]


def test_workers_are_not_for_models(rag_eval: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """And says what to raise instead."""
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    words = ("run", _lines(Path("calls.jsonl"), 1), "-o", "out.jsonl", "--judge", "openai:m")
    said = rag_eval(*words, "--workers", 2, code=2).err
    assert "--workers" in said
    assert "concurrent calls" in said


@pytest.mark.skipif(sys.platform == "win32", reason="this platform has no such signals")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_ended_leaves_no_process(number: signal.Signals) -> None:
    """Neither by a kill nor by Ctrl-C; the rows that were made are kept."""
    path, out = _lines(Path("calls.jsonl"), 20_000), Path("out.jsonl")
    command = in_process("run", path, "-o", out, "--workers", 2)
    partial = out.with_name("out.jsonl.partial")
    with WarmPopen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        until(lambda: partial.exists() and partial.read_bytes().count(b"\n") > ALONE + 50)
        threads = Path(f"/proc/{process.pid}/task").glob("*/children")
        children = [int(number) for each in threads for number in each.read_text().split()]
        process.send_signal(number)
        process.communicate(timeout=60)

    assert children
    until(lambda: not any(map(runs, children)))
    assert partial.read_bytes().count(b"\n") > ALONE
