"""What the comparisons of sentences share: reading each once, shares of words, and names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import filterfalse, pairwise

from rag_eval_integrations.judges.embedded._details import (
    DATE,
    NUMBER_STEMS,
    Details,
    Number,
    same_words,
)
from rag_eval_integrations.judges.embedded._negations import CONDITIONAL, Token
from rag_eval_integrations.judges.embedded._opposites import OPPOSITE
from rag_eval_integrations.judges.embedded._overlap import Overlap
from rag_eval_integrations.judges.embedded._words import (
    FUNCTION_WORDS,
    NEGATIONS,
    stem,
)

COMPARED = 4
"""Number of best matches that are compared."""
MOST = 12
"""Limit on the details of one sentence that are compared, so that time stays linear."""

# --- Reading sentences once


_PASSED_OVER = "a an the your this its their his her our these those that do does did"
_LIGHTEST = frozenset(map(stem, _PASSED_OVER.split())) | frozenset(_PASSED_OVER.split())
"""Words that paraphrases add and drop; they do not separate neighbours."""
_APART = {
    "cannot": ("can", "not"), "can't": ("can", "not"), "won't": ("will", "not"), "never": ("not",),
    **{word: (word[:-3], "not") for word in NEGATIONS
       if word.endswith("n't") and word not in ("can't", "won't")},
}  # fmt: skip
_WITH_OPPOSITE = frozenset(OPPOSITE)
_TWOFOLD = frozenset(_APART)
_NO_NAMES = frozenset(map(stem, DATE)) | FUNCTION_WORDS


def plain(stems: Sequence[str]) -> tuple[str, ...]:
    """List the stems without the lightest words, contractions as two words."""
    if _TWOFOLD.isdisjoint(stems):
        return tuple(filterfalse(_LIGHTEST.__contains__, stems))
    found: list[str] = []
    for word in stems:
        if word in _APART:
            found += [part for part in _APART[word] if part not in _LIGHTEST]
        elif word not in _LIGHTEST:
            found.append(word)
    return tuple(found)


class Reader:
    """Reads sentences when they are needed, each once.

    Args:
        o: the index of the call.
        texts: the document sentences, in the order of the index.
        details: reads one sentence; the judge passes one that remembers.
        question: text of the question.
    """

    def __init__(
        self,
        o: Overlap,
        texts: Sequence[str],
        details: Callable[[str], Details] = Details,
        question: str = "",
    ) -> None:
        self.texts = texts
        self.question = question
        self._details = details
        self._said: dict[str, Details] = {}
        self._o = o
        self._read: dict[int, Details] = {}
        self._stems: dict[int, frozenset[str]] = {}
        self._plain: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._names: dict[frozenset[str], frozenset[str]] = {}
        self._own: dict[int, frozenset[str]] = {}
        self._opposed: dict[int, frozenset[str]] = {}
        self.asked = frozenset(o.question.stems)
        """All stems of the question."""

    @cached_property
    def known_pairs(self) -> frozenset[tuple[str, str]]:
        """Neighbours in the response that are so in a document, and those in the question."""
        return self._o.pairs.union(pairwise(self._o.question.stems))

    @cached_property
    def beginnings(self) -> frozenset[str]:
        """The first five letters of each word: "Portuguese" begins as "Portugal" does."""
        return frozenset([word[:5] for word in self._o.idf])

    def stems(self, at: int) -> frozenset[str]:
        """Return all stems of a document sentence: `Overlap.shared` has no function words."""
        if at not in self._stems:
            self._stems[at] = frozenset(self._o.documents[at].stems)
        return self._stems[at]

    def plain(self, stems: tuple[str, ...]) -> tuple[str, ...]:
        """Return the stems of a sentence as `plain` makes them."""
        if stems not in self._plain:
            self._plain[stems] = plain(stems)
        return self._plain[stems]

    def names(self, words: frozenset[str]) -> frozenset[str]:
        """Return words with a capital, without those that are no names: dates, function words."""
        if words not in self._names:
            self._names[words] = words - _NO_NAMES
        return self._names[words]

    def own(self, number: int) -> frozenset[str]:
        """Return all stems of a response sentence."""
        if number not in self._own:
            self._own[number] = frozenset(self._o.response[number].stems)
        return self._own[number]

    def opposed(self, number: int) -> frozenset[str]:
        """Return the words of a response sentence that have an opposite."""
        if number not in self._opposed:
            self._opposed[number] = _WITH_OPPOSITE & self.own(number)
        return self._opposed[number]

    def __getitem__(self, at: int) -> Details:
        """Return the details of a document sentence."""
        if at not in self._read:
            self._read[at] = self._details(self.texts[at])
        return self._read[at]

    def numbers(self, at: int) -> tuple[Number, ...]:
        """Return the numbers of a document sentence, which is read only if it may have some."""
        if (
            at not in self._read
            and not self._o.documents[at].numbers
            and NUMBER_STEMS.isdisjoint(self.stems(at))
            and same_words(self.texts[at])
        ):
            return ()
        return self[at].numbers

    def said(self, text: str) -> Details:
        """Return the details of a response sentence."""
        if text not in self._said:
            self._said[text] = Details(text)
        return self._said[text]


def alike(o: Overlap, number: int, at: int, apart: Iterable[str]) -> float:
    """Return the share of the other words of a response sentence that a document sentence holds.

    The question's words say little, so they count only where there are no others.
    """
    other = o.response[number].bag.difference(apart, NEGATIONS)
    held = o.shared[at]
    # Sums of weights are exact, so that the order of a set does not matter.
    words = other - o.question.bag or other
    if words:
        return sum(map(o.idf.__getitem__, words & held)) / _mass(o, words)
    return 1.0 if held & o.question.bag else 0.0


def copied(o: Overlap, number: int, at: int, apart: Iterable[str]) -> float:
    """Return the share of the other words that a document sentence or the question holds."""
    other = o.response[number].bag.difference(apart, NEGATIONS)
    held = o.shared[at]
    if not other:
        return 0.0
    return _mass(o, other & (held | o.question.bag)) / _mass(o, other)


def _mass(o: Overlap, words: Iterable[str]) -> float:
    idf, unseen = o.idf, o.unseen
    return sum([idf.get(word, unseen) for word in words])


def conditions(tokens: Sequence[Token]) -> frozenset[str]:
    return CONDITIONAL.intersection([token.low for token in tokens])
