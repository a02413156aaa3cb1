"""The Python of docs/store.md runs, and its command lines have options that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from rag_eval_integrations.cli import app


def test_the_page_is_true(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a reader pastes is understood."""
    monkeypatch.chdir(tmp_path)
    page = (root / "docs" / "store.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(python|bash)\n(.*?)^```", page, re.M | re.S)
    program = get_command(app)
    for language, text in blocks:
        if language == "python":
            exec(compile(text, "store.md", "exec"), {})
            continue
        for line in text.splitlines():
            words = shlex.split(line, comments=True)
            if words[0] != "rag-eval":
                continue
            words = [word for word in words[1:] if word != "&"]
            command = program
            while hasattr(command, "commands"):
                command = command.commands[words.pop(0)]
            command.make_context("rag-eval", words)

    assert len(blocks) == 3
    assert len(list((tmp_path / "spool").glob("*.spool"))) == 1
