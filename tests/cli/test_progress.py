"""The progress of a run that is not in a terminal: how far, how long still, waiting for what."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ferries import LABELS, Command
from loopback import Behaviour, LoopbackServer

from rag_eval_integrations.cli import _progress


def run(rag_eval: Command, calls: Path, behaviour: Behaviour, *more: object) -> list[str]:
    with LoopbackServer(behaviour) as server:
        done = rag_eval("run", calls, "-o", "evals.jsonl", *more, judge=server, code=0)
    lines: list[str] = done.err.splitlines()
    return lines


def test_a_line_says_how_far_and_how_long(
    rag_eval: Command, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while no request has anything to wait for but its answer; a limit is the total."""
    monkeypatch.setattr(_progress, "_SECONDS_PER_LINE", 0.2)
    monkeypatch.setattr(_progress, "_TICK", 0.05)
    slow = Behaviour(content=LABELS.content, latency=0.25)

    lines = run(rag_eval, calls, slow, "--max-concurrency", 4, "--limit", 19)

    assert len(lines) >= 3
    assert lines[0] == "0 of 19 evaluated"
    assert any(re.fullmatch(r"\d+ of 19 evaluated, \d+ s left", line) for line in lines)


def test_the_first_failure_that_is_retried_is_shown_at_once(rag_eval: Command, calls: Path) -> None:
    """With its reason, and no line for each of the others; the last line may lack its end."""
    calls.write_text(calls.read_text().rstrip("\n"))
    retried = {"retry-after-ms": "20"}
    busy = Behaviour(content=LABELS.content, statuses=(503,) * 6, headers=retried)

    (line,) = run(rag_eval, calls, busy)

    assert line.startswith("0 of 20 evaluated; 1 waiting for")
    assert "replied 503: scripted 503" in line
