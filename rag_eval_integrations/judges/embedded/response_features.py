"""What the words say of each response sentence: 34 numbers, for support by the documents."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import compress, pairwise
from math import log1p
from operator import and_
from typing import NamedTuple

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
_MANY_DOCUMENTS = 50  # above, only documents with a matched sentence are looked at
_COVER = 4  # most supporting sentences


class Cover(NamedTuple):
    """The document sentences that together hold most of a response sentence's words."""

    sentences: tuple[int, ...]
    """At most four, in the order in which they add most weight."""
    gains: tuple[float, ...]
    """What each adds, as a share of the response sentence's weight."""

    def found(self, size: int) -> float:
        """Share of the weight in the first ``size`` sentences."""
        return sum(self.gains[:size])


class _Documents(NamedTuple):
    """What is looked up in all documents for every response sentence."""

    pairs: frozenset[tuple[str, str]]
    triples: frozenset[tuple[str, str, str]]
    beginnings: frozenset[str]
    bags: tuple[frozenset[str], ...]
    """Words of each document that the response has, too."""
    starts: tuple[int, ...]
    """First sentence of each document."""


def covers(o: Overlap) -> list[Cover]:
    """The covering document sentences of each response sentence."""
    made = []
    for sentence, mass, matches in zip(o.response, o.response_mass, o.matches, strict=True):
        left = [(word, o.idf[word]) for word in sentence.content if word in o.idf]
        taken: list[int] = []
        gains: list[float] = []
        while left and len(taken) < _COVER:
            best, best_at = 1e-9, -1
            for match in matches:
                # Matches come by falling weight, and none adds more than that.
                if match.weight <= best:
                    break
                bag = o.documents[match.sentence].bag
                weight = sum([w for word, w in left if word in bag])
                if weight > best + 1e-9:
                    best, best_at = weight, match.sentence
            if best_at < 0:
                break
            taken.append(best_at)
            gains.append(best / mass)
            bag = o.documents[best_at].bag
            left = [(word, weight) for word, weight in left if word not in bag]
        made.append(Cover(tuple(taken), tuple(gains)))
    return made


def response_features(
    o: Overlap, texts: Sequence[str], covering: Sequence[Cover]
) -> list[tuple[float, ...]]:
    """One row of `RESPONSE_FEATURES` for each response sentence, in order; all finite."""
    documents = _documents(o)
    size = len(texts)
    document_sentences, response_sentences = log1p(len(o.documents)), log1p(size)
    rows = []
    for j, (sentence, text, cover) in enumerate(zip(o.response, texts, covering, strict=True)):
        rows.append(
            (
                *_found(o, j, cover, documents),
                *_sequence(o, sentence, cover, documents),
                *_new(o, j, documents),
                *_joined(o, j, cover),
                j / size,
                1.0 if j == 0 else 0.0,
                response_sentences,
                document_sentences,
                0.0 if _HEDGES.isdisjoint(sentence.stems) else 1.0,
                1.0 if sentence.negated and _ABSENCE.search(text) else 0.0,
                0.0 if _CONTEXT.isdisjoint(sentence.stems) else 1.0,
                1.0 if _LISTED.match(text) or text.rstrip().endswith(":") else 0.0,
            )
        )
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


def _new(o: Overlap, j: int, documents: _Documents) -> tuple[float, ...]:
    sentence, mass, asked = o.response[j], o.response_mass[j], o.question.bag
    new = [word for word in sentence.content if word not in o.idf and word not in asked]
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
    content, matches = sentence.content, o.matches[j]
    bags = [o.documents[match.sentence].bag for match in matches[:_LOOKED_AT]]
    pairs = list(pairwise(content))
    joined = [False] * len(pairs)
    for bag in bags:
        for at, (one, other) in enumerate(pairs):
            if one in bag and other in bag:
                joined[at] = True
    if pairs:
        together = sum(joined) / len(pairs)
    else:
        together = sum([o.idf.get(word, 0.0) for word in content]) / mass if mass else 1.0
    given = [a in asked and b in asked for a, b in pairs]
    new = [hit for hit, known in zip(joined, given, strict=True) if not known]
    not_asked = [(word, o.idf.get(word, 0.0)) for word in content if word not in asked]
    weight = sum([o.weight(word) for word, _ in not_asked])
    joins = 0.0 if weight else 1.0
    for bag in bags if weight else ():
        said = sum([w for word, w in not_asked if word in bag]) / weight
        joins = max(joins, said * len(bag & asked) / (len(asked) or 1))
    beside = [word for word in o.question.content if word not in sentence.bag]
    near = frozenset[str]().union(*(o.documents[i].bag for i in cover.sentences[:3]))
    negation = 0.0
    if cover.sentences:
        negation = float(sentence.negated - o.documents[cover.sentences[0]].negated)
    both = len(asked & sentence.bag)
    return (
        together,
        sum(new) / len(new) if new else together,
        joins,
        len([word for word in beside if word in near]) / len(beside) if beside else 1.0,
        negation,
        (matches[0].weight - matches[1].weight) / mass if len(matches) > 1 else 0.0,
        both / (len(sentence.bag) or 1),
        both / (len(asked) or 1),
        log1p(len(not_asked)),
        log1p(len(sentence.stems)),
    )
