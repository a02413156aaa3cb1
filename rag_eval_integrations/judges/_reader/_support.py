"""Support: each response sentence is read beside the document sentences that match it best.

A sentence's probability is the highest over its premises: windows of the best-matching document
sentences, and the best few of them alone. Sentences that carry it alone are its evidence. Document
sentences are ranked by the model's own tokens that they share with a response sentence, the rarer
the more weight, which holds in every language that the model has tokens for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import fsum, log
from operator import mul
from threading import Event
from typing import NamedTuple

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges._reader._model import SHORTEST, Backend, Pair, sigmoid

ALONE = 3
"""Document sentences of the best premise that are also read alone, per response sentence."""
SHORT = 5
"""Tokens up to which a sentence is read behind the question: "Yes." claims nothing alone."""

_PLACES = re.compile(r"\{(premise|hypothesis|question)\}")


class OverBudget(Exception):
    """The call would take more pairs than are allowed."""


class ReadingOptions(NamedTuple):
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


class SentencePart(NamedTuple):
    """A document sentence, or a part of one that is longer than the model reads."""

    sentence: int
    """Index of the document sentence."""
    text: str
    ids: frozenset[int]
    size: int
    """Number of its tokens."""


def pieces_of(backend: Backend, texts: Sequence[str], most: int) -> list[SentencePart]:
    """Cut document sentences into pieces of at most `most` tokens, in order.

    A text without tokens is left out: there is nothing to read.
    """
    pieces = []
    for start in range(0, len(texts), 512):
        part = texts[start : start + 512]
        for number, (text, encoding) in enumerate(zip(part, backend.tokens(part), strict=True)):
            tokens, spans = encoding.ids, encoding.offsets
            for low in range(0, len(tokens), most):
                ids = tokens[low : low + most]
                inside = text[spans[low][0] : spans[low + len(ids) - 1][1]]
                whole = text if len(tokens) <= most else inside
                pieces.append(SentencePart(start + number, whole, frozenset(ids), len(ids)))
    return pieces


class Ranking:
    """Ranks the pieces of a call by what they share with a text."""

    def __init__(self, pieces: Sequence[SentencePart]) -> None:
        self._pieces = pieces
        # A token that every piece has still counts a little: one piece alone is ranked as well.
        self._weight = {
            token: log((1 + len(pieces)) / (0.5 + count))
            for token, count in Counter(token for piece in pieces for token in piece.ids).items()
        }
        self._own = [self._mass(piece.ids) for piece in pieces]

    def _mass(self, ids: Iterable[int]) -> float:
        return fsum(self._weight.get(token, 0.0) for token in ids)

    def order(self, ids: frozenset[int]) -> list[int]:
        """List the numbers of all pieces, the best match first."""
        mass = self._mass(ids)
        # A long piece shares more by chance; half of its weight would rank short titles first.
        score = [
            self._mass(shared) / (mass + 0.2 * own) if (shared := ids & piece.ids) else 0.0
            for piece, own in zip(self._pieces, self._own, strict=True)
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
    left = budget
    for place, number in enumerate(order):
        # One more per piece, for the space between two pieces.
        if not packed or sizes[number] + 1 > left:
            if len(packed) == most:
                return [sorted(window) for window in packed], len(order) - place
            packed.append([])
            left = budget
        packed[-1].append(number)
        left -= sizes[number] + 1
    return [sorted(window) for window in packed], 0


# --- Support


class Supported(NamedTuple):
    """What was read of one response sentence."""

    probability: float
    evidence: Sequence[int]
    """Indices of the document sentences that carry it alone; none where it takes several."""
    matched: Sequence[int]
    """Indices of the best-matching document sentences of its best premise."""


class Read(NamedTuple):
    """What was read of all response sentences."""

    sentences: list[Supported]
    alone: Mapping[int, float] = {}
    """Document sentence → its highest probability of carrying a response sentence alone."""
    windows: int = 1
    """Most windows that one sentence was read with."""
    left_out: int = 0
    """Most pieces of documents that a sentence was not read with."""


class SupportReader:
    """Reads response sentences beside document sentences.

    Raises:
        ConfigurationError: the template leaves no room for the texts, or does not fit the model.
    """

    def __init__(self, backend: Backend, options: ReadingOptions) -> None:
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
            return Read([])
        if len(response) * (1 + ALONE) > options.max_pairs:
            raise OverBudget(f"{len(response)} response sentences")
        question, *texts = [self._beginning(backend.plain(text)) for text in (question, *response)]
        behind, *tokens = [frozenset(text.ids) for text in backend.tokens([question, *texts])]
        if backend.config.kind == "pair":
            for number, ids in enumerate(tokens):
                if len(ids) <= SHORT:
                    texts[number], tokens[number] = f"{question} {texts[number]}", ids | behind
        fixed = self._fixed([("", question, text) for text in texts])
        budget = max(1, backend.config.max_length - fixed - 2)
        pieces = pieces_of(backend, [backend.plain(text) for text in documents], budget)
        if not pieces:
            return Read([Supported(0.0, (), ())] * len(response))
        ranking, sizes = Ranking(pieces), [piece.size for piece in pieces]
        orders = [ranking.order(ids) for ids in tokens]
        allowed = max(1, min(options.max_windows, options.max_pairs // len(response) - ALONE))
        packed = [windows(order, sizes, budget, allowed) for order in orders]

        def scores(premises: Sequence[Sequence[Sequence[int]]]) -> list[list[float]]:
            """Read each text beside each of its premises."""
            pairs = [
                self._pair(" ".join(pieces[number].text for number in premise), question, text)
                for text, own in zip(texts, premises, strict=True)
                for premise in own
            ]
            values = iter(backend.probabilities(pairs, stop))
            return [[next(values) for _ in own] for own in premises]

        together = scores([premises for premises, _ in packed])
        best = []  # the pieces of each sentence's best window, the best match first
        for order, (premises, _), values in zip(orders, packed, together, strict=True):
            inside = set(premises[values.index(max(values))])
            best.append([number for number in order if number in inside])
        single = scores([[[n] for n in own[:ALONE]] if len(own) > 1 else [] for own in best])
        sentences, alone = [], dict[int, float]()
        for ids, own, values, singly in zip(tokens, best, together, single, strict=True):
            p = max(values)
            carried = dict(zip(own, singly or [p], strict=False))
            for piece, value in carried.items():
                number = pieces[piece].sentence
                alone[number] = max(alone.get(number, 0.0), value)
            evidence = [pieces[n].sentence for n in carried if carried[n] >= options.threshold]
            matched = [pieces[n].sentence for n in own[:ALONE] if not pieces[n].ids.isdisjoint(ids)]
            evidence, matched = list(dict.fromkeys(evidence)), list(dict.fromkeys(matched))
            sentences.append(Supported(max([p, *carried.values()]), evidence, matched))
        most, left = (max(counts) for counts in zip(*((len(w), n) for w, n in packed), strict=True))
        return Read(sentences, alone, most, left)

    def _beginning(self, text: str) -> str:
        [encoding] = self._backend.tokens([text])
        spans = encoding.offsets
        if len(spans) <= self._longest:
            return text
        return text[spans[0][0] : spans[self._longest - 1][1]]

    def _pair(self, premise: str, question: str, hypothesis: str) -> Pair:
        template = self._options.template
        if template is None:
            by_tokens = self._backend.config.kind == "token"
            return (f"{question}\n{premise}" if by_tokens else premise), hypothesis
        texts = {"premise": premise, "question": question, "hypothesis": hypothesis}
        # In one pass: a document that says {hypothesis} is a document.
        filled = _PLACES.sub(lambda place: texts[place[1]], template)
        return filled, None if "{hypothesis}" in template else hypothesis

    def _fixed(self, texts: Sequence[tuple[str, str, str]]) -> int:
        return max(map(len, self._backend.encode([self._pair(*each) for each in texts])))


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
    answer, documents = texts[: len(response)], texts[len(response) :]
    if backend.reading is None:
        asked, *vectors = backend.vectors([question, *texts], stop)
        answered, shown = vectors[: len(response)], vectors[len(response) :]
        return (
            [_by_cosine(lines[0], asked, vector) for vector in shown],
            [max([0.0, *(_by_cosine(lines[1], v, other) for other in answered)]) for v in shown],
        )
    relevant = backend.probabilities([(question, text) for text in documents], stop)
    if not answer:
        return relevant, [0.0] * len(documents)
    pairs = [(r, d) for r in range(len(answer)) for d in range(len(documents))]
    if len(pairs) > most:
        pieces = pieces_of(backend, documents, backend.config.max_length)
        ranking, share = Ranking(pieces), most // len(answer)
        pairs = [
            (r, d)
            for r, encoding in enumerate(backend.tokens(answer))
            for d in dict.fromkeys(
                pieces[n].sentence for n in ranking.order(frozenset(encoding.ids))[:share]
            )
        ]
    scores = backend.probabilities([(answer[r], documents[d]) for r, d in pairs], stop)
    best = dict.fromkeys(range(len(documents)), min(scores))
    for (_, number), p in zip(pairs, scores, strict=True):
        best[number] = max(best[number], p)
    return relevant, list(best.values())


def _by_cosine(line: Line, vector: Sequence[float], other: Sequence[float]) -> float:
    return sigmoid(line[0] + line[1] * sum(map(mul, vector, other)))
