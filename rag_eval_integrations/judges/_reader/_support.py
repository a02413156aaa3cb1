"""Support: each response sentence is read beside the document sentences that match it best.

A sentence's probability is the highest over its premises: windows of the best-matching document
sentences, and the best few of them alone. Sentences that carry it alone are its evidence. Document
sentences are ranked by the model's own tokens that they share with a response sentence, the rarer
the more weight, which holds in every language that the model has tokens for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, log
from operator import mul
from threading import Event
from typing import NamedTuple

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges._reader._backend import Backend, Pair
from rag_eval_integrations.judges._reader._config import SHORTEST, sigmoid

ALONE = 3
"""Document sentences of the best premise that are also read alone, per response sentence."""
SHORT = 5
"""Tokens up to which a sentence is read behind the question: "Yes." claims nothing alone."""

_PLACES = re.compile(r"\{(premise|hypothesis|question)\}")


class OverBudget(Exception):
    """The call would take more pairs than are allowed."""


@dataclass(frozen=True)
class Options:
    """Settings that change labels: part of the judge's version."""

    threshold: float
    """Lowest P(supported) of a supported sentence."""
    max_windows: int
    """Most windows per response sentence."""
    max_pairs: int
    """Most pairs of a call for support, and for relevance."""
    template: str | None
    """The text that the model was trained on, with `{premise}` …; None for two plain texts."""


# --- Premises: pieces of documents, and windows of them


class Piece(NamedTuple):
    """A document sentence, or a part of one that is longer than the model reads."""

    sentence: int
    """Index of the document sentence."""
    text: str
    ids: frozenset[int]
    size: int
    """Number of its tokens."""


def pieces_of(backend: Backend, texts: Sequence[str], most: int) -> list[Piece]:
    """Cut document sentences into pieces of at most `most` tokens, in order.

    A text without tokens is left out: there is nothing to read.
    """
    pieces = []
    for start in range(0, len(texts), 512):
        some = texts[start : start + 512]
        encoded = backend.encode([(text, None) for text in some], special=False)
        for number, (text, one) in enumerate(zip(some, encoded, strict=True), start):
            for low in range(0, len(one.ids), most):
                ids = one.ids[low : low + most]
                first, last = one.spans[low][0], one.spans[low + len(ids) - 1][1]
                part = text if len(one.ids) <= most else text[first:last]
                pieces.append(Piece(number, part, frozenset(ids), len(ids)))
    return pieces


def shortened(backend: Backend, text: str, most: int) -> str:
    """Cut a text after `most` tokens."""
    [one] = backend.encode([(text, None)], special=False)
    return text if len(one.ids) <= most else text[one.spans[0][0] : one.spans[most - 1][1]]


