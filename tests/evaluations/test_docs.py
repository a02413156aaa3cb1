"""docs/evaluations.md and docs/compare.md: their code runs, and what they say of it is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import run_page

from rag_eval_integrations import Evaluations
from rag_eval_integrations.evaluations import _paired
from rag_eval_integrations.evaluations._written import columns_of, to_json
from rag_eval_integrations.evaluations.comparison import HEADINGS
from rag_eval_integrations.records import RunningMean


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "evaluations.md").read_text(encoding="utf-8")


def test_the_code_runs(
    page: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One block after the other; the mean is the one that the page prints."""
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    names = run_page("docs/evaluations.md", monkeypatch)

    message = capsys.readouterr().out
    assert re.findall(r"^print\(.*\)  # (adherence .+)$", page, re.M)[0] in message
    assert "hallucination" in message
    evaluations = names["evaluations"]
    assert isinstance(evaluations, Evaluations)
    columns = [name for name in columns_of(evaluations) if name not in evaluations[0].scores]
    for name in columns:
        assert f"`{name}`" in page or name.endswith(":unscored"), name
    for name in re.findall(r'^ "(\w+)":', to_json(evaluations.summary()), re.M):
        assert name == "schema" or f"`{name}`" in page, name


@pytest.mark.parametrize(("calls", "percent"), [(10, 28), (100, 4)])
def test_equal_values_leave_room_for_what_the_page_says(calls: int, percent: int) -> None:
    """For the share of other values that may have gone unseen."""
    mean = RunningMean()
    for _ in range(calls):
        mean.add(0.5)
    assert mean.interval is not None
    assert round(100 * (mean.interval.high - mean.interval.low)) == percent


@pytest.fixture
def compare_page(root: Path) -> str:
    """The page's text."""
    return (root / "docs" / "compare.md").read_text(encoding="utf-8")


def test_the_example_prints_what_it_shows(
    compare_page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Offline, without a key; the first two lines are shown."""
    (code,) = re.findall(r"```python\n(.*?)```", compare_page, re.S)
    exec(compile(code, "docs/compare.md", "exec"), {"__name__": "docs"})

    printed = capsys.readouterr().out.splitlines()
    shown = [line.removeprefix("# ") for line in code.splitlines() if line.startswith("# ")]
    assert shown
    assert printed[: len(shown)] == shown


def test_the_numbers_are_those_of_the_code(compare_page: str) -> None:
    """Limits, resamples, flips, power, and the headings that need words."""
    for message in (
        f"from {_paired.MIN_BOOTSTRAP} calls of which {_paired.MIN_CHANGED} differ",
        f"fewer than {_paired.MIN_PAIRS} calls",
        f"{_paired.RESAMPLES:,} resamples",
        f"else {_paired.FLIPS:,}",
        f"{_paired.POWER:.2f} standard errors",
    ):
        assert message in compare_page
    assert {"Holm p", "visible"} <= set(HEADINGS)
