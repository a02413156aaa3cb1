"""Two gates of relevance: do the documents fit the question, and does the response fit them?

A regression on question, response and documents cannot tell by itself that a question is foreign to
its documents, because in the training rows none is. The gates were fitted on such calls, which were
made by exchanging the parts of rows (docs/embedded-judge.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import fsum, log1p

from rag_eval_integrations.judges.embedded._features import (
    SENTENCE_FEATURES,
    SHARED_FEATURES,
    CallFeatures,
)
from rag_eval_integrations.judges.embedded._model import (
    DIGITS,
    Coefficients,
    document_probabilities,
)
from rag_eval_integrations.judges.embedded._overlap import Overlap

TOPIC_FEATURES = (
    "words_found",  # log of the number of the question's words that are in the documents
    "words_missing",  # log of those that are not
    "words_common",  # how many document sentences hold a found word, on average, from 0 to 1
    "document_response_max",  # cosine of the closest document to the response; 0 without one
    "best_sentence",  # log of the most of the question's words in one document sentence
    "pairs_found",  # log of the question's pairs of neighbouring words that are in the documents
    "pairs_missing",
    "document_sentences",  # log of their number: long documents hold some word of any question
)
ANSWERED_FEATURES = ("call_dice_max", "call_dice_mean", "document_response_max", "bigrams_max")

TOPIC_OPENS, ANSWERED_OPENS = (0.05, 0.5), (0.0, 0.25)
"""Probabilities up to which a gate is closed, and from which it is open. Between them it is partly
open, because a question may name its topic in other words than the documents do. An abrupt gate
(closed to .45, open from .52) cost .005 of relevance's RMSE on domains unseen in fitting."""

_BIGRAMS = SENTENCE_FEATURES.index("bigrams")
_RESPONSE, _DICE_MAX, _DICE_MEAN = map(
    SHARED_FEATURES.index, ("document_response", "call_dice_max", "call_dice_mean")
)


def gate_rows(features: CallFeatures) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Compute `TOPIC_FEATURES` and `ANSWERED_FEATURES` of a call with document sentences."""
    documents, o = features.documents, features.overlap
    call = documents[0].shared
    closest = max([document.shared[_RESPONSE] for document in documents])
    holders = [o.holders[word] for word in o.question.content if word in o.idf]
    held = [log1p(len(numbers)) for numbers in holders]
    size = len(o.documents)
    # Of two at least: that the only sentence holds a word does not make the word common.
    common = fsum(held) / len(held) / log1p(max(2, size)) if held else 0.0
    words_in = [0] * size
    for numbers in holders:
        for number in numbers:
            words_in[number] += 1
    found, missing = _pairs(o)
    topic = (
        log1p(len(held)),
        log1p(len(o.question.content) - len(held)),
        common,
        closest,
        log1p(max(words_in)),
        log1p(found),
        log1p(missing),
        log1p(size),
    )
    answered = (
        call[_DICE_MAX],
        call[_DICE_MEAN],
        closest,
        max([row[_BIGRAMS] for document in documents for row in document.sentences]),
    )
    return topic, answered


def _pairs(o: Overlap) -> tuple[int, int]:
    """Count the question's pairs of neighbouring content words, found in a document or not."""
    content = o.question.bag
    pairs = {pair for pair in pairwise(o.question.stems) if content.issuperset(pair)}
    found = 0
    for one, other in pairs:
        after = o.holders.get(other)
        if after is None or one not in o.holders:
            continue
        both = set(after).intersection(o.holders[one])
        found += any((one, other) in pairwise(o.documents[number].stems) for number in both)
    return found, len(pairs) - found


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
    topic_row, answered_row = gate_rows(features)
    # A question of function words alone ("What is it?") names no topic to miss.
    asks = features.overlap.question.content
    topic = opening(model.topic.probability(topic_row), TOPIC_OPENS) if asks else 1.0
    by_response = 0.0
    if beside_response is not None:
        by_response = opening(model.answered.probability(answered_row), ANSWERED_OPENS)
        if by_response == 1.0:
            if topic == 1.0:
                return list(beside_response)
            return [round(topic * p, DIGITS) for p in beside_response]
    [alone] = document_probabilities(documents, model.relevant_alone)
    if beside_response is None:
        return [round(topic * p, DIGITS) for p in alone]
    return [
        round(topic * (by_response * p + (1 - by_response) * q), DIGITS)
        for p, q in zip(beside_response, alone, strict=True)
    ]
