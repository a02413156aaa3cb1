"""The examples run as they are, offline; what their generator says is in the stage files."""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rag_eval_integrations.prompt_tests import Report

Example = Callable[..., dict[str, Any]]


@pytest.fixture
def example(root: Path) -> Iterator[Example]:
    """Runs an example's file as a module; its folder is not left on the path."""
    before = list(sys.path)
    folder = root / "examples" / "prompt_tests"
    yield lambda name, **more: runpy.run_path(str(folder / name), **more)
    sys.path[:] = before
    sys.modules.pop("scripted", None)


def test_the_help_desk_prompt_end_to_end(example: Example, tmp_path: Path) -> None:
    """Input specification, rules, inverse rules and nine tests with their rules; both judgements."""
    module = example("help_desk/run.py")
    report: Report = module["main"](tmp_path)
    scripted = module["scripted"]

    def lines(name: str) -> list[str]:
        return (tmp_path / name).read_text().splitlines()

    assert lines("input_spec.txt") == scripted.INPUT_SPECIFICATION.splitlines()
    assert lines("rules.txt") == scripted.OUTPUT_RULES.splitlines()
    assert lines("inverse_rules.txt") == scripted.INVERSE_OUTPUT_RULES.splitlines()
    rows = json.loads((tmp_path / "tests.json").read_text())
    assert [(row["ruleid"], row["message"], row["reasoning"]) for row in rows[:2]] == [
        ("1", "The gangway is closing and my son is still outside.", "urgent"),
        ("2", "May I bring a kayak?", "a plain question"),
    ]
    assert [row["inverse"] for row in rows] == [False] * 5 + [True] * 4

    assert report.models == ("terse", "talkative")
    assert (report.tnc(model="terse").ok, report.tnc(model="talkative").err) == (9, 9)
    assert [row["keeps_rules with judge"] for row in report.overview()] == [100, 20]
    assert len(report.failures()) == 9


def test_a_rag_chain_is_the_app_under_test(example: Example) -> None:
    """What it retrieved comes back with each answer, and a metric sees it."""
    report: Report = example("rag_chain.py")["main"]()

    assert [len(result.contexts) for result in report.results] == [1, 1]
    assert (report.tnc(model="short").ok, report.tnc(model="long").err) == (1, 1)
    assert [row["grounded with judge"] for row in report.overview()] == [100, 40]


@pytest.mark.parametrize("name", ["help_desk/run.py", "rag_chain.py"])
def test_what_an_example_prints(
    example: Example, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A reader who runs it sees the overview."""
    example(name, run_name="__main__")

    out, err = capsys.readouterr()
    assert "'tests compliant': '100%'" in out
    assert err == ""
