"""Scores from recorded labels: RAGBench's published columns, to the last digit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from by_hand import labels_of
from naive import COLUMNS

from rag_eval_integrations.dataset import labelled_from, score_labelled
from rag_eval_integrations.dataset._input import read_lines
from rag_eval_integrations.dataset.rows import score_gold
from rag_eval_integrations.metrics import Trace
from rag_eval_integrations.records import Evaluation, EvaluationError, from_line, to_line
from rag_eval_integrations.records._json import parse_object
from rag_eval_integrations.sentences import Punkt

LABELS = labels_of(["0a"], ["0a"], {"a": (["0a"], None)}).model_dump(mode="json")
ROW: dict[str, Any] = {"question": "q", "documents": ["A."], "response": "", "labels": LABELS}


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
                for name, column in COLUMNS.items():
                    value, published = scored.scores[name].value, line.value.published[column]
                    differences.append(abs(value - published))  # type: ignore[operator]  # of a None
    assert len(raw) == 2697 * 4
    assert max(raw) < 1e-9
    assert max(clean) < 0.17
    assert sum(difference > 1e-9 for difference in clean) < 0.01 * len(clean)


@pytest.mark.parametrize("error", [None, EvaluationError(type="E", message="m", stage="judge")])
def test_an_evaluation_without_labels_stays_what_it_was(error: EvaluationError | None) -> None:
    """Unscored under other formulas, too, or failed, with the scores that it had."""
    first = score_labelled(labelled_from(ROW, Punkt()), [Trace()])
    first = first.model_copy(update={"error": error})
    labelled = labelled_from(parse_object(to_line(first)), Punkt())

    again, gold = score_labelled(labelled, [Trace("ragbench")]), score_gold(labelled, Trace())

    assert (again.error, again.labels, gold.error) == (error, None, error)
    assert {row.scores["adherence"].unscored for row in (again, gold)} == {"empty_response"}
    assert again.scores["adherence"].by.formulas == ("gpt-labeling" if error else "ragbench")
    assert (again.scores == first.scores) == (error is not None)
    assert from_line(Evaluation, to_line(again)) == again
