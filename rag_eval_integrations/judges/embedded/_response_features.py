"""The features of response sentences, 35 each, for support; conflicts with the documents."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence, Set
from itertools import chain, pairwise
from math import log1p
from typing import NamedTuple, Self

from rag_eval_integrations.judges.embedded._opposites import OPPOSITE
from rag_eval_integrations.judges.embedded._overlap import Cover, Overlap, covers, runs_of
from rag_eval_integrations.judges.embedded._words import Words, stem

# --- Conflicts of a response sentence with the document sentences that it matches


class Conflicts(NamedTuple):
    """The conflicts of a response sentence with its matches, as sorted stems; empty without any."""

    numbers: tuple[str, ...] = ()
    """Numbers that are in neither the matched sentences nor the question."""
    other_numbers: tuple[str, ...] = ()
    """Numbers of the matched sentences that the response sentence lacks; if possible, only those
    with the same unit ("10 minutes")."""
    opposites: tuple[tuple[str, str], ...] = ()
    """Pairs of a word and its opposite, which the matched sentences have in its place."""
    negation: float = 0.0
    """1 when only the response sentence is negated, -1 when only its best match is, else 0."""


NONE = Conflicts()


def conflicts(o: Overlap, number: int, matched: tuple[int, ...]) -> Conflicts:
    """Compare a response sentence with the document sentences that cover it."""
    if not matched:
        return NONE
    sentence = o.response[number]
    against = [o.documents[i] for i in matched]
    numbers: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    if sentence.numbers:
        theirs = frozenset[str]().union(*[words.numbers for words in against])
        numbers = tuple(sorted(sentence.numbers - theirs - o.question.bag))
        if numbers and theirs:
            others = _instead(sentence, numbers, against) or tuple(
                sorted(theirs - sentence.numbers)
            )
    opposites: tuple[tuple[str, str], ...] = ()
    own = OPPOSITE.keys() & sentence.stems
    opposed = frozenset[str]().union(*[OPPOSITE[word] for word in own])
    # "on" and "off" are common, so this test spares most sentences the sets below.
    if not all([opposed.isdisjoint(words.stems) for words in against]):
        said = frozenset(sentence.stems)
        found = frozenset[str]().union(*[words.stems for words in against])
        opposites = tuple(
            [(w, min(OPPOSITE[w] & found - said)) for w in sorted(own - found)
             if OPPOSITE[w] & found - said]
        )  # fmt: skip
    negation = float(sentence.negated - against[0].negated)
    return Conflicts(numbers, others, opposites, negation)


def _instead(sentence: Words, numbers: tuple[str, ...], against: list[Words]) -> tuple[str, ...]:
    """List the matched sentences' numbers before a word that also follows one of ours."""
    units = {after for word, after in pairwise(sentence.stems) if word in numbers}
    return tuple(
        sorted(
            {
                word
                for words in against
                if words.numbers
                for word, after in pairwise(words.stems)
                if after in units and word in words.numbers and word not in sentence.numbers
            }
        )
    )


# --- The features


RESPONSE_FEATURES = (
    "found",  # share of the sentence's weight found in the documents
    "found_in_1",  # in the best document sentence
    "found_in_2",  # in the best two, chosen greedily
    "found_in_3",
    "found_in_document",  # in the best single document
    "bigrams",  # share of its word pairs found in a document sentence
    "trigrams",
    "bigrams_in_1",  # in the best document sentence
    "run",  # log of the longest run of word pairs found
    "numbers_missing",  # numbers that are in no document
    "names_missing",  # capitalised words in neither documents nor question
    "new_words",  # log of the words in neither documents nor question
    "new_share",  # the same as a share
    "new_found",  # share of the weight that is not the question's and is in the documents
    "strange_words",  # log of new words that share no five-letter beginning with a document word
    "strange_weight",  # their share of the weight
    "together",  # share of neighbouring content words that one matched sentence holds both of
    "together_new",  # the same for pairs that the question does not give
    "joins_question",  # new weight found times question found, best single matched sentence
    "question_beside",  # share of the question's other words in the three matched sentences
    "negation",  # negated, but the best match is not: 1; the other way round: -1
    "number_conflict",  # a number of its own where the matched sentences have another
    "gap",  # weight lead of the best match over the second
    "question_share",  # share of its words that are the question's
    "question_said",  # share of the question's words that it holds
    "new_length",  # log of its words that are not the question's
    "length",
    "position",
    "first",
    "response_sentences",
    "document_sentences",
    "hedged",
    "absence",  # says that something is not stated, or cannot be told
    "about_context",  # speaks of the documents
    "listed",  # opens like a list item, or introduces a list
)

