"""The block pass before splitting: groups the lines of a text into paragraphs, tables, code, etc.

Retrieved text is rarely plain prose. Without this pass a heading is joined to the paragraph below
it, a table becomes one sentence, and code is split at every full stop. Markdown is recognised. In
plain text, a line break inside a hard-wrapped sentence is a space, and any other line break ends a
block.

Every character that is not white space lies in exactly one block. The time is proportional to the
length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from itertools import accumulate
from operator import add, sub

# --- Layout of one line
#
# Hostile texts are often one short line, repeated. A line of one character may cost less than a
# microsecond, so that lines are columns of a table, which C code fills, and lines of the same words
# are read once.

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
    """Flags of each line of a text, computed once per distinct line."""

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
        facts |= self._flags_of(words) if words else IS_RULE if facts else BLANK
        self[line] = facts
        return facts

    def _flags_of(self, words: str) -> int:
        """Return the flags of a line as bits."""
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
    """Join page breaks to the lines that they break."""
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
    """Return the facts of a line that may be a heading, fence or rule."""
    facts = UNDERLINES if _UNDERLINE.match(words) else 0
    if FENCE.match(words):
        return facts | IS_FENCE
    if len(words) <= LONGEST_HEADING and _HEADING.match(words):
        return facts | IS_HEADING
    return facts | IS_RULE if _RULE.match(words) else facts


def _facts_of_row(words: str) -> int:
    """Return the facts of a line that may be a row of a table."""
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


class BlockKind(StrEnum):
    """The kind of a block; only `PARAGRAPH` and `LIST_ITEM` are split into sentences."""

    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    HEADING = "heading"
    TABLE_ROW = "table_row"
    CODE = "code"
    RULE = "rule"


Block = tuple[int, int, int, BlockKind]
"""Start, body, end and kind of the range `text[start:end]`, without white space at its ends.

The body is the start of its words, after the marker of a list item or a quotation; it equals the
start when there is no marker.
"""


_FIRST_NUMBER = re.compile(r"\(?[1aAiI][.)]\s")
_TERMINATED = re.compile(r"[.!?…:;。！？؟۔।॥።։][\"'’”»)\]}*_`]{0,4}$")
_FIRST_WORD = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]|\S{1,40}")
_LONGEST_WORD = 40
_WIDEST_WRAP = 160  # characters of a line


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of *text* in order; none for a text of white space."""
    lines = Lines(text)
    return _without_marks(text, _blocks(lines)) if lines.has_quotes else _blocks(lines)


def _without_marks(text: str, blocks: Iterable[Block]) -> Iterator[Block]:
    """Join lines of ">" without words to the next block, or else to the last one."""
    marks: int | None = None  # start of these lines
    last: Block | None = None
    for block in blocks:
        start, body, end, kind = block
        if kind is BlockKind.RULE and text[start] == ">":
            marks = start if marks is None else marks
            continue
        if last is not None:
            yield last
        last = block if marks is None else (marks, body, end, kind)
        marks = None
    if marks is not None:
        end = len(text.rstrip())
        last = (*last[:2], end, last[3]) if last else (marks, marks, end, BlockKind.RULE)
    if last is not None:
        yield last


def _blocks(lines: Lines) -> Iterator[Block]:
    """Yield the blocks of a text: paragraphs, headings, tables, code."""
    start, end = lines.start, lines.end
    opened, marker = 0, 0  # first line of the paragraph being read, and its list marker
    quoting = False  # whether the line above is a quotation
    row = -2  # the last table row
    for number, facts in enumerate(lines.facts):
        if (facts < QUOTED and not quoting) or number < opened:
            continue  # a plain line, or a line of code
        if facts & BLANK:
            yield from _paragraphs(lines, opened, number, marker)
            opened, marker, quoting = number + 1, 0, False
            continue
        if quoting is not bool(facts & QUOTED):
            yield from _paragraphs(lines, opened, number, marker)
            opened, marker, quoting = number, 0, not quoting
        if facts & UNDERLINES and _is_underline(lines, number, opened, marker):
            yield from _paragraphs(lines, opened, number - 1, marker)
            yield start[number - 1], start[number - 1], end[number], BlockKind.HEADING
            opened, marker = number + 1, 0
            continue
        kind = _kind(lines, number, in_table=row == number - 1) if facts >= IS_FENCE else None
        if kind is not None:
            if opened < number:
                yield from _paragraphs(lines, opened, number, marker)
            last, opened = (
                _code_end(lines, number) if kind is BlockKind.CODE else (number, number + 1)
            )
            marker, row = 0, number if kind is BlockKind.TABLE_ROW else row
            yield start[number], start[number], end[last], kind
        elif facts & BULLETED or (facts & NUMBERED and _is_number(lines, number, opened, marker)):
            yield from _paragraphs(lines, opened, number, marker)
            opened, marker = number, lines.markers[lines.words[number]]
    yield from _paragraphs(lines, opened, len(lines.facts), marker)


def _kind(lines: Lines, number: int, *, in_table: bool) -> BlockKind | None:
    """Return the kind of line `number`; None for a line of a paragraph or list item.

    A row of a table depends on its neighbours, and on whether the line before was one.
    """
    facts = lines.facts[number]
    if facts & IS_FENCE:
        return BlockKind.CODE
    if facts & IS_HEADING:
        return BlockKind.HEADING
    if facts & IS_RULE:
        return BlockKind.RULE
    if facts & IS_ROW or (in_table and facts & HAS_PIPES):
        return BlockKind.TABLE_ROW
    if facts & HAS_COLUMNS and _is_like_a_neighbour(lines, number):
        return BlockKind.TABLE_ROW
    return None


