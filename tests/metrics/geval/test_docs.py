"""The code in docs/g-eval.md runs, and prints what its comments say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rag_eval_integrations.metrics.geval import read_geval


def blocks(root: Path, language: str) -> list[str]:
    text = (root / "docs" / "g-eval.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(5))
def test_the_code_runs(root: Path, capsys: pytest.CaptureFixture[str], number: int) -> None:
    """Each block by itself."""
    found = blocks(root, "python")
    assert len(found) == 5

    exec(found[number], {})

    said = capsys.readouterr().out.splitlines()
    promised = re.findall(r"^print\(.*\)  # (.+)$", found[number], re.MULTILINE)
    assert said[: len(promised)] == promised


def test_the_file_is_a_metric(root: Path, tmp_path: Path) -> None:
    """As it stands there."""
    path = tmp_path / "politeness.geval.yaml"
    path.write_text(blocks(root, "yaml")[0])

    geval = read_geval(path)

    assert (geval.name, geval.threshold, len(geval.rubric)) == ("politeness", 0.6, 3)
