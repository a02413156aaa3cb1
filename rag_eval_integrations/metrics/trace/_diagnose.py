"""Diagnoses: patterns in a call's TRACe scores that point at one part of a RAG app."""

from __future__ import annotations

from collections.abc import Mapping

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import Evaluation, Score
from rag_eval_integrations.records.score import Diagnosis, Pattern, patterns_in

__all__ = ["Diagnosis", "Pattern", "diagnose"]


def diagnose(
    scores: Mapping[str, Score] | Evaluation,
    *,
    adherent: float = 1.0,
    irrelevant: float = 0.0,
    ignored: float = 0.4,
    incomplete: float = 0.5,
) -> list[Diagnosis]:
    """Name the patterns that a call's TRACe scores show; `docs/method.md` lists them with rates.

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
