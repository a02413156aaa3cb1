"""Rows in RAGBench's columns: our own reader gets the labels and scores back from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agreement_rows import scored
from by_hand import ScriptedJudge, labels_of
from own_rows import made_rows

from rag_eval_integrations import Evaluation, Evaluations, RagCall, RagEvaluator, Trace
from rag_eval_integrations.dataset import labelled_from, score_labelled
from rag_eval_integrations.dataset._input import read_lines
from rag_eval_integrations.dataset.rows import ragbench_row
from rag_eval_integrations.metrics.trace import Formulas
from rag_eval_integrations.sentences import Punkt

PUNKT = Punkt()
FOUND = {"unknown_keys", "special_keys", "duplicate_keys", "missing_keys", "overall_conflict",
         "unsupported_response_sentence_keys"}  # fmt: skip
"""What was wrong in a judge's answer, which its labels do not hold any more."""


def evaluations(formulas: Formulas = "gpt-labeling") -> Evaluations:
    return Evaluations(scored(row, formulas) for row in made_rows(60))


def figures(evaluation: Evaluation) -> object:
    """All that is to be the same again."""
    scores = {name: (score.value, score.unscored) for name, score in evaluation.scores.items()}
    labels = evaluation.labels and evaluation.labels.model_dump(exclude=FOUND)
    return evaluation.id, evaluation.row_key, evaluation.sentences.response, labels, scores


@pytest.mark.parametrize("formulas", ["gpt-labeling", "ragbench"])
def test_rows_read_back_with_equal_labels_and_scores(tmp_path: Path, formulas: Formulas) -> None:
    """By either set of formulas; also by their published columns. A file that exists is kept."""
    path = tmp_path / "rows.jsonl.gz"
    path.write_text("mine")
    ours = evaluations(formulas)
    with pytest.raises(ValueError, match="exists"):
        ours.to_ragbench(path)
    assert ours.to_ragbench(path, overwrite=True) == path
    lines = list(read_lines(path, lambda row: labelled_from(row, PUNKT)))

    assert len(lines) == len(ours) == 60
    for line, evaluation in zip(lines, ours, strict=True):
        assert line.value is not None, line.error
        again = score_labelled(line.value, [Trace(formulas)])
        assert figures(again) == figures(evaluation)
        if formulas == "ragbench":
            published = line.value.published
            assert published["relevance_score"] == evaluation.scores["context_relevance"].value
            assert published["adherence_score"] == evaluation.scores["adherence"].value


async def test_columns_are_those_that_are_published() -> None:
    """With the response sentences that are not fully supported; without labels there is no row."""
    judge = ScriptedJudge(labels_of(["0a"], ["0a"], {"a": (["0a"], True), "b": ([], False)}))
    call = RagCall("When?", ["At nine. Daily."], "At nine. From the moon.", id="1",
                   metadata={"dataset_name": "own"})  # fmt: skip
    row: Any = ragbench_row(await RagEvaluator(judge).evaluate(call))

    assert row["documents"] == ["At nine. Daily."]
    assert row["documents_sentences"] == [[["0a", "At nine."], ["0b", "Daily."]]]
    assert row["response_sentences"] == [["a", "At nine."], ["b", "From the moon."]]
    assert row["unsupported_response_sentence_keys"] == ["b"]
    assert (row["adherence_score"], row["relevance_score"]) == (False, 0.5)
    assert row["dataset_name"] == "own"
    assert "reference" not in row
    nothing = RagCall("When?", [], "At nine.")
    assert ragbench_row(await RagEvaluator(judge).evaluate(nothing)) is None


async def test_a_list_of_sources_is_left_out() -> None:
    """Its sentences have no labels: read back, they would be unlabelled claims."""
    judge = ScriptedJudge(labels_of(["0a"], ["0a"], {"a": (["0a"], True)}))
    call = RagCall("When?", ["At nine."], "At nine [1].\n\nSources:\n[1] timetable.pdf")
    evaluation = await RagEvaluator(judge).evaluate(call)
    row: Any = ragbench_row(evaluation)

    again = score_labelled(labelled_from(row, PUNKT), [Trace()])

    assert row["response_sentences"] == [["a", "At nine [1]."]]
    assert again.scores["adherence"].value == evaluation.scores["adherence"].value == 1.0
