"""The features of a call's sentences; training and the judge share this code."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import chain
from math import fsum, log1p, sqrt
from typing import NamedTuple

from rag_eval_integrations.judges.embedded._overlap import Overlap, overlap
from rag_eval_integrations.judges.embedded._response_features import ResponseRow, response_features
from rag_eval_integrations.judges.embedded._words import Words, words

# --- Document sentences: 13 features each, for relevance and utilization


SENTENCE_FEATURES = (
    "question_found",  # share of the question's weight found in the sentence
    "credit",  # share of the response's weight, each word divided among the sentences with it;
    # copies of a sentence have the same
    "dice",  # best weighted Dice coefficient with a response sentence
    "dice_to_best",  # the same, divided by the best of the call
    "dice_before",  # dice of the sentence before it, 0 outside the document
    "length",  # log of the sentence's words
)
SHARED_FEATURES = (
    "document_question",  # cosine of the whole document to the question
    "document_response",
    "call_dice_mean",
    "call_question_found",  # share of the question's weight found in all documents
    "documents",  # log of the number of documents
    "response_length",  # log of the response's words
    "document_length",  # log of the number of its sentences
)
DOCUMENT_FEATURES = SENTENCE_FEATURES + SHARED_FEATURES


class DocumentRows(NamedTuple):
    """Features of one document that has sentences."""

    shared: tuple[float, ...]
    """`SHARED_FEATURES`, which are the same for all its sentences."""
    columns: tuple[Sequence[float], ...]
    """For each of `SENTENCE_FEATURES` its values of the sentences, in order."""


def document_features(o: Overlap) -> list[DocumentRows]:
    """Compute the rows of each document that has sentences, in order; all numbers are finite."""
    if not o.documents:
        return []
    answer = dict.fromkeys([word for sentence in o.response for word in sentence.content])
    found, credit = _sentences(o, answer)
    dice = o.best_dice
    to_question, to_response = _document_cosines(o, answer)
    top_dice = max(dice)
    asked = o.question.content
    call = (
        fsum(dice) / len(dice),
        sum([o.idf[w] for w in asked if w in o.idf]) / (sum(map(o.weight, asked)) or 1.0),
        log1p(len(o.spans)),
        log1p(sum([len(sentence.stems) for sentence in o.response])),
    )
    documents = []
    for number, (start, stop) in enumerate(o.spans):
        size = stop - start
        own = dice[start:stop]
        shared = (to_question[number], to_response[number], *call, log1p(size))
        # In the order of `SENTENCE_FEATURES`. Columns are faster than a loop over the rows.
        columns = (
            found[start:stop],
            credit[start:stop],
            own,
            [value / top_dice for value in own] if top_dice else [0.0] * size,
            [0.0, *own[:-1]],
            [log1p(len(sentence.stems)) for sentence in o.documents[start:stop]],
        )
        documents.append(DocumentRows(shared, columns))
    return documents


def _sentences(o: Overlap, answer: Collection[str]) -> tuple[list[float], list[float]]:
    """Compute the columns `question_found` and `credit`."""
    asked, idf = o.question.bag, o.idf
    answer_mass = sum(map(o.weight, answer)) or 1.0
    earned = dict.fromkeys(o.holders, 0.0)  # words that only the question has earn no credit
    earned |= {w: idf[w] / o.frequency[w] / answer_mass for w in answer if w in idf}
    asked_mass = sum(map(o.weight, o.question.content)) or 1.0
    # Sums of weights are exact and `fsum` rounds once, so that the order of a set does not matter.
    found = [sum(map(idf.__getitem__, asked & shared)) / asked_mass for shared in o.shared]
    return found, [fsum(map(earned.__getitem__, shared)) for shared in o.shared]


def _document_cosines(o: Overlap, answer: Collection[str]) -> tuple[list[float], list[float]]:
    """Compute the idf-weighted cosines of each document to the question and to the response."""
    asked = o.question.bag
    square = {word: weight * weight for word, weight in o.idf.items()}
    asked_norm, answer_norm = _norm(o, o.question.content), _norm(o, answer)
    to_question, to_response = [], []
    for start, stop in o.spans:
        # In order of use, because a float cannot hold the sum of squares of a whole book exactly.
        own = dict.fromkeys(chain.from_iterable([s.content for s in o.documents[start:stop]]))
        norm = sqrt(sum(map(square.__getitem__, own)))
        question = sum(map(square.__getitem__, filter(asked.__contains__, own)))
        response = sum(map(square.__getitem__, filter(answer.__contains__, own)))
        to_question.append(question / (norm * asked_norm) if question else 0.0)
        to_response.append(response / (norm * answer_norm) if response else 0.0)
    return to_question, to_response


def _norm(o: Overlap, content: Collection[str]) -> float:
    """Return the length of a text's vector of word weights."""
    idf, unseen = o.idf, o.unseen
    return sqrt(sum([idf.get(word, unseen) ** 2 for word in content]))


# --- A whole call


class CallFeatures(NamedTuple):
    """The features that the models and the explanations use."""

    overlap: Overlap
    documents: list[DocumentRows]
    """Rows of each document that has sentences."""
    response: list[ResponseRow]
    """One row per response sentence."""


def call_features(
    question: str,
    documents: Sequence[Sequence[str]],
    response: Sequence[str],
    words: Callable[[str], Words] = words,
) -> CallFeatures:
    """Compute the features of one call.

    Deterministic, also across processes. The time is nearly linear in the length of the call.

    Args:
        question: the question.
        documents: the sentences of each document.
        response: the sentences of the response.
        words: splits a sentence into words.
    """
    o = overlap(question, documents, response, words)
    return CallFeatures(o, document_features(o), response_features(o, response))
