"""The package as a whole: public names, what importing costs, what it must never do."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import rag_eval_integrations

HEAVY = ("langchain_core", "llama_index", "llama_index_instrumentation", "openai", "nltk", "numpy", "rich", "typer")  # fmt: skip


def python(code: str, *options: str, cwd: Path | None = None) -> str:
    """Run code in a fresh interpreter and return what it prints."""
    done = subprocess.run(
        [sys.executable, *options, "-c", code], capture_output=True, text=True, cwd=cwd, check=True
    )
    assert done.stderr == ""
    return done.stdout


def test_public_names_are_sorted_and_resolve() -> None:
    """`__all__` is the list of names, and each of them exists."""
    names = rag_eval_integrations.__all__

    assert names == sorted(names)
    for name in names:
        assert getattr(rag_eval_integrations, name).__name__ == name
    assert set(names) <= set(dir(rag_eval_integrations))


def test_an_unknown_name_is_an_attribute_error() -> None:
    """As of any module."""
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = rag_eval_integrations.Nothing


def test_the_version_is_the_distributions() -> None:
    """The package says it, and what is installed is made of it."""
    assert rag_eval_integrations.__version__ == version("rag-eval-integrations")


@pytest.mark.parametrize(
    "statement",
    [
        "import rag_eval_integrations",
        "from rag_eval_integrations import RagCall, RagEvaluator",
        "from rag_eval_integrations import EmbeddedJudge, Trace, diagnose, evaluate_calls",
    ],
)
def test_importing_loads_no_framework(statement: str) -> None:
    """No framework, openai, nltk, numpy, nor what only the command line needs."""
    loaded = python(f"import sys, json\n{statement}\nprint(json.dumps(list(sys.modules)))")

    tops = {name.split(".")[0] for name in json.loads(loaded)}
    assert tops.isdisjoint(HEAVY)


def test_importing_the_package_alone_loads_next_to_nothing() -> None:
    """Not even pydantic: names are resolved when they are used."""
    loaded = python("import sys, rag_eval_integrations\nprint('pydantic' in sys.modules)")

    assert loaded.strip() == "False"


def test_importing_opens_nothing(tmp_path: Path) -> None:
    """No socket, no thread, no file written, no environment changed, no handler installed."""
    code = """
import os, sys, threading, logging
import pydantic, asyncio, importlib.metadata  # their own business
seen = []
sys.addaudithook(lambda event, args: seen.append((event, args)) if event.startswith(("socket.", "subprocess.", "os.")) or (event == "open" and args[1] and any(c in str(args[1]) for c in "wax+")) else None)
before = dict(os.environ)
import rag_eval_integrations
for name in rag_eval_integrations.__all__: getattr(rag_eval_integrations, name)
assert not [e for e in seen if e[0] not in ("os.listdir", "os.scandir")], seen
assert dict(os.environ) == before
assert threading.active_count() == 1
assert not logging.getLogger("rag_eval_integrations").handlers
"""
    python(code, "-B", cwd=tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_the_typed_marker_is_there(root: Path) -> None:
    """Type checkers of users believe the annotations."""
    assert (root / "rag_eval_integrations" / "py.typed").exists()


def test_help_lists_only_commands_that_work() -> None:
    """Nothing shows before it works."""
    done = subprocess.run(
        [sys.executable, "-c", "from rag_eval_integrations.cli import main; main()", "--help"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    commands = re.findall(r"^  (\w[\w-]*)  ", done.stdout, re.M)
    assert commands == [
        "demo", "run", "score", "report", "push", "agreement", "calibrate", "compare", "doctor",
        "worker", "rescore", "prompt-tests", "store",
    ]  # fmt: skip


def test_help_loads_no_framework() -> None:
    """`rag-eval --help` comes up at once."""
    code = "import sys, rag_eval_integrations.cli\nprint([m for m in sys.modules if m.split('.')[0] in %r])"
    heavy = tuple(name for name in HEAVY if name not in ("rich", "typer"))

    assert python(code % (heavy,)).strip() == "[]"
