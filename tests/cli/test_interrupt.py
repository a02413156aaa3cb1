"""Ctrl-C, SIGTERM and SIGHUP, sent to real processes: what is kept is said, and it is true."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from ferries import LABELS, Command, ferries, read
from forked import WarmPopen
from loopback import Behaviour, Body, LoopbackServer, Reply
from processes import python, until

from rag_eval_integrations.cli import _terminal
from rag_eval_integrations.cli._terminal import Signals, kept

from .conftest import in_process

COPY = "rag-eval-input-*"
"""Python tries the folder with a file of its own, of four letters, which may stay."""
FAST = 12
"""Requests that are answered; the others hang."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="this platform has no such signals"),
]


class Hanging:
    """Answers the first requests; the last of those after them sends a signal to whoever asks.

    It waits a second, by which the replies, which may be on their way still, are written.
    """

    def __init__(self, number: signal.Signals, fast: int = FAST, hung: int = 8) -> None:
        self.number, self.fast, self.last, self.asked = number, fast, fast + hung, 0
        self.process: subprocess.Popen[str] | None = None

    def __call__(self, body: Body) -> Reply | None:
        self.asked += 1
        if self.asked <= self.fast:
            return None
        if self.asked == self.last:
            assert self.process is not None
            threading.Timer(1.0, self.process.send_signal, [self.number]).start()
        return Reply(delay=60)

    def run(self, *words: object) -> tuple[int, str]:
        """Run the command until it ends; return its exit code and what it said."""
        with WarmPopen(
            in_process(*words), stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as self.process:
            try:
                err = self.process.communicate(timeout=60)[1]
            finally:
                self.process.kill()
        return self.process.returncode, err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_a_run_is_kept(rag_eval: Command, calls: Path, number: signal.Signals, code: int) -> None:
    """File, rows, and a command line that goes on from there without asking twice."""
    hanging = Hanging(number)
    with LoopbackServer(LABELS, hanging) as server:
        out, judge = ("-o", "my evals.jsonl"), ("--judge", "openai:m")
        words = ("run", "calls.jsonl", *out, *judge, "--max-concurrency", "8")
        done, err = hanging.run(*words, "--base-url", server.base_url)

        partial = Path("my evals.jsonl.partial").resolve()
        kept = partial.read_bytes().splitlines()
        said, command = err.splitlines()
        assert done == code
        assert len(kept) == FAST
        assert said == f"Interrupted. {FAST} evaluations are kept in {partial}. Go on with:"

        before = len(server.requests)
        hanging.fast = 10**6
        again = shlex.split(command)
        assert again[0] == "rag-eval"
        assert rag_eval(*again[1:]).code == 0
        assert len(server.requests) - before == 20 - FAST

    evaluations = read(Path("my evals.jsonl"))
    assert [e.question for e in evaluations] == [f"When does ferry {n} leave?" for n in range(20)]
    assert not partial.exists()


def test_a_run_without_a_row_keeps_nothing(calls: Path) -> None:
    """No file that would have to be deleted before the next run."""
    hanging = Hanging(signal.SIGINT, fast=0)
    with LoopbackServer(LABELS, hanging) as server:
        words = ("run", "calls.jsonl", "-o", "e.jsonl", "--judge", "openai:m")
        code, err = hanging.run(*words, "--base-url", server.base_url)

    assert code == 130
    assert err == "Interrupted before anything was done; nothing is kept.\n"
    assert list(Path().iterdir()) == [calls]


def test_a_command_that_keeps_nothing_says_that_it_ended(calls: Path) -> None:
    """Such as `score`, which makes its file at the end."""
    os.mkfifo("rows")
    command = in_process("score", "rows", "-o", "e.jsonl")
    with (
        WarmPopen(command, stderr=subprocess.PIPE, text=True) as process,
        Path("rows").open("w"),  # opened once both sides are there
    ):
        process.send_signal(signal.SIGINT)
        try:
            err = process.communicate(timeout=10)[1]
        except subprocess.TimeoutExpired:  # it came just before the read, which nothing ends then
            process.send_signal(signal.SIGINT)
            err = process.communicate(timeout=60)[1]

    assert (process.returncode, err) == (130, "Interrupted.\n")
    assert sorted(path.name for path in Path().iterdir()) == ["calls.jsonl", "rows"]


STARTING = """
import os, signal, sys
if "--multiprocessing-fork" in sys.orig_argv:
    for process in (os.getppid(), os.getpid()):
        os.kill(process, signal.SIGINT)
"""


def test_processes_that_just_start_show_no_traceback() -> None:
    """Ctrl-C reaches every process of a terminal."""
    calls = ferries(Path("many.jsonl"), 3000)  # few are evaluated without processes
    Path("sitecustomize.py").write_text(STARTING)
    done = subprocess.run(
        in_process("run", calls, "-o", "e.jsonl", "--workers", 2),
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert (done.returncode, "Traceback" in done.stderr) == (130, False)
    assert done.stderr.startswith("Interrupted")


def test_prompt_tests_say_what_they_keep() -> None:
    """Replies, in the folder; the same command goes on."""
    Path("p.md").write_text("Say whether {{text}} is polite.")
    hanging = Hanging(signal.SIGTERM, fast=1, hung=1)
    with LoopbackServer(Behaviour(content="To judge politeness."), hanging) as server:
        words = ("prompt-tests", "generate", "p.md", "-o", "t", "--model", "openai:m")
        code, err = hanging.run(*words, "--base-url", server.base_url)

    assert code == 143
    said, command = err.splitlines()[-2:]
    assert said == "Interrupted. 1 reply is kept in t/replies.sqlite. Go on with:"
    assert shlex.split(command)[:5] == ["rag-eval", *words[:4]]


def test_repeated_signals_leave_no_copy(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard input is copied to a private file, which nobody would find afterwards."""
    temporary = Path("tmp")
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    command = ("run", "-", "-o", "e.jsonl", "--judge", "openai:m", "--base-url")
    with (
        LoopbackServer(Behaviour(latency=60)) as server,
        calls.open("rb") as rows,
        WarmPopen(
            in_process(*command, server.base_url), stdin=rows, stderr=subprocess.DEVNULL
        ) as process,
    ):
        until(lambda: any(temporary.glob(COPY)) or process.poll() is not None)
        while process.poll() is None:
            process.send_signal(signal.SIGTERM)
            time.sleep(0.001)
    assert process.returncode == 143
    assert not any(temporary.glob(COPY))


def test_a_signal_that_was_lost_counts_when_it_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python ignores what a handler raises in a finaliser; of a flood, only the first counts."""
    signals = Signals()

    with pytest.raises(KeyboardInterrupt):
        signals.end(signal.SIGTERM, None)
    signals.end(signal.SIGHUP, None)
    assert signals.code == 128 + signal.SIGTERM
    monkeypatch.setattr(_terminal, "_AGAIN", 0.0)
    with pytest.raises(KeyboardInterrupt):
        signals.end(signal.SIGHUP, None)
    assert signals.code == 128 + signal.SIGHUP


def test_what_failed_first_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Where the folder has gone, nothing is known of what is kept; its loss stays the reason."""

    def gone() -> str:
        raise FileNotFoundError("e.jsonl.partial")

    with pytest.raises(OSError, match="the disk is full"), kept(gone):
        raise OSError("the disk is full")
    assert capsys.readouterr().err == ""
    with pytest.raises(OSError, match="the disk is full"), kept(lambda: "2 rows are kept."):
        raise OSError("the disk is full")
    assert capsys.readouterr().err.startswith("FAILED: 2 rows are kept. Once that is mended")


AMID_A_WRITE = """
import io, os, signal, sys
from rag_eval_integrations.cli._terminal import end_now
class Screen(io.RawIOBase):
    def writable(self):
        return True
    def write(self, text):
        os.kill(os.getpid(), signal.SIGTERM)
        return len(text)
signal.signal(signal.SIGTERM, lambda number, frame: end_now(128 + number))
sys.stderr = io.TextIOWrapper(io.BufferedWriter(Screen()))
print("Finishing", file=sys.stderr, flush=True)
"""


def test_a_command_that_is_to_end_now_does_so_amid_a_write() -> None:
    """A signal may come before the line is printed that tells of an earlier one."""
    assert python(AMID_A_WRITE).returncode == 143
