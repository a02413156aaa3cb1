"""Punkt's decision whether an English sentence ends between two words.

This is the classification step of Kiss and Strunk (2006), "Unsupervised Multilingual Sentence
Boundary Detection", Computational Linguistics 32, with parameters from NLTK's trainer. It decides
like NLTK's `PunktSentenceTokenizer.text_contains_sentbreak`; the tests compare both. NLTK itself is
used for other languages only, because importing it takes seconds and leaves so many objects behind
that every full garbage collection stops the app for 0.1 s.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import NamedTuple

# Orthographic contexts, as bits: the positions of a word in training, and its first letter there.
_INSIDE_CAPITAL = 1 << 2
_CAPITAL = 1 << 1 | _INSIDE_CAPITAL | 1 << 3  # at the beginning, inside, at an unknown position
_BEGINS_SMALL = 1 << 4
_SMALL = _BEGINS_SMALL | 1 << 5 | 1 << 6

_BREAKS_WORDS = r"[()\[\]{}\";:@'*?!]|-{2,}|\.{2,}"
# Dashes and dots in a row, a word with its full stop, or one character of any other kind.
_TOKEN = re.compile(
    r"-{2,}|\.{2,}"
    rf"|(?![-,()\[{{}}\]\"`:;&#*@])\S+?(?=\s|$|{_BREAKS_WORDS}|,(?=$|\s|{_BREAKS_WORDS}))"
    r"|\S"
)
_NUMBER = re.compile(r"-?[.,]?\d[\d,.-]*")
_INITIAL = re.compile(r"[^\W\d]\.")
_ANY_NUMBER = "##number##"  # stands for every number in training files
_PUNCTUATION = frozenset(";:,.!?")


class Parameters(NamedTuple):
    """The parameters that training found, without collocations; all words are in lower case."""

    abbreviations: Collection[str]
    """Abbreviations without their last full stop: `dr`, `e.g`."""
    starters: Collection[str]
    """Words that often begin a sentence."""
    contexts: Mapping[str, int]
    """Orthographic contexts by word, as bits; a word that is missing was never seen."""

    def has_break(self, text: str) -> bool:
        """Tell whether a sentence ends inside a text of one line."""
        word, _, following = text.partition(". ")
        if word.isalnum() and following.isalnum():
            return self._ends(word + ".", following)  # most texts are two plain words
        return any(self._ends(word, following) for word, following in pairwise(_words(text)))

    def _ends(self, word: str, following: str) -> bool:
        if word in ("?", "!"):
            return True
        if word[-1] != ".":
            return False
        ellipsis, abbreviation = word.endswith(".."), self._is_abbreviation(word)
        initial = len(word) == 2 and _is_initial(word)
        numeric = not initial and _without_stop(_kind(word)) == _ANY_NUMBER
        if not (ellipsis or abbreviation or initial or numeric):
            return True
        next_kind = self._next_kind(following)
        context = self.contexts.get(next_kind, 0)
        begins = _begins_sentence(following, context)
        if (abbreviation or ellipsis) and not initial:
            if begins:
                return True
            if following[0].isupper() and next_kind in self.starters:
                return True
        if initial or numeric:
            if begins is False:
                return False
            if begins is None and initial and following[0].isupper() and not context & _SMALL:
                return False  # a name that is always written with a capital: "J. Bach"
        return not (abbreviation or ellipsis)

    def _is_abbreviation(self, word: str) -> bool:
        if word == "." or word.endswith(".."):
            return False
        bare = word[:-1].lower()
        return bare in self.abbreviations or (
            "-" in bare and bare.rpartition("-")[2] in self.abbreviations
        )

    def _next_kind(self, word: str) -> str:
        kind = _kind(word)
        ends_by_itself = word[-1] == "." and not word.endswith("..")
        if ends_by_itself and not self._is_abbreviation(word):
            return _without_stop(kind)
        return kind


def _words(text: str) -> list[str]:
    return _TOKEN.findall(text)


def _is_initial(word: str) -> bool:
    # `re` treats "½" and "²" as letters, as NLTK did until it changed to `regex` (3.10).
    return _INITIAL.fullmatch(word) is not None and unicodedata.category(word[0]) != "No"


def _kind(word: str) -> str:
    small = word.lower()
    return _ANY_NUMBER if _NUMBER.fullmatch(small) else small


def _without_stop(kind: str) -> str:
    return kind[:-1] if len(kind) > 1 and kind[-1] == "." else kind


def _begins_sentence(word: str, context: int) -> bool | None:
    """Tell from a word's spelling whether it begins a sentence; None when it may or may not."""
    if word in _PUNCTUATION:
        return False
    first = word[0]
    if first.isupper() and context & _SMALL and not context & _INSIDE_CAPITAL:
        return True
    if first.islower() and (context & _CAPITAL or not context & _BEGINS_SMALL):
        return False
    return None
