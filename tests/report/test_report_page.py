"""docs/report.md: its Python runs as it stands, and its lists are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rag_eval_integrations.report._html_call import SIGNS, WORDS


def test_the_code_writes_a_report(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two calls, one page."""
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", (root / "docs/report.md").read_text(), re.S)

    exec(compile(code, "docs/report.md", "exec"), {"__name__": "report"})

    assert "The kettle" in (tmp_path / "report.html").read_text()


def test_the_signs_are_those_of_the_page(root: Path) -> None:
    """Every sign stands beside its meaning."""
    text = (root / "docs/report.md").read_text()

    for state, sign in SIGNS.items():
        assert f"| {sign} | {WORDS[state]} |" in text


def test_the_keys_are_those_of_the_page(root: Path) -> None:
    """The page's own list of keys has the same keys as the table of the documentation."""
    text = (root / "docs/report.md").read_text()
    script = root / "rag_eval_integrations/report/templates/report.js"
    listed = re.search(r"\[\n    \[\"/\".*?\]\.map", script.read_text("utf-8"), re.S)
    assert listed is not None

    keys = {key for row in re.findall(r'\["([^"]+)", "', listed[0]) for key in row.split()}
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", text.partition("## Keys")[2], re.M)
    documented = {key.strip("`") for row in rows[1:7] for key in row.split()}

    assert documented == keys
