"""Every example runs as it is, offline, and prints scores."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


# LlamaIndex's agents and its BatchEvalRunner call what others, or itself, deprecate.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An example that a reader copies does what its docstring says."""
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")

    out, err = capsys.readouterr()
    assert "context_relevance: " in out
    assert "adherence: " in out
    assert err == ""
