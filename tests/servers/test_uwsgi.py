"""Real uWSGI, which forks in C: what its workers capture is in the spool, the store and the sinks.

The package pyuwsgi brings it, see docs/test-environments.md. A background evaluator that has had a call
before the fork needs `--py-call-uwsgi-fork-hooks`: Python's own lock hangs a child without it.
"""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from processes import python, until

from rag_eval_integrations.store import Store

pytest.importorskip("pyuwsgi", reason="needs pyuwsgi, which has wheels for Python 3.11 to 3.13")
pytestmark = [pytest.mark.slow, pytest.mark.servers]

APP = """
import os
from rag_eval_integrations import BackgroundEvaluator, RagCall, RagEvaluator, Spool
from rag_eval_integrations.sinks import JsonlSink
from rag_eval_integrations.store import Store

spool, store = Spool("spool"), Store("direct.db")
background = None
if os.environ["BACKGROUND"]:
    background = BackgroundEvaluator(RagEvaluator(), [JsonlSink("evals.jsonl")], exit_grace=60)
log = os.open("acknowledged", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def capture():
    call = RagCall("When does the ferry leave?", ["It leaves at nine."], "It leaves at nine.")
    assert spool.submit(call) and store.submit(call)
    if background:
        background.submit(call)
    os.write(log, b"%d\\n" % os.getpid())

capture()

def application(environ, start_response):
    capture()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"captured"]
"""
WORKER = "from rag_eval_integrations.cli import main; main()"


@pytest.mark.parametrize("hooks", [[], ["--py-call-uwsgi-fork-hooks"]], ids=["", "hooks"])
@pytest.mark.parametrize(
    "threads", [[], ["--enable-threads", "--threads", "2"]], ids=["", "threads"]
)
@pytest.mark.parametrize("lazy", [[], ["--lazy-apps"]], ids=["", "lazy"])
def test_no_worker_loses_a_call(
    tmp_path: Path, lazy: list[str], threads: list[str], hooks: list[str]
) -> None:
    """Four workers, forked after a first call, or each with its own; 300 requests over HTTP."""
    (tmp_path / "app.py").write_text(APP)
    acknowledged = tmp_path / "acknowledged"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def pids() -> Counter[str]:
        return Counter(acknowledged.read_text().split() if acknowledged.exists() else ())

    def status(_: int) -> int:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as asked:
            asked.request("GET", "/")
            return asked.getresponse().status

    words = ["--http-socket", f"127.0.0.1:{port}", "--master", "--processes", "4", "--need-app"]
    words += ["--wsgi-file", "app.py", "--die-on-term", "--worker-reload-mercy", "60"]
    run = [sys.executable, "-c", "import sys, pyuwsgi; pyuwsgi.run(sys.argv[1:])"]
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(
            [*run, *words, *lazy, *threads, *hooks],
            cwd=tmp_path, stderr=log, stdout=log, env={**os.environ, "BACKGROUND": "".join(hooks)},
        )  # fmt: skip
    try:
        first = 4 if lazy else 1
        until(lambda: pids().total() == first or server.poll() is not None)
        with ThreadPoolExecutor(8) as clients:
            assert set(clients.map(status, range(300))) == {200}
        server.send_signal(signal.SIGTERM)
        assert server.wait(100) == 0, (tmp_path / "log").read_text()
    finally:
        server.kill()
        server.wait()

    assert pids().total() == 300 + first
    done = python(WORKER, "worker", "--store", "e.db", "--spool", "spool", "--once", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with (
        closing(Store(tmp_path / "e.db")) as judged,
        closing(Store(tmp_path / "direct.db")) as direct,
    ):
        assert judged.counts() == [("judged", "", 300 + first)]
        assert direct.counts() == [("due", "", 300 + first)]
    if hooks:
        assert len((tmp_path / "evals.jsonl").read_text().splitlines()) == 300 + first
