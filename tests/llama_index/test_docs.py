"""docs/llama-index.md and the pages behind it: their Python runs as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest
from llama_index_instrumentation import get_dispatcher
from pages import run_python


@pytest.mark.filterwarnings("ignore:asyncio_module:DeprecationWarning")
@pytest.mark.parametrize(
    ("page", "printed"),
    [
        ("llama-index", ["b (none): “Then call the mayor.”", "document 1.\n0.5\n", "2/2"]),
        (
            "llama-index-evaluators",
            ["Professor Marwick invented them.", "adherence 0.5 2/2", "How do I reset it? 0.0\n"],
        ),
        ("llama-index-capture", ["reset\n"]),
    ],
)
def test_examples_run_one_after_the_other(
    page: str,
    printed: list[str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Offline, without a key, about answers that somebody could give; none stays attached."""
    monkeypatch.chdir(tmp_path)
    attached = [*get_dispatcher().event_handlers]

    run_python(f"docs/{page}.md")

    out = capsys.readouterr().out
    assert [words for words in printed if words not in out] == []
    assert "text text" not in out
    assert get_dispatcher().event_handlers == attached
