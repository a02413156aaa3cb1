"""The code in docs/evaluations.md runs, and what the page says of it is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rag_eval_integrations import Evaluations
from rag_eval_integrations.evaluations._written import columns_of, to_json
from rag_eval_integrations.records import RunningMean


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "evaluations.md").read_text(encoding="utf-8")


def test_the_code_runs(
    page: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One block after the other; the mean is the one that the page prints."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```", page, re.M | re.S):
        exec(compile(block, "docs/evaluations.md", "exec"), names)

    said = capsys.readouterr().out
    assert re.findall(r"^print\(.*\)  # (adherence .+)$", page, re.M)[0] in said
    assert "hallucination" in said
    evaluations = names["evaluations"]
    assert isinstance(evaluations, Evaluations)
    columns = [name for name in columns_of(evaluations) if name not in evaluations[0].scores]
    for name in columns:
        assert f"`{name}`" in page or name.endswith(":unscored"), name
    for name in re.findall(r'^ "(\w+)":', to_json(evaluations.summary()), re.M):
        assert name == "schema" or f"`{name}`" in page, name


@pytest.mark.parametrize(("calls", "percent"), [(10, 28), (100, 4)])
def test_equal_values_leave_room_for_what_the_page_says(calls: int, percent: int) -> None:
    """For the share of other values that may have gone unseen."""
    mean = RunningMean()
    for _ in range(calls):
        mean.add(0.5)
    assert mean.interval is not None
    assert round(100 * (mean.interval.high - mean.interval.low)) == percent
