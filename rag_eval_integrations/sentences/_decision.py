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
from collections.abc import Collection, Iterator, Mapping
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
        """Tell whether a word ends its sentence, by the word that follows."""
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
        """Tell whether a word with a full stop is a known abbreviation, also behind a hyphen."""
        if word == "." or word.endswith(".."):
            return False
        bare = word[:-1].lower()
        return bare in self.abbreviations or (
            "-" in bare and bare.rpartition("-")[2] in self.abbreviations
        )

    def _next_kind(self, word: str) -> str:
        """Return the kind of the word that follows, as the model counts it."""
        kind = _kind(word)
        ends_by_itself = word[-1] == "." and not word.endswith("..")
        if ends_by_itself and not self._is_abbreviation(word):
            return _without_stop(kind)
        return kind


def _words(text: str) -> list[str]:
    """Return the tokens of a text as the Punkt model counts them."""
    return _TOKEN.findall(text)


def _is_initial(word: str) -> bool:
    """Tell whether a word is an initial such as `J.`."""
    # `re` treats "½" and "²" as letters, as NLTK did until it changed to `regex` (3.10).
    return _INITIAL.fullmatch(word) is not None and unicodedata.category(word[0]) != "No"


def _kind(word: str) -> str:
    """Return a word's kind: its lower case, or that of all numbers."""
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


# --- Candidates for sentence ends: the terminators of every script
#
# There are two kinds of terminators. "。" or "؟" ends a sentence by itself, whether white space
# follows or not (Chinese, Japanese, Hindi, Arabic, Amharic …). "." "?" "!" "…" also occur inside
# names, numbers and addresses, so they count only before white space, and the splitter decides
# about them. In Chinese and Japanese, which have no spaces, they also end a sentence between two
# characters.
#
# A run of terminators ("?!", "...") counts as one. Quotes, brackets and references that close
# directly after it belong to the sentence that ends: `He left.” She`, `(It rains.) We`,
# `so it is.[3] Then`.

End = tuple[int, int, int, int, bool]
"""A position at which a sentence may end: five values.

1. Start of the run of terminators.
2. Start of the closing marks after the run; the same as 3. when there are none.
3. End of the sentence.
4. Start of the next sentence.
5. True when the terminator always ends a sentence; otherwise the words around it decide.
"""


SPACED_MARKS = ".?!…‼⁇⁈⁉"
"""Terminators that count only before white space."""

CERTAIN_MARKS = (
    "。！？｡．"  # Chinese, Japanese
    "।॥"  # Devanagari and most scripts of India
    "؟۔܀܁܂߹"  # Arabic, Urdu, Syriac, N'Ko
    "։"  # Armenian
    "።፧፨"  # Ethiopic
    "။"  # Burmese
    "។៕"  # Khmer
    "༎།"  # Tibetan
    "᠃᠉᙮꓿꘎꘏"  # Mongolian, Canadian syllabics, Lisu, Vai
    "\u037e"  # the Greek question mark, which looks like ";"
)
"""Terminators that end a sentence everywhere except between two digits."""

# The groups are closing marks, marks that may close or open, and white space.
# "“" and "«" close in German and Danish, and open in English, French and Chinese: see `ends`.
# The pattern begins with a plain set, which `re` finds ten times as fast as a repeated one.
_TERMINATOR = re.compile(f"[{SPACED_MARKS}{CERTAIN_MARKS}]")
_RUN = re.compile(
    rf"{_TERMINATOR.pattern}{_TERMINATOR.pattern}*+"
    r"((?:[\"'’”»›)\]}*_`」』）】》〉〕］｝\u200b-\u200f\u2060\u2069\ufeff]"
    r"|\[\d[\d,;–-]{0,20}\])*)"
    r"([“«]?+)"
    r"(\s*+)"
)
_CERTAIN = frozenset(CERTAIN_MARKS)
# A quote or bracket between spaces also closes: "the end. ” Then", "C'est fini. » Puis".
_CLOSING = frozenset('")]}”»')
_LATE_CLOSING = re.compile(r"[\")\]}”»]{1,3}(?=\s|\Z)\s*")
_GOES_ON = re.compile(r"[,;:、，；：]|と(?![てきもこ])|って")
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


def positions(text: str) -> Iterator[int]:
    """Yield the position of each terminator."""
    return map(re.Match.start, _TERMINATOR.finditer(text))


def closes(text: str, mark: int, stop: int) -> bool:
    """Tell whether the run of marks at *mark* ends the text at *stop*, and no sentence before."""
    run = _RUN.match(text, mark, stop)
    return run is not None and run.end() == stop and not run[2]


def ends(text: str, start: int, stop: int) -> Iterator[End]:
    """Yield the positions inside `text[start:stop]` at which a sentence may end, in order.

    The end of this range is not among them. The time is proportional to the length of the range.
    """
    for run in _RUN.finditer(text, start, stop):
        (mark, following), closing, after = run.span(), run.start(1), run.end(2)
        certain = text[mark] in _CERTAIN or (
            closing > mark + 1 and not _CERTAIN.isdisjoint(text[mark:closing])
        )
        if certain and after == following:
            after = following = run.start(2)  # in "好。“" without a space, the quote opens
        if following >= stop or (after == following and not certain and not _between(text, run)):
            continue
        certain = certain or after == following
        if certain and _is_inside(text, mark, closing, following):
            continue
        if after < following and text[following] in _CLOSING:
            late = _LATE_CLOSING.match(text, following, stop)
            if late:
                after, following = following + len(late[0].rstrip()), late.end()
                if following >= stop:
                    continue
        yield mark, closing, after, following, certain


def _between(text: str, run: re.Match[str]) -> bool:
    """Tell whether "." "?" or "!" stands between two characters of a script without spaces."""
    if run.start() == 0 or text[run.start()] == "…":
        return False
    before, behind = text[run.start() - 1], text[run.end() : run.end() + 1]
    return bool(_IDEOGRAPH.match(before) and _IDEOGRAPH.match(behind))


def _is_inside(text: str, mark: int, closing: int, following: int) -> bool:
    """Tell whether the mark stands inside a number ("3．14") or ends only a quotation."""
    if closing == following and mark > 0:
        return text[mark - 1].isdigit() and text[following].isdigit()
    # 「行く。」と言った: the quotation is part of the sentence around it.
    return text[following - 1] in '」』”’"）)' and _GOES_ON.match(text, following) is not None
