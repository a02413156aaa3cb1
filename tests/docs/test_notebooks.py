"""The notebooks of the examples show what they show now."""

from __future__ import annotations

import json
import runpy
import tempfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def outputs(notebook: Any) -> list[str]:
    """What its cells show, as HTML where there is some."""
    shown = []
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            data = output.get("data", {"text/plain": output.get("text", "")})
            shown.append("".join(data.get("text/html", data["text/plain"])))
    return shown


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_and_shows_what_is_saved(path: Path, root: Path) -> None:
    """Offline, in a kernel of its own; `docs/notebooks.py` saves them anew."""
    now = outputs(runpy.run_path(str(root / "docs" / "notebooks.py"))["executed"](path))

    assert now == outputs(json.loads(path.read_text(encoding="utf-8")))
    assert "Professor Marwick" in now[0]
    assert "adherence" in now[0]
    assert now[1].startswith("<Score adherence 0.00: not supported: b")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_small_and_says_nothing_of_a_machine(path: Path) -> None:
    """No path, no time, no version of Python."""
    text = path.read_text(encoding="utf-8")

    assert len(text) < 40_000
    here = str(ROOT), str(Path.home()), tempfile.gettempdir()
    for word in (*here, "/home/", "/Users/", "site-packages", "iopub", '"version"'):
        assert word not in text
