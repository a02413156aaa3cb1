"""Agreement on our own rows: every figure against a naive second implementation of it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from agreement_rows import scored
from naive import GPT_LABELING, RAGBENCH, estimates
from naive_agreement import Both, agreement
from own_rows import made_rows, second_opinion

from rag_eval_integrations import Evaluation
from rag_eval_integrations.agreement import Gold, agree, match
from rag_eval_integrations.agreement.matching import Matched

ROWS = made_rows(64)


def values(evaluation: Evaluation) -> dict[str, float | None]:
    return {name: score.value for name, score in evaluation.scores.items()}


def judged(formulas: str, *, probabilities: bool) -> tuple[list[Both], Matched]:
    """The same rows twice: for the naive figures, and for the library's."""
    source = random.Random(3)
    both: dict[tuple[str, str], Both] = {}
    predicted, gold = [], []
    for row in ROWS:
        message = second_opinion(source, row, probabilities=probabilities)
        ours, theirs = scored(message, formulas), scored(row, formulas)
        expected = {name: float(worth) for name, worth in estimates(message, formulas).items()}
        key = ours.row_key, ours.id  # of two that are equally long, the first in this order
        both[key] = Both(message, row, values(ours), values(theirs), expected)
        predicted.append(ours)
        gold.append(Gold.from_row(theirs, row, human="rating"))
    return [both[key] for key in sorted(both)], match(predicted, gold[::-1])


def assert_same_figures(
    result: Mapping[str, Any], expected: Mapping[str, Any], place: str = ""
) -> int:
    """Every figure and count is the naive one, and there is no other; says how many there were."""
    assert result.keys() - {"ci95"} == expected.keys(), place
    assert result.get("ci95", {}).keys() <= expected.keys(), place
    checked = 0
    for name, value in expected.items():
        if isinstance(value, Mapping):
            checked += assert_same_figures(result[name], value, f"{place}/{name}")
        else:
            same = value if value is None else pytest.approx(value, abs=1e-9)
            assert (place, name, result[name]) == (place, name, same)
            checked += 1
    return checked


@pytest.mark.parametrize(("formulas", "probabilities"), [(GPT_LABELING, True), (RAGBENCH, False)])
def test_every_figure_is_the_naive_one(formulas: str, probabilities: bool) -> None:
    """Scores, sentences, baselines and a human's numbers; pooled, by data set, and their mean."""
    both, matched = judged(formulas, probabilities=probabilities)

    result = agree(matched, baselines=True, resamples=20).to_json()

    expected = agreement(both, of_all_sentences=formulas == RAGBENCH, human="rating")
    figures = {name: result[name] for name in expected}
    assert assert_same_figures(figures, expected) > 900
