"""The lines of a text, and all about them that their own words decide.

Hostile texts are often one short line, repeated. A line of one character may cost less than a
microsecond, so that lines are columns of a table, which C code fills, and lines of the same words
are read once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate
from operator import add, sub

_QUOTE = re.compile(r"(?>(?:>\s?)+)(?!=)")
_MARKUP = frozenset("`~#*_-=+")  # first characters of fences, headings and rules
FENCE = re.compile(r"`{3,}+(?!.*`)|~{3,}+")
_HEADING = re.compile(r"#{1,6}\s|(\*\*|__)(?=\S)[^*_.!?]+[.!?]?\1:?$")
_UNDERLINE = re.compile(r"={2,}$|-{3,}$")
_RULE = re.compile(r"([-*_=~#])\s*+(?:\1\s*+){2,}$|\+(?:[-=:]++\+)+$")
_DELIMITER = re.compile(r"\|?(?:\s*+:?-++:?\s*+\|)+(?:\s*+:?-++:?)?\s*+$")
_PIPE = re.compile(r"(?:^|\s)\||\|(?:\s|$)")
_GAP = re.compile(r"(?<=[^\s.!?:;]) {3,}(?=\S)")
_BULLET = re.compile(r"(?:[-*+](?=\s|$)|[•‣⁃◦∙▪▫■□●○◆◇►▶➢➤✓✔✗✘☐☑☒])\s*+(?:\[[ xX]\]\s)?\s*+")
_NUMBER = re.compile(
    r"(?:\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{2,5})[.)]|\d{1,2}(?:\.\d{1,2}){1,4}\.?|\[\d{1,3}\]|[–—·])"
    r"(?:\s++|$)"
)
_LABEL = re.compile(r"[A-Z][\w'’/-]*(?: [\w'’/()-]+){0,3}:(?:\s|$)")
# Words after which neither a sentence nor a heading ends. "in" and "on" are left out, because
# "Sign in" and "Log on" are headings.
_LINKING = re.compile(
    r"\b(?:a|an|and|are|as|from|has|have|into|is|its|nor|of|or|than|that|the|their|was|were|which"
    r"|whose|with|(?:Dr|Fig|Gen|Mrs?|Ms|Prof|Rev|Sen|al|cf|e\.g|i\.e|vs)\.)$"
)
_LAST_LINKING = frozenset("adefhmnorst.")  # last characters of these words
_AFTER_LETTER = frozenset(".)ivxIVX")  # second characters of numbers that begin with a letter

LONGEST_HEADING = 200  # a longer line is a flattened document and not a heading
_LONGEST_COLUMNS = 400
NARROWEST_WRAP = 40


# Facts about the words of a line, as bits. A line with none from `QUOTED` on is plain: it begins a
# paragraph or continues one; one from `IS_FENCE` on may be a block of its own.
SMALL = 1 << 0  # begins with a lower-case letter
LABELLED = 1 << 1  # begins with "Label: "
INTRODUCES = 1 << 2  # ends with a colon
HYPHENATED = 1 << 3  # ends with a letter and a hyphen
PROSE = 1 << 4  # is long, or begins with a capital and has four words
LINKS = 1 << 5  # ends with a word after which no sentence ends
QUOTED = 1 << 6
BLANK = 1 << 7
UNDERLINES = 1 << 8
BULLETED = 1 << 9
NUMBERED = 1 << 10  # an item of a list, or a number that the line above ends before
IS_FENCE = 1 << 11
IS_HEADING = 1 << 12
IS_RULE = 1 << 13
IS_ROW = 1 << 14  # a table row by itself
HAS_PIPES = 1 << 15  # a table row below another one
HAS_COLUMNS = 1 << 16  # a table row beside a line with the same columns
DELIMITS = 1 << 17  # "|---|---|"


class _Facts(dict[str, int]):
    """The facts about the lines of a text; lines of the same words are read once."""

    def __init__(self) -> None:
        self.quoted: dict[str, int] = {}
        """Length of the Markdown quotation marks ">" of lines that have any."""
        self.markers: dict[str, int] = {}
        """Length of the list marker of words that may be an item."""

    def __missing__(self, line: str) -> int:
        words, facts = line, 0
        if line[:1] == ">" and (quote := _QUOTE.match(line)):
            self.quoted[line] = quote.end()
            words, facts = line[quote.end() :], QUOTED
        facts |= self._of(words) if words else IS_RULE if facts else BLANK
        self[line] = facts
        return facts

    def _of(self, words: str) -> int:
        first, last = words[0], words[-1]
        facts = SMALL if first.islower() else 0
        if last == ":":
            facts |= INTRODUCES
        elif last == "-":
            facts |= HYPHENATED if words[-2:-1].isalpha() else 0
        elif last in _LAST_LINKING and _LINKING.search(words[-12:]):
            facts |= LINKS
        if ":" in words and _LABEL.match(words):
            facts |= LABELLED
        if len(words) >= NARROWEST_WRAP or (first.isupper() and words.count(" ") >= 3):
            facts |= PROSE
        if first in _MARKUP:
            facts |= _facts_of_markup(words)
        # Most letters begin no number, and the words after them need not be read.
        if not first.isalpha() or words[1:2] in _AFTER_LETTER:
            if bullet := _BULLET.match(words):
                self.markers[words], facts = bullet.end(), facts | BULLETED
            elif number := _NUMBER.match(words):
                self.markers[words], facts = number.end(), facts | NUMBERED
        if "|" in words or "\t" in words or "   " in words:
            facts |= _facts_of_row(words)
        return facts


class Lines:
    """The lines of a text, as columns."""

    def __init__(self, text: str) -> None:
        raw = text.splitlines(keepends=True)
        if "\n\f" in text:
            raw = list(_with_page_breaks(raw))
        known = _Facts()
        words = list(map(str.strip, raw))
        self.raw = raw
        self.facts = list(map(known.__getitem__, words))
        """What the words decide, as bits."""
        self.start = list(map(sub, accumulate(map(len, raw)), map(len, map(str.lstrip, raw))))
        """Position of the first character that is not white space."""
        self.end = list(map(add, self.start, map(len, words)))
        """Position after the last such character."""
        self.markers = known.markers
        """The length of the list marker, by words."""
        self.has_quotes = bool(known.quoted)
        self.quoted = [0] * len(raw)
        """Length of the Markdown quotation marks ">"."""
        self.words = words
        """The line without quotation marks, and without white space at its ends."""
        if known.quoted:
            self.quoted = [known.quoted.get(line, 0) for line in words]
            self.words = [line[marks:] for line, marks in zip(words, self.quoted, strict=True)]

    def indent(self, number: int) -> int:
        """Return the number of white-space characters that line *at* begins with."""
        return len(self.raw[number]) - len(self.raw[number].lstrip())


def _with_page_breaks(lines: Iterable[str]) -> Iterator[str]:
    # "\n\f" is a page break inside running text, not an empty line.
    last = ""
    for line in lines:
        if line == "\f" and last.endswith("\n"):
            last += line
        else:
            yield last
            last = line
    yield last


def _facts_of_markup(words: str) -> int:
    facts = UNDERLINES if _UNDERLINE.match(words) else 0
    if FENCE.match(words):
        return facts | IS_FENCE
    if len(words) <= LONGEST_HEADING and _HEADING.match(words):
        return facts | IS_HEADING
    return facts | IS_RULE if _RULE.match(words) else facts


def _facts_of_row(words: str) -> int:
    facts = 0
    if "|" in words:
        if _DELIMITER.match(words):
            facts |= DELIMITS
        if _PIPE.search(words):
            bordered = len(words) > 2 and words[0] == "|" and words[-1] == "|"
            facts |= HAS_PIPES | (IS_ROW if bordered or facts else 0)
    return facts | (HAS_COLUMNS if columns(words) else 0)


def columns(words: str) -> tuple[str, int] | None:
    """Return the separator of a line's columns and its number; None for a line without columns."""
    if "|" in words and _PIPE.search(words):
        return "|", words.strip("|").count("|")
    if len(words) > _LONGEST_COLUMNS:
        return None
    if "\t" in words:
        return "\t", 0  # empty cells are often dropped at the end of a row
    gaps = len(_GAP.findall(words)) if "   " in words else 0
    return (" ", gaps) if gaps else None
