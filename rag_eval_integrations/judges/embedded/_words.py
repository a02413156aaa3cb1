"""The words of a sentence: split, case-folded and stemmed once, then compared as sets.

The stemmer removes only the endings by which forms of an English word differ ("tablets",
"charging"). It is our own, so that the judge needs no language library.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from itertools import filterfalse
from typing import NamedTuple, TypeVar

T = TypeVar("T")

# A number keeps its inner marks ("1,250.5"), a word its apostrophe ("don't").
# The first branch matches plain ASCII words like the last one, in two thirds of the time.
WORD = re.compile(
    r"[a-zA-Z]++(?>['’][a-zA-Z]+|)\b(?!['’][^\W\d_])|\d[\d.,]*\d|[^\W_]+(?:['’][^\W\d_]+)?"
)
# Two thirds of all ASCII sentences hold only words and punctuation: other characters than letters
# become spaces, and `split` takes a third of the time. For the others, a pattern with fewer letters
# takes half of the time.
NOT_PLAIN = re.compile(r"[0-9_']")
_SPACED = "".join([chr(code) if chr(code).isalpha() else " " for code in range(128)])
ASCII_WORD = re.compile(
    r"[a-zA-Z]++(?>'[a-zA-Z]+|)(?![0-9_])|\d[\d.,]*\d|[a-zA-Z0-9]+(?:'[a-zA-Z]+)?", re.ASCII
)
# Soft hyphens and joiners are invisible characters inside words.
_UNSEEN = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))
# "3rd", "03" and "3.00" are 3.
_ZEROS = re.compile(r"^0+(?=\d)|(?<=\d)(?:st|nd|rd|th)$|(?<=\d)\.0+$")
_LONGEST_WORD = 64
"""Limit on words in long texts, so that the stemmer's cache stays small when a document is a single
"word"."""


def listed(text: str) -> frozenset[str]:
    """Make a set of the words of a list."""
    return frozenset(text.split())


def sections(text: str) -> dict[str, str]:
    """Read a table of lines "name: content"; a line that begins with a space continues the last."""
    lines = text.replace("\n ", " ").strip().splitlines()
    contents = {}
    for line in lines:
        name, content = line.split(":")
        contents[name] = content
    return contents


FUNCTION_WORDS = listed("""
a about above after again all also am an and any are as at be because been before being below
between both but by can could did do does doing down during each either else etc ever every few
for from further get gets got had has have having he her here hers herself him himself his how
however i if in into is it its itself just let may me might more most much must my myself no nor
not now of off on once one only or other our ours ourselves out over own per quite rather s same
shall she should since so some such than that the their theirs them themselves then there these
they this those though through thus to too toward under until up upon us very via was we were
what when where whether which while who whom whose why will with within without would yes yet
you your yours yourself
""")
"""Words without a meaning of their own; they have no weight."""

NEGATIONS = listed("""
no not never none nothing neither nor without cannot can't don't doesn't didn't isn't aren't
wasn't weren't won't wouldn't shouldn't couldn't hasn't haven't hadn't unable lack
mustn't needn't nobody nowhere
""")
_TO_TWELVE = "zero one two three four five six seven eight nine ten eleven twelve"
_NUMBER_WORDS = {word: str(value) for value, word in enumerate(_TO_TWELVE.split()) if value != 1}
"""Number words that are compared as numbers; "one" is mostly a pronoun."""

_NO_NEGATION = {"not": "note", "note": "note"}
"""What is left of "notes", "noted", "noting": without its "e", a note would be a negation."""
_CACHED_WORDS = 32_768


class Words(NamedTuple):
    """The words of one sentence, as the features use them."""

    stems: tuple[str, ...]
    """All words, case-folded and stemmed, in order."""
    content: tuple[str, ...]
    """The distinct stems without function words, in order of first use.

    A tuple, since the last bits of a sum over a set of strings would depend on the hash seed.
    """
    bag: frozenset[str]
    """`content` as a set."""
    names: frozenset[str]
    """Stems of capitalised words that do not open the sentence."""
    numbers: frozenset[str]
    """Stems that begin with a digit, without thousands separators; includes number words."""
    negated: bool
    """True when the sentence holds a negation."""


def stem(word: str) -> str:
    """Fold the case of a word and remove a plural ending, "-ed", "-ing", "-ly" or a final "e".

    Words of up to three letters are only case-folded. Numbers lose thousands separators, redundant
    zeros and the ending of "3rd". Number words up to "twelve" become numbers.
    """
    return _STEMS[word]


def _stemmed(word: str) -> str:
    """Stem a word: plural, -ing, -ed, -ly and a last e go; short words stay.

    Numbers and negations have forms of their own.
    """
    word = word.lower().replace("’", "'")
    if word[0].isdigit():
        return _ZEROS.sub("", word.replace(",", ""))
    if word in _NUMBER_WORDS or word in NEGATIONS:
        return _NUMBER_WORDS.get(word, word)
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
    return _NO_NEGATION.get(word) or (word[:-1] if len(word) > 3 and word[-1] == "e" else word)


class WordCache(dict[str, T]):
    """Cache of a function of single words; cleared when it is full.

    It is not an `lru_cache`, which would spend half of the time of a look-up on the order of use.
    """

    def __init__(self, function: Callable[[str], T]) -> None:
        self._function = function

    def __missing__(self, word: str) -> T:
        if len(self) >= _CACHED_WORDS:
            self.clear()
        self[word] = value = self._function(word)
        return value


_STEMS = WordCache(_stemmed)


_WEIGHTLESS = frozenset(map(stem, FUNCTION_WORDS)) | FUNCTION_WORDS


def raw_words(text: str) -> list[str]:
    """List the words as written: the matches of `WORD` in the text's composed form (NFKC)."""
    if not text.isascii():
        return WORD.findall(unicodedata.normalize("NFKC", text).translate(_UNSEEN))
    if NOT_PLAIN.search(text):
        return ASCII_WORD.findall(text)
    return text.translate(_SPACED).split()


def words(text: str) -> Words:
    """Split a sentence into words; all fields are empty for a text without letters or digits."""
    raw = raw_words(text)
    if len(text) > 2_000:
        raw = [word[:_LONGEST_WORD] for word in raw]
    stems = tuple(map(_STEMS.__getitem__, raw))
    content = tuple(filterfalse(_WEIGHTLESS.__contains__, dict.fromkeys(stems)))
    bag = frozenset(content)
    # Most words begin with a lower-case letter, for which a comparison replaces two calls. The
    # first word is left out, since it opens the sentence.
    names = [word for word in raw[1:] if not "a" <= word < "{" and word[0].isupper()]
    numbers = [word for word in content if not "a" <= word < "{" and word[0].isdigit()]
    return Words(
        stems,
        content,
        bag,
        bag.intersection(map(_STEMS.__getitem__, names)),
        frozenset(numbers),
        not NEGATIONS.isdisjoint(stems),
    )
