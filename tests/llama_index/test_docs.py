"""docs/llama-index.md and docs/llama-index-capture.md: their Python runs as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest
from llama_index_instrumentation import get_dispatcher
from pages import run_python


@pytest.mark.filterwarnings("ignore:asyncio_module:DeprecationWarning")
def test_examples_run_one_after_the_other(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offline, without a key."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(get_dispatcher(), "event_handlers", [*get_dispatcher().event_handlers])

    run_python("docs/llama-index.md")
    run_python("docs/llama-index-capture.md")

    out = capsys.readouterr().out
    assert "Professor Marwick invented them." in out
    assert "2/2" in out
    assert out.endswith("reset\n")
    assert (tmp_path / "evals.jsonl").read_text().count("\n") == 2
