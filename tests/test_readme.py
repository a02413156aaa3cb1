"""The README: every Python example runs as it stands, every file it links is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.S)


@pytest.mark.parametrize(
    "code", EXAMPLES, ids=["score", "langchain", "llama_index", "app", "geval"]
)
def test_examples_run(
    code: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offline, without a key, and they print what they promise."""
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})

    assert capsys.readouterr().out.strip()


def test_the_invented_sentence_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    """The first example shows what the library is for."""
    exec(compile(EXAMPLES[0], "README.md", "exec"), {"__name__": "readme"})

    assert "famous admiral" in capsys.readouterr().out


def test_links_lead_somewhere(root: Path) -> None:
    """Files, and headings of this page."""
    headings = {
        re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-")
        for title in re.findall(r"^#+ (.*)$", README, re.M)
    }
    for link in re.findall(r"\]\(([^)]+)\)", README):
        if link.startswith("#"):
            assert link[1:] in headings
        elif not link.startswith("https://"):
            assert (root / link).exists(), link


def test_the_commands_are_the_gates(root: Path) -> None:
    """CI takes both from this page, each a line that needs nothing but Python."""
    gate = (root / ".ci" / "run").read_text()

    for end in ("rag-eval demo", "uv run pytest"):
        found = [line for line in README.splitlines() if line.endswith(end)]
        assert len(found) == 1
        assert found[0].startswith("python3 -m venv .venv && ")
        assert f'readme_line "{end}"' in gate
