"""The features of a call's sentences; training and the judge share this code."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from math import fsum, log1p, sqrt
from typing import NamedTuple

from rag_eval_integrations.judges.embedded._overlap import Overlap, overlap
from rag_eval_integrations.judges.embedded._response_features import ResponseRow, response_features
from rag_eval_integrations.judges.embedded._words import Words, words

# --- Document sentences: 24 features each, for relevance and utilization


SENTENCE_FEATURES = (
    "question_cosine",  # idf-weighted cosine to the question
    "question_found",  # share of the question's weight found in the sentence
    "answers_best",  # share of response sentences for which no sentence matches better
    "credit",  # share of the response's weight, each word divided among the sentences with it;
    # copies of a sentence have the same
    "dice",  # best weighted Dice coefficient with a response sentence
    "dice_to_best",  # the same, divided by the best of the call
    "dice_rank_document",  # share of the document's sentences with a smaller dice
    "dice_before",  # dice of the neighbours, 0 outside the document
    "dice_after",
    "bigrams",  # share of its word pairs that are in the response
    "run",  # log of the longest run of word pairs that is in the response
    "length",  # log of the sentence's words
    "position",  # 0 at the document's start, towards 1 at its end
)
SHARED_FEATURES = (
    "document_question",  # cosine of the whole document to the question
    "document_question_gap",  # distance from the best document
    "document_response",
    "document_response_gap",
    "document_credit",  # the document's share of all credit
    "call_dice_max",
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
    square = {word: weight * weight for word, weight in o.idf.items()}
    alone = _sentences(o, answer, square)
    dice = o.best_dice
    best = _answers_best(o)
    to_question, to_response = _document_cosines(o, answer, square)
    top_question, top_response = max(to_question), max(to_response)
    total_credit = fsum(alone[2]) or 1.0
    top_dice = max(dice)
    asked = o.question.content
    call = (
        top_dice,
        fsum(dice) / len(dice),
        sum([o.idf[w] for w in asked if w in o.idf]) / (sum(map(o.weight, asked)) or 1.0),
        log1p(len(o.spans)),
        log1p(sum([len(sentence.stems) for sentence in o.response])),
    )
    documents = []
    for number, (start, stop) in enumerate(o.spans):
        size = stop - start
        own = dice[start:stop]
        cosines, shares, credit, bigrams, run = [column[start:stop] for column in alone]
        shared = (
            to_question[number],
            top_question - to_question[number],
            to_response[number],
            top_response - to_response[number],
            fsum(credit) / total_credit,
            *call,
            log1p(size),
        )
        # In the order of `SENTENCE_FEATURES`. Columns are faster than a loop over the rows.
        columns = (
            cosines,
            shares,
            best[start:stop],
            credit,
            own,
            [value / top_dice for value in own] if top_dice else [0.0] * size,
            _ranks(own),
            [0.0, *own[:-1]],
            [*own[1:], 0.0],
            bigrams,
            run,
            [log1p(len(sentence.stems)) for sentence in o.documents[start:stop]],
            [position / size for position in range(size)],
        )
        documents.append(DocumentRows(shared, columns))
    return documents


def _sentences(
    o: Overlap, answer: Collection[str], square: Mapping[str, float]
) -> list[tuple[float, ...]]:
    """Compute the columns that do not depend on other sentences: cosine, share, credit, pairs."""
    asked, idf = o.question.bag, o.idf
    answer_mass = sum(map(o.weight, answer)) or 1.0
    credit = dict.fromkeys(o.holders, 0.0)  # words that only the question has earn no credit
    credit |= {w: idf[w] / o.frequency[w] / answer_mass for w in answer if w in idf}
    asked_mass = sum(map(o.weight, o.question.content)) or 1.0
    asked_norm = _norm(o, o.question.content) or 1.0
    rows = []
    # Sums of weights and of their squares are exact and `fsum` rounds once, so that the order of a
    # set does not matter.
    for sentence, shared, (bigrams, longest) in zip(o.documents, o.shared, o.runs, strict=True):
        cosine = share = 0.0
        hits = asked & shared
        if hits:
            norm = sqrt(sum(map(square.__getitem__, sentence.content))) * asked_norm
            cosine = sum(map(square.__getitem__, hits)) / norm
            share = sum(map(idf.__getitem__, hits)) / asked_mass
        earned = fsum(map(credit.__getitem__, shared))
        rows.append((cosine, share, earned, bigrams, log1p(longest)))
    return list(zip(*rows, strict=True))


def _answers_best(o: Overlap) -> list[float]:
    """Compute for each document sentence the share of response sentences that it matches best."""
    best = [0.0] * len(o.documents)
    for matches in o.matches:
        for match in matches:
            if match.weight < 0.999 * matches[0].weight:
                break
            best[match.sentence] += 1 / len(o.response)
    return best


def _document_cosines(
    o: Overlap, answer: Collection[str], square: Mapping[str, float]
) -> tuple[list[float], list[float]]:
    """Compute the idf-weighted cosines of each document to the question and to the response."""
    asked = o.question.bag
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


def _ranks(values: Sequence[float]) -> list[float]:
    """Rank the values on [0, 1]; equal values share their mean rank, and a single value has 1."""
    last = len(values) - 1
    if last < 1:
        return [1.0] * len(values)
    ordered = sorted(values)
    first: dict[float, int] = {}
    final: dict[float, int] = {}
    for rank, value in enumerate(ordered):
        first.setdefault(value, rank)
        final[value] = rank
    return [(first[value] + final[value]) / 2 / last for value in values]


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
