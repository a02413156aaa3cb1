"""docs/compare.md: its example prints what it shows, its methods are those used, its links hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rag_eval_integrations.evaluations import _paired
from rag_eval_integrations.evaluations.comparison import HEADINGS


@pytest.fixture
def page(root: Path) -> str:
    """The page's text."""
    return (root / "docs" / "compare.md").read_text(encoding="utf-8")


def test_the_example_prints_what_it_shows(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Offline, without a key; the first two lines are shown."""
    (code,) = re.findall(r"```python\n(.*?)```", page, re.S)
    exec(compile(code, "docs/compare.md", "exec"), {"__name__": "docs"})

    printed = capsys.readouterr().out.splitlines()
    shown = [line.removeprefix("# ") for line in code.splitlines() if line.startswith("# ")]
    assert shown
    assert printed[: len(shown)] == shown


def test_the_numbers_are_those_of_the_code(page: str) -> None:
    """Limits, resamples, flips, power, and the headings that need words."""
    for said in (
        f"from {_paired.MIN_BOOTSTRAP} calls of which {_paired.MIN_CHANGED} differ",
        f"fewer than {_paired.MIN_PAIRS} calls",
        f"{_paired.RESAMPLES:,} resamples",
        f"else {_paired.FLIPS:,}",
        f"{_paired.POWER:.2f} standard errors",
    ):
        assert said in page
    assert {"Holm p", "visible"} <= set(HEADINGS)


def test_links_lead_somewhere(page: str, root: Path) -> None:
    """Files beside the page."""
    for link in re.findall(r"\]\(([^)]+)\)", page):
        assert (root / "docs" / link).exists(), link
