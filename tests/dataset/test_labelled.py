"""Scores from recorded labels: RAGBench's published columns, to the last digit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rag_eval_integrations.dataset import labelled_from, read_lines, score_labelled
from rag_eval_integrations.dataset.rows import score_gold
from rag_eval_integrations.metrics import Trace
from rag_eval_integrations.records import Evaluation, from_line, parse_object, to_line
from rag_eval_integrations.sentences import Punkt

PUBLISHED = {
    "context_relevance": "relevance_score",
    "context_utilization": "utilization_score",
    "completeness": "completeness_score",
    "adherence": "adherence_score",
}

ROW: dict[str, Any] = {
    "question": "What is it?",
    "documents": ["Alpha is one. Beta is two.", "Gamma is three."],
    "response": "Alpha is one.",
    "labels": {
        "all_relevant_sentence_keys": ["0a", "0b.", "0a", "7z"],
        "all_utilized_sentence_keys": ["0a"],
        "sentence_support_information": [
            {"response_sentence_key": "a", "supporting_sentence_keys": ["0a"], "fully_supported": None}
        ],
    },
}  # fmt: skip


@pytest.mark.slow
def test_raw_keys_reproduce_every_published_score(ragbench: list[Path]) -> None:
    """All rows, to 1e-9; less than 1 % hold odd keys that change a score, by at most .17."""
    splitter, trace = Punkt(), Trace("ragbench")
    raw: list[float] = []
    clean: list[float] = []
    for path in ragbench:
        for line in read_lines(path, lambda content: labelled_from(content, splitter)):
            assert line.value is not None
            for differences, raw_keys in ((raw, True), (clean, False)):
                scored = score_labelled(line.value, [trace], raw_keys=raw_keys, flags=False)
                for name, column in PUBLISHED.items():
                    value, published = scored.scores[name].value, line.value.published[column]
                    assert value is not None
                    assert published is not None
                    differences.append(abs(value - published))
    assert len(raw) == 2697 * 4
    assert max(raw) < 1e-9
    assert max(clean) < 0.17
    assert sum(difference > 1e-9 for difference in clean) < 0.01 * len(clean)


def test_an_unscored_evaluation_stays_unscored() -> None:
    """It had no labels, and has none under other formulas either."""
    first = score_labelled(labelled_from({**ROW, "response": ""}, Punkt()), [Trace()])
    assert first.scores["adherence"].unscored == "empty_response"

    again = score_labelled(
        labelled_from(parse_object(to_line(first)), Punkt()), [Trace("ragbench")]
    )

    assert again.scores["adherence"].unscored == "empty_response"
    assert again.scores["adherence"].by.formulas == "ragbench"
    assert again.labels is None
    gold = score_gold(labelled_from(parse_object(to_line(first)), Punkt()), Trace())
    assert gold.scores["adherence"].unscored == "empty_response"


def test_a_failed_evaluation_stays_the_failure_it_was() -> None:
    """An error has no labels to score."""
    first = score_labelled(labelled_from({**ROW, "response": ""}, Punkt()), [Trace()])
    row = parse_object(to_line(first))
    row["error"] = {"type": "E", "message": "m", "stage": "judge"}

    again = score_labelled(labelled_from(row, Punkt()), [Trace("ragbench")])

    assert to_line(again) == to_line(from_line(Evaluation, to_line(again)))
    assert again.error is not None
    assert score_gold(labelled_from(row, Punkt()), Trace()).error == again.error
    assert again.scores == labelled_from(row, Punkt()).evaluation.scores  # type: ignore[union-attr]
