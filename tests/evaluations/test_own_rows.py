"""Sums over our own rows: means, counts and reasons, against a naive second implementation."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import naive
import pytest
from naive import GPT_LABELING, RAGBENCH, SIX
from own_rows import HAND_MADE, made_rows, second_opinion

from rag_eval_integrations import Evaluation, Trace
from rag_eval_integrations.dataset import labelled_from, score_labelled
from rag_eval_integrations.evaluations.summary import Summary
from rag_eval_integrations.sentences import Punkt

ROWS = [made.row for made in HAND_MADE] + made_rows(80)


def summed(*evaluations: Evaluation) -> Summary:
    summary = Summary()
    for evaluation in evaluations:
        summary.add(evaluation)
    return summary


def scored(row: Mapping[str, Any], formulas: str) -> Evaluation:
    trace = Trace(formulas)  # type: ignore[arg-type]
    return score_labelled(labelled_from(dict(row), Punkt()), [trace])


@pytest.mark.parametrize("formulas", [GPT_LABELING, RAGBENCH])
def test_a_summary_says_the_naive_means_counts_and_reasons(formulas: str) -> None:
    """A row without a value is in no mean, and is counted under its reason."""
    rows = [row for row in ROWS if row.get("annotating_model_name") == "made" or naive.why_not(row)]
    shown = summed(*(scored(row, formulas) for row in ROWS))
    one_maker = summed(*(scored(row, formulas) for row in rows))

    worths = [naive.trace(row, formulas) for row in ROWS]
    for name in SIX:
        _, count, total, reasons = naive.totals(worth[name] for worth in worths)
        given = shown.means.unscored.get(name, Counter())
        assert (shown.means.total[name], given) == (total, reasons)
        assert total - given.total() == count
        mean, count, total, _ = naive.totals(naive.trace(row, formulas)[name] for row in rows)
        found = one_maker.means.mean(name)
        assert found is not None
        assert (found.mean, found.n) == (pytest.approx(mean), count)
        assert one_maker.means.total[name] == total
    assert shown.calls == len(ROWS)


def test_what_was_made_differently_is_summed_apart() -> None:
    """Two formula sets, labels and expectations: each has the naive mean of its own."""
    source = random.Random(2)
    made = ROWS[len(HAND_MADE) :]
    said = [second_opinion(source, row, probabilities=True) for row in made]
    parts = [(made, GPT_LABELING), (made, RAGBENCH), (said, GPT_LABELING)]

    summary = summed(*(scored(row, formulas) for rows, formulas in parts for row in rows))

    means = sorted(
        one.mean
        for made, one in summary.means.made.items()
        if made.name == "context_utilization" and one.mean is not None
    )
    expected = sorted(
        naive.totals(naive.trace(row, formulas)["context_utilization"] for row in rows)[0] or 0
        for rows, formulas in parts
    )
    assert means == pytest.approx(expected)
    assert len(set(means)) == 3
    with pytest.raises(ValueError, match="different"):
        summary.means.mean("context_utilization")
