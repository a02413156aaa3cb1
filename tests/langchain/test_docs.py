"""docs/langchain.md: its Python examples run as they stand, its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import rag_eval_integrations.langchain as host


@pytest.fixture
def page(root: Path) -> str:
    """The page's text."""
    return (root / "docs" / "langchain.md").read_text(encoding="utf-8")


def test_examples_run(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One after the other, offline, without a key."""
    namespace = {"__name__": "docs"}

    for code in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(compile(code, "docs/langchain.md", "exec"), namespace)

    out = capsys.readouterr().out
    assert "The one response sentence is fully supported by the documents." in out
    assert "'key': 'adherence', 'score': 1.0" in out
    assert "Hold the blue button for eight seconds." in out


def test_every_public_name_is_there(page: str) -> None:
    """Except those that one only gets, and what prompt tests take."""
    missing = [name for name in host.__all__ if name not in page]

    assert missing == ["EvaluatedRunnable", "MetricEvaluator", "as_model_under_test", "as_prompt"]


def test_names_are_loaded_when_asked_for() -> None:
    """All of them are there, and listed; another one is none."""
    assert all(hasattr(host, name) for name in host.__all__)
    assert set(host.__all__) <= set(dir(host))
    assert not hasattr(host, "RagEvalHandler")


def test_links_lead_somewhere(page: str, root: Path) -> None:
    """Files, and headings of the page."""
    titles = re.findall(r"^#+ (.*)$", page, re.M)
    headings = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}

    for link in re.findall(r"\]\(([^)]+)\)", page):
        assert link[1:] in headings if link[0] == "#" else (root / "docs" / link).exists(), link
