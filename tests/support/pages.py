"""Runs the documentation: the blocks of a page in order, in one folder and one namespace."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from rag_eval_integrations.cli import app, main

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```", re.M | re.S)


def text_of(name: str) -> str:
    """Return a page by its path in the checkout, such as `docs/start.md`."""
    return (ROOT / name).read_text(encoding="utf-8")


def python_of(name: str) -> list[str]:
    """Return the Python blocks of a page, in order."""
    return [code for kind, code in BLOCK.findall(text_of(name)) if kind == "python"]


def run_python(name: str, **names: object) -> dict[str, object]:
    """Run the Python blocks of a page, one after the other; return what they define."""
    names["__name__"] = "page"
    for code in python_of(name):
        exec(compile(code, name, "exec", dont_inherit=True), names)
    return names


def run_command(line: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run a line that begins with `rag-eval`, or pipes a file into it; return the exit code."""
    piped, _, command = line.rpartition("| ")
    file = re.fullmatch(r"cat (\S+) ", piped)
    with open(file[1] if file else "/dev/null", encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "argv", shlex.split(command, comments=True))
        with pytest.raises(SystemExit) as ended:
            main()
    return ended.value.code if isinstance(ended.value.code, int) else 0


def parse_command(line: str) -> None:
    """Read a line that begins with `rag-eval` as the program does, and do nothing."""
    command = get_command(app)
    words = shlex.split(line, comments=True)[1:]
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    command.make_context("rag-eval", words)


def run_page(name: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Run all blocks of a page, one after the other.

    Every command has to exit with 0, or as its comment says (`# exit code 1`). Lines of `bash` that
    are not of `rag-eval` (`pip install …`) are left out, a command that asks an endpoint counts its
    requests instead, and those of a block that names `OPENAI_API_KEY` are only read.
    """
    names: dict[str, object] = {"__name__": "page"}
    for kind, code in BLOCK.findall(text_of(name)):
        if kind == "python":
            exec(compile(code, name, "exec", dont_inherit=True), names)
            continue
        for line in code.replace("\\\n", " ").splitlines():
            if not line.rpartition("| ")[2].startswith("rag-eval "):
                continue
            if "OPENAI_API_KEY" in code:
                parse_command(line)
                continue
            asks = "openai:" in line and "--dry-run" not in line
            command, _, comment = line.partition("  #")
            said = re.search(r"exit code (\d+)", comment)
            ended = run_command(command + " --dry-run" * asks, monkeypatch)
            assert ended == int(said[1] if said else 0), line
    return names


def promised_by(name: str) -> list[str]:
    """Return what a page's Python says is printed: beside a `print`, or in comments of their own."""
    promises = []
    for code in python_of(name):
        for beside, below in re.findall(r"^ *print\(.*\)  # (.+)$|^# (.+)$", code, re.M):
            promises.append(beside or below)
    return promises
