"""From labels to the counts that the formulas take: as labelled, or expected.

With per-sentence probabilities a count is a sum of probabilities: the same principle as G-Eval's
expectation over scores. On RAGBench the expected scores of a lexical judge are .03 closer (RMSE)
to the published ones than the scores of its thresholded labels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rag_eval_integrations.metrics.trace.formulas import overlap
from rag_eval_integrations.records import Labels


@dataclass(frozen=True)
class Counts:
    """Numbers of document sentences, or their expectations."""

    total: int
    """T, all document sentences."""
    relevant: float
    """|R|"""
    utilized: float
    """|U|"""
    both: float
    """|R∩U|"""
    method: Literal["labels", "expected"]
    relevant_variance: float = 0.0
    """Variance of |R| if sentences were independent; 0 for labels."""
    utilized_variance: float = 0.0


def labelled_counts(labels: Labels, total: int) -> Counts:
    """Count the labelled keys; lists are taken as they are (`--raw-keys` keeps repeats)."""
    relevant, utilized = labels.all_relevant_sentence_keys, labels.all_utilized_sentence_keys
    return Counts(total, len(relevant), len(utilized), overlap(relevant, utilized), "labels")


def expected_counts(labels: Labels, keys: Sequence[str]) -> Counts | None:
    """Expected counts over the document sentences `keys`; None without both probabilities.

    |R∩U| is expected as Σ min(p(R), p(U)): utilized sentences are nearly all relevant ones
    (U ⊄ R in 15.8 % of RAGBench rows), so the two are close to nested, not independent.
    """
    relevant, utilized = labels.relevant_probabilities, labels.utilized_probabilities
    if relevant is None or utilized is None:
        return None
    if not all(key in relevant and key in utilized for key in keys):
        return None
    return Counts(
        total=len(keys),
        relevant=math.fsum(relevant[key] for key in keys),
        utilized=math.fsum(utilized[key] for key in keys),
        both=math.fsum(min(relevant[key], utilized[key]) for key in keys),
        method="expected",
        relevant_variance=_variance(relevant, keys),
        utilized_variance=_variance(utilized, keys),
    )


def _variance(probabilities: Mapping[str, float], keys: Sequence[str]) -> float:
    return math.fsum(probabilities[key] * (1 - probabilities[key]) for key in keys)
