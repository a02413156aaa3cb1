"""The features of a call's sentences; training and the judge share this code."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence, Set
from itertools import chain, pairwise
from math import fsum, log1p, sqrt
from typing import NamedTuple

from rag_eval_integrations.judges.embedded._overlap import Cover, Overlap, covers, overlap
from rag_eval_integrations.judges.embedded._words import Words, listed, raw_words, words
from rag_eval_integrations.sentences._markers import without_markers

RESPONSE_FEATURES = (
    "found",  # share of the sentence's weight found in the documents
    "found_in_1",  # in the best document sentence
    "found_in_document",  # in the best single document
    "bigrams",  # share of its word pairs found in a document sentence
    "bigrams_in_1",  # in the best document sentence
    "run",  # log of the longest run of word pairs found
    "numbers_missing",  # numbers that are in no document
    "names_missing",  # capitalised words in neither documents nor question
    "together",  # share of neighbouring content words that one matched sentence holds both of
    "together_new",  # the same for pairs that the question does not give
    "question_share",  # share of its words that are the question's
    "question_said",  # share of the question's words that it holds
    "new_length",  # log of its words that are not the question's
    "length",
    "response_sentences",
    "document_sentences",
    "absence",  # says that something is not stated, or cannot be told
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
_LISTED = re.compile(r"\s{0,20}(?:[-*•]|\d{1,2}[.)])")

_BITS = tuple([1 << number for number in range(6)])  # of the matched sentences that are searched


class ResponseRow(NamedTuple):
    """The features of one response sentence, with the parts that models and explanations reuse."""

    features: tuple[float, ...]
    """One number per name in `RESPONSE_FEATURES`."""
    new: tuple[str, ...]
    """Content words that are in neither documents nor question."""
    cover: Cover
    absent: bool
    """True for a sentence that says that the documents do not tell, or only refuses."""

    @property
    def spread(self) -> float:
        """Share of the sentence's weight that other documents than the best hold; in [0, 1]."""
        return self.features[0] - self.features[2]


def response_features(o: Overlap, texts: Sequence[str]) -> list[ResponseRow]:
    """Compute one row per response sentence, in order; all features are finite."""
    bags: list[frozenset[str]] = []  # by sentence, the words of its document
    for start, stop in o.spans:
        bags += [frozenset[str]().union(*o.shared[start:stop])] * (stop - start)
    document_sentences, response_sentences = log1p(len(o.documents)), log1p(len(texts))
    rows = []
    for j, (sentence, text, cover) in enumerate(zip(o.response, texts, covers(o), strict=True)):
        mass = o.response_mass[j]
        asked = o.question.bag & sentence.bag
        found_share = sum(map(o.idf.__getitem__, o.known[j])) / mass if mass else 1.0
        features = (
            found_share,
            *_best_shares(o, j, cover, bags),
            *_word_order(o, sentence, cover),
            float(len(sentence.numbers.difference(o.idf))),
            float(len(sentence.names.difference(o.idf, o.question.bag))),
            *_together(o, j, asked, found_share),
            len(asked) / (len(sentence.bag) or 1),
            len(asked) / (len(o.question.bag) or 1),
            log1p(len(sentence.content) - len(asked)),
            log1p(len(sentence.stems)),
            response_sentences,
            document_sentences,
            1.0 if sentence.negated and _ABSENCE.search(text) else 0.0,
            1.0 if _LISTED.match(text) or text.rstrip().endswith(":") else 0.0,
        )
        new = tuple([w for w in sentence.content if w not in o.idf and w not in asked])
        rows.append(ResponseRow(features, new, cover, says_documents_do_not_tell(text)))
    return rows


def _best_shares(
    o: Overlap, j: int, cover: Cover, bags: Sequence[frozenset[str]]
) -> tuple[float, float]:
    """Compute the weight shares in the best document sentence and in the best document."""
    mass = o.response_mass[j]
    if not mass:
        return 1.0, 1.0
    # Searching all documents would take time by the product of two sizes.
    near = {bags[match.sentence] for match in o.matches[j]}
    best = max([sum(map(o.idf.__getitem__, o.known[j] & bag)) for bag in near], default=0.0)
    return sum(cover.gains[:1]), best / mass


