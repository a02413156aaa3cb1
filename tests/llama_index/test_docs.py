"""docs/llama-index.md: its Python runs as it stands, its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from llama_index_instrumentation import get_dispatcher

PAGE = Path(__file__).resolve().parents[2] / "docs" / "llama-index.md"


@pytest.mark.filterwarnings("ignore:asyncio_module:DeprecationWarning")
def test_examples_run_one_after_the_other(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offline, without a key."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(get_dispatcher(), "event_handlers", [*get_dispatcher().event_handlers])
    text = PAGE.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "page"}

    for code in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(compile(code, PAGE.name, "exec"), names)

    out = capsys.readouterr().out
    assert "Professor Marwick invented them." in out
    assert "2/2" in out
    assert (tmp_path / "evals.jsonl").read_text().count("\n") == 2


def test_links_lead_somewhere() -> None:
    """To headings of the page, or files beside it."""
    text = PAGE.read_text(encoding="utf-8")
    headings = {
        re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-")
        for title in re.findall(r"^#+ (.*)$", text, re.M)
    }

    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert link[1:] in headings if link.startswith("#") else (PAGE.parent / link).exists()
