"""docs/method.md: its code prints what its comments say, its lists are those of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from rag_eval_integrations.metrics import TRACE_SCORES
from rag_eval_integrations.metrics.trace.formulas import Pattern
from rag_eval_integrations.records import UnscoredCode

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "method.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def rows(heading: str) -> list[str]:
    """First cells of the table below a heading, without its title row."""
    section = re.split(r"^#+ ", PAGE.split(f"# {heading}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)


@pytest.mark.parametrize("code", BLOCKS, ids=["example", "diagnose", "expectation"])
def test_the_code_prints_what_its_comments_say(
    code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside a `print`, or in the lines below a loop."""
    exec(compile(code, "docs/method.md", "exec"), {"__name__": "method"})

    promised = re.findall(r"^ *print\(.*\)  # (.+)$|^# (.+)$", code, re.MULTILINE)
    printed = capsys.readouterr().out.splitlines()
    assert printed == [beside or below for beside, below in promised]
    assert printed


def test_every_score_has_its_formula() -> None:
    """In the order in which `Trace` gives them."""
    assert rows("Formulas") == list(TRACE_SCORES)


def test_every_unscored_code_is_explained() -> None:
    """All of them, and no other."""
    assert sorted(rows("Unscored")) == sorted(get_args(UnscoredCode))


def test_every_pattern_is_explained() -> None:
    """In the order of gravity."""
    assert rows("Patterns") == list(get_args(Pattern))


def test_links_lead_somewhere(root: Path) -> None:
    """Files beside the page."""
    links = re.findall(r"\]\(([^)]+)\)", PAGE)

    assert links
    assert all((root / "docs" / link).exists() for link in links)