def _word_order(o: Overlap, sentence: Words, cover: Cover) -> tuple[float, ...]:
    """Compute how much of a sentence's word order stands in the documents, in three features."""
    stems = sentence.stems
    pairs = list(pairwise(stems))
    if not pairs:
        return 1.0, 1.0, 0.0
    flags = bytes(map(o.pairs.__contains__, pairs))
    longest = max(map(len, flags.split(b"\0")))
    in_best = 0.0
    if cover.sentences and longest:
        best = set(pairwise(o.documents[cover.sentences[0]].stems))
        in_best = sum(map(best.__contains__, pairs)) / len(pairs)
    return flags.count(1) / len(flags), in_best, log1p(longest)


def _together(o: Overlap, j: int, asked: Set[str], found_share: float) -> tuple[float, float]:
    """Measure whether words that occur together in the sentence do so in a document sentence.

    Two shares in [0, 1]: of all neighbours, and of those that are not both in the question.
    """
    content = o.response[j].content
    # The matched sentences that hold each word, as bits.
    bits = dict.fromkeys(content, 0)
    for bit, match in zip(_BITS, o.matches[j], strict=False):
        for word in o.known[j] & o.shared[match.sentence]:
            bits[word] |= bit
    joined = [left & right for left, right in pairwise(bits.values())]
    together = (len(joined) - joined.count(0)) / len(joined) if joined else found_share
    if len(asked) < 2:
        return together, together
    given = map(asked.__contains__, content)
    new = [both for both, (a, b) in zip(joined, pairwise(given), strict=True) if not (a and b)]
    return together, (len(new) - new.count(0)) / len(new) if new else together


# --- Sentences that only refuse or say that the documents do not tell, and so need no support
#
# Their words are in no document, so that word overlap alone would call them unsupported.

_DOCUMENTS = (
    r"(?:(?:contexts?|documents?|passages?|excerpts?|snippets?|search results?)\b(?! of\b)"
    r"|(?:provided|given|available|supplied|retrieved) (?:\w+ )?(?:texts?|information|sources?"
    r"|materials?|manuals?|articles?)\b|(?:texts?|information|sources?|manuals?|articles?|guides?)"
    r"(?=\W*$|[.,;]| (?:do|does|did|is|are|has|have)\b))"
)
_TELL = (
    r"(?:mention|specif[yi]|state|sa[yi]|describe|indicate|address|discuss|explain|tell|clarify"
    r"|answer|provide|detail|elaborate|define|contain|include|give|list|cover|have|offer)"
)
_TOLD = (
    r"(?:mentioned|specified|stated|said|described|indicated|addressed|discussed|explained|told"
    r"|clarified|answered|determined?|defined|clear|provided|given|found|find|available|contained"
    r"|included|listed|covered|present|infer(?:red)?|tell|say|answer)"
)
_NO_NEWS = (
    r"(?:no|not enough|insufficient|little|lacks?|without)(?: [\w'’-]+){0,4}? (?:information"
    r"|mentions?|details?|answers?|indication|explanation|description|references?|instructions?"
    r"|data|definition|evidence)\b"
)
# Bounded gaps keep the search linear. The negated part begins at the group `no`.
_ABSENCES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:^|[.,;:(]\s*|\b(?:but|that|and|as|since|because|so|sorry|unfortunately) )\W*"
        rf"(?:(?:the|this|these|your|my|our|any) )?(?:\w+ ){{0,2}}?{_DOCUMENTS}"
        rf"(?:(?! that\b| who\b)[^.;:]){{0,60}}? (?P<no>(?:do|does)(?: not|n['’]t)(?: \w+ly)*"
        rf" {_TELL}|(?:\w+ )?{_NO_NEWS}|(?:is|are) silent)",
        r"(?P<no>(?:\bnot|n['’]t|\bnever|\bcannot|\bunable to|\bunclear)\b"
        rf"(?: [\w'’-]+){{0,4}}? {_TOLD}|\b{_NO_NEWS}|\bnothing)\b[^.]{{0,80}}?"
        rf"\b(?:in|within|by|from|on|with|using) (?:[\w'’-]+ ){{0,3}}?{_DOCUMENTS}",
        rf"\b(?:on|to|in|from|given) (?:[\w'’-]+ ){{0,3}}?{_DOCUMENTS}[^.]{{0,80}}?"
        rf"(?P<no>\b(?:(?:is|are|was|were)(?: not|n['’]t)|cannot be)(?: \w+ly)? {_TOLD}"
        rf"|\b{_NO_NEWS})",
    )
)
_TURN = re.compile(
    r"\b(?:but|however|although|though|instead)\b|,\s*(?:which|as|since|because)\b", re.IGNORECASE
)
"""Words after which a sentence may make a claim after all."""
_QUESTION = re.compile(r"(?<=know )(?:who|what|when|where|which|whether|how|why)\b[^.,;:\d]*", re.I)
_REFUSING = listed("""
know sorry answer answered help assist respond determine determined say tell information n
""")
_POINTLESS = _REFUSING | listed("""
a able about above available again also am an and any anything are as asked at based be been but by
can can't cannot context contexts could couldn't data do document documents does don't enough
excerpts for found from give given has have haven't here i i'm in insufficient is it it's me my no
not of on or passage passages provide provided query question questions relevant request right so
specific sufficient that the them there these they this those time to topic unable unfortunately
very was we what will with won't you your
""")
"""A sentence of these words alone, with a word that refuses, claims nothing."""
_LONGEST = 400  # characters; longer sentences make other claims too
_DENIES = re.compile(
    r"n['’]t\b|\b(?:no|not|never|nothing|cannot|unable|insufficient|little|lacks?|without"
    r"|silent|unclear|n ?/ ?a|sorry)\b",
    re.IGNORECASE,
)
"""In all such sentences and few others: a fast test before the slow patterns."""


