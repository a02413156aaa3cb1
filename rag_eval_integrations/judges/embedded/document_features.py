"""What the words say of each document sentence: 31 numbers, for relevance and utilization.

The same code makes the training rows. All features but the lengths are shares, ranks or ratios
within the call, so that a model fitted on one domain holds in another.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import log1p, sqrt
from typing import NamedTuple

from rag_eval_integrations.judges.embedded.overlap import Overlap, runs_of

DOCUMENT_FEATURES = (
    "question_cosine",  # idf-weighted cosine to the question
    "question_found",  # share of the question's weight found in the sentence
    "answers_best",  # share of response sentences for which no sentence matches better
    "credit",  # share of the response's weight, each word divided among the sentences with it
    "dice",  # best weighted Dice coefficient with a response sentence
    "dice_to_best",  # the same, divided by the best of the call
    "dice_rank",  # share of the call's sentences with a smaller dice
    "dice_rank_document",  # the same within the document
    "dice_before",  # dice of the neighbours, 0 outside the document
    "dice_after",
    "dice_two_before",
    "dice_two_after",
    "question_cosine_after",
    "bigrams",  # share of its word pairs that are in the response
    "run",  # log of the longest run of word pairs that is in the response
    "run_gap",  # how much shorter than the call's longest
    "document_question",  # cosine of the whole document to the question
    "document_question_gap",  # distance from the best document
    "document_response",
    "document_response_gap",
    "document_dice_gap",
    "document_credit",  # the document's share of all credit
    "call_dice_max",
    "call_dice_mean",
    "call_question_found",  # share of the question's weight found in all documents
    "documents",  # log of the number of documents
    "document_length",  # log of the number of its sentences
    "length",  # log of the sentence's words
    "response_length",  # log of the response's words
    "position",  # 0 at the document's start, towards 1 at its end
    "names",  # 1 when it shares a capitalised word with the response
)


class _Sentence(NamedTuple):
    """What is known of one document sentence without looking at the others."""

    question_cosine: float
    question_found: float
    credit: float
    bigrams: float
    run: float
    names: float


def document_features(o: Overlap) -> list[tuple[float, ...]]:
    """One row of `DOCUMENT_FEATURES` for each document sentence, in order; all finite."""
    if not o.documents:
        return []
    alone = _sentences(o)
    dice = o.best_dice
    best = _answers_best(o)
    said = dict.fromkeys(word for sentence in o.response for word in sentence.content)
    to_question, to_response = _document_cosines(o, said)
    top_question, top_response = max(to_question), max(to_response)
    total_credit = sum([s.credit for s in alone]) or 1.0
    top_dice, top_run = max(dice), max([s.run for s in alone])
    ranks = _ranks(dice)
    asked = o.question.content
    call = (
        top_dice,
        sum(dice) / len(dice),
        sum([o.idf[w] for w in asked if w in o.idf]) / (sum(map(o.weight, asked)) or 1.0),
        log1p(len(o.spans)),
    )
    response_length = log1p(sum([len(sentence.stems) for sentence in o.response]))
    rows: list[tuple[float, ...]] = []
    for number, (start, stop) in enumerate(o.spans):
        size = stop - start
        own = dice[start:stop]
        own_ranks = _ranks(own)
        around = [0.0, 0.0, *own, 0.0, 0.0]
        document = (
            to_question[number],
            top_question - to_question[number],
            to_response[number],
            top_response - to_response[number],
            top_dice - max(own),
            sum([s.credit for s in alone[start:stop]]) / total_credit,
            *call,
            log1p(size),
        )
        for at in range(size):
            i = start + at
            this = alone[i]
            rows.append(
                (
                    this.question_cosine,
                    this.question_found,
                    best[i],
                    this.credit,
                    dice[i],
                    dice[i] / top_dice if top_dice else 0.0,
                    ranks[i],
                    own_ranks[at],
                    around[at + 1],
                    around[at + 3],
                    around[at],
                    around[at + 4],
                    alone[i + 1].question_cosine if i + 1 < stop else 0.0,
                    this.bigrams,
                    this.run,
                    top_run - this.run,
                    *document,
                    log1p(len(o.documents[i].stems)),
                    response_length,
                    at / size,
                    this.names,
                )
            )
    return rows


def _sentences(o: Overlap) -> list[_Sentence]:
    asked, idf = o.question.bag, o.idf
    said = dict.fromkeys(word for sentence in o.response for word in sentence.content)
    said_mass = sum(map(o.weight, said)) or 1.0
    credit = {w: idf[w] / len(o.holders[w]) / said_mass for w in said if w in idf}
    asked_mass = sum(map(o.weight, o.question.content)) or 1.0
    asked_norm = _norm(o, o.question.content) or 1.0
    names = frozenset[str]().union(*(sentence.names for sentence in o.response))
    rows = []
    for sentence, runs in zip(o.documents, o.runs, strict=True):
        content = sentence.content
        weights = [idf[word] for word in content]
        hits = [idf[word] for word in content if word in asked] if asked else []
        norm = sqrt(sum([w * w for w in weights])) * asked_norm
        found, longest = runs_of(runs)
        rows.append(
            _Sentence(
                sum([w * w for w in hits]) / norm if hits else 0.0,
                sum(hits) / asked_mass,
                sum([credit[word] for word in content if word in credit]),
                found,
                log1p(longest),
                0.0 if names.isdisjoint(sentence.names) else 1.0,
            )
        )
    return rows


def _answers_best(o: Overlap) -> list[float]:
    """For each document sentence the share of response sentences it matches as well as any."""
    best = [0.0] * len(o.documents)
    for matches in o.matches:
        for match in matches:
            if match.weight < 0.999 * matches[0].weight:
                break
            best[match.sentence] += 1 / len(o.response)
    return best


def _document_cosines(o: Overlap, said: Collection[str]) -> tuple[list[float], list[float]]:
    """Idf-weighted cosines of each whole document to the question and to the response."""
    idf, asked = o.idf, o.question.bag
    asked_norm, said_norm = _norm(o, o.question.content), _norm(o, said)
    to_question, to_response = [], []
    for start, stop in o.spans:
        own = dict.fromkeys([word for s in o.documents[start:stop] for word in s.content])
        norm = sqrt(sum([idf[word] ** 2 for word in own]))
        question = sum([idf[word] ** 2 for word in own if word in asked])
        response = sum([idf[word] ** 2 for word in own if word in said])
        to_question.append(question / (norm * asked_norm) if question else 0.0)
        to_response.append(response / (norm * said_norm) if response else 0.0)
    return to_question, to_response


def _norm(o: Overlap, content: Collection[str]) -> float:
    idf, unseen = o.idf, o.unseen
    return sqrt(sum([idf.get(word, unseen) ** 2 for word in content]))


def _ranks(values: Sequence[float]) -> list[float]:
    """Rank of each value scaled to [0, 1]; equal values share their mean rank, one alone has 1."""
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
