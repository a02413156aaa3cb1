"""Which words of a call are where: idf and shared weight of sentence pairs, once per call.

Near-linear in the length of the call: only pairs of sentences that share a word with weight are
looked at, and `PAIR_BUDGET` caps their number. Above it the commonest words stop making pairs and
the rarest, which tell most, go on.

Weights are multiples of 2^-16. Sums of them, and of their squares, are exact, so that neither the
order of words nor the Python version (3.12 sums floats differently) changes a bit of a feature.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from functools import partial
from itertools import chain, compress, pairwise
from math import fsum, log
from typing import NamedTuple

from rag_eval_integrations.judges.embedded._words import Words, words

PAIR_BUDGET = 1_000_000
"""Most steps (shared word, document sentence, response sentence) in one call: about a second.
The largest of 2,697 RAGBench rows takes 60 thousand."""

KEPT_MATCHES = 12
"""Best document sentences kept for each response sentence."""

_STEPS = 65_536
_TWO = b"\1\1"


class Match(NamedTuple):
    """One document sentence that shares words with a response sentence."""

    weight: float
    """Sum of idf weights of the shared words."""
    sentence: int
    """Number of the document sentence in the call."""


_match = partial(tuple.__new__, Match)
"""Makes a match of a pair in 0.22 µs, not the 0.38 of `Match(…)`."""


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
    shared: tuple[frozenset[str], ...]
    """Of each document sentence the content words that question or response have, too: a fifth of
    them (RAGBench), and all that most features look at."""
    found: tuple[Set[str], ...]
    """Of each response sentence the content words that the documents have, too."""
    mass: tuple[float, ...]
    """Sum of weights of each document sentence's content words."""
    response_mass: tuple[float, ...]
    matches: tuple[tuple[Match, ...], ...]
    """For each response sentence its best document sentences, best first."""
    runs: tuple[tuple[float, int], ...]
    """Of each document sentence the share of its pairs of neighbouring words that the response has,
    too, and the length of the longest unbroken run of them."""
    pairs: frozenset[tuple[str, str]]
    """These pairs, of all document sentences."""
    triples: frozenset[tuple[str, str, str]]
    """Three words in a row that make two such pairs."""
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
    frequency = Counter(chain.from_iterable([sentence.content for sentence in docs]))
    total = len(docs) + 1.0
    of_count = {count: _weight(total, count) for count in set(frequency.values())}
    idf = {word: of_count[count] for word, count in frequency.items()}
    unseen = _weight(total, 0)
    wanted = asked.bag.union(*[sentence.bag for sentence in said])
    shared = tuple([wanted & sentence.bag for sentence in docs])
    holders: dict[str, list[int]] = {word: [] for word in idf.keys() & wanted}
    for number, found in enumerate(shared):
        for word in found:
            holders[word].append(number)
    mass = tuple([sum(map(idf.__getitem__, sentence.content)) for sentence in docs])
    response_mass = tuple(
        [sum([idf.get(word, unseen) for word in sentence.content]) for sentence in said]
    )
    known = tuple([holders.keys() & sentence.bag for sentence in said])
    if sum(map(len, map(holders.__getitem__, chain.from_iterable(known)))) > PAIR_BUDGET:
        too_common = _too_common(said, holders)
        making = [words - too_common for words in known]
    else:
        making = list(known)
    matches, best_dice = _pairs(making, holders, idf, mass, response_mass)
    return Overlap(
        asked, docs, said, _spans(documents), idf, unseen, holders, shared, known, mass,
        response_mass, matches, *_sequences(docs, said), best_dice,
    )  # fmt: skip


def _weight(total: float, count: int) -> float:
    return round((log(total / (count + 0.5)) + 0.3) * _STEPS) / _STEPS


def runs_of(flags: bytes) -> tuple[float, int]:
    """Share of the flags that are 1, not 0, and their longest unbroken run."""
    hits = flags.count(1)
    if not hits:
        return 0.0, 0
    longest = 1 if _TWO not in flags else max(map(len, flags.split(b"\0")))
    return hits / len(flags), longest


