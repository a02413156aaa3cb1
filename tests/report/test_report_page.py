"""docs/report.md: its Python runs as it stands, and its lists are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import run_page, text_of

from rag_eval_integrations.evaluations._call_view import SIGNS, WORDS

PAGE = text_of("docs/report.md")


def test_the_code_writes_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two calls, one page, on which the commands run; every sign of it stands beside its meaning."""
    monkeypatch.chdir(tmp_path)
    run_page("docs/report.md", monkeypatch)

    assert "The kettle" in (tmp_path / "kettle.html").read_text()
    for state, sign in SIGNS.items():
        assert f"| {sign} | {WORDS[state]} |" in PAGE


def test_the_keys_are_those_of_the_page() -> None:
    """The page's own list of keys has the same keys as the table of the documentation."""
    script = text_of("rag_eval_integrations/report/templates/report.js")
    listed = re.search(r"\[\n    \[\"/\".*?\]\.map", script, re.S)
    assert listed is not None

    keys = {key for row in re.findall(r'\["([^"]+)", "', listed[0]) for key in row.split()}
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", PAGE.partition("## Keys")[2], re.M)
    assert {key.strip("`") for row in rows[1:7] for key in row.split()} == keys