def says_documents_do_not_tell(sentence: str) -> bool:
    """Tell whether a sentence only says that the documents do not tell, or only refuses.

    False where it goes on to say something, and for a long sentence.
    """
    if len(sentence) > _LONGEST or _DENIES.search(sentence) is None:
        return False
    words = set(raw_words(_QUESTION.sub("", sentence.lower().replace("’", "'"))))
    if words <= _POINTLESS and not words.isdisjoint(_REFUSING):
        return re.search(r"\bis no\W*$", sentence, re.IGNORECASE) is None  # "So the answer is no."
    match = next(filter(None, (pattern.search(sentence) for pattern in _ABSENCES)), None)
    return match is not None and _TURN.search(sentence, match.start("no")) is None


# --- Document sentences: 13 features each, for relevance and utilization


SENTENCE_FEATURES = (
    "question_found",  # share of the question's weight found in the sentence
    "credit",  # share of the response's weight, each word divided among the sentences with it;
    # copies of a sentence have the same
    "dice",  # best weighted Dice coefficient with a response sentence
    "dice_to_best",  # the same, divided by the best of the call
    "dice_before",  # dice of the sentence before it, 0 outside the document
    "length",  # log of the sentence's words
)
SHARED_FEATURES = (
    "document_question",  # cosine of the whole document to the question
    "document_response",
    "call_dice_mean",
    "call_question_found",  # share of the question's weight found in all documents
    "documents",  # log of the number of documents
    "response_length",  # log of the response's words
    "document_length",  # log of the number of its sentences
)
DOCUMENT_FEATURES = SENTENCE_FEATURES + SHARED_FEATURES


class DocumentRows(NamedTuple):
    """Features of one document that has sentences."""

    shared: tuple[float, ...]
    """`SHARED_FEATURES`, which are the same for all its sentences."""
    columns: tuple[Sequence[float], ...]
    """For each of `SENTENCE_FEATURES` its values of the sentences, in order."""

    def without(self, first: int) -> DocumentRows:
        """Return the rows without the first sentences."""
        return self._replace(columns=tuple([c[first:] for c in self.columns])) if first else self


