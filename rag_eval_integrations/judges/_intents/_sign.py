"""A sign of text that wants to direct a judge: what it is searched for with, and how."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from functools import cache
from itertools import chain
from typing import Literal, NamedTuple

Reading = Literal["plain", "compact", "other"]
"""`plain`: ASCII in lower case, with punctuation; `compact`: its letters only, digits that stand
for letters among them; `other`: the text itself, in lower case and without marks."""
_NEAR = 20  # words
_LONGEST_THEN = 40
_BEFORE, _BEHIND = 250, 350  # characters that a pattern may reach from one of its words


TEXT = "\0"  # the one word of a sentence that stands between texts
_LONG_WORD = 19


class Words:
    """The words of a plain text, sentence by sentence, and those that begin a search."""

    def __init__(
        self, plain: str, firsts: frozenset[str], searched: frozenset[str] = frozenset()
    ) -> None:
        for mark in ".!?":  # faster than a pattern
            if mark in plain:
                plain = plain.replace(f"{mark} ", "\n")
        lines = plain.encode().translate(_SPACED).decode().split("\n")
        self.sentences = [line.split() for line in lines]
        self.distinct = frozenset(chain.from_iterable(self.sentences))
        self.begun = self.distinct & firsts
        self._searched = searched
        self._all: list[str] = []
        self._at: list[int] = []
        self._places: dict[str, list[int]] = {}
        self._around: dict[int, frozenset[str]] = {}

    def _find_places(self) -> None:
        every = self.distinct & self._searched
        # The end of a sentence separates words as another word would.
        self._all = words = [word for line in self.sentences for word in (*line, "\n")]
        self._at = [at for at, word in enumerate(words) if word in every]
        self._places = {word: [] for word in self.begun}
        for place, at in enumerate(self._at):
            if words[at] in self._places:
                self._places[words[at]].append(place)

    def has_letters(self) -> bool:
        """Tell whether many words are a single letter."""
        return len(self.distinct & _LETTERS) > 4

    def may_be_joined(self) -> bool:
        """Tell whether letters or words may be split or joined so that no word is seen."""
        return self.has_letters() or max(map(len, self.distinct), default=0) > _LONG_WORD

    def near(self, groups: tuple[frozenset[str], ...]) -> list[tuple[str, int]]:
        """Find the words of the first group that have one of every other group near them.

        Returns each with how many of the same word stand before it.
        """
        for group in groups[1:]:
            if group.isdisjoint(self.distinct):
                return []
        if not self._places:
            self._find_places()
        return [
            (word, nth)
            for word in groups[0] & self.begun
            for nth, place in enumerate(self._places[word])
            if not any(group.isdisjoint(self._words_near(place)) for group in groups[1:])
        ]

    def _words_near(self, place: int) -> frozenset[str]:
        if place not in self._around:
            at = self._at[place]
            start = bisect_left(self._at, at - _NEAR)
            stop = bisect_left(self._at, at + _NEAR)
            self._around[place] = frozenset([self._all[near] for near in self._at[start:stop]])
        return self._around[place]


_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")
_SPACED = bytes(
    code if chr(code).isalnum() or chr(code) in f"\n{TEXT}" else 32 for code in range(128)
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

    def spans(self, text: str, words: Words) -> list[tuple[int, int]]:
        """Return the parts of a text that a search may find it in."""
        for group in self.parts:
            if not any([part in text for part in group]):
                return []
        if not self.words:
            return [(0, len(text))]
        near = words.near(self.words)
        return _around(text, near) if near else []

    def is_in(self, text: str, spans: Iterable[tuple[int, int]] | None = None) -> bool:
        """Tell whether a text has the pattern, anywhere or in one of some parts."""
        return any(
            self._is_followed(text, start, stop)
            if self.then
            else any(
                not self.is_order or _is_imperative(text, match.start())
                for match in compiled(self.pattern).finditer(text, start, stop)
            )
            for start, stop in spans or ((0, len(text)),)
        )

    def _is_followed(self, text: str, start: int, stop: int) -> bool:
        """Search behind every match, but no part of the text for every match again."""
        searched = 0
        for match in compiled(self.pattern).finditer(text, start, stop):
            if self.is_order and not _is_imperative(text, match.start()):
                continue
            begin, end = match.end(), match.end() + self.reach
            if compiled(self.then).search(text, max(begin, searched - _LONGEST_THEN), end):
                return True
            searched = end
        return False


def _around(text: str, near: Iterable[tuple[str, int]]) -> list[tuple[int, int]]:
    """Return the parts of a text around some of its words, joined where they overlap."""
    wanted: dict[str, set[int]] = {}
    for word, nth in near:
        wanted.setdefault(word, set()).add(nth)
    places = []
    for word, of in wanted.items():
        nth, last, at = 0, max(of), text.find(word)
        while at >= 0 and nth <= last:
            if (
                not text[at - 1 : at].isalnum()
                and not text[at + len(word) : at + len(word) + 1].isalnum()
            ):
                if nth in of:
                    places.append(at)
                nth += 1
            at = text.find(word, at + len(word))
    spans: list[tuple[int, int]] = []
    for at in sorted(places):
        start = max(0, at - _BEFORE)
        if spans and start <= spans[-1][1]:
            start = spans.pop()[0]
        spans.append((start, at + _BEHIND))
    return spans


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
