"""The FastAPI example under uvicorn with two processes: every query is judged, and shown on the page."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from pages import run_command

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "fastapi_app"


@pytest.mark.slow
def test_no_query_is_lost_and_the_app_serves_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the two processes answer is judged, also while they live, and is on the page."""
    monkeypatch.chdir(tmp_path)
    judge = "rag-eval worker --store evals.db --spool spool --once"
    report = "rag-eval store report --store evals.db -o quality.html"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "app:app", "--app-dir", str(EXAMPLE), "--workers",
               "2", "--port", str(port), "--log-level", "warning"]  # fmt: skip
    patient = httpx.HTTPTransport(retries=8)  # until it listens, for a minute at most
    with (
        subprocess.Popen(
            command, cwd=tmp_path, env={**os.environ, "LANGSMITH_TRACING": "0"}
        ) as app,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, transport=patient) as client,
    ):
        try:
            client.get("/ask", params={"question": "Is it there?"}).raise_for_status()
            asked = 1
            # Until both processes have answered: the system chooses which of them does.
            while len({name.split("-")[1] for name in os.listdir(tmp_path / "spool")}) < 2:
                with ThreadPoolExecutor(8) as pool:
                    replies = list(pool.map(lambda n: _ask(port, n), range(16)))
                assert set(replies) == {"Hold the blue button for eight seconds."}
                asked += 16
            for line in (judge, report):  # while the app lives
                assert run_command(line, monkeypatch) == 0
            assert client.get("/quality").text == Path("quality.html").read_text()
        finally:
            app.send_signal(signal.SIGTERM)
            app.wait()
    for line in (judge, report):
        assert run_command(line, monkeypatch) == 0

    shown = (tmp_path / "quality.html").read_text()
    assert re.findall(r"\d+ of \d+", shown)[0] == f"{asked} of {asked}"
    assert list((tmp_path / "spool").iterdir()) == []


def _ask(port: int, number: int) -> str:
    reply = httpx.get(f"http://127.0.0.1:{port}/ask", params={"question": f"Reset {number}?"})
    answer: str = reply.json()["answer"]
    return answer
