"""Which words of a call are where: idf and shared weight of sentence pairs, once per call.

Near-linear in the length of the call: only pairs of sentences that share a word with weight are
looked at, and `PAIR_BUDGET` caps their number. Above it the commonest words stop making pairs and
the rarest, which tell most, go on.

Weights are multiples of 2^-16. Sums of them, and of their squares, are exact, so that neither the
order of words nor the Python version (3.12 sums floats differently) changes a bit of a feature.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import log
from typing import NamedTuple

from rag_eval_integrations.judges.embedded.words import Words, words

PAIR_BUDGET = 1_000_000
"""Most steps (shared word, document sentence, response sentence) in one call: about a second.
The largest of 2,697 RAGBench rows takes 60 thousand."""

KEPT_MATCHES = 12
"""Best document sentences kept for each response sentence."""

_STEPS = 65_536


class Match(NamedTuple):
    """One document sentence that shares words with a response sentence."""

    weight: float
    """Sum of idf weights of the shared words."""
    sentence: int
    """Number of the document sentence in the call."""


class Overlap(NamedTuple):
    """The words of one call and how its sentences share them."""

    question: Words
    documents: tuple[Words, ...]
    """Sentences of all documents, in order."""
    response: tuple[Words, ...]
    spans: tuple[tuple[int, int], ...]
    """First and behind-last sentence of each document that has sentences."""
    idf: dict[str, float]
    """Weight (> 0) of every content word of the documents, from this call's sentences alone."""
    unseen: float
    """Weight of a word that no document holds: more than any in `idf`."""
    holders: dict[str, list[int]]
    """Document sentences, ascending, of each content word of the question and response."""
    mass: tuple[float, ...]
    """Sum of weights of each document sentence's content words."""
    response_mass: tuple[float, ...]
    matches: tuple[tuple[Match, ...], ...]
    """For each response sentence its best document sentences, best first."""
    runs: tuple[list[bool], ...]
    """For each document sentence and each two neighbouring words of it, whether the response has
    the two as neighbours."""
    best_dice: list[float]
    """For each document sentence its best weighted Dice coefficient with a response sentence."""

    def weight(self, word: str) -> float:
        """Weight of any content word."""
        return self.idf.get(word, self.unseen)


def overlap(question: str, documents: Sequence[Sequence[str]], response: Sequence[str]) -> Overlap:
    """Index one call, given as the sentences of each document and of the response."""
    asked = words(question)
    docs = tuple([words(text) for sentences in documents for text in sentences])
    said = tuple([words(text) for text in response])
    # Sentences in which a word stands; the + 0.3 keeps a word that is in all of them above 0.
    frequency = Counter([word for sentence in docs for word in sentence.content])
    total = len(docs) + 1.0
    of_count = {count: _weight(total, count) for count in set(frequency.values())}
    idf = {word: of_count[count] for word, count in frequency.items()}
    unseen = _weight(total, 0)
    wanted = asked.bag.union(*(sentence.bag for sentence in said))
    holders: dict[str, list[int]] = {word: [] for word in idf if word in wanted}
    for number, sentence in enumerate(docs):
        for word in sentence.bag & wanted:
            holders[word].append(number)
    mass = tuple([sum([idf[word] for word in sentence.content]) for sentence in docs])
    response_mass = tuple(
        [sum([idf.get(word, unseen) for word in sentence.content]) for sentence in said]
    )
    said_pairs = {pair for sentence in said for pair in pairwise(sentence.stems)}
    runs = tuple([[pair in said_pairs for pair in pairwise(sentence.stems)] for sentence in docs])
    matches, best_dice = _pairs(said, holders, idf, mass, response_mass)
    return Overlap(
        asked, docs, said, _spans(documents), idf, unseen, holders, mass, response_mass, matches,
        runs, best_dice,
    )  # fmt: skip


def _weight(total: float, count: int) -> float:
    return round((log(total / (count + 0.5)) + 0.3) * _STEPS) / _STEPS


def runs_of(flags: Sequence[bool]) -> tuple[float, int]:
    """Share of true flags, and their longest unbroken run."""
    hits = sum(flags)
    if not hits:
        return 0.0, 0
    run = longest = 0
    for flag in flags:
        run = run + 1 if flag else 0
        if run > longest:
            longest = run
    return hits / len(flags), longest


def _spans(documents: Sequence[Sequence[str]]) -> tuple[tuple[int, int], ...]:
    spans = []
    start = 0
    for sentences in documents:
        if sentences:
            spans.append((start, start + len(sentences)))
            start += len(sentences)
    return tuple(spans)


def _pairs(
    said: tuple[Words, ...],
    holders: dict[str, list[int]],
    idf: dict[str, float],
    mass: tuple[float, ...],
    response_mass: tuple[float, ...],
) -> tuple[tuple[tuple[Match, ...], ...], list[float]]:
    """Best matches of each response sentence and best Dice of each document sentence."""
    too_common = _too_common(said, holders)
    best_dice = [0.0] * len(mass)
    matches = []
    for sentence, own in zip(said, response_mass, strict=True):
        shared: dict[int, float] = {}
        for word in sentence.content:
            if word in holders and word not in too_common:
                weight = idf[word]
                for number in holders[word]:
                    shared[number] = shared.get(number, 0.0) + weight
        ranked = []
        for number, weight in shared.items():
            dice = 2 * weight / (mass[number] + own)
            if dice > best_dice[number]:
                best_dice[number] = dice
            # Ties go to the shorter sentence, then to the earlier one.
            ranked.append((-weight, mass[number], number))
        ranked.sort()
        matches.append(tuple([Match(-w, number) for w, _, number in ranked[:KEPT_MATCHES]]))
    return tuple(matches), best_dice


def _too_common(said: tuple[Words, ...], holders: dict[str, list[int]]) -> frozenset[str]:
    """Words left out of pairing so that the work stays within `PAIR_BUDGET`."""
    uses = Counter([word for sentence in said for word in sentence.content if word in holders])
    budget = PAIR_BUDGET
    dropped = set()
    for word in sorted(uses, key=lambda word: (len(holders[word]), word)):
        budget -= uses[word] * len(holders[word])
        if budget < 0:
            dropped.add(word)
    return frozenset(dropped)
