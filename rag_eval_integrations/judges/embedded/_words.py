"""Words of one sentence: cut, folded and stemmed once, then compared as sets.

The stemmer only takes off the endings that make one English word look like two ("tablets",
"charging"); it is our own, so that the judge loads no language library.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import filterfalse
from typing import NamedTuple

# A number keeps its inner marks ("1,250.5"), a word its apostrophe ("don't").
# The first branch is the last one again for plain ASCII words, at two thirds of the time.
WORD = re.compile(
    r"[a-zA-Z]++(?:['’][a-zA-Z]++)?+\b(?!['’][^\W\d_])|\d[\d.,]*\d|[^\W_]+(?:['’][^\W\d_]+)?"
)
# Of ASCII sentences two thirds hold words and marks between them, nothing else: what is no letter
# becomes a space, and `split` does the rest at a third of the time. Of the others the pattern needs
# to know fewer letters, which halves its time.
_NOT_PLAIN = re.compile(r"[0-9_']")
_SPACED = "".join([chr(code) if chr(code).isalpha() else " " for code in range(128)])
_ASCII_WORD = re.compile(
    r"[a-zA-Z]++(?:'[a-zA-Z]++)?+(?![0-9_])|\d[\d.,]*\d|[a-zA-Z0-9]+(?:'[a-zA-Z]+)?", re.ASCII
)
# Soft hyphens and joiners stand inside words and are not seen.
_UNSEEN = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))
# "3rd", "03" and "3.00" are 3.
_ZEROS = re.compile(r"^0+(?=\d)|(?<=\d)(?:st|nd|rd|th)$|(?<=\d)\.0+$")
_LONGEST_WORD = 64
"""Longer words are cut in long texts, so that the stemmer's cache stays small when a document is
one endless "word"."""

_TYING = """
a about above after again all also am an and any are as at be because been before being below
between both but by can could did do does doing down during each either else etc ever every few
for from further get gets got had has have having he her here hers herself him himself his how
however i if in into is it its itself just let may me might more most much must my myself no nor
not now of off on once one only or other our ours ourselves out over own per quite rather s same
shall she should since so some such than that the their theirs them themselves then there these
they this those though through thus to too toward under until up upon us very via was we were
what when where whether which while who whom whose why will with within without would yes yet
you your yours yourself
"""
FUNCTION_WORDS = frozenset(_TYING.split())
"""Words that tie a sentence together and say nothing of its subject; they carry no weight."""

_NEGATING = """
no not never none nothing neither nor without cannot can't don't doesn't didn't isn't aren't
wasn't weren't won't wouldn't shouldn't couldn't hasn't haven't hadn't unable lack
"""
_NEGATIONS = frozenset(_NEGATING.split())
_TO_TWELVE = """
zero one two three four five six seven eight nine ten eleven twelve
"""
_NUMBER_WORDS = {word: str(value) for value, word in enumerate(_TO_TWELVE.split()) if value != 1}
"""Number words that are compared as numbers; "one" is mostly a pronoun."""

_CACHED_WORDS = 32_768
_CACHED_SENTENCES = 4_096
_CACHED_LENGTH = 400  # characters; at most about 20 MB in all


class Words(NamedTuple):
    """One sentence as the features see it."""

    stems: tuple[str, ...]
    """Every word, folded and stemmed, in order."""
    content: tuple[str, ...]
    """The distinct stems that are no function words, in order of first use.

    A tuple: a sum over a set of strings would depend, in its last bits, on the process's hash seed.
    """
    bag: frozenset[str]
    """`content` as a set."""
    names: frozenset[str]
    """Stems of capitalised words that do not open the sentence."""
    numbers: frozenset[str]
    """Stems that begin with a digit: without thousands marks, number words included."""
    negated: bool
    """True when the sentence holds a negation."""


def stem(word: str) -> str:
    """Fold a word and take off a plural, "-ed", "-ing", "-ly" or final "e".

    Words of up to three letters are only folded; numbers lose their thousands marks, zeros that say
    nothing and the ending of "3rd"; number words up to "twelve" become numbers.
    """
    return _STEMS[word]


def _stemmed(word: str) -> str:
    word = word.lower().replace("’", "'")
    if word[0].isdigit():
        return _ZEROS.sub("", word.replace(",", ""))
    if word in _NUMBER_WORDS:
        return _NUMBER_WORDS[word]
    if word in _NEGATIONS:
        return word
    if len(word) > 3 and word.endswith("'s"):
        word = word[:-2]
    if len(word) <= 3:
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            # "stopped" → "stop", but "installed" → "install".
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if len(word) > 3 and word[-1] == "e" else word


class _Stems(dict[str, str]):
    """Stems of the words seen so far; begins anew when it is full.

    No `lru_cache`: keeping the order of use took half the time of looking up a word.
    """

    def __missing__(self, word: str) -> str:
        if len(self) >= _CACHED_WORDS:
            self.clear()
        self[word] = stemmed = _stemmed(word)
        return stemmed


_STEMS = _Stems()


_WEIGHTLESS = frozenset(map(stem, FUNCTION_WORDS)) | FUNCTION_WORDS


def words(text: str) -> Words:
    """Cut a sentence into words; all fields are empty for a text without letters or digits.

    The latest sentences are remembered: an app retrieves the same documents again and again.
    """
    return _cached(text) if len(text) <= _CACHED_LENGTH else _cut(text)


@lru_cache(maxsize=_CACHED_SENTENCES)
def _cached(text: str) -> Words:
    return _cut(text)


def written(text: str) -> list[str]:
    """Words as they are written: what `WORD` finds, whichever way their characters are composed."""
    if not text.isascii():
        return WORD.findall(unicodedata.normalize("NFKC", text).translate(_UNSEEN))
    if _NOT_PLAIN.search(text):
        return _ASCII_WORD.findall(text)
    return text.translate(_SPACED).split()


def _cut(text: str) -> Words:
    raw = written(text)
    if len(text) > 2_000:
        raw = [word[:_LONGEST_WORD] for word in raw]
    stems = tuple(map(_STEMS.__getitem__, raw))
    content = tuple(filterfalse(_WEIGHTLESS.__contains__, dict.fromkeys(stems)))
    bag = frozenset(content)
    # Most words begin with a small letter: the comparison spares them two calls. The first word
    # opens the sentence.
    if text.isascii():
        names = [word for word in raw[1:] if word < "a" and word[0].isupper()]
        numbers = [word for word in content if word < "a" and word[0].isdigit()]
    else:
        names = [word for word in raw[1:] if not "a" <= word < "{" and word[0].isupper()]
        numbers = [word for word in content if not "a" <= word < "{" and word[0].isdigit()]
    return Words(
        stems,
        content,
        bag,
        bag.intersection(map(_STEMS.__getitem__, names)),
        frozenset(numbers),
        not _NEGATIONS.isdisjoint(stems),
    )