class Ranking:
    """Ranks the pieces of a call by what they share with a text."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._holders: dict[int, list[int]] = {}
        for number, piece in enumerate(pieces):
            for token in piece.ids:
                self._holders.setdefault(token, []).append(number)
        # A token that every piece holds still counts a little: one piece alone is ranked as well.
        self._weight = {
            token: log((1 + len(pieces)) / (0.5 + len(holders)))
            for token, holders in self._holders.items()
        }
        self._own = [fsum(self._weight[token] for token in piece.ids) for piece in pieces]

    def order(self, ids: frozenset[int]) -> list[int]:
        """List the numbers of all pieces, the best match first."""
        tokens = sorted(ids & self._holders.keys())
        shared = [0.0] * len(self._own)
        for token in tokens:
            for number in self._holders[token]:
                shared[number] += self._weight[token]
        mass = fsum(self._weight[token] for token in tokens)
        # A long piece shares more by chance; half of its weight would rank short titles first.
        score = [
            s / (mass + 0.2 * own) if s else 0.0 for s, own in zip(shared, self._own, strict=True)
        ]
        return sorted(range(len(score)), key=lambda number: (-score[number], number))


def windows(
    order: Sequence[int], sizes: Sequence[int], budget: int, most: int
) -> tuple[list[list[int]], int]:
    """Pack pieces into windows, the best matches first; within a window in their own order.

    Args:
        order: numbers of the pieces, the best match first.
        sizes: tokens of each piece, none above the budget.
        budget: most tokens of a window.
        most: most windows.

    Returns:
        The windows, and how many pieces were left out of them.
    """
    packed: list[list[int]] = []
    taken: list[int] = []
    used = 0
    for place, number in enumerate(order):
        # One more per piece, for the space between two pieces.
        if taken and used + sizes[number] + 1 > budget:
            packed.append(sorted(taken))
            taken, used = [], 0
            if len(packed) == most:
                return packed, len(order) - place
        taken.append(number)
        used += sizes[number] + 1
    return ([*packed, sorted(taken)] if taken else packed), 0


# --- Support


class Supported(NamedTuple):
    """What was read of one response sentence."""

    probability: float
    evidence: tuple[int, ...]
    """Indices of the document sentences that carry it alone; none where it takes several."""
    matched: tuple[int, ...]
    """Indices of the best-matching document sentences of its best premise."""


class Read(NamedTuple):
    """What was read of all response sentences."""

    sentences: list[Supported]
    alone: Mapping[int, float]
    """Document sentence → its highest probability of carrying a response sentence alone."""
    windows: int
    """Most windows that one sentence was read with."""
    left_out: int
    """Most pieces of documents that a sentence was not read with."""


class SupportReader:
    """Reads response sentences beside document sentences.

    Raises:
        ConfigurationError: the template leaves no room for the texts, or does not fit the model.
    """

    def __init__(self, backend: Backend, options: Options) -> None:
        self._backend = backend
        self._options = options
        template = options.template or ""
        if backend.config.kind == "token" and "{hypothesis}" in template:
            raise ConfigurationError(
                "template", template, "a classifier of tokens reads the response as a text of its "
                "own: leave {hypothesis} out",
            )  # fmt: skip
        room = backend.config.max_length
        if self._fixed([("", "", "")]) > room // 2:
            raise ConfigurationError("template", template, f"fills more than half of {room} tokens")
        # Each of question and hypothesis may take a quarter; a premise has the rest.
        self._longest = max(SHORTEST // 4, room // 4)

    def read(
        self, question: str, documents: Sequence[str], response: Sequence[str], stop: Event
    ) -> Read:
        """Read a call.

        Raises:
            OverBudget: more pairs than are allowed.
            JudgeOutputError, Cancelled: as `Backend.probabilities`.
        """
        backend, options = self._backend, self._options
        if not response:
            return Read([], {}, 1, 0)
        if len(response) * (1 + ALONE) > options.max_pairs:
            raise OverBudget(f"{len(response)} response sentences")
        question = shortened(backend, backend.plain(question), self._longest)
        behind = self._ids(question)
        asked = []  # each response sentence as it is read, and its tokens
        for text in response:
            text = shortened(backend, backend.plain(text), self._longest)
            ids = self._ids(text)
            if backend.config.kind == "pair" and len(ids) <= SHORT:
                text, ids = f"{question} {text}", ids | behind
            asked.append((text, ids))
        fixed = self._fixed([("", question, text) for text, _ in asked])
        budget = max(1, backend.config.max_length - fixed - 2)
        pieces = pieces_of(backend, [backend.plain(text) for text in documents], budget)
        if not pieces:
            return Read([Supported(0.0, (), ())] * len(response), {}, 1, 0)
        ranking = Ranking(pieces)
        allowed = max(1, min(options.max_windows, options.max_pairs // len(response) - ALONE))
        sizes = [piece.size for piece in pieces]
        orders = [ranking.order(ids) for _, ids in asked]
        packed = [windows(order, sizes, budget, allowed) for order in orders]
        together = self._scores(
            question, [text for text, _ in asked], [found for found, _ in packed], pieces, stop
        )
        best = []  # the pieces of each sentence's best window, the best match first
        for order, (found, _), scores in zip(orders, packed, together, strict=True):
            inside = set(found[scores.index(max(scores))])
            best.append([number for number in order if number in inside])
        single = [[[piece] for piece in own[:ALONE]] if len(own) > 1 else [] for own in best]
        parts = self._scores(question, [text for text, _ in asked], single, pieces, stop)
        read, alone = [], dict[int, float]()
        for (_, ids), own, scores, found_alone in zip(asked, best, together, parts, strict=True):
            p = max(scores)
            carried = dict(zip(own, found_alone or [p], strict=False))
            for piece, value in carried.items():
                sentence = pieces[piece].sentence
                alone[sentence] = max(alone.get(sentence, 0.0), value)
            evidence = [pieces[n].sentence for n in carried if carried[n] >= options.threshold]
            matched = [pieces[n].sentence for n in own[:ALONE] if not pieces[n].ids.isdisjoint(ids)]
            read.append(
                Supported(
                    max([p, *carried.values()]),
                    tuple(dict.fromkeys(evidence)),
                    tuple(dict.fromkeys(matched)),
                )
            )
        return Read(
            read, alone, max(len(found) for found, _ in packed), max(left for _, left in packed)
        )

    def _ids(self, text: str) -> frozenset[int]:
        [one] = self._backend.encode([(text, None)], special=False)
        return frozenset(one.ids)

    def _pair(self, premise: str, question: str, hypothesis: str) -> Pair:
        template = self._options.template
        if template is None:
            if self._backend.config.kind == "token":
                premise = f"{question}\n{premise}"
            return premise, hypothesis
        said = {"premise": premise, "question": question, "hypothesis": hypothesis}
        # In one pass: a document that says {hypothesis} is a document.
        filled = _PLACES.sub(lambda place: said[place[1]], template)
        return (filled, None) if "{hypothesis}" in template else (filled, hypothesis)

    def _fixed(self, texts: Sequence[tuple[str, str, str]]) -> int:
        return max(len(one.ids) for one in self._backend.encode([self._pair(*t) for t in texts]))

    def _scores(
        self,
        question: str,
        texts: Sequence[str],
        premises: Sequence[Sequence[Sequence[int]]],
        pieces: Sequence[Piece],
        stop: Event,
    ) -> list[list[float]]:
        """Read each text beside each of its premises."""
        pairs = [
            self._pair(" ".join(pieces[number].text for number in premise), question, text)
            for text, own in zip(texts, premises, strict=True)
            for premise in own
        ]
        scores = iter(self._backend.probabilities(pairs, stop))
        return [[next(scores) for _ in own] for own in premises]


# --- Relevance and utilization of document sentences, by a model for relevance

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
    question, *texts = map(backend.plain, (question, *response, *documents))
    said, documents = texts[: len(response)], texts[len(response) :]
    if backend.reading is None:
        asked, *vectors = backend.vectors([question, *texts], stop)
        answered, found = vectors[: len(response)], vectors[len(response) :]
        return (
            [_by_cosine(lines[0], asked, one) for one in found],
            [max([0.0, *(_by_cosine(lines[1], one, of) for of in answered)]) for one in found],
        )
    relevant = backend.probabilities([(question, text) for text in documents], stop)
    if not said:
        return relevant, [0.0] * len(documents)
    pairs = [(r, d) for r in range(len(said)) for d in range(len(documents))]
    if len(pairs) > most:
        pieces = pieces_of(backend, documents, backend.config.max_length)
        ranking = Ranking(pieces)
        encoded = backend.encode([(text, None) for text in said], special=False)
        orders = [ranking.order(frozenset(one.ids))[: most // len(said)] for one in encoded]
        pairs = [
            (r, d)
            for r, order in enumerate(orders)
            for d in dict.fromkeys(pieces[piece].sentence for piece in order)
        ]
    scores = backend.probabilities([(said[r], documents[d]) for r, d in pairs], stop)
    best: dict[int, float] = {}
    for (_, document), p in zip(pairs, scores, strict=True):
        best[document] = max(best.get(document, 0.0), p)
    return relevant, [best.get(number, min(scores)) for number in range(len(documents))]


def _by_cosine(line: Line, one: Sequence[float], other: Sequence[float]) -> float:
    return sigmoid(line[0] + line[1] * sum(map(mul, one, other)))
