"""The word index of a call: idf weights, shared words, matching sentences; made once per call.

The time is nearly linear in the length of the call: only pairs of sentences that share a content
word are compared, and `PAIR_BUDGET` bounds their number. Beyond it, the commonest words no longer
make pairs, and the rarest, which are the most informative, still do.

Weights are multiples of 2^-16. Sums of weights and of their squares are exact, so that neither the
order of words nor the Python version (3.12 sums floats differently) changes a bit of a feature.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence, Set
from itertools import accumulate, chain, pairwise
from math import log
from typing import NamedTuple

from rag_eval_integrations.judges.embedded._words import Words, words

PAIR_BUDGET = 1_000_000
"""Limit on the steps (shared word, document sentence, response sentence) per call; about a second.
The largest of 2,697 RAGBench rows takes 60 thousand."""

COPIES = 3
"""Number of copies of a document sentence that count towards the weights of words: an answer that
stands on each of a thousand pages is no common phrase. When only one counted, the RMSE of
utilization was .002 higher, because gold labels take one of two equal documents."""

KEPT_MATCHES = 12
"""Number of best document sentences kept per response sentence."""

_STEPS = 65_536


class Match(NamedTuple):
    """One document sentence that shares words with a response sentence."""

    weight: float
    """Sum of the idf weights of the shared words."""
    sentence: int
    """Index of the document sentence in the call."""


class Overlap(NamedTuple):
    """The words of one call, and how its sentences share them."""

    question: Words
    documents: tuple[Words, ...]
    """Sentences of all documents, in order."""
    response: tuple[Words, ...]
    """Sentences of the response, in order."""
    spans: tuple[tuple[int, int], ...]
    """First sentence of each document that has sentences, and the one after its last."""
    frequency: dict[str, int]
    """Number of document sentences that hold a word, of copies at most `COPIES`."""
    idf: dict[str, float]
    """Weight (> 0) of every content word of the documents, from this call's sentences alone."""
    unseen: float
    """Weight of a word that is in no document; greater than any in `idf`."""
    holders: dict[str, list[int]]
    """Document sentences, in ascending order, by content word of question and response."""
    shared: tuple[frozenset[str], ...]
    """Content words that each document sentence shares with question or response: a fifth of its
    words (RAGBench), and the only ones that most features use."""
    known: tuple[Set[str], ...]
    """Content words that each response sentence shares with the documents."""
    mass: tuple[float, ...]
    """Sum of the weights of each document sentence's content words."""
    response_mass: tuple[float, ...]
    """The same for each response sentence."""
    matches: tuple[tuple[Match, ...], ...]
    """Best document sentences of each response sentence, the best first."""
    pairs: frozenset[tuple[str, str]]
    """Pairs of neighbouring words that are in a document sentence and in the response."""
    best_dice: list[float]
    """Best weighted Dice coefficient of each document sentence with a response sentence."""

    def weight(self, word: str) -> float:
        """Return the weight of any content word."""
        return self.idf.get(word, self.unseen)


def overlap(
    question: str,
    documents: Sequence[Sequence[str]],
    response: Sequence[str],
    words: Callable[[str], Words] = words,
) -> Overlap:
    """Index one call.

    Args:
        question: the question.
        documents: the sentences of each document.
        response: the sentences of the response.
        words: splits a sentence into words.
    """
    asked = words(question)
    docs = tuple([words(text) for sentences in documents for text in sentences])
    answer = tuple([words(text) for text in response])
    # Number of sentences that hold a word; the + 0.3 keeps the weight of a word in all above 0.
    copies = Counter([sentence.content for sentence in docs])
    counted = [content for content, n in copies.items() for _ in range(min(n, COPIES))]
    frequency = Counter(chain.from_iterable(counted))
    total = len(counted) + 1.0
    of_count = {count: _weight(total, count) for count in set(frequency.values())}
    idf = {word: of_count[count] for word, count in frequency.items()}
    unseen = _weight(total, 0)
    wanted = asked.bag.union(*[sentence.bag for sentence in answer])
    shared = tuple([wanted & sentence.bag for sentence in docs])
    holders: dict[str, list[int]] = {word: [] for word in idf.keys() & wanted}
    for number, own in enumerate(shared):
        for word in own:
            holders[word].append(number)
    mass = tuple([sum(map(idf.__getitem__, sentence.content)) for sentence in docs])

    def weight_in_response(sentence: Words) -> float:
        return sum([idf.get(word, unseen) for word in sentence.content])

    response_mass = tuple(map(weight_in_response, answer))
    known = tuple([holders.keys() & sentence.bag for sentence in answer])
    pairing = known
    if sum(map(len, map(holders.__getitem__, chain.from_iterable(known)))) > PAIR_BUDGET:
        too_common = _too_common(answer, holders)
        pairing = tuple([words - too_common for words in known])
    matches, best_dice = _match_sentences(pairing, holders, idf, mass, response_mass)
    pairs = frozenset(chain.from_iterable([pairwise(sentence.stems) for sentence in answer]))
    pairs = pairs.intersection(chain.from_iterable([pairwise(sentence.stems) for sentence in docs]))
    spans = tuple(pairwise(accumulate(map(len, filter(None, documents)), initial=0)))
    return Overlap(
        asked,
        docs,
        answer,
        spans,
        frequency,
        idf,
        unseen,
        holders,
        shared,
        known,
        mass,
        response_mass,
        matches,
        pairs,
        best_dice,
    )


