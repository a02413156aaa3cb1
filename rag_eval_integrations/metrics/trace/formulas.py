"""TRACe's formulas as pure functions of counts and labels (arXiv:2407.11005, section 3).

There are two sets of formulas, and their scores are never averaged together. T is the number of
document sentences; R and U are the relevant and the utilized ones:

    score            `gpt-labeling`                         `ragbench` (the published columns)
    relevance        R / T, or min(1, R / baseline)         R / T
    utilization      min(1, U / R); R empty: 0              U / T
    completeness     both / R; R empty: 1 if U is empty,    both / R; R empty: 1
                     else 0
    adherence        1 iff every response sentence is       1 iff none is recorded as unsupported,
                     fully supported                        else the sentence rule

With T = 0 nothing can be relevant or utilized: R = 0, and under `ragbench` U = 0. C ≤ U ≤ R does
not hold in general: with R and U empty, `gpt-labeling` gives C = 1 and U = 0, and U often exceeds
R. With R not empty, C ≤ U holds under `gpt-labeling`. `docs/method.md` defines both sets.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import Evaluation, Labels, Score, Support
from rag_eval_integrations.records.score import Diagnosis, Pattern, patterns_in

Formulas = Literal["gpt-labeling", "ragbench"]


def context_relevance(relevant: float, total: int, baseline: int | None = None) -> float:
    """Compute the relevant share of the retrieved sentences: |R| / T, in [0, 1], 1 is best.

    Args:
        relevant: |R|, or its expectation.
        total: T, the number of document sentences.
        baseline: a fixed number to divide by instead of T, such as 20, so that long and short
            contexts can be compared.

    Returns:
        The share; 0 when nothing was retrieved.
    """
    divisor = total if baseline is None else baseline
    return min(1.0, relevant / divisor) if divisor else 0.0


def context_utilization(
    relevant: float, utilized: float, total: int, formulas: Formulas = "gpt-labeling"
) -> float:
    """Compute how much of the context was used, in [0, 1].

    `gpt-labeling` divides by the relevant sentences (|U| / |R|), `ragbench` by all (|U| / T).

    Args:
        relevant: |R|, or its expectation.
        utilized: |U|, or its expectation.
        total: T, the number of document sentences.
        formulas: the set of formulas.

    Returns:
        The share. `gpt-labeling`: 0 when R is empty, even if U is not. `ragbench`: 0 when nothing
        was retrieved.
    """
    divisor = relevant if formulas == "gpt-labeling" else total
    return min(1.0, utilized / divisor) if divisor else 0.0


def completeness(
    relevant: float, both: float, utilized: float, formulas: Formulas = "gpt-labeling"
) -> float:
    """Compute the used share of the relevant sentences: |R∩U| / |R|, in [0, 1], 1 is best.

    Args:
        relevant: |R|, or its expectation.
        both: |R∩U|, or its expectation.
        utilized: |U|, or its expectation; matters only when R is empty.
        formulas: the set of formulas.

    Returns:
        The share. With R empty: under `gpt-labeling` 1 if U is empty too, else 0; under `ragbench`
        always 1, which reproduces 100 % of the published rows.
    """
    if relevant:
        return min(1.0, both / relevant)
    return 1.0 if formulas == "ragbench" or not utilized else 0.0


def adherence(
    labels: Labels, keys: Sequence[str], formulas: Formulas = "gpt-labeling"
) -> float | None:
    """Decide whether the response is grounded in the documents: 1.0 if so, else 0.0.

    A single sentence without full support makes it 0.0.

    Args:
        labels: reconciled labels.
        keys: the keys of the response sentences.
        formulas: `ragbench` uses the recorded `unsupported_response_sentence_keys` where they
            exist, and the sentence rule otherwise.

    Returns:
        1.0 or 0.0; 1.0 when there is no response sentence. None when no labelled sentence is
        unsupported but some are unlabelled, so that adherence is unknown.
    """
    recorded = labels.unsupported_response_sentence_keys
    if formulas == "ragbench" and recorded is not None:
        return 0.0 if recorded else 1.0
    supports = {labels.support(key) for key in keys}
    if supports & {"partial", "none"}:
        return 0.0
    return None if "unlabelled" in supports else 1.0


def supported_fraction(supports: Sequence[Support]) -> float | None:
    """Compute the share of the response sentences that are fully supported, in [0, 1], 1 is best.

    Returns:
        The share; 1.0 when there is no response sentence; None when any is unlabelled.
    """
    if "unlabelled" in supports:
        return None
    return supports.count("full") / len(supports) if supports else 1.0


def overlap(relevant: Collection[str], utilized: Collection[str]) -> int:
    """Count the distinct keys in both: |R∩U|."""
    return len(set(relevant) & set(utilized))


# --- The counts that the formulas take: counted from the labels, or expected from probabilities


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
    relevant_variance: float = 0.0
    """Variance of |R| if sentences were independent; 0 for labels."""
    utilized_variance: float = 0.0
    """Variance of |U|, likewise."""


def labelled_counts(labels: Labels, total: int) -> Counts:
    """Count the labelled keys; repeats count, since `--raw-keys` keeps them."""
    relevant, utilized = labels.all_relevant_sentence_keys, labels.all_utilized_sentence_keys
    return Counts(total, len(relevant), len(utilized), overlap(relevant, utilized))


def expected_counts(labels: Labels, keys: Sequence[str]) -> Counts | None:
    """Compute the expected counts over the document sentences `keys`.

    None unless every sentence has both probabilities.

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
        relevant_variance=_variance(relevant, keys),
        utilized_variance=_variance(utilized, keys),
    )


def _variance(probabilities: Mapping[str, float], keys: Sequence[str]) -> float:
    """Return the variance of the number of true labels (a Poisson binomial)."""
    return math.fsum(probabilities[key] * (1 - probabilities[key]) for key in keys)


# --- Patterns in the scores of a call

__all__ = ["Diagnosis", "Pattern", "diagnose"]


def diagnose(
    scores: Mapping[str, Score] | Evaluation,
    *,
    adherent: float = 1.0,
    irrelevant: float = 0.0,
    ignored: float = 0.4,
    incomplete: float = 0.5,
) -> list[Diagnosis]:
    """Name the patterns that a call's TRACe scores show; `docs/concepts.md` lists them with rates.

    Args:
        scores: an evaluation, or its scores by name, as in `Evaluation.scores`.
        adherent: lowest adherence, in [0, 1], that counts as grounded.
        irrelevant: highest context relevance, in [0, 1], that counts as nothing relevant.
        ignored: highest share of the relevant sentences, in [0, 1], that counts as context ignored:
            utilization, which under `ragbench` is divided by relevance.
        incomplete: highest completeness, in [0, 1], that counts as incomplete.

    Returns:
        Every pattern that holds, the gravest first. A pattern is left out unless all its scores
        have values, so the list is empty when nothing is scored.

    Raises:
        ConfigurationError: a cut-off is outside [0, 1]; `scores` are neither.
    """
    cuts = {
        "adherent": adherent, "irrelevant": irrelevant, "ignored": ignored,
        "incomplete": incomplete,
    }  # fmt: skip
    for name, cut in cuts.items():
        if not 0 <= cut <= 1:
            raise ConfigurationError(name, cut, "use a number from 0 to 1")
    by_name = scores.scores if isinstance(scores, Evaluation) else scores
    if not isinstance(by_name, Mapping):
        raise ConfigurationError(
            "scores", scores, "should be an evaluation, or its scores by name (`evaluation.scores`)"
        )
    return patterns_in(by_name, **cuts)