def _sequences(
    docs: tuple[Words, ...], said: tuple[Words, ...]
) -> tuple[
    tuple[tuple[float, int], ...], frozenset[tuple[str, str]], frozenset[tuple[str, str, str]]
]:
    """Which word pairs of the document sentences the response has: `runs`, `pairs`, `triples`."""
    is_said = {pair for sentence in said for pair in pairwise(sentence.stems)}.__contains__
    runs: list[tuple[float, int]] = []
    pairs: set[tuple[str, str]] = set()
    triples: set[tuple[str, str, str]] = set()
    for sentence in docs:
        own = sentence.stems
        own_pairs = list(pairwise(own))
        flags = bytes(map(is_said, own_pairs))
        run = runs_of(flags)
        runs.append(run)
        if run[1]:
            pairs.update(compress(own_pairs, flags))
        at = flags.find(_TWO) if run[1] > 1 else -1
        while at >= 0:
            triples.add(own[at : at + 3])  # type: ignore[arg-type]  # two pairs are three words
            at = flags.find(_TWO, at + 1)
    return tuple(runs), frozenset(pairs), frozenset(triples)


def _spans(documents: Sequence[Sequence[str]]) -> tuple[tuple[int, int], ...]:
    spans = []
    start = 0
    for sentences in documents:
        if sentences:
            spans.append((start, start + len(sentences)))
            start += len(sentences)
    return tuple(spans)


def _pairs(
    making: Sequence[Set[str]],
    holders: dict[str, list[int]],
    idf: dict[str, float],
    mass: tuple[float, ...],
    response_mass: tuple[float, ...],
) -> tuple[tuple[tuple[Match, ...], ...], list[float]]:
    """Best matches of each response sentence and best Dice of each document sentence.

    `making` holds the words of each response sentence that make pairs.
    """
    best_dice = [0.0] * len(mass)
    matches = []
    for found, own in zip(making, response_mass, strict=True):
        shared: dict[int, float] = {}
        weight_of = shared.get
        for word in found:  # in any order: sums of weights are exact
            weight = idf[word]
            for number in holders[word]:
                shared[number] = weight_of(number, 0.0) + weight
        ranked = []
        for number, weight in shared.items():
            size = mass[number]
            dice = 2 * weight / (size + own)
            if dice > best_dice[number]:
                best_dice[number] = dice
            # Ties go to the shorter sentence, then to the earlier one.
            ranked.append((-weight, size, number))
        ranked.sort()
        matches.append(tuple([_match((-w, number)) for w, _, number in ranked[:KEPT_MATCHES]]))
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


# --- Which document sentences together hold most of a response sentence's words


_COVER = 4  # most supporting sentences


class Cover(NamedTuple):
    """The document sentences that together hold most of a response sentence's words."""

    sentences: tuple[int, ...]
    """At most four, in the order in which they add most weight."""
    gains: tuple[float, ...]
    """What each adds, as a share of the response sentence's weight."""

    def found(self, size: int) -> float:
        """Share of the weight in the first ``size`` sentences."""
        return fsum(self.gains[:size])


def covers(o: Overlap) -> list[Cover]:
    """The covering document sentences of each response sentence."""
    made = []
    for left, mass, matches in zip(o.found, o.response_mass, o.matches, strict=True):
        taken: list[int] = []
        gains: list[float] = []
        while left and len(taken) < _COVER:
            best, best_at = 1e-9, -1
            for match in matches:
                # Matches come by falling weight, and none adds more than that.
                if match.weight <= best:
                    break
                # In any order: sums of weights are exact.
                weight = sum(map(o.idf.__getitem__, left & o.shared[match.sentence]))
                if weight > best + 1e-9:
                    best, best_at = weight, match.sentence
            if best_at < 0:
                break
            taken.append(best_at)
            gains.append(best / mass)
            left = left - o.shared[best_at]
        made.append(Cover(tuple(taken), tuple(gains)))
    return made
