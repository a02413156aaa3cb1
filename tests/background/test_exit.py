"""Leaving an app without `flush()`: what is pending is finished within a grace, or counted."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from loopback import Behaviour, LoopbackServer

from rag_eval_integrations.background import BackgroundEvaluator
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.testing import labels_reply

from .conftest import busy, evaluator, python

pytestmark = pytest.mark.slow

APP = """
import sys; sys.path[:0] = ["tests/support"]
import json, os, signal, threading, time
from by_hand import ScriptedJudge, labels_of
from rag_eval_integrations import BackgroundEvaluator, CallableModel, OpenAIModel, RagEvaluator
from rag_eval_integrations.records import RagCall
from rag_eval_integrations.sinks import JsonlSink
from rag_eval_integrations.testing import labels_reply

def say(messages):
    time.sleep(0.1)
    return labels_reply(["0a"], ["a"])

class Slow(ScriptedJudge):
    async def label(self, call):
        import asyncio
        await asyncio.sleep(600)

judges = {
    "embedded": lambda: "embedded",
    "threads": lambda: CallableModel(say),
    "http": lambda: OpenAIModel("m", base_url=sys.argv[3]),
    "slow": lambda: Slow(labels_of([], [], {})),
}
options = json.loads(sys.argv[4])
background = BackgroundEvaluator(
    RagEvaluator(judges[sys.argv[1]]()), [JsonlSink(sys.argv[2])], max_concurrency=4, **options
)
for number in range(8):
    text = f"The ferry number {number} leaves at nine."
    background(RagCall(question="When?", documents=[text], response=text))
"""
Leave = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "evals.jsonl"


@pytest.fixture
def leave(root: Path, out: Path) -> Leave:
    """Runs an app that submits eight calls and ends without a word to the evaluator."""

    def run(judge: str, url: str = "", more: str = "", app: str = APP, **options: Any) -> Any:
        return python(app + more, judge, out, url, json.dumps(options), cwd=root)

    return run


@pytest.mark.parametrize("judge", ["threads", "http"])
def test_what_is_pending_is_finished(leave: Leave, out: Path, judge: str) -> None:
    """Also with a judge that needs threads or looks up a host; and written, without a word."""
    with LoopbackServer(Behaviour(latency=0.05, content=labels_reply(["0a"], ["a"]))) as server:
        url = server.base_url.replace("127.0.0.1", "localhost")
        done = leave(judge, url, exit_grace=20)

    assert (done.returncode, done.stderr) == (0, "")
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["scores"]["adherence"]["status"] for row in rows] == ["scored"] * 8


@pytest.mark.parametrize(("grace", "words"), [(0, ""), (0.5, ", 0.5 s after it began")])
def test_the_grace_is_bounded_and_the_rest_is_counted(
    leave: Leave, grace: float, words: str
) -> None:
    """One line, long before the judge would have answered; the program's exit code stays."""
    done = leave("slow", more="sys.exit(3)\n", exit_grace=grace)

    assert done.returncode == 3
    assert done.stderr == (
        f"8 calls were not evaluated and 0 evaluations not written at exit{words}; "
        "`flush()` or `close()` before it\n"
    )


def test_calls_of_threads_that_go_on_are_finished_too(leave: Leave, out: Path) -> None:
    """A thread that outlives the main one, which fails, submits after the first wait."""
    more = """
def late():
    time.sleep(0.5)
    background(RagCall(question="Late?", documents=["It is so."], response="It is so."))
threading.Thread(target=late).start()
raise ValueError("bug")
"""
    done = leave("embedded", more=more)

    assert done.returncode == 1
    assert done.stderr.endswith("ValueError: bug\n")
    assert len(out.read_text().splitlines()) == 9


# --- SIGTERM

unix = pytest.mark.skipif(sys.platform == "win32", reason="this platform has no SIGTERM")
KILL = "os.kill(os.getpid(), signal.SIGTERM); time.sleep(30); print('alive')\n"


