"""Runs the command line in this process, so that coverage sees it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.main import get_command

from rag_eval_integrations.cli import app, main

PROGRAM = get_command(app)
"""Built once; `app()` builds it anew, which takes longer than many a command."""


class Done(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


@pytest.fixture
def rag_eval(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """`rag_eval("run", path, "-o", out)` → exit code, stdout, stderr."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("rag_eval_integrations.cli.app", PROGRAM)

    def run(*words: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["rag-eval", *map(str, words)])
        with pytest.raises(SystemExit) as exited:
            main()
        out, err = capsys.readouterr()
        code = exited.value.code
        return Done(code if isinstance(code, int) else 0, out, err)

    return run


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Where a command puts evaluations."""
    return tmp_path / "evals.jsonl"
