"""Relevance and utilization of document sentences, by a model for relevance."""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
from threading import Event

from rag_eval_integrations.judges._reader._backend import Backend
from rag_eval_integrations.judges._reader._config import sigmoid
from rag_eval_integrations.judges._reader._premises import Ranking, pieces_of
from rag_eval_integrations.judges._reader._support import OverBudget

Line = tuple[float, float]
"""Intercept and slope of the log-odds over a cosine."""

RELEVANT: Line = (-2.51, 3.53)
UTILIZED: Line = (-6.67, 8.53)
"""Fitted with all-MiniLM-L6-v2 on 320 labelled rows of RAGBench (docs/local-models.md). A cosine is
not a probability; those of another encoder lie elsewhere: fit these two again, or calibrate."""


def relevance(
    backend: Backend,
    question: str,
    documents: Sequence[str],
    response: Sequence[str],
    most: int,
    lines: tuple[Line, Line],
    stop: Event,
) -> tuple[list[float], list[float]]:
    """Compute P(relevant) and P(utilized) of each document sentence, in [0, 1].

    A sentence is relevant as it fits the question, and utilized as it fits the response sentence
    that it fits best. Of a large call, a classifier of pairs reads only the best matches of each
    response sentence, `most` pairs in all; the others get the lowest probability that it found.

    Args:
        backend: a classifier of pairs, or an encoder.
        question: the question.
        documents: the document sentences.
        response: the response sentences; without any, nothing is utilized.
        most: most texts, and most pairs of one kind, that are read.
        lines: from cosines to the log-odds of relevant and of utilized, for an encoder.
        stop: set to cancel.

    Raises:
        OverBudget: there are more sentences than `most`.
        JudgeOutputError, Cancelled: as `Backend.probabilities`.
    """
    if not documents:
        return [], []
    if len(documents) + len(response) > most:
        raise OverBudget(f"{len(documents) + len(response)} sentences")
    question = backend.plain(question)
    documents = [backend.plain(text) for text in documents]
    response = [backend.plain(text) for text in response]
    if backend.kind == "embedding":
        asked, *vectors = backend.vectors([question, *response, *documents], stop)
        said, found = vectors[: len(response)], vectors[len(response) :]
        return (
            [_by_cosine(lines[0], asked, one) for one in found],
            [max([0.0, *[_by_cosine(lines[1], one, other) for one in said]]) for other in found],
        )
    relevant = backend.probabilities([(question, text) for text in documents], stop)
    if not response:
        return relevant, [0.0] * len(documents)
    pairs = _best_pairs(backend, documents, response, most)
    scores = backend.probabilities([(response[r], documents[d]) for r, d in pairs], stop)
    best: dict[int, float] = {}
    for (_, document), p in zip(pairs, scores, strict=True):
        best[document] = max(best.get(document, 0.0), p)
    least = min(scores)
    return relevant, [best.get(number, least) for number in range(len(documents))]


def _best_pairs(
    backend: Backend, documents: Sequence[str], response: Sequence[str], most: int
) -> list[tuple[int, int]]:
    each = most // len(response)
    if each >= len(documents):
        return [(r, d) for r in range(len(response)) for d in range(len(documents))]
    pieces = pieces_of(backend, documents, backend.config.max_length)
    ranking = Ranking(pieces)
    encoded = backend.encode([(text, None) for text in response], special=False)
    return [
        (number, document)
        for number, one in enumerate(encoded)
        for document in dict.fromkeys(
            pieces[piece].sentence for piece in ranking.order(frozenset(one.ids))[:each]
        )
    ]


def _by_cosine(line: Line, one: Sequence[float], other: Sequence[float]) -> float:
    return sigmoid(line[0] + line[1] * sum(map(mul, one, other)))
