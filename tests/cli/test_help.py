"""`rag-eval --help`, `--version` and usage lines: what a user reads before the first run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from rag_eval_integrations.cli import app

Command = Callable[..., Any]


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
    done = rag_eval("--version")

    assert (done.code, done.out) == (0, f"rag-eval {version('rag-eval-integrations')}\n")


def test_usage_names_required_arguments_without_braces(rag_eval: Command) -> None:
    """Usage lines read as they are typed."""
    done = rag_eval("agreement", "--help")

    assert done.out.splitlines()[0].endswith(" agreement [OPTIONS] EVALS.jsonl GOLD.jsonl")
    several = " ".join(rag_eval("compare", "--help").out.split("\n\n")[0].split())
    assert several.endswith(" compare [OPTIONS] A.jsonl B.jsonl [MORE.jsonl]...")


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_is_idiomatic(rag_eval: Command, words: tuple[str, ...]) -> None:
    """Every option has a sentence of help; rates say `per`; nothing `is no …`; no braces."""
    done = rag_eval(*words, "--help")

    assert done.code == 0
    assert not {"{", "}"} & set(done.out.splitlines()[0])
    texts = [COMMANDS[words].help, *(parameter.help for parameter in COMMANDS[words].params)]
    for text in texts:
        assert re.match(r"[A-Z].*\.$", text.splitlines()[0]), text
        assert not re.search(r"\b(is|are) no [a-z]+\b", text), text
        assert not re.search(r"[0-9a-z] a (call|row|line|rule|request|minute)\b", text), text