def _weight(total: float, count: int) -> float:
    """Compute a word's idf weight, rounded, from the number of sentences that have it."""
    return round((log(total / (count + 0.5)) + 0.3) * _STEPS) / _STEPS


def _match_sentences(
    pairing: Sequence[Set[str]],
    holders: dict[str, list[int]],
    idf: dict[str, float],
    mass: tuple[float, ...],
    response_mass: tuple[float, ...],
) -> tuple[tuple[tuple[Match, ...], ...], list[float]]:
    """Find the best matches of each response sentence and the best Dice of each document sentence.

    `pairing` holds the words of each response sentence by which pairs are made.
    """
    best_dice = [0.0] * len(mass)
    matches = []
    for making, own in zip(pairing, response_mass, strict=True):
        shared: dict[int, float] = {}
        weight_of = shared.get
        for word in making:  # the order does not matter: sums of weights are exact
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
        matches.append(tuple([Match(-w, number) for w, _, number in ranked[:KEPT_MATCHES]]))
    return tuple(matches), best_dice


def _too_common(answer: tuple[Words, ...], holders: dict[str, list[int]]) -> frozenset[str]:
    """List the words to leave out of pairing so that the work stays within `PAIR_BUDGET`."""
    uses = Counter([word for sentence in answer for word in sentence.content if word in holders])
    budget = PAIR_BUDGET
    dropped = set()
    for word in sorted(uses, key=lambda word: (len(holders[word]), word)):
        budget -= uses[word] * len(holders[word])
        if budget < 0:
            dropped.add(word)
    return frozenset(dropped)


# --- Covers: the document sentences that together hold most of a response sentence's words


_COVER = 4  # limit on the supporting sentences


class Cover(NamedTuple):
    """The document sentences that together hold most of a response sentence's words."""

    sentences: tuple[int, ...]
    """At most four document sentences, chosen greedily by the weight that they add."""
    gains: tuple[float, ...]
    """Weight that each sentence adds, as a share of the response sentence's weight."""


def covers(o: Overlap) -> list[Cover]:
    """Find the cover of each response sentence: document sentences that add most of its words.

    At most four are chosen greedily, each with the share of the response sentence's weight that it
    adds; none for a sentence that shares no words.
    """
    by_sentence: list[Cover] = []
    for left, mass, matches in zip(o.known, o.response_mass, o.matches, strict=True):
        taken: list[int] = []
        gains: list[float] = []
        while left and len(taken) < _COVER:
            best, chosen = 1e-9, -1
            for match in matches:
                # Matches come by falling weight, and none can add more than its weight.
                if match.weight <= best:
                    break
                # The order of words does not matter: sums of weights are exact.
                weight = sum(map(o.idf.__getitem__, left & o.shared[match.sentence]))
                if weight > best + 1e-9:
                    best, chosen = weight, match.sentence
            if chosen < 0:
                break
            taken.append(chosen)
            gains.append(best / mass)
            left = left - o.shared[chosen]
        by_sentence.append(Cover(tuple(taken), tuple(gains)))
    return by_sentence