def document_features(o: Overlap) -> list[DocumentRows]:
    """Compute the rows of each document that has sentences, in order; all numbers are finite."""
    if not o.documents:
        return []
    answer = dict.fromkeys([word for sentence in o.response for word in sentence.content])
    question_found, credit = _question_and_credit(o, answer)
    dice = o.best_dice
    to_question, to_response = _document_cosines(o, answer)
    top_dice = max(dice)
    asked = o.question.content
    call = (
        fsum(dice) / len(dice),
        sum([o.idf[w] for w in asked if w in o.idf]) / (sum(map(o.weight, asked)) or 1.0),
        log1p(len(o.spans)),
        log1p(sum([len(sentence.stems) for sentence in o.response])),
    )
    documents = []
    for number, (start, stop) in enumerate(o.spans):
        size = stop - start
        own = dice[start:stop]
        shared = (to_question[number], to_response[number], *call, log1p(size))
        # In the order of `SENTENCE_FEATURES`. Columns are faster than a loop over the rows.
        columns = (
            question_found[start:stop],
            credit[start:stop],
            own,
            [value / top_dice for value in own] if top_dice else [0.0] * size,
            [0.0, *own[:-1]],
            [log1p(len(sentence.stems)) for sentence in o.documents[start:stop]],
        )
        documents.append(DocumentRows(shared, columns))
    return documents


def _question_and_credit(o: Overlap, answer: Collection[str]) -> tuple[list[float], list[float]]:
    """Compute the columns `question_found` and `credit`."""
    asked, idf = o.question.bag, o.idf
    answer_mass = sum(map(o.weight, answer)) or 1.0
    earned = dict.fromkeys(o.holders, 0.0)  # words that only the question has earn no credit
    earned |= {w: idf[w] / o.frequency[w] / answer_mass for w in answer if w in idf}
    asked_mass = sum(map(o.weight, o.question.content)) or 1.0
    # Sums of weights are exact and `fsum` rounds once, so that the order of a set does not matter.
    question_found = [sum(map(idf.__getitem__, asked & shared)) / asked_mass for shared in o.shared]
    return question_found, [fsum(map(earned.__getitem__, shared)) for shared in o.shared]


def _document_cosines(o: Overlap, answer: Collection[str]) -> tuple[list[float], list[float]]:
    """Compute the idf-weighted cosines of each document to the question and to the response."""
    asked = o.question.bag
    square = {word: weight * weight for word, weight in o.idf.items()}
    asked_norm, answer_norm = _norm(o, o.question.content), _norm(o, answer)
    to_question, to_response = [], []
    for start, stop in o.spans:
        # In order of use, because a float cannot hold the sum of squares of a whole book exactly.
        own = dict.fromkeys(chain.from_iterable([s.content for s in o.documents[start:stop]]))
        norm = sqrt(sum(map(square.__getitem__, own)))
        question = sum(map(square.__getitem__, filter(asked.__contains__, own)))
        response = sum(map(square.__getitem__, filter(answer.__contains__, own)))
        to_question.append(question / (norm * asked_norm) if question else 0.0)
        to_response.append(response / (norm * answer_norm) if response else 0.0)
    return to_question, to_response


def _norm(o: Overlap, content: Collection[str]) -> float:
    """Return the length of a text's vector of word weights."""
    idf, unseen = o.idf, o.unseen
    return sqrt(sum([idf.get(word, unseen) ** 2 for word in content]))


# --- A whole call


class CallFeatures(NamedTuple):
    """The features that the models and the explanations use."""

    overlap: Overlap
    documents: list[DocumentRows]
    """Rows of each document that has sentences."""
    response: list[ResponseRow]
    """One row per response sentence."""


def call_features(
    question: str,
    documents: Sequence[Sequence[str]],
    response: Sequence[str],
    words: Callable[[str], Words] = words,
) -> CallFeatures:
    """Compute the features of one call.

    Deterministic, also across processes. The time is nearly linear in the length of the call.
    Citation markers in the response are no words of it.

    Args:
        question: the question.
        documents: the sentences of each document.
        response: the sentences of the response.
        words: splits a sentence into words.
    """
    claims = list(map(without_markers, response))
    o = overlap(question, documents, claims, words)
    return CallFeatures(o, document_features(o), response_features(o, claims))
