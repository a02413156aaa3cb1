"""Do documents, question and response belong together? Two gates in front of relevance.

The labels that relevance was fitted to are of rows where all three do, and there what matches the
response is relevant. By itself that called documents relevant to a question from another domain
(mean relevance .34, above .28 with their own), and irrelevant when the answer was "I don't know."
(.05). So calls with a foreign question, a foreign response and a refusal were made of the training
rows, and two regressions tell them from the rows themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from rag_eval_integrations.judges.embedded.document_features import (
    SENTENCE_FEATURES,
    SHARED_FEATURES,
    DocumentRows,
)

TOPIC_FEATURES = ("call_question_found", "question_cosine_max", "document_question_max")
ANSWERED_FEATURES = ("call_dice_max", "call_dice_mean", "document_response_max", "bigrams_max")

OPEN = 0.25
"""Probability from which a gate is fully open: rows as they come are to be left alone (RMSE of
relevance .162 on unseen domains, .156 without gates, .169 if open from .5)."""

_COSINE, _BIGRAMS = map(SENTENCE_FEATURES.index, ("question_cosine", "bigrams"))
_QUESTION, _RESPONSE, _FOUND, _DICE_MAX, _DICE_MEAN = map(
    SHARED_FEATURES.index,
    (
        "document_question",
        "document_response",
        "call_question_found",
        "call_dice_max",
        "call_dice_mean",
    ),
)


def gate_rows(
    documents: Sequence[DocumentRows],
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """A call's `TOPIC_FEATURES` and `ANSWERED_FEATURES`; it has document sentences."""
    call = documents[0].shared
    topic = (
        call[_FOUND],
        max([row[_COSINE] for document in documents for row in document.sentences]),
        max([document.shared[_QUESTION] for document in documents]),
    )
    answered = (
        call[_DICE_MAX],
        call[_DICE_MEAN],
        max([document.shared[_RESPONSE] for document in documents]),
        max([row[_BIGRAMS] for document in documents for row in document.sentences]),
    )
    return topic, answered


def opening(probability: float) -> float:
    """How far a gate is open, in [0, 1]."""
    return min(1.0, probability / OPEN)
