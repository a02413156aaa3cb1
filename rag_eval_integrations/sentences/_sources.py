"""Lists of sources in answers, which claim nothing: "Sources:" and what it lists, numbered links.

Only what looks like a source counts. "Sources of vitamin C: oranges", fruit that "Sources:" lists,
and whole sentences in a list are claims.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from rag_eval_integrations.records import RagCall, Sentence
from rag_eval_integrations.sentences._markers import FILES, LABELS, MARKER

_LISTS = (
    r"references|reference list|citations|bibliography|works cited|footnotes"
    r"|literatur(?:verzeichnis)?|referencias|références|riferimenti|referências|参考文献|参考资料"
)
_LABEL = re.compile(
    rf"(?:#{{1,6}}\s|[-*•]\s)?\s{{0,3}}[*_]{{0,3}}"
    rf"(?P<name>(?P<list>{_LISTS})|{LABELS}|(?:learn|read) more|further reading)"
    r"(?: used| cited)?[*_]{0,3}\s?(?:[:：][*_]{0,3}\s*|$)",
    re.IGNORECASE,
)
_ITEM = re.compile(
    r"(?:[-*•–·]\s+)?(?:(?P<mark>\[\^?\w{1,4}\]:?|【[^【】]{1,20}】|[⁰¹²³⁴-⁹]{1,3})"
    r"|\(?(?P<number>\d{1,3})[.)]|[-*•–·])(?:\s+|$)"
)
_LINK = re.compile(
    rf"https?://\S|\bwww\.\w|\.(?:{FILES})\b"
    r"|(?<![\w-])[\w-]{1,63}\.(?:com|org|net|edu|gov|io|info|eu|de|uk)\b",
    re.IGNORECASE,
)
_LINK_ALONE = re.compile(r"(?:\[[^\[\]]{1,200}\]\(|<)?\S+")
_WORK = re.compile(r"\b(?:doi|DOI|ISBN|et al)\b|^[^\W\d_][\w'’-]{1,30}, (?:[^\W\d_]\. ?){1,4}")
_PLACE = re.compile(
    r"\bpp?\.\s?\d|\bpages?\s\d|\b(?:doc|document|source|chunk|passage|section)s?[ #_-]{0,2}\d"
    r"|\((?:19|20)\d\d[a-z]?\)|^[\[【][\d\W]{1,200}$|^(?:none|n/a)\W*$",
    re.IGNORECASE,
)
_ASKS = re.compile(rf"\b(?:sources|{_LISTS}|quellen|fuentes|fonti)\b", re.IGNORECASE)
_ASKS_WHERE = re.compile(r"\b(?:where|links?|urls?|documents?|files?|pages?)\b", re.IGNORECASE)
_MAY_LIST = re.compile(
    rf"\b(?:{_LISTS}|more|reading)\b|(?:{LABELS})\b|^\W{{0,4}}\d|^\W{{0,4}}[⁰¹²³⁴-⁹]",
    re.IGNORECASE | re.MULTILINE,
)
_CITES = re.compile(rf"\S[ \t]?{MARKER}")
_WORD = re.compile(r"[^\W_]")
_LINE = re.compile(r"\S[^\r\n]*")
_LONGEST = 500  # characters of a source that are read


def not_claims(call: RagCall, response: Sequence[Sentence]) -> tuple[str, ...]:
    """Return the keys of the sentences that are a list of sources behind a claim.

    Also where nothing else is in the answer. None where the question asks for sources.
    """
    text = call.response or ""
    if not _MAY_LIST.search(text) or _ASKS.search(call.question):
        return ()
    lines = [match.span() for match in _LINE.finditer(text)]
    answer = _Answer(text, lines, response, _CITES.search(text) is not None)
    lists = iter([*sorted(answer.lists()), (len(text), len(text))])
    start, end = next(lists)
    listed = []
    for key, _, begins, ends in response:
        if begins is None or ends is None:
            continue
        while end <= begins:
            start, end = next(lists)
        if start <= begins and ends <= end:
            listed.append(key)
    if len(listed) == len(response):
        return () if _ASKS_WHERE.search(call.question) else tuple(listed)
    in_front = takewhile(lambda pair: pair[0].key == pair[1], zip(response, listed, strict=False))
    return tuple(listed[len(list(in_front)) :])


class _Answer(NamedTuple):
    """An answer whose lists of sources are looked for; each is given by its start and end."""

    text: str
    lines: list[tuple[int, int]]
    response: Sequence[Sentence]
    cites: bool
    """Whether a sentence has a marker."""

    def lists(self) -> Iterator[tuple[int, int]]:
        """Yield all lists; one may lie inside another."""
        yield from self._labelled()
        first = len(self.lines)  # of the links at the end
        while first and self._is_link(*self.lines[first - 1]):
            first -= 1
        if 0 < first < len(self.lines):
            start, above = self.lines[first][0], self.lines[first - 1][1]
            if self.text[above - 1] not in ":：":
                yield start, len(self.text)

    def _labelled(self) -> Iterator[tuple[int, int]]:
        """Yield the lists behind a label, which begins a line or a sentence, and rules above it."""
        text, lines = self.text, self.lines
        ends = {sentence.start: sentence.end for sentence in self.response}
        number, after = 0, 0  # the line, and the one behind the last list
        begins = {*ends, *(start for start, _ in lines)}
        for start in sorted(begin for begin in begins if begin is not None):
            while number + 1 < len(lines) and lines[number + 1][0] <= start:
                number += 1
            end = lines[number][1]
            label = _LABEL.match(text, start, end) if number >= after else None
            if label is None:
                continue
            stop = min(ends.get(start) or end, end)
            sources = text[label.end() : min(stop, start + _LONGEST)].strip()
            if sources and not _are_sources(sources, label):
                continue
            if sources and stop < end:  # a sentence follows on the line
                yield start, stop
                continue
            after = number + 1
            sure = label["list"] is not None and not sources
            while after < len(lines) and self._is_item(*lines[after], sure=sure):
                after += 1
            if sources or after > number + 1 or after == len(lines):
                yield self._with_rules_above(start, number), lines[after - 1][1]

    def _with_rules_above(self, start: int, number: int) -> int:
        """Return the start of the rules above a label on a line, or else `start`."""
        if start == self.lines[number][0]:
            while number and not _WORD.search(self.text, *self.lines[number - 1]):
                number -= 1
                start = self.lines[number][0]
        return start

    def _is_item(self, start: int, end: int, *, sure: bool) -> bool:
        """Tell whether a line is a source of the list above it."""
        words = self.text[start : min(end, start + _LONGEST)].strip()
        item = _ITEM.match(words)
        named = _names_source(words[item.end() :] if item else words)
        if named is None and item is not None:
            sure = sure or item["mark"] is not None or (item["number"] is not None and self.cites)
        return sure if named is None else named

    def _is_link(self, start: int, end: int) -> bool:
        """Tell whether a line at the end of an answer is a numbered link or a footnote."""
        words = self.text[start : min(end, start + _LONGEST)].strip()
        item = _ITEM.match(words)
        if item is None or not (item["mark"] or item["number"]):
            return False
        source = words[item.end() :]
        named = _names_source(source)
        if item["mark"]:
            return self.cites if named is None else named
        return bool(named) and _LINK_ALONE.fullmatch(source) is not None


def _are_sources(words: str, label: re.Match[str]) -> bool:
    """Tell whether words behind a label on its line are sources."""
    named = _names_source(words)
    return (label["list"] is not None or label["name"] == "SOURCES") if named is None else named


def _names_source(words: str) -> bool | None:
    """Tell whether words name a source; False for a sentence, None where they may be a title."""
    if _WORK.search(words) or not _WORD.search(words):
        return True
    parts = words.rstrip("*_\"'”’)").split()
    others = [part for part in parts if not _LINK.search(part)]
    small = sum(part[:1].islower() for part in others)
    if len(others) > 2 and others[-1][-1:] in ".!?" and 2 * small >= len(others):
        return False
    return True if len(others) < len(parts) or _PLACE.search(words) else None
