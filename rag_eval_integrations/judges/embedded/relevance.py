"""P(relevant) of document sentences: by question and response, or by the question alone."""

from __future__ import annotations

from collections.abc import Sequence

from rag_eval_integrations.judges.embedded.document_features import DocumentRows
from rag_eval_integrations.judges.embedded.gates import gate_rows, opening
from rag_eval_integrations.judges.embedded.model import DIGITS, Model, document_probabilities


def relevance(
    model: Model, documents: Sequence[DocumentRows], beside_response: Sequence[float] | None
) -> list[float]:
    """P(relevant) of each document sentence, in order.

    Args:
        model: the coefficients.
        documents: their features.
        beside_response: probabilities of `model.relevant`; None where there is no response.
    """
    if not documents:
        return []
    topic_row, answered_row = gate_rows(documents)
    topic = opening(model.topic.probability(topic_row))
    by_response = 0.0
    if beside_response is not None:
        by_response = opening(model.answered.probability(answered_row))
        if by_response == 1.0:
            return [round(topic * p, DIGITS) for p in beside_response]
    [alone] = document_probabilities(documents, model.relevant_alone)
    if beside_response is None:
        return [round(topic * p, DIGITS) for p in alone]
    return [
        round(topic * (by_response * p + (1 - by_response) * q), DIGITS)
        for p, q in zip(beside_response, alone, strict=True)
    ]
