"""Two gates of relevance: do the documents fit the question, and does the response fit them?

A regression on question, response and documents cannot tell by itself that a question is foreign to
its documents, because in the training rows none is. The first gate was fitted on such calls, which
were made by exchanging the parts of rows. The second opens by the best match alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, log1p

from rag_eval_integrations.judges.embedded._features import SHARED_FEATURES, CallFeatures
from rag_eval_integrations.judges.embedded._model import (
    DIGITS,
    Coefficients,
    document_probabilities,
)

TOPIC_FEATURES = (
    "words_found",  # log of the number of the question's words that are in the documents
    "words_missing",  # log of those that are not
    "words_common",  # how many document sentences hold a found word, on average, from 0 to 1
    "document_response_max",  # cosine of the closest document to the response; 0 without one
    "best_sentence",  # log of the most of the question's words in one document sentence
    "document_sentences",  # log of their number: long documents hold some word of any question
)
TOPIC_OPENS, ANSWERED_OPENS = (0.05, 0.5), (0.1, 0.22)
"""P(topic) and the call's greatest Dice coefficient up to which a gate is closed, and from which it
is open: 99 % of real rows have a coefficient of .22 and more. Between them it is partly open,
because a question may name its topic in other words than the documents do. An abrupt first gate
(closed to .45, open from .52) cost .005 of relevance's RMSE on domains unseen in fitting."""

RESPONSE, DICE_MAX = map(SHARED_FEATURES.index, ("document_response", "call_dice_max"))


def topic_row(features: CallFeatures) -> tuple[float, ...]:
    """Compute `TOPIC_FEATURES` of a call with document sentences."""
    o = features.overlap
    closest = max([document.shared[RESPONSE] for document in features.documents])
    holders = [o.holders[word] for word in o.question.content if word in o.idf]
    counts = [log1p(len(numbers)) for numbers in holders]
    size = len(o.documents)
    # Of two at least: that the only sentence holds a word does not make the word common.
    common = fsum(counts) / len(counts) / log1p(max(2, size)) if counts else 0.0
    words_in = [0] * size
    for numbers in holders:
        for number in numbers:
            words_in[number] += 1
    return (
        log1p(len(counts)),
        log1p(len(o.question.content) - len(counts)),
        common,
        closest,
        log1p(max(words_in)),
        log1p(size),
    )


def opening(probability: float, opens: tuple[float, float]) -> float:
    """Compute the opening of a gate, in [0, 1]."""
    closed, opened = opens
    return min(1.0, max(0.0, (probability - closed) / (opened - closed)))


def relevance(
    model: Coefficients, features: CallFeatures, beside_response: Sequence[float] | None
) -> list[float]:
    """Compute P(relevant) of each document sentence, in order.

    Args:
        model: the coefficients.
        features: the features of the call.
        beside_response: probabilities by `model.relevant`; None without a response.
    """
    documents = features.documents
    if not documents:
        return []
    # A question of function words alone ("What is it?") names no topic to miss.
    asks = features.overlap.question.content
    topic = opening(model.topic.probability(topic_row(features)), TOPIC_OPENS) if asks else 1.0
    by_response = opening(documents[0].shared[DICE_MAX], ANSWERED_OPENS)
    if beside_response is not None and by_response == 1.0:
        return [round(topic * p, DIGITS) for p in beside_response]
    [alone] = document_probabilities(documents, model.relevant_alone)
    return [
        round(topic * (by_response * p + (1 - by_response) * q), DIGITS)
        for p, q in zip(beside_response or alone, alone, strict=True)
    ]
