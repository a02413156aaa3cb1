"""The code in docs/g-eval.md runs, and prints what its comments say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import python_of, text_of

from rag_eval_integrations.metrics.geval import read_geval

PAGE = "docs/g-eval.md"
CODE = python_of(PAGE)


@pytest.mark.parametrize("number", range(5))
def test_the_code_runs(capsys: pytest.CaptureFixture[str], number: int) -> None:
    """Each of the five blocks by itself."""
    exec(CODE[number], {})

    promised = re.findall(r"^print\(.*\)  # (.+)$", CODE[number], re.MULTILINE)
    assert capsys.readouterr().out.splitlines()[: len(promised)] == promised
    assert len(CODE) == 5


def test_the_file_is_a_metric(tmp_path: Path) -> None:
    """As it stands there."""
    path = tmp_path / "politeness.geval.yaml"
    path.write_text(text_of(PAGE).split("```yaml\n")[1].split("```")[0])

    geval = read_geval(path)

    assert (geval.name, geval.threshold, len(geval.rubric)) == ("politeness", 0.6, 3)
