"""The embedded judge on 60 labelled rows of each data set, judged once for all claims."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from by_hand import keyed

from rag_eval_integrations.judges.embedded.judge import label_call
from rag_eval_integrations.metrics import Trace
from rag_eval_integrations.records import By, SentencizedCall

from .conftest import call_of_row, documents_of, embedded_labels, rows_of

pytestmark = pytest.mark.slow

Judged = tuple[Any, SentencizedCall, Any]
"""A row, its call, and its labelling."""


@pytest.fixture(scope="module")
def judged(ragbench: list[Path]) -> list[Judged]:
    rows = [(row, call_of_row(row)) for path in ragbench for row in rows_of(path, 60)]
    return [(row, call, label_call(call)) for row, call in rows]


def test_expected_relevance_is_near_the_gold(judged: list[Judged]) -> None:
    """The sums of probabilities beat the usual constant (.21)."""
    errors = []
    for row, _, labelling in judged:
        probabilities = labelling.labels.relevant_probabilities
        errors.append(fmean(probabilities.values()) - row["relevance_score"])

    assert math.sqrt(fmean(error**2 for error in errors)) < 0.18


def test_gold_is_rarely_contradicted(judged: list[Judged]) -> None:
    """Of the sentences of supported responses at most .2 % are said to be contradicted."""
    unsupported = "unsupported_response_sentence_keys"
    supported = [labelling.labels for row, _, labelling in judged if not row[unsupported]]
    sentences = sum(len(labels.sentence_support_information) for labels in supported)

    assert sentences > 1000
    assert sum(len(labels.contradictions) for labels in supported) <= 0.002 * sentences


def test_gold_keeps_to_the_errors(judged: list[Judged]) -> None:
    """85 to 99 % of gold lie within 1.96 errors; of retrieval alone, too.

    The rows were in fitting: this holds the arithmetic, docs/embedded-judge-figures.md has unseen ones.
    """
    inside, far = defaultdict(list), []
    for row, call, labelling in judged:
        for score in Trace("ragbench").score(call, labelling, By())[:3]:
            name = score.name.removeprefix("context_")
            if score.estimate is None:  # nothing is labelled: the formulas decide alone
                continue
            assert score.estimate.method == "calibrated"
            away = abs(score.estimate.value - row[f"{name}_score"])
            inside[name].append(away < 1.96 * (score.estimate.std_error or 0))
        alone = embedded_labels(call_of_row(row, alone=True))
        mean, error = alone.estimates["context_relevance"]
        far.append(mean - row["relevance_score"])
        inside["alone"].append(abs(far[-1]) < 1.96 * error)

    assert {name: 0.85 < fmean(held) < 0.99 for name, held in inside.items()} == dict.fromkeys(
        ("relevance", "utilization", "completeness", "alone"), True
    )
    assert math.sqrt(fmean(value**2 for value in far)) < 0.21


def test_own_documents_come_before_foreign_ones(ragbench: list[Path]) -> None:
    """Of 12 rows a file, the next file's documents score lower, alone and with the response."""
    rows = [rows_of(path, 12) for path in ragbench]
    # Manuals and manuals are no strangers.
    names = [path.name.split("_")[0] for path in ragbench]
    first = ["manual" if name in {"delucionqa", "emanual"} else name for name in names]
    lower = {True: 0, False: 0}
    compared = 0
    for at, own_rows in enumerate(rows):
        others = [j % len(rows) for j in range(at + 1, at + len(rows))]
        other = next(rows[j] for j in others if first[j] != first[at])
        for own, foreign in zip(own_rows, other, strict=True):
            compared += 1
            for beside in (True, False):
                scores = []
                for row in (own, foreign):
                    call = call_of_row({**row, "question": own["question"]}, alone=not beside)
                    scores.append(embedded_labels(call).estimates["context_relevance"][0])
                lower[beside] += scores[1] < scores[0]

    assert min(lower.values()) / compared > 0.8


def test_long_pages_hide_no_answer(ragbench: list[Path]) -> None:
    """Among 1,000 sentences of other rows the utilized sentences are found as they are alone."""
    path = next(path for path in ragbench if path.name.startswith("hotpotqa"))
    rows = rows_of(path, 200)
    filler = [text for row in rows[40:] for part in documents_of(row) for text in part]
    found = {False: 0, True: 0}
    for row in rows[:12]:
        call = call_of_row(row)
        pages = [*documents_of(row), filler[:1_000]]
        response = [sentence.text for sentence in call.response]
        for among in found:
            of = keyed(pages, response, question=row["question"]) if among else call
            labels = embedded_labels(of)
            used = set(row["all_utilized_sentence_keys"])
            found[among] += len(used.intersection(labels.all_utilized_sentence_keys))

    assert found[True] >= 0.95 * found[False] > 0
