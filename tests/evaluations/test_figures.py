"""The figures as Markdown, JSON and CSV say what the summary says, and texts stay texts."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

import pytest
from hostile import HOSTILE, acting, formulas
from own_rows import made_rows

from rag_eval_integrations import Evaluation, Evaluations, Trace
from rag_eval_integrations.dataset import labelled_from, score_labelled
from rag_eval_integrations.evaluations._written import (
    columns_of,
    csv_of,
    row_of,
    to_json,
    to_markdown,
)
from rag_eval_integrations.records import EvaluationError, JudgeInfo, Score, Sentences
from rag_eval_integrations.report import Summary
from rag_eval_integrations.sentences import Punkt


def to_csv(evaluations: Sequence[Evaluation]) -> str:
    return "".join(csv_of(evaluations, columns_of(evaluations)))


@pytest.fixture(scope="module")
def evaluations() -> Evaluations:
    splitter = Punkt()
    rows = (labelled_from(dict(row), splitter) for row in made_rows(25))
    return Evaluations(score_labelled(row, [Trace()]) for row in rows)


def hostile(text: str) -> Evaluation:
    score = Score(name=text, status="scored", value=0.5, reason=text, warnings=(text,))
    return Evaluation(
        id=text, row_key="2", question=text, response=text, reference=text, scores={text: score},
        labels=None, sentences=Sentences(), judge=JudgeInfo(name=text, model=text), flags=(text,),
        error=EvaluationError(type=text, message=text, stage="judge"),
    )  # fmt: skip


def test_json_holds_every_figure(evaluations: Evaluations) -> None:
    """Unrounded; intervals with their method, reasons with their counts."""
    summary = evaluations.summary()
    content = json.loads(to_json(summary))

    assert content["calls"] == content["labelled"] == 25
    for found, one in zip(content["scores"], summary.scores, strict=True):
        assert found["name"] == one.name
        assert found["mean"] == one.mean
        assert one.interval is not None
        assert found["interval"] == {
            "low": one.interval.low, "high": one.interval.high, "method": one.interval.method,
        }  # fmt: skip
        assert tuple(found["bins"]) == one.bins
        assert found["by"]["formulas"] == "gpt-labeling"
    assert [one["pattern"] for one in content["patterns"]] == [
        one.pattern for one in summary.patterns
    ]
    assert len(content["retrieval"]["ranks"]) == len(summary.ranks)
    assert json.loads(to_json(Summary()))["scores"] == []


def test_markdown_shows_the_same_means(evaluations: Evaluations) -> None:
    """A row per score with mean, interval and of how many, rows per pattern and per rank."""
    summary = evaluations.summary()
    page = to_markdown(summary, "Nightly")

    assert page.startswith("# Nightly\n")
    for one in summary.scores:
        assert one.interval is not None
        ends = f"{one.interval.low:.3f} to {one.interval.high:.3f}"
        assert f"| {one.mean:.3f} | {ends} | {one.scored:,} of {one.total:,} |" in page
    for pattern in summary.patterns:
        assert (
            f"| {pattern.pattern.replace('_', ' ')} | {pattern.calls} | {pattern.share:.1%} |"
            in page
        )
    assert f"| 1 | {summary.ranks[0].calls} | {summary.ranks[0].relevant} |" in page
    assert "(none)" in to_markdown(Summary())


def test_csv_is_one_row_per_call(evaluations: Evaluations) -> None:
    """With the columns of the data frame; a score without a value is an empty cell, and why."""
    rows = list(csv.DictReader(io.StringIO(to_csv(evaluations), newline="")))

    assert len(rows) == 25
    assert list(rows[0]) == list(columns_of(evaluations))
    for row, one in zip(rows, evaluations, strict=True):
        score = one.scores["adherence"]
        assert row["id"] == one.id
        assert row["adherence"] == ("" if score.value is None else f"{score.value:g}")
        assert row["adherence:unscored"] == (score.unscored or "")
    assert to_csv([]).startswith("id,question,response,")


def test_cells_of_a_row_are_those_of_its_columns(evaluations: Evaluations) -> None:
    """Texts as they are: only a file makes them visible."""
    columns = columns_of(evaluations)
    row = dict(zip(columns, row_of(evaluations[0], columns), strict=True))
    assert row["response"] == evaluations[0].response
    assert row["documents"] == len(evaluations[0].document_ids)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_stay_texts(text: str) -> None:
    """No formula for a spreadsheet, no markup for Markdown, nothing that acts."""
    one = hostile(text)
    page = to_csv([one])
    assert formulas(page) == []
    for shown in (page, to_markdown(Summary.of([one]), text), to_json(Summary.of([one]))):
        assert acting(shown) == []
    lines = to_markdown(Summary.of([one])).splitlines()
    assert [line for line in lines if line.startswith("#")] == [
        "# Evaluations", "## Scores", "## Failures", "## Notes", "## Flags",
    ]  # fmt: skip
