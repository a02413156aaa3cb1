"""Figures and rows as Markdown, JSON, CSV and Parquet say the same, and texts stay texts."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pytest
from agreement_rows import scored
from hostile import HOSTILE, acting, formulas
from own_rows import made_rows
from runs import call

from rag_eval_integrations import Evaluation, Evaluations
from rag_eval_integrations.evaluations import _formats
from rag_eval_integrations.evaluations._formats import columns_of, csv_of, to_json, to_markdown
from rag_eval_integrations.records import EvaluationError, JudgeInfo, Score
from rag_eval_integrations.report import Summary


def to_csv(evaluations: Sequence[Evaluation]) -> str:
    return "".join(csv_of(evaluations, columns_of(evaluations)))


@pytest.fixture(scope="module")
def evaluations() -> Evaluations:
    return Evaluations(map(scored, made_rows(25)))


def hostile(text: str) -> Evaluation:
    score = Score(name=text, status="scored", value=0.5, reason=text, warnings=(text,))
    error = EvaluationError(type=text, message=text, stage="judge")
    return call(
        text, {text: score}, question=text, response=[text], reference=text, labels=None,
        judge=JudgeInfo(name=text, model=text), flags=(text,), error=error,
    )  # fmt: skip


def test_json_holds_every_figure(evaluations: Evaluations) -> None:
    """Unrounded; intervals with their method, reasons with their counts."""
    summary = evaluations.summary()
    content = json.loads(to_json(summary))

    assert content["calls"] == content["labelled"] == 25
    assert content["verdict"] == summary.verdict()
    for result, each in zip(content["scores"], summary.scores, strict=True):
        figures = {**asdict(each), "by": each.by.model_dump(exclude_none=True)}
        assert result == {**figures, "bins": list(each.bins)}
    assert content["patterns"] == [asdict(each) for each in summary.patterns]
    assert len(content["retrieval"]["ranks"]) == len(summary.ranks)
    assert json.loads(to_json(Summary()))["scores"] == []


def test_markdown_shows_the_same_means(evaluations: Evaluations) -> None:
    """A row per score with mean, interval and of how many, rows per pattern and document from 0."""
    summary = evaluations.summary()
    page = to_markdown(summary, "Nightly")

    assert page.startswith("# Nightly\n")
    for each in summary.scores:
        assert each.interval is not None
        ends = f"{each.interval.low:.3f} to {each.interval.high:.3f}"
        assert f"| {each.mean:.3f} | {ends} | {each.scored:,} of {each.total:,} |" in page
    for pattern in summary.patterns:
        name = f"`{pattern.pattern}`" if "_" in pattern.pattern else pattern.pattern
        assert f"| {name} | {pattern.calls} | {pattern.share:.1%} |" in page
    assert f"| 0 | {summary.ranks[0].calls} | {summary.ranks[0].relevant} |" in page
    assert "(none)" in to_markdown(Summary())


def test_csv_is_one_row_per_call(evaluations: Evaluations) -> None:
    """With the columns of the data frame; a score without a value is an empty cell, and why."""
    rows = list(csv.DictReader(io.StringIO(to_csv(evaluations), newline="")))

    assert len(rows) == 25
    assert list(rows[0]) == list(columns_of(evaluations))
    for row, each in zip(rows, evaluations, strict=True):
        score = each.scores["adherence"]
        assert row["id"] == each.id
        assert row["adherence"] == ("" if score.value is None else f"{score.value:g}")
        assert row["adherence:unscored"] == (score.unscored or "")
    assert to_csv([]).startswith("id,question,response,")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_stay_texts(text: str) -> None:
    """No formula for a spreadsheet, no markup for Markdown, nothing that acts."""
    evaluation = hostile(text)
    page = to_csv([evaluation])
    assert formulas(page) == []
    summary = Summary.of([evaluation])
    for shown in (page, to_markdown(summary, text), to_json(summary)):
        assert acting(shown) == []
    lines = to_markdown(summary).splitlines()
    assert [line for line in lines if line.startswith("#")] == [
        "# Evaluations", "## Scores", "## Failures", "## Notes", "## Flags",
    ]  # fmt: skip


def test_parquet_is_the_data_frame(
    evaluations: Evaluations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also over several groups of rows; nothing is missing but what is missing there."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(_formats, "_GROUP", 10)
    made = zip(made_rows(len(HOSTILE)), HOSTILE, strict=True)  # only a spreadsheet reads formulas
    evaluations += Evaluations(scored({**row, "question": text}) for row, text in made)
    path = evaluations.to_parquet(tmp_path / "rows.parquet")

    read, frame = pd.read_parquet(path), evaluations.to_pandas()
    assert list(read.columns) == list(frame.columns)
    for name in frame.columns:
        assert list(read[name].isna()) == list(frame[name].isna()), name
        kept = frame[name].notna()
        assert list(read[name][kept]) == list(frame[name][kept]), name
    assert str(read["adherence"].dtype) == "float64"
    assert str(read["requests"].dtype) == "int64"
    empty = Evaluations().to_parquet(tmp_path / "none.parquet")
    assert len(pd.read_parquet(empty)) == 0
