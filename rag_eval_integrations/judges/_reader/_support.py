"""Support: each response sentence is read beside the documents that match it best.

A sentence's probability is the highest over its premises: windows of the best-matching document
sentences, and the best few of them alone. Sentences that carry it alone are its evidence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import NamedTuple

from rag_eval_integrations.errors import ConfigurationError, JudgeOutputError
from rag_eval_integrations.judges._reader._backend import Backend, Cancelled, Pair, TokenScore
from rag_eval_integrations.judges._reader._config import SHORTEST
from rag_eval_integrations.judges._reader._premises import (
    Piece,
    Ranking,
    pieces_of,
    shortened,
    windows,
)

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

    def check(self) -> None:
        """Refuse settings out of range.

        Raises:
            ConfigurationError: names the setting.
        """
        if not 0 < self.threshold < 1:
            raise ConfigurationError("threshold", self.threshold, "use a number between 0 and 1")
        for name in ("max_windows", "max_pairs"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ConfigurationError(name, value, "use a whole number from 1")
        if self.template is not None and "{premise}" not in self.template:
            raise ConfigurationError("template", self.template, "should hold {premise}")


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


class _Hypothesis(NamedTuple):
    """A text that is read beside premises: one response sentence, or several in a row."""

    text: str
    ids: frozenset[int]
    members: tuple[tuple[int, int, int], ...]
    """Response sentence, start and end in `text`."""


class SupportReader:
    """Reads response sentences beside document sentences.

    Raises:
        ConfigurationError: the template leaves no room for the texts, or does not fit the model.
    """

    def __init__(self, backend: Backend, options: Options) -> None:
        self._backend = backend
        self._options = options
        template = options.template or ""
        if backend.kind == "token" and "{hypothesis}" in template:
            raise ConfigurationError(
                "template", template, "a classifier of tokens reads the response as a text of its "
                "own: leave {hypothesis} out",
            )  # fmt: skip
        room = backend.config.max_length
        if self._fixed([("", "", "")])[0] > room // 2:
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
        backend, most = self._backend, self._options.max_pairs
        if not response:
            return Read([], {}, 1, 0)
        if len(response) * (1 + ALONE) > most:
            raise OverBudget(f"{len(response)} response sentences")
        question = shortened(backend, backend.plain(question), self._longest)
        documents = [backend.plain(text) for text in documents]
        response = [backend.plain(text) for text in response]
        single = [self._hypothesis(question, n, text) for n, text in enumerate(response)]
        hypotheses = single if backend.kind == "pair" else self._grouped(response)
        fixed = self._fixed([("", question, one.text) for one in (*hypotheses, *single)])
        budget = backend.config.max_length - max(fixed) - 2
        pieces = pieces_of(backend, documents, max(1, budget))
        if not pieces:
            return Read([Supported(0.0, (), ())] * len(response), {}, 1, 0)
        ranking = Ranking(pieces)
        allowed = max(1, min(self._options.max_windows, most // len(response) - ALONE))
        sizes = [piece.size for piece in pieces]
        premises, orders, left_out = [], [], 0
        for one in hypotheses:
            if stop.is_set():
                raise Cancelled
            order = ranking.order(one.ids)
            packed, left = windows(order, sizes, budget, allowed)
            premises.append(packed)
            orders.append(order)
            left_out = max(left_out, left)
        found = self._beside_windows(question, hypotheses, premises, pieces, stop)
        best: dict[int, list[int]] = {}
        for one, order, packed, scores in zip(hypotheses, orders, premises, found, strict=True):
            for (sentence, _, _), (_, window) in zip(one.members, scores, strict=True):
                inside = set(packed[window])
                best[sentence] = [number for number in order if number in inside]
        together = {
            sentence: p
            for one, scores in zip(hypotheses, found, strict=True)
            for (sentence, _, _), (p, _) in zip(one.members, scores, strict=True)
        }
        read, alone = self._alone(question, single, best, together, pieces, stop)
        return Read(read, alone, max(map(len, premises)), left_out)

    # --- The texts

    def _hypothesis(self, question: str, number: int, text: str) -> _Hypothesis:
        text = shortened(self._backend, text, self._longest)
        ids = self._ids(text)
        if self._backend.kind == "pair" and len(ids) <= SHORT:
            before = f"{question} "
            text, ids = before + text, ids | self._ids(question)
        return _Hypothesis(text, ids, ((number, 0, len(text)),))

    def _grouped(self, response: Sequence[str]) -> list[_Hypothesis]:
        """Join successive sentences, as many as fit: a classifier of tokens reads a response."""
        found: list[_Hypothesis] = []
        text, ids, members = "", frozenset[int](), list[tuple[int, int, int]]()
        used = 0
        for number, sentence in enumerate(response):
            sentence = shortened(self._backend, sentence, self._longest)
            [one] = self._backend.encode([(sentence, None)], special=False)
            if members and used + len(one.ids) + 1 > self._longest:
                found.append(_Hypothesis(text, ids, tuple(members)))
                text, ids, members, used = "", frozenset(), [], 0
            start = len(text) + 1 if text else 0
            text = f"{text} {sentence}" if text else sentence
            members.append((number, start, len(text)))
            ids |= frozenset(one.ids)
            used += len(one.ids) + 1
        return [*found, _Hypothesis(text, ids, tuple(members))]

    def _ids(self, text: str) -> frozenset[int]:
        [one] = self._backend.encode([(text, None)], special=False)
        return frozenset(one.ids)

    def _pair(self, premise: str, question: str, hypothesis: str) -> Pair:
        template = self._options.template
        if template is None:
            if self._backend.kind == "token":
                premise = f"{question}\n{premise}"
            return premise, hypothesis
        said = {"premise": premise, "question": question, "hypothesis": hypothesis}
        # In one pass: a document that says {hypothesis} is a document.
        filled = _PLACES.sub(lambda place: said[place[1]], template)
        return (filled, None) if "{hypothesis}" in template else (filled, hypothesis)

    def _fixed(self, texts: Sequence[tuple[str, str, str]]) -> list[int]:
        return [len(one.ids) for one in self._backend.encode([self._pair(*t) for t in texts])]

    # --- The probabilities

    def _scores(self, pairs: Sequence[Pair], stop: Event) -> list[list[TokenScore]]:
        if self._backend.kind == "token":
            return self._backend.token_scores(pairs, stop)
        found = self._backend.probabilities(pairs, stop)
        return [
            [TokenScore(0, 1 << 60, p)] for p in found
        ]  # one for the whole text, whatever its length

    def _beside_windows(
        self,
        question: str,
        hypotheses: Sequence[_Hypothesis],
        premises: Sequence[list[list[int]]],
        pieces: Sequence[Piece],
        stop: Event,
    ) -> list[list[tuple[float, int]]]:
        """Return, per member of each hypothesis, its probability and its best window."""
        pairs = [
            self._pair(" ".join(pieces[number].text for number in window), question, one.text)
            for one, packed in zip(hypotheses, premises, strict=True)
            for window in packed
        ]
        scores = iter(self._scores(pairs, stop))
        found = []
        for one, packed in zip(hypotheses, premises, strict=True):
            per_window = [next(scores) for _ in packed]
            # The details of one sentence may stand in two windows: the highest of each token.
            highest = [
                TokenScore(group[0].start, group[0].end, max(s.probability for s in group))
                for group in zip(*per_window, strict=True)
            ]
            of_members = []
            for member in one.members:
                each = [_least(tokens, member) for tokens in per_window]
                of_members.append((_least(highest, member), each.index(max(each))))
            found.append(of_members)
        return found

    def _alone(
        self,
        question: str,
        single: Sequence[_Hypothesis],
        best: Mapping[int, Sequence[int]],
        together: Mapping[int, float],
        pieces: Sequence[Piece],
        stop: Event,
    ) -> tuple[list[Supported], dict[int, float]]:
        """Read the best-matching pieces of each sentence's best premise alone."""
        asked = [
            (number, piece)
            for number in range(len(single))
            if len(best[number]) > 1
            for piece in best[number][:ALONE]
        ]
        pairs = [
            self._pair(pieces[piece].text, question, single[number].text) for number, piece in asked
        ]
        scores: list[dict[int, float]] = [{} for _ in single]
        for (number, piece), tokens in zip(asked, self._scores(pairs, stop), strict=True):
            scores[number][piece] = _least(tokens, single[number].members[0])
        read, alone = [], dict[int, float]()
        for number, own in enumerate(scores):
            if len(best[number]) == 1:
                own = {best[number][0]: together[number]}
            for piece, p in own.items():
                sentence = pieces[piece].sentence
                alone[sentence] = max(alone.get(sentence, 0.0), p)
            carry = [pieces[one].sentence for one, p in own.items() if p >= self._options.threshold]
            matched = [
                pieces[one].sentence
                for one in best[number][:ALONE]
                if not pieces[one].ids.isdisjoint(single[number].ids)
            ]
            read.append(
                Supported(
                    max([together[number], *own.values()]),
                    tuple(dict.fromkeys(carry)),
                    tuple(dict.fromkeys(matched)),
                )
            )
        return read, alone


def _least(tokens: Sequence[TokenScore], member: tuple[int, int, int]) -> float:
    """Return the lowest probability of the tokens of a sentence: one wrong word is enough."""
    _, start, end = member
    found = [one.probability for one in tokens if one.start < end and one.end > start]
    if not found:
        raise JudgeOutputError("the model gave no output for a response sentence", "")
    return min(found)
