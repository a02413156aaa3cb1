"""A sign of text that wants to direct a judge: what it is searched for with, and how."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal, NamedTuple

Reading = Literal["plain", "compact", "other"]
"""`plain`: ASCII in lower case, with punctuation; `compact`: its letters only, digits that stand
for letters among them; `other`: the text itself, in lower case and without marks."""
_NEAR = 20  # words
_LONGEST_THEN = 40


class Words:
    """The words of a plain text, in their order, with `|` where a sentence ends.

    Also the places of those that begin a search.
    """

    def __init__(self, plain: str, firsts: frozenset[str]) -> None:
        marked = plain.replace("|", " ")
        for end in _SENTENCE_ENDS:  # faster than a pattern
            marked = marked.replace(end, " | ")
        self.all = marked.encode().translate(_SPACED).decode().split()
        self.distinct = frozenset(self.all)
        self.places: dict[str, list[int]] = {word: [] for word in self.distinct & firsts}
        for at, word in enumerate(self.all):
            if word in self.places:
                self.places[word].append(at)

    def near(self, groups: tuple[frozenset[str], ...]) -> bool:
        """Tell whether a word of the first group has one of every other group near it."""
        if any(group.isdisjoint(self.distinct) for group in groups[1:]):
            return False
        for word in groups[0] & self.places.keys():
            if len(groups) == 1:
                return True
            for at in self.places[word]:
                around = self.all[max(0, at - _NEAR) : at + _NEAR]
                if not any(group.isdisjoint(around) for group in groups[1:]):
                    return True
        return False


_SENTENCE_ENDS = ("\n", ". ", "! ", "? ")
_SPACED = bytes(
    code if chr(code).isalnum() or chr(code) in "|\x1e" else 32 for code in range(128)
) + bytes(128)


class Sign(NamedTuple):
    """A pattern, and what a text must have to be searched for it.

    The patterns alone would take a fifth of all work on a call; looking for words first reduces
    that to a fiftieth.
    """

    reading: Reading
    pattern: str
    words: tuple[frozenset[str], ...] = ()
    """Groups of words, one of each of which has to be near one of the first group."""
    parts: tuple[tuple[str, ...], ...] = ()
    """Groups of parts of the text, one of each of which has to be there."""
    is_order: bool = False
    """Whether it begins with a verb that has to be an imperative."""
    then: str = ""
    """A pattern that has to follow within `reach` characters; empty for none."""
    reach: int = 0

    def may_be_in(self, text: str, words: Words) -> bool:
        """Tell whether a text has what a search needs."""
        if self.words and not words.near(self.words):
            return False
        return all(any(part in text for part in group) for group in self.parts)

    def is_in(self, text: str) -> bool:
        """Tell whether a text has the pattern."""
        if self.then:
            return self._is_followed(text)
        if not self.is_order:
            return compiled(self.pattern).search(text) is not None
        return any(
            _is_imperative(text, match.start()) for match in compiled(self.pattern).finditer(text)
        )

    def _is_followed(self, text: str) -> bool:
        """Search behind every match, but no part of the text for every match again."""
        searched = 0
        for match in compiled(self.pattern).finditer(text):
            if self.is_order and not _is_imperative(text, match.start()):
                continue
            start, stop = match.end(), match.end() + self.reach
            if compiled(self.then).search(text, max(start, searched - _LONGEST_THEN), stop):
                return True
            searched = stop
        return False


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern, with space and words bounded: unbounded, it would take quadratic time."""
    for unbounded, bounded in _BOUNDED:
        pattern = pattern.replace(unbounded, bounded)
    return re.compile(pattern, re.MULTILINE | re.VERBOSE)


_BOUNDED = (
    (r"\s+", r"\s{1,9}+"),
    (r"\s*", r"\s{0,9}+"),
    (r"\w+", r"\w{1,30}"),
    (r"\w*", r"\w{0,30}"),
    (r"\S+", r"\S{1,30}"),
    (r"\S*", r"\S{0,30}"),
)


_BEFORE_AN_ORDER = re.compile(
    r"(?:\A|[^\w\s]|\n|\b(?:please|kindly|and|then|now|just|simply|always|also|so|instead|therefore"
    r"|you|you\s+to|but|or|thus|again|only|ai|llm|judge|grader|evaluator|model|assistant|system"
    r"|admin"
    r"|administrator|note|must|should|und|oder|bitte|e|y|et|ou|i|og|och|en|ve|por\s+favor|prego"
    r"|(?:you|model|ai|llm|assistant|grader|evaluator)\s+(?:must|should|shall|will|have\s+to"
    r"|need\s+to)"
    r"(?:\s+(?:now|always|just|simply|only))?))\s*\Z"
)
_NO_ORDER = re.compile(
    r"(?:\b(?<!\byou\s)to|\bnot|\bnever|n['’]t|\bthey|\bwho|\bwe|\bi|\bhe|\bshe|\bit|\bwhich|\bthat"
    r"|\bmay|\bcan|\bcould|\bwould|\bmight|\boften|\bpeople|\busers|\bstudents|\bjudges"
    r"|\b(?:court|jury|judge|tribunal|auditor|officials?|players?|readers?|parties|one)\s+(?:must"
    r"|should|shall|will))\s+\Z"
)


def _is_imperative(text: str, start: int) -> bool:
    """Tell whether the verb at a position gives an order, by the words before it."""
    before = text[max(0, start - 30) : start]
    return _BEFORE_AN_ORDER.search(before) is not None and _NO_ORDER.search(before) is None


def by_words(pattern: str, *groups: str, order: bool = False) -> Sign:
    return Sign("plain", pattern, tuple(frozenset(one.split()) for one in groups), is_order=order)


def by_both(pattern: str, words: str, *groups: str) -> Sign:
    return by_parts("plain", pattern, *groups)._replace(words=(frozenset(words.split()),))


def by_parts(reading: Reading, pattern: str, *groups: str) -> Sign:
    return Sign(
        reading,
        pattern,
        parts=tuple(tuple(part.replace("~", " ") for part in one.split()) for one in groups),
    )


def any_of(words: str) -> str:
    """Make an alternation of words that are separated by spaces; `_` stands for a space in one."""
    return "(?:" + "|".join(word.replace("_", r"\s+") for word in words.split()) + ")"
