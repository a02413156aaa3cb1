"""docs/evaluations.md and docs/compare.md: their code runs, and what they say of it is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import promised_by, run_page, text_of

from rag_eval_integrations import Evaluations
from rag_eval_integrations.evaluations import _paired
from rag_eval_integrations.evaluations._difference_words import HEADINGS, OUTCOMES
from rag_eval_integrations.evaluations._formats import columns_of, to_json
from rag_eval_integrations.records.mean import RunningMean

PAGE = text_of("docs/evaluations.md")
COMPARE = text_of("docs/compare.md")


def test_the_code_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One block after the other; the mean is the one that the page prints."""
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    evaluations = run_page("docs/evaluations.md", monkeypatch)["evaluations"]

    message = capsys.readouterr().out
    means = [line for line in promised_by("docs/evaluations.md") if line.startswith("adherence ")]
    assert means[0] in message
    assert "hallucination" in message
    assert isinstance(evaluations, Evaluations)
    columns = [name for name in columns_of(evaluations) if name not in evaluations[0].scores]
    for name in columns:
        assert f"`{name}`" in PAGE or name.endswith(":unscored"), name
    for name in re.findall(r'^ "(\w+)":', to_json(evaluations.summary()), re.M):
        assert name == "schema" or f"`{name}`" in PAGE, name


@pytest.mark.parametrize(("calls", "percent"), [(10, 28), (100, 4)])
def test_equal_values_leave_room_for_what_the_page_says(calls: int, percent: int) -> None:
    """For the share of other values that may have gone unseen."""
    mean = RunningMean()
    for _ in range(calls):
        mean.add(0.5)
    assert mean.interval is not None
    assert round(100 * (mean.interval.high - mean.interval.low)) == percent


def test_the_example_prints_what_it_shows(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offline, without a key, and its commands run on its files; the first two lines are shown."""
    monkeypatch.chdir(tmp_path)
    run_page("docs/compare.md", monkeypatch)

    shown = promised_by("docs/compare.md")
    assert shown
    assert capsys.readouterr().out.splitlines()[: len(shown)] == shown


def test_the_numbers_are_those_of_the_code() -> None:
    """Limits, power, and the words of headings and verdicts."""
    for message in (
        f"fewer than {_paired.MIN_CHANGED} that differ",
        f"fewer than {_paired.MIN_PAIRS} calls",
        f"{_paired.POWER:.2f} standard errors",
    ):
        assert message in COMPARE
    for words in (*OUTCOMES, *HEADINGS[-2:]):
        assert words in COMPARE
