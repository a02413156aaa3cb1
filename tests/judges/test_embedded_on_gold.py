"""The embedded judge on 60 labelled rows of each data set, judged once for all claims."""

from __future__ import annotations

import gzip
import itertools
import json
import math
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from by_hand import keyed

from rag_eval_integrations.judges.embedded import label_call
from rag_eval_integrations.metrics import Trace
from rag_eval_integrations.records import By, Labelling, Labels, SentencizedCall

pytestmark = pytest.mark.slow

Judged = tuple[dict[str, Any], SentencizedCall, Labelling]


def call_of(row: dict[str, Any], *, alone: bool = False) -> SentencizedCall:
    """The call with its recorded sentences; alone, as the retriever left it."""
    documents = [[text for _, text in part] for part in row["documents_sentences"]]
    response = [] if alone else [text for _, text in row["response_sentences"]]
    return keyed(documents, response, question=row["question"])


def labels_in(labelling: Labelling) -> Labels:
    assert labelling.labels is not None
    return labelling.labels


@pytest.fixture(scope="module")
def judged(ragbench: list[Path]) -> list[Judged]:
    collected = []
    for path in ragbench:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for row in map(json.loads, itertools.islice(lines, 60)):
                call = call_of(row)
                collected.append((row, call, label_call(call)))
    return collected


def test_expected_relevance_is_near_the_gold(judged: list[Judged]) -> None:
    """The sums of probabilities beat the usual constant (.21)."""
    errors = []
    for row, _, labelling in judged:
        probabilities = labels_in(labelling).relevant_probabilities
        assert probabilities is not None
        errors.append(fmean(probabilities.values()) - row["relevance_score"])

    assert math.sqrt(fmean(error**2 for error in errors)) < 0.18


def test_gold_is_rarely_contradicted(judged: list[Judged]) -> None:
    """Of the sentences of supported responses at most .2 % are said to be contradicted."""
    supported = [
        labels_in(labelling)
        for row, _, labelling in judged
        if not row["unsupported_response_sentence_keys"]
    ]
    sentences = sum(len(labels.sentence_support_information) for labels in supported)

    assert sentences > 1000
    assert sum(len(labels.contradictions) for labels in supported) <= 0.002 * sentences


def test_gold_keeps_to_the_errors(judged: list[Judged]) -> None:
    """85 to 99 % of gold lie within 1.96 errors; of retrieval alone, too.

    The rows were in fitting: this holds the arithmetic, docs/embedded-judge.md has unseen ones.
    """
    inside, far = defaultdict(list), []
    for row, call, labelling in judged:
        for score in Trace("ragbench").score(call, labelling, By())[:3]:
            name = score.name.removeprefix("context_")
            if score.estimate is None:  # nothing is labelled: the formulas decide alone
                continue
            assert score.estimate.std_error is not None
            assert score.estimate.method == "calibrated"
            away = abs(score.estimate.value - row[f"{name}_score"])
            inside[name].append(away < 1.96 * score.estimate.std_error)
        alone = labels_in(label_call(call_of(row, alone=True))).estimates or {}
        mean, error = alone["context_relevance"]
        assert error is not None
        far.append(mean - row["relevance_score"])
        inside["alone"].append(abs(far[-1]) < 1.96 * error)

    assert {name: 0.85 < fmean(held) < 0.99 for name, held in inside.items()} == dict.fromkeys(
        ("relevance", "utilization", "completeness", "alone"), True
    )
    assert math.sqrt(fmean(value**2 for value in far)) < 0.21