def _is_like_a_neighbour(lines: Lines, number: int) -> bool:
    """Tell whether a line has the columns of the line above or below."""
    own = columns(lines.words[number])
    for near in (number - 1, number + 1):
        if not 0 <= near < len(lines.facts):
            continue
        if lines.facts[near] & HAS_COLUMNS and columns(lines.words[near]) == own:
            return True
        if lines.facts[near] & DELIMITS and own is not None and own[0] == "|":
            return True
    return False


def _code_end(lines: Lines, opened: int) -> tuple[int, int]:
    """Return the last line of the code that is fenced from line *opened*, and the line after it.

    As in CommonMark, a fence that is never closed extends to the end.
    """
    fence = FENCE.match(lines.words[opened])
    marks = fence[0] if fence else ""
    last = opened
    for number in range(opened + 1, len(lines.words)):
        words = lines.words[number]
        if not lines.facts[number] & BLANK:
            last = number
        if words.startswith(marks) and not words.strip(marks[0]):
            return number, number + 1
    return last, len(lines.words)


def _is_underline(lines: Lines, number: int, opened: int, marker: int) -> bool:
    """Tell whether line *at* makes a heading of the one above, the last of a paragraph."""
    if opened == number or (opened == number - 1 and marker):
        return False
    words, above = lines.words[number], lines.words[number - 1]
    # "---" below a full sentence is a rule here; CommonMark would make the sentence a heading.
    ended = words[0] == "-" and _TERMINATED.search(above[-6:])
    return len(above) <= LONGEST_HEADING and not ended


def _is_number(lines: Lines, number: int, opened: int, marker: int) -> bool:
    """Tell whether the number that line *at* begins with is a list marker.

    A number that opens a line in the middle of a sentence ("… on page␤12. The") is not a marker.
    """
    return (
        opened == number
        or marker > 0
        or _FIRST_NUMBER.match(lines.words[number]) is not None
        or _TERMINATED.search(lines.words[number - 1][-6:]) is not None
    )


def _paragraphs(lines: Lines, first: int, stop: int, marker: int) -> Iterable[Block]:
    """Return the blocks of the lines from *first* to *stop*, none if there is no line.

    *marker* is the length of the list marker of line *first*.
    """
    if first >= stop:
        return ()
    start, end = lines.start[first], lines.end[first]
    kind = BlockKind.LIST_ITEM if marker else BlockKind.PARAGRAPH
    body = min(start + lines.quoted[first] + marker, end)
    if stop - first == 1:
        return ((start, body, end, kind),)
    return _merge_continued(lines, first, stop, marker, body, kind)


def _merge_continued(
    lines: Lines, first: int, stop: int, marker: int, body: int, kind: BlockKind
) -> Iterator[Block]:
    """Yield the blocks of several lines, merging those that continue a sentence."""
    facts, start, end = lines.facts, lines.start, lines.end
    # A marker on a line of its own belongs to the words below it, as does a line that hangs.
    alone = marker == len(lines.words[first])
    indent = lines.indent(first) if marker else None
    full = _wrapped_lines(lines, first, stop)
    begun, reads_on = first, False
    for number in range(first + 1, stop):
        above, below = facts[number - 1], facts[number]
        if alone or (indent is not None and lines.indent(number) > indent) or number - 1 in full:
            reads_on, alone = True, False
        elif below & SMALL:
            # Short lines in lower case are a list without markers.
            reads_on = above & HYPHENATED > 0 or (
                not above & INTRODUCES and (reads_on or below & QUOTED > 0 or above & PROSE > 0)
            )
        else:
            reads_on = above & LINKS > 0 and not below & LABELLED
        if not reads_on:
            yield start[begun], body, end[number - 1], kind
            begun, body, kind, indent = (
                number,
                start[number] + lines.quoted[number],
                BlockKind.PARAGRAPH,
                None,
            )
    yield start[begun], body, end[stop - 1], kind


def _wrapped_lines(lines: Lines, first: int, stop: int) -> Collection[int]:
    """Return the lines that were wrapped; empty for a text that was not.

    A line was wrapped if the next word would not have fitted. Since this also holds for lists of
    short lines, at least a third of the lines must begin with a lower-case letter (or with a
    letter without case).
    """
    raw = lines.raw[first:stop]
    if len(raw) < 3 or max(map(len, raw)) < NARROWEST_WRAP:
        return ()
    widths = [len(line.rstrip()) for line in raw]
    width, breaks = max(widths), len(raw) - 1
    if not NARROWEST_WRAP <= width <= _WIDEST_WRAP:
        return ()
    full = {
        number
        for number, taken in enumerate(widths[:-1], start=first)
        if taken + _LONGEST_WORD >= width and _is_full(lines.words[number + 1], taken, width)
    }
    small = sum(not words[:1].isupper() for words in lines.words[first + 1 : stop])
    wrapped = len(full) >= 2 and len(full) >= 0.6 * breaks and small >= breaks / 3
    return full if wrapped else ()


def _is_full(following: str, taken: int, width: int) -> bool:
    """Tell whether the next line's first word would not have fitted in."""
    word = _FIRST_WORD.match(following)
    return taken + 1 + (word.end() if word else 0) > width
