"""What the words say of each response sentence: 36 numbers, for support by the documents."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import compress, pairwise
from math import log1p
from operator import and_
from typing import NamedTuple

from rag_eval_integrations.judges.embedded.conflicts import Conflicts, conflicts
from rag_eval_integrations.judges.embedded.cover import Cover, covers
from rag_eval_integrations.judges.embedded.overlap import Overlap, runs_of
from rag_eval_integrations.judges.embedded.words import Words, stem

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
    "opposites",  # words whose opposites stand in the matched sentences
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

_LOOKED_AT = 6  # matched sentences in which words are looked for together
_BITS = tuple([1 << number for number in range(_LOOKED_AT)])
_MANY_DOCUMENTS = 50  # above, only documents with a matched sentence are looked at


class _Documents(NamedTuple):
    """What is looked up in all documents for every response sentence."""

    pairs: frozenset[tuple[str, str]]
    triples: frozenset[tuple[str, str, str]]
    beginnings: frozenset[str]
    bags: tuple[frozenset[str], ...]
    """Words of each document that the response has, too."""
    starts: tuple[int, ...]
    """First sentence of each document."""


class ResponseRow(NamedTuple):
    """What is known of one response sentence."""

    features: tuple[float, ...]
    """`RESPONSE_FEATURES`."""
    new: tuple[str, ...]
    """Content words in neither documents nor question."""
    cover: Cover
    conflicts: Conflicts


def response_features(o: Overlap, texts: Sequence[str]) -> list[ResponseRow]:
    """One row for each response sentence, in order; all features are finite."""
    documents = _documents(o)
    size = len(texts)
    document_sentences, response_sentences = log1p(len(o.documents)), log1p(size)
    rows = []
    for j, (sentence, text, cover) in enumerate(zip(o.response, texts, covers(o), strict=True)):
        asked = o.question.bag
        new = tuple([w for w in sentence.content if w not in o.idf and w not in asked])
        against = conflicts(o, j, cover.sentences)
        features = (
            *_found(o, j, cover, documents),
            *_sequence(o, sentence, cover, documents),
            *_new(o, j, new, documents),
            *_joined(o, j, cover),
            against.negation,
            1.0 if against.numbers and against.other_numbers else 0.0,
            float(len(against.opposites)),
            *_size(o, j),
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
    pairs: set[tuple[str, str]] = set()
    triples: set[tuple[str, str, str]] = set()
    for sentence, runs in zip(o.documents, o.runs, strict=True):
        own = sentence.stems
        if True not in runs:
            continue
        pairs.update(compress(pairwise(own), runs))
        triples.update(
            compress(zip(own, own[1:], own[2:], strict=False), map(and_, runs, runs[1:]))
        )
    bags = [
        spoken & frozenset[str]().union(*(s.bag for s in o.documents[start:stop]))
        for start, stop in o.spans
    ]
    return _Documents(
        frozenset(pairs),
        frozenset(triples),
        frozenset([word[:5] for word in o.idf if len(word) >= 5]),
        tuple(bags),
        tuple([start for start, _ in o.spans]),
    )


def _found(o: Overlap, j: int, cover: Cover, documents: _Documents) -> tuple[float, ...]:
    sentence, mass = o.response[j], o.response_mass[j]
    if not mass:
        return (1.0,) * 5
    known = [(word, o.idf[word]) for word in sentence.content if word in o.idf]
    best = 0.0
    bags: Iterable[frozenset[str]] = documents.bags
    if len(documents.bags) > _MANY_DOCUMENTS:
        # All documents for all response sentences would be a product of two sizes.
        numbers = {bisect_right(documents.starts, match.sentence) - 1 for match in o.matches[j]}
        bags = [documents.bags[number] for number in numbers]
    for bag in bags:
        weight = sum([w for word, w in known if word in bag])
        if weight > best:
            best = weight
    found = sum([w for _, w in known])
    return found / mass, cover.found(1), cover.found(2), cover.found(3), best / mass


def _sequence(
    o: Overlap, sentence: Words, cover: Cover, documents: _Documents
) -> tuple[float, ...]:
    stems = sentence.stems
    pairs = list(pairwise(stems))
    if not pairs:
        return 1.0, 1.0, 1.0, 0.0
    found = [pair in documents.pairs for pair in pairs]
    bigrams, longest = runs_of(found)
    triples = list(zip(stems, stems[1:], stems[2:], strict=False))
    trigrams = sum([t in documents.triples for t in triples]) / len(triples) if triples else bigrams
    in_best = 0.0
    if cover.sentences:
        own = o.documents[cover.sentences[0]].stems
        best = set(pairwise(own))
        in_best = sum([pair in best for pair in pairs]) / len(pairs)
    return bigrams, trigrams, in_best, log1p(longest)


def _new(o: Overlap, j: int, new: tuple[str, ...], documents: _Documents) -> tuple[float, ...]:
    sentence, mass, asked = o.response[j], o.response_mass[j], o.question.bag
    strange = [w for w in new if len(w) < 5 or w[:5] not in documents.beginnings]
    not_asked = [word for word in sentence.content if word not in asked]
    weight = sum([o.weight(word) for word in not_asked])
    return (
        float(len([word for word in sentence.numbers if word not in o.idf])),
        float(len([w for w in sentence.names if w not in o.idf and w not in asked])),
        log1p(len(new)),
        len(new) / len(sentence.content) if new else 0.0,
        sum([o.idf[w] for w in not_asked if w in o.idf]) / weight if weight else 1.0,
        log1p(len(strange)),
        o.unseen * len(strange) / mass if mass else 0.0,
    )


def _joined(o: Overlap, j: int, cover: Cover) -> tuple[float, ...]:
    """Whether words that the sentence joins are joined in a document sentence, too."""
    sentence, asked, mass = o.response[j], o.question.bag, o.response_mass[j]
    content = sentence.content
    bags = [o.documents[match.sentence].bag for match in o.matches[j][:_LOOKED_AT]]
    # For each word the matched sentences that hold it, as bits.
    bits = dict.fromkeys(content, 0)
    for bit, bag in zip(_BITS, bags, strict=False):
        for word in sentence.bag & bag:
            bits[word] |= bit
    held = list(bits.values())
    joined = [one & other for one, other in pairwise(held)]
    if joined:
        together = (len(joined) - joined.count(0)) / len(joined)
    else:
        together = sum([o.idf.get(word, 0.0) for word in content]) / mass if mass else 1.0
    known = list(map(asked.__contains__, content))
    new = joined
    if True in known:
        new = [both for both, (a, b) in zip(joined, pairwise(known), strict=True) if not (a and b)]
    not_asked = [word for word in content if word not in asked]
    weight = sum(map(o.weight, not_asked))
    joins = 0.0 if weight else 1.0
    for bit, bag in zip(_BITS, bags, strict=False) if weight else ():
        answered = len(bag & asked)
        if answered:
            said = sum([o.idf[word] for word in not_asked if bits[word] & bit]) / weight
            joins = max(joins, said * answered / len(asked))
    beside = [word for word in o.question.content if word not in sentence.bag]
    near = frozenset[str]().union(*[o.documents[i].bag for i in cover.sentences[:3]])
    return (
        together,
        (len(new) - new.count(0)) / len(new) if new else together,
        joins,
        len([word for word in beside if word in near]) / len(beside) if beside else 1.0,
    )


def _size(o: Overlap, j: int) -> tuple[float, ...]:
    sentence, asked, matches = o.response[j], o.question.bag, o.matches[j]
    both = len(asked & sentence.bag)
    mass = o.response_mass[j]
    return (
        (matches[0].weight - matches[1].weight) / mass if len(matches) > 1 else 0.0,
        both / (len(sentence.bag) or 1),
        both / (len(asked) or 1),
        log1p(len(sentence.content) - both),
        log1p(len(sentence.stems)),
    )
