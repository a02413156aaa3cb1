"""The package as a whole: public names, what importing costs, what it must never do."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import rag_eval_integrations

HEAVY = (
    "langchain_core", "llama_index", "llama_index_instrumentation", "openai", "nltk", "numpy",
    "rich", "typer", "langfuse", "phoenix", "mlflow", "langsmith", "opentelemetry", "pydantic",
    "pandas", "jinja2", "pytest", "_pytest",
)  # fmt: skip


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


SHOWN = """
from rag_eval_integrations import Evaluations, RagEvaluator
made = RagEvaluator().evaluate_sync(question="How?", documents=["So."], response="So.")
made = Evaluations([made])
made.mean("adherence"), repr(made), str(made), made._repr_html_()
"""


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ("import rag_eval_integrations", set()),
        ("from rag_eval_integrations import EmbeddedJudge, Trace, diagnose", {"pydantic"}),
        ("from rag_eval_integrations import evaluate_calls", {"pydantic"}),
        ("from rag_eval_integrations.sinks import *", {"pydantic"}),
        ("from rag_eval_integrations.testing import assert_scores", {"pydantic"}),
        (SHOWN, {"pydantic", "rich"}),
        ("import rag_eval_integrations.cli", {"rich", "typer", "pydantic"}),
    ],
)
def test_importing_loads_no_framework(statement: str, allowed: set[str]) -> None:
    """No framework, openai, nltk, numpy, client of a tool, nor what only the command line needs.

    Neither a test runner for `assert_scores`, nor pandas or templates to show evaluations.

    The package alone does not even load pydantic: names are resolved when they are used.
    """
    loaded = python(f"import sys, json\n{statement}\nprint(json.dumps(list(sys.modules)))")

    tops = {name.split(".")[0] for name in json.loads(loaded)}
    assert tops & {*HEAVY} <= allowed


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
