"""`rag-eval --help`, `--version` and usage lines: what a user reads before the first run."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from ferries import Command
from pages import DOCS
from typer.core import TyperGroup
from typer.main import get_command

from rag_eval_integrations.cli import app

from .conftest import in_process


def commands(group: Any, *words: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command with its words, those of `prompt-tests` included."""
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from commands(command, *words, name)
        else:
            yield (*words, name), command


COMMANDS = dict(commands(get_command(app)))


def test_the_version_is_printed(rag_eval: Command) -> None:
    """`rag-eval --version` prints the installed version and exits 0."""
    shown = rag_eval("--version", code=0).out
    assert shown == f"rag-eval {version('rag-eval-integrations')}\n"


def test_usage_names_required_arguments_without_braces(rag_eval: Command) -> None:
    """Usage lines read as they are typed."""
    done = rag_eval("agreement", "--help")

    assert done.out.splitlines()[0].endswith(" agreement [OPTIONS] EVALS.jsonl GOLD.jsonl")
    several = " ".join(rag_eval("compare", "--help").out.split("\n\n")[0].split())
    assert several.endswith(" compare [OPTIONS] A.jsonl B.jsonl [MORE.jsonl]...")


@pytest.mark.parametrize(
    ("pages", "command"), [("compare.md", "compare"), ("prompt-tests*.md", "prompt-tests")]
)
def test_pages_name_options_that_exist(pages: str, command: str) -> None:
    """Of the command that they describe, or of `run`."""
    named = "".join(path.read_text("utf-8") for path in DOCS.glob(pages))
    options = {
        option
        for words, each in COMMANDS.items() if words[0] in (command, "run")
        for parameter in each.params for option in (*parameter.opts, *parameter.secondary_opts)
    }  # fmt: skip
    assert "--judge" in named
    assert set(re.findall(r"--[a-z][a-z-]+", named)) - options == set()


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_is_idiomatic(rag_eval: Command, words: tuple[str, ...]) -> None:
    """Every option has a sentence of help; rates say `per`; nothing `is no …`; no braces.

    Each help page ends with commands that have these arguments and options.
    """
    shown = rag_eval(*words, "--help", code=0).out

    assert not {"{", "}"} & set(shown.splitlines()[0])
    assert not re.search(r"<path>|<list|<str>", shown)  # types of Python
    texts = [COMMANDS[words].help, *(parameter.help for parameter in COMMANDS[words].params)]
    for text in texts:
        assert re.match(r"[A-Z].*\.$", text.splitlines()[0]), text
        assert not re.search(r"\b(is|are) no [a-z]+\b", text), text
        assert not re.search(r"[0-9a-z] a (call|row|line|rule|request|minute)\b", text), text

    examples = shown.split("\nExamples:\n")[1].replace("\\\n", " ")
    for line in examples.strip().splitlines():
        program, *typed = shlex.split(line)
        assert program == "rag-eval"
        named = tuple(typed[:1]) if tuple(typed[:1]) in COMMANDS else tuple(typed[:2])
        COMMANDS[named].make_context(named[-1], typed[len(named) :])
    assert f"rag-eval {' '.join(words)} " in examples


def test_help_fits_80_columns_and_names_every_section(
    rag_eval: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The options of `run` stand in sections, and no line of the list of commands is cut."""
    monkeypatch.setenv("COLUMNS", "80")

    shown = rag_eval("--help").out
    run = rag_eval("run", "--help").out

    assert "..." not in shown.split("Commands:")[1]
    assert max(map(len, [*shown.splitlines(), *run.splitlines()])) <= 80
    headings = re.findall(r"^([A-Z][A-Za-z ]+):$", run, re.MULTILINE)
    assert headings == [
        "Arguments", "Most used", "Input", "Judge", "Metrics", "TRACe scores",
        "Requests and limits", "Checks", "Output", "Options", "Examples",
    ]  # fmt: skip
    judge = run.split("\nJudge:")[1].split("\nMetrics:")[0]
    assert re.findall(r"^  (--[a-z-]+)", judge, re.MULTILINE) == [
        "--base-url", "--instructions", "--explanations", "--cache", "--flags",
    ]  # fmt: skip


def test_help_begins_with_what_is_needed(
    rag_eval: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the arguments stand the required option and those of every day; 120 columns are used."""
    monkeypatch.setenv("COLUMNS", "120")
    run = rag_eval("run", "--help").out
    used = run.split("\nMost used:")[1].split("\n\n")[0]
    assert re.findall(r"^  (?:-o, )?(--[a-z-]+)", used, re.MULTILINE) == [
        "--out", "--judge", "--metrics", "--map", "--report", "--fail-under", "--resume",
        "--overwrite",
    ]  # fmt: skip
    assert 100 < max(map(len, run.splitlines())) <= 120


def test_the_shell_completes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands and options, also where a file of settings cannot be used."""
    Path("rag-eval.toml").write_text("nonsense = ")
    monkeypatch.setenv("_RAG_EVAL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_CWORD", "2")
    program = in_process(first="import sys; sys.argv[0] = 'rag-eval'")
    for typed, word in (("rag-eval run --fail", "--fail-under"), ("rag-eval store ret", "retry")):
        monkeypatch.setenv("COMP_WORDS", typed)
        assert subprocess.check_output(program, text=True).split() == [word]
