"""The Python of docs/store.md runs, and its command lines have options that exist."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from pages import BLOCK, text_of
from typer.main import get_command

from rag_eval_integrations.cli import app


def test_the_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a reader pastes is understood."""
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(text_of("docs/store.md"))
    program = get_command(app)
    for language, text in blocks:
        if language == "python":
            exec(compile(text, "store.md", "exec"), {})
            continue
        for line in text.splitlines():
            name, *words = [word for word in shlex.split(line, comments=True) if word != "&"]
            if name != "rag-eval":
                continue
            command = program
            while hasattr(command, "commands"):
                command = command.commands[words.pop(0)]
            command.make_context("rag-eval", words)

    assert len(blocks) == 3
    assert len(list((tmp_path / "spool").glob("*.spool"))) == 1