@unix
@pytest.mark.parametrize(("judge", "rows"), [("threads", 8), ("slow", 0)])
def test_sigterm_can_wait_for_what_is_pending(
    leave: Leave, out: Path, judge: str, rows: int
) -> None:
    """Not for ever, and ends the process as it would without us; what is lost is counted."""
    done = leave(judge, more=KILL, on_sigterm="drain", exit_grace=20 if rows else 0.3)

    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "")
    assert done.stderr == "" if rows else done.stderr.startswith("8 calls were not evaluated")
    assert len(out.read_text().splitlines() if out.exists() else ()) == rows


@unix
@pytest.mark.parametrize("first", [True, False])
def test_a_handler_of_the_apps_stays(leave: Leave, out: Path, first: bool) -> None:
    """Set before or after the evaluator; when it ends the program, the grace applies."""
    handler = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
    app = handler + APP if first else APP + handler
    done = leave("embedded", more=KILL, app=app, on_sigterm="drain", exit_grace=20)

    assert (done.returncode, done.stderr) == (7, "")
    assert len(out.read_text().splitlines()) == 8


@unix
def test_by_default_sigterm_is_left_alone() -> None:
    """No handler is set."""
    before = signal.getsignal(signal.SIGTERM)
    BackgroundEvaluator(evaluator()).close()

    assert signal.getsignal(signal.SIGTERM) is before


SECOND = """
class Stop(BaseException): pass
def raising(*_): raise Stop
if sys.argv[3] == "raise": signal.signal(signal.SIGTERM, raising)
also = BackgroundEvaluator(RagEvaluator(judges["slow"]()), exit_grace=300)
also(RagCall(question="When?", documents=["It leaves at nine."], response="At nine."))
def twice():
    for _ in range(2):
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=twice, daemon=True).start()
try:
    time.sleep(600)
except Stop:
    pass
"""


@pytest.mark.parametrize("handler", ["raise", "none"])
def test_a_second_signal_ends_the_wait_of_all(leave: Leave, handler: str) -> None:
    """Also of the other evaluator's; what is lost is told by each, without a traceback."""
    first = "" if handler == "none" else "signal.signal(signal.SIGTERM, lambda *_: None)"
    app = APP.replace("background = B", f"{first}\nbackground = B")
    done = leave("slow", handler, SECOND, app, exit_grace=300, on_sigterm="drain")

    assert "8 calls were not evaluated and 0 evaluations not written at exit" in done.stderr
    assert "Traceback" not in done.stderr
    if handler != "none":  # where SIGTERM ends the process, only those who asked for it are told
        assert "1 call was not evaluated" in done.stderr


def test_a_child_of_multiprocessing_tells_what_it_loses(leave: Leave) -> None:
    """It ends by `os._exit`, without the functions of `atexit`."""
    more = """
import multiprocessing
def child():
    background(RagCall(question="When?", documents=["It leaves at nine."], response="At nine."))
running = multiprocessing.get_context("fork").Process(target=child)
running.start(); running.join(); print("child", running.exitcode, flush=True)
os._exit(0)
"""
    done = leave("slow", more=more, exit_grace=0.5)

    assert "child 0" in done.stdout
    assert "1 call was not evaluated and 0 evaluations not written at exit, 0.5 s" in done.stderr
    assert done.stderr.count("not evaluated") == 1


# --- A flush that ends too early


def test_a_flush_in_vain_says_what_it_waits_for(log: pytest.LogCaptureFixture) -> None:
    """Once: how much is undone, and that the judge has not answered."""
    gate, _, background = busy()
    assert not background.flush(0.01)
    assert not background.flush(0.01)
    gate.open.set()
    assert background.close(20)

    (record,) = log.records
    assert record.getMessage().startswith(
        "after 0.01 s of `flush`, 1 call is not evaluated and 0 evaluations not written: "
        "the judge gated has not answered yet"
    )


@unix
def test_a_handler_cannot_be_set_in_a_thread() -> None:
    """It is said where the evaluator is made, not when the signal comes."""
    with ThreadPoolExecutor() as threads:
        made = threads.submit(BackgroundEvaluator, evaluator(), on_sigterm="drain")
        with pytest.raises(ConfigurationError, match="main thread"):
            made.result()