# Bounded gaps keep the search linear.
_ABSENCE = re.compile(
    r"\b(?:(?:do(?:es)?|did|is|are|was|were|has|have|can)(?: ?not|n['’]t)|cannot|unable|no|not"
    r"|lacks?|without)\b[^.]{0,60}\b(?:mention|specif|provid|state|contain|includ|information"
    r"|detail|answer|address|discuss|indicat|explicit|determin|list|context|document|passage"
    r"|describ|evidence)",
    re.IGNORECASE,
)
_SPEAKING_OF_CONTEXT = (
    "context document documents passage passages text texts provided information source sources "
    "article articles excerpt excerpts"
)
_CONTEXT = frozenset(map(stem, _SPEAKING_OF_CONTEXT.split()))
_HEDGING = (
    "may might could likely possibly perhaps seem seems appear appears suggest suggests probably "
    "generally typically usually often implied assume assumes assumed infer inferred"
)
_HEDGES = frozenset(map(stem, _HEDGING.split()))
_LISTED = re.compile(r"\s{0,20}(?:[-*•]|\d{1,2}[.)])")

_LOOKED_AT = 6  # number of matched sentences in which words are searched together
_BITS = tuple([1 << number for number in range(_LOOKED_AT)])
_MANY_DOCUMENTS = 50  # with more documents, only those with a matched sentence are searched


class _Documents(NamedTuple):
    """Look-up tables of all documents, used for every response sentence."""

    beginnings: frozenset[str]
    """The first five letters of each word, or the whole of a shorter one."""
    bags: tuple[frozenset[str], ...]
    """The words that each document shares with the response."""
    starts: tuple[int, ...]
    """Index of the first sentence of each document."""


class _Known(NamedTuple):
    """The content words of a response sentence that documents and question hold, and their weights.

    Weights of the other words are computed as differences, without loss since sums are exact.
    """

    found: Set[str]
    """Words in the documents."""
    asked: Set[str]
    """Words in the question."""
    found_weight: float
    asked_weight: float
    both_weight: float
    """Weight of the words in both documents and question."""

    @classmethod
    def of(cls, o: Overlap, j: int) -> Self:
        found, asked = o.found[j], o.question.bag & o.response[j].bag
        return cls(
            found,
            asked,
            sum(map(o.idf.__getitem__, found)),
            sum([o.idf.get(word, o.unseen) for word in asked]),
            sum(map(o.idf.__getitem__, found & asked)),
        )


class ResponseRow(NamedTuple):
    """The features of one response sentence, with the parts that models and explanations reuse."""

    features: tuple[float, ...]
    """One number per name in `RESPONSE_FEATURES`."""
    new: tuple[str, ...]
    """Content words that are in neither documents nor question."""
    cover: Cover
    conflicts: Conflicts


def response_features(o: Overlap, texts: Sequence[str]) -> list[ResponseRow]:
    """Compute one row per response sentence, in order; all features are finite."""
    documents = _documents(o)
    size = len(texts)
    document_sentences, response_sentences = log1p(len(o.documents)), log1p(size)
    rows = []
    for j, (sentence, text, cover) in enumerate(zip(o.response, texts, covers(o), strict=True)):
        known = _Known.of(o, j)
        new = tuple([w for w in sentence.content if w not in o.idf and w not in known.asked])
        against = conflicts(o, j, cover.sentences)
        features = (
            *_found(o, j, known, cover, documents),
            *_sequence(o, sentence, cover),
            *_new(o, j, known, new, documents),
            *_joined(o, j, known, cover),
            against.negation,
            1.0 if against.numbers and against.other_numbers else 0.0,
            *_size(o, j, known),
            j / size,
            1.0 if j == 0 else 0.0,
            response_sentences,
            document_sentences,
            0.0 if _HEDGES.isdisjoint(sentence.stems) else 1.0,
            1.0 if sentence.negated and _ABSENCE.search(text) else 0.0,
            0.0 if _CONTEXT.isdisjoint(sentence.stems) else 1.0,
            1.0 if _LISTED.match(text) or text.rstrip().endswith(":") else 0.0,
        )
        rows.append(ResponseRow(features, new, cover, against))
    return rows


def _documents(o: Overlap) -> _Documents:
    spoken = frozenset[str]().union(*(s.stems for s in o.response))
    bags = [spoken & frozenset[str]().union(*o.shared[start:stop]) for start, stop in o.spans]
    return _Documents(
        frozenset([word[:5] for word in o.idf]),
        tuple(bags),
        tuple([start for start, _ in o.spans]),
    )


