"""Diagnoses: patterns in a call's TRACe scores that point at one part of a RAG app."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rag_eval_integrations.records import Score

Pattern = Literal[
    "hallucination",
    "poor_retrieval",
    "retrieval_good_generation_ignores",
    "grounded_but_incomplete",
    "excellent",
]


@dataclass(frozen=True)
class Diagnosis:
    """One pattern found in the scores of a call."""

    pattern: Pattern
    problem: str
    """The problem, in one sentence."""
    fix: str
    """The first thing to change."""


_DIAGNOSES: dict[Pattern, Diagnosis] = {
    diagnosis.pattern: diagnosis
    for diagnosis in (
        Diagnosis(
            "hallucination",
            "The response says something that the documents do not support.",
            "Check the unsupported sentences; tell the model to answer from the documents only.",
        ),
        Diagnosis(
            "poor_retrieval",
            "Much of the retrieved text is not relevant to the question.",
            "Tune the retriever: chunking, top-k, filters, a reranker.",
        ),
        Diagnosis(
            "retrieval_good_generation_ignores",
            "Retrieval is good, but the response leaves the context unused.",
            "Instruct the model in the prompt to answer from the documents.",
        ),
        Diagnosis(
            "grounded_but_incomplete",
            "The response is grounded but leaves relevant information out.",
            "Retrieve more relevant text, or ask the model for a more complete answer.",
        ),
        Diagnosis(
            "excellent",
            "Relevant, used, complete and grounded.",
            "Nothing to change.",
        ),
    )
}


def diagnose(
    scores: Mapping[str, Score], *, high: float = 0.7, adherent: float = 1.0
) -> list[Diagnosis]:
    """Name the patterns that a call's TRACe scores show; `docs/method.md` lists them.

    Args:
        scores: scores by name, as in `Evaluation.scores`.
        high: lowest value, in [0, 1], that counts as high for relevance, utilization and
            completeness.
        adherent: lowest adherence, in [0, 1], that counts as grounded.

    Returns:
        Every pattern that holds, the gravest first. A pattern is left out unless all its scores
        have values, so the list is empty when nothing is scored.
    """
    relevance, utilization, complete, grounded = (
        scores[name].value if name in scores else None
        for name in ("context_relevance", "context_utilization", "completeness", "adherence")
    )
    found: list[Pattern] = []
    if grounded is not None and grounded < adherent:
        found.append("hallucination")
    if relevance is not None and relevance < high:
        found.append("poor_retrieval")
    if relevance is not None and utilization is not None and utilization < high <= relevance:
        found.append("retrieval_good_generation_ignores")
    if complete is not None and grounded is not None and complete < high and grounded >= adherent:
        found.append("grounded_but_incomplete")
    if (
        relevance is not None
        and utilization is not None
        and complete is not None
        and grounded is not None
        and min(relevance, utilization, complete) >= high
        and grounded >= adherent
    ):
        found.append("excellent")
    return [_DIAGNOSES[pattern] for pattern in found]
