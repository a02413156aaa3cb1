"""docs/langchain.md and docs/langchain-capture.md: their Python runs as it stands."""

from __future__ import annotations

import pytest
from pages import run_python, text_of

import rag_eval_integrations.langchain as host

PAGES = ("docs/langchain.md", "docs/langchain-capture.md")


def test_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    """One after the other, offline, without a key."""
    for page in PAGES:
        run_python(page)

    out = capsys.readouterr().out
    assert "The one response sentence is fully supported by the documents." in out
    assert "'key': 'adherence', 'score': 1.0" in out
    assert "Hold the blue button for eight seconds." in out
    assert out.endswith("\n1.0\n('Manual', 'Manual')\n")


def test_every_public_name_is_there() -> None:
    """Except what prompt tests take."""
    missing = [name for name in host.__all__ if not any(name in text_of(page) for page in PAGES)]

    assert missing == ["as_model_under_test", "as_prompt"]


def test_names_are_loaded_when_asked_for() -> None:
    """All of them are there, and listed; another one is none."""
    assert all(hasattr(host, name) for name in host.__all__)
    assert set(host.__all__) <= set(dir(host))
    assert not hasattr(host, "RagEvalHandler")