def _found(
    o: Overlap, j: int, known: _Known, cover: Cover, documents: _Documents
) -> tuple[float, ...]:
    mass = o.response_mass[j]
    if not mass:
        return (1.0,) * 5
    best = 0.0
    bags: Iterable[frozenset[str]] = documents.bags
    if len(documents.bags) > _MANY_DOCUMENTS:
        # The time of searching all documents would grow with the product of two sizes.
        numbers = {bisect_right(documents.starts, match.sentence) - 1 for match in o.matches[j]}
        bags = [documents.bags[number] for number in numbers]
    for bag in bags:
        weight = sum(map(o.idf.__getitem__, known.found & bag))
        if weight > best:
            best = weight
    return known.found_weight / mass, cover.found(1), cover.found(2), cover.found(3), best / mass


def _sequence(o: Overlap, sentence: Words, cover: Cover) -> tuple[float, ...]:
    stems = sentence.stems
    pairs = list(pairwise(stems))
    if not pairs:
        return 1.0, 1.0, 1.0, 0.0
    bigrams, longest = runs_of(bytes(map(o.pairs.__contains__, pairs)))
    trigrams = bigrams if len(pairs) == 1 else 0.0
    if len(pairs) > 1 and longest > 1:
        triples = zip(stems, stems[1:], stems[2:], strict=False)
        trigrams = sum(map(o.triples.__contains__, triples)) / (len(pairs) - 1)
    in_best = 0.0
    if cover.sentences and longest:
        best = set(pairwise(o.documents[cover.sentences[0]].stems))
        in_best = sum(map(best.__contains__, pairs)) / len(pairs)
    return bigrams, trigrams, in_best, log1p(longest)


def _new(
    o: Overlap, j: int, known: _Known, new: tuple[str, ...], documents: _Documents
) -> tuple[float, ...]:
    sentence, mass, asked = o.response[j], o.response_mass[j], o.question.bag
    strange = [w for w in new if len(w) < 5 or w[:5] not in documents.beginnings]
    weight = mass - known.asked_weight
    return (
        float(len(sentence.numbers.difference(o.idf))),
        float(len(sentence.names.difference(o.idf, asked))),
        log1p(len(new)),
        len(new) / len(sentence.content) if new else 0.0,
        (known.found_weight - known.both_weight) / weight if weight else 1.0,
        log1p(len(strange)),
        o.unseen * len(strange) / mass if mass else 0.0,
    )


def _joined(o: Overlap, j: int, known: _Known, cover: Cover) -> tuple[float, ...]:
    """Measure whether words that occur together in the sentence do so in a document sentence."""
    asked, mass = o.question.bag, o.response_mass[j]
    content = o.response[j].content
    matched = [o.shared[match.sentence] for match in o.matches[j][:_LOOKED_AT]]
    # The matched sentences that hold each word, as bits.
    bits = dict.fromkeys(content, 0)
    weight = mass - known.asked_weight
    joins = 0.0 if weight else 1.0
    for bit, bag in zip(_BITS, matched, strict=False):
        held = known.found & bag
        for word in held:
            bits[word] |= bit
        answered = len(bag & asked)
        if answered and weight:
            said = sum(map(o.idf.__getitem__, held - known.asked)) / weight
            joins = max(joins, said * answered / len(asked))
    joined = [one & other for one, other in pairwise(bits.values())]
    if joined:
        together = (len(joined) - joined.count(0)) / len(joined)
    else:
        together = known.found_weight / mass if mass else 1.0
    new = joined
    if len(known.asked) > 1:
        given = map(known.asked.__contains__, content)
        new = [both for both, (a, b) in zip(joined, pairwise(given), strict=True) if not (a and b)]
    beside = asked - known.asked
    near = beside.intersection(chain.from_iterable([o.shared[i] for i in cover.sentences[:3]]))
    return (
        together,
        (len(new) - new.count(0)) / len(new) if new else together,
        joins,
        len(near) / len(beside) if beside else 1.0,
    )


def _size(o: Overlap, j: int, known: _Known) -> tuple[float, ...]:
    sentence, asked, matches = o.response[j], o.question.bag, o.matches[j]
    both = len(known.asked)
    mass = o.response_mass[j]
    return (
        (matches[0].weight - matches[1].weight) / mass if len(matches) > 1 else 0.0,
        both / (len(sentence.bag) or 1),
        both / (len(asked) or 1),
        log1p(len(sentence.content) - both),
        log1p(len(sentence.stems)),
    )
