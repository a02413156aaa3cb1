"""The patterns in a call's TRACe scores: what they mean, and which of them hold.

Here and not among the metrics, because an evaluation shows them when it is printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Pattern = Literal[
    "hallucination", "nothing_relevant_retrieved", "context_ignored", "incomplete", "healthy"
]


@dataclass(frozen=True)
class Diagnosis:
    """One pattern found in the scores of a call."""

    pattern: Pattern
    problem: str
    """The problem, in one sentence."""
    fix: str
    """The first thing to change."""


_WORDS: dict[Pattern, tuple[str, str]] = {
    "hallucination": (
        "The response says something that the documents do not support.",
        "Check the unsupported sentences; tell the model to answer from the documents only.",
    ),
    "nothing_relevant_retrieved": (
        "No retrieved sentence is relevant to the question.",
        "Tune the retriever (query, chunking, top-k, filters), or add the missing documents.",
    ),
    "context_ignored": (
        "Relevant text was retrieved, but the response leaves most of it unused.",
        "Instruct the model in the prompt to answer from the documents.",
    ),
    "incomplete": (
        "The response is grounded but leaves out half of the relevant text or more.",
        "Ask the model for a more complete answer, or retrieve less that repeats itself.",
    ),
    "healthy": (
        "Relevant text was found and used, and the response is grounded in it.",
        "Nothing to change.",
    ),
}
DIAGNOSES = {pattern: Diagnosis(pattern, *words) for pattern, words in _WORDS.items()}
"""Every pattern, the gravest first."""


Scored = Any
"""A `records.Score`, whose module imports this one."""


def patterns_in(
    scores: Mapping[str, Scored],
    *,
    adherent: float = 1.0,
    irrelevant: float = 0.0,
    ignored: float = 0.4,
    incomplete: float = 0.5,
) -> list[Diagnosis]:
    """Return the patterns that hold, the gravest first; `metrics.diagnose` tells the cut-offs."""
    relevance, used, complete, grounded = (
        scores[name].value if name in scores else None
        for name in ("context_relevance", "context_utilization", "completeness", "adherence")
    )
    if used is not None and scores["context_utilization"].by.formulas == "ragbench":
        # These formulas give the used share of all sentences; that of the relevant ones is meant.
        used = min(1.0, used / relevance) if relevance else None
    patterns: list[Pattern] = []
    if grounded is not None and grounded < adherent:
        patterns.append("hallucination")
    if relevance is not None and relevance <= irrelevant:
        patterns.append("nothing_relevant_retrieved")
    elif relevance is not None and used is not None and used <= ignored:
        patterns.append("context_ignored")
    elif not patterns and grounded is not None and complete is not None and complete <= incomplete:
        patterns.append("incomplete")
    if not patterns and None not in (relevance, used, complete, grounded):
        patterns.append("healthy")
    return [DIAGNOSES[pattern] for pattern in patterns]
