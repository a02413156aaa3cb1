"""Where words end: calls whose labels the embedded judge doubts, whatever their probability.

Measured on RAGBench rows, every domain judged by coefficients fitted without it
(`training/where_words_end.py`; docs/judges.md has the figures).
"""

from __future__ import annotations

from math import fsum

from rag_eval_integrations.judges.embedded._features import CallFeatures
from rag_eval_integrations.judges.embedded._response_features import RESPONSE_FEATURES

SPREAD = "doubt_spread"
"""Flag: the words of a response sentence are in the documents, but spread over several of them.
Words do not tell whether they belong together, as in answers to two-hop questions."""
COPIED = "doubt_copied"
"""Flag: a short response, pieced together from word triples of the documents. Nearly all its words
are found, whether the answer is right or not. A verbatim copy of one sentence is not meant: of
about 100 such responses, 2 were not adherent."""

_SPREAD = 0.25
"""Least share of a sentence's weight that the documents hold and the best single one does not."""
_SHORT = 40
"""Most words of a short response."""
_COPIED = 0.4
"""Least mean share of a response sentence's word triples found."""
_VERBATIM = 0.8
"""Mean share of its word pairs in the best document sentence, from which it is a copy of that."""

_FOUND, _IN_DOCUMENT, _TRIGRAMS, _PAIRS_IN_1 = map(
    RESPONSE_FEATURES.index, ("found", "found_in_document", "trigrams", "bigrams_in_1")
)


def doubts(features: CallFeatures) -> tuple[str, ...]:
    """List the flags of a call that words cannot decide; empty for a call without a response."""
    rows = [row.features for row in features.response]
    if not rows:
        return ()
    found = []
    if spread(features) > _SPREAD:
        found.append(SPREAD)
    copied, verbatim = (
        fsum([row[at] for row in rows]) / len(rows) for at in (_TRIGRAMS, _PAIRS_IN_1)
    )
    length = sum([len(sentence.stems) for sentence in features.overlap.response])
    if length <= _SHORT and copied > _COPIED and verbatim < _VERBATIM:
        found.append(COPIED)
    return tuple(found)


def spread(features: CallFeatures) -> float:
    """Return the most weight of a response sentence that other documents than the best hold.

    In [0, 1], as a share of the sentence's; 0 for a call without a response.
    """
    rows = [row.features for row in features.response]
    return max([row[_FOUND] - row[_IN_DOCUMENT] for row in rows], default=0.0)
