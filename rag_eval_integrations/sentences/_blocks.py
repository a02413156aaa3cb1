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
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple


class BlockKind(StrEnum):
    """The kind of a block; only `PARAGRAPH` and `LIST_ITEM` are split into sentences."""

    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    HEADING = "heading"
    TABLE_ROW = "table_row"
    CODE = "code"
    RULE = "rule"


class Block(NamedTuple):
    """The range `text[start:end]`, without white space at its ends.

    `body` is the start of its words, after the marker of a list item or a quotation; it equals
    `start` when there is no marker.
    """

    start: int
    body: int
    end: int
    kind: BlockKind


class _Line(NamedTuple):
    start: int  # position of the first character that is not white space
    end: int  # position after the last such character; equals `start` in a blank line
    indent: int  # number of white-space characters before `start`
    words: str  # the line without its Markdown quotation marks ">"
    quoted: int  # length of these marks

    @property
    def width(self) -> int:
        return self.indent + self.end - self.start


class _Member(NamedTuple):
    """A line of an open paragraph or list item, and the length of its list marker."""

    line: _Line
    marker: int


# "\n\f" is a page break inside running text, not an empty line. The pattern begins with a set and
# not with a choice, so that `re` skips other characters ten times as fast.
_BREAK = re.compile("[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029](?:(?<=\r)\n)?(?:(?<=\n)\f)?")
_QUOTE = re.compile(r"(?:>\s?)++(?!=)")
_MARKUP = frozenset("`~#*_-=+")  # first characters of fences, headings and rules
_FENCE = re.compile(r"`{3,}+(?!.*`)|~{3,}+")
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
_FIRST_NUMBER = re.compile(r"\(?[1aAiI][.)]\s")
_LABEL = re.compile(r"[A-Z][\w'’/-]*(?: [\w'’/()-]+){0,3}:(?:\s|$)")
_TERMINATED = re.compile(r"[.!?…:;。！？؟۔।॥።։][\"'’”»)\]}*_`]{0,4}$")
# Words after which neither a sentence nor a heading ends. "in" and "on" are left out, because
# "Sign in" and "Log on" are headings.
_LINKING = re.compile(
    r"\b(?:a|an|and|are|as|from|has|have|into|is|its|nor|of|or|than|that|the|their|was|were|which"
    r"|whose|with|(?:Dr|Fig|Gen|Mrs?|Ms|Prof|Rev|Sen|al|cf|e\.g|i\.e|vs)\.)$"
)
_FIRST_WORD = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]|\S{1,40}")

_LONGEST_HEADING = 200  # a longer line is a flattened document and not a heading
_LONGEST_COLUMNS = 400
_NARROWEST_WRAP, _WIDEST_WRAP = 40, 160


def blocks(text: str) -> list[Block]:
    """Return the blocks of *text* in order; none for a text of white space."""
    found: list[Block] = []
    marks: int | None = None  # start of ">" lines without words: they belong to the next block
    for block in _blocks(list(_lines(text))):
        if block.kind is BlockKind.RULE and text[block.start] == ">":
            marks = block.start if marks is None else marks
        else:
            found.append(block if marks is None else block._replace(start=marks))
            marks = None
    if marks is not None:
        end = len(text.rstrip())
        last = found.pop() if found else Block(marks, marks, end, BlockKind.RULE)
        found.append(last._replace(end=end))
    return found


def _lines(text: str) -> Iterator[_Line]:
    at, blank = 0, False
    ends = [(match.start(), match.end()) for match in _BREAK.finditer(text)]
    for end, following in [*ends, (len(text), len(text))]:
        raw = text[at:end]
        words = raw.strip()
        if blank and not words:  # several blank lines part no more than one does
            at = following
            continue
        blank = not words
        indent = len(raw) - len(raw.lstrip())
        quote = _QUOTE.match(words)
        quoted = quote.end() if quote else 0
        start = at + indent if words else at
        yield _Line(start, start + len(words), indent, words[quoted:], quoted)
        at = following


def _blocks(lines: Sequence[_Line]) -> Iterator[Block]:
    members: list[_Member] = []  # the lines of the paragraph or list item being read
    in_table = False
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.words and not line.quoted:
            yield from _paragraphs(members)
            members, in_table = [], False
            at += 1
            continue
        if members and bool(members[-1].line.quoted) != bool(line.quoted):
            yield from _paragraphs(members)
            members = []
        if members and _is_underline(line, members[-1]):
            title = members.pop().line
            yield from _paragraphs(members)
            yield Block(title.start, title.start, line.end, BlockKind.HEADING)
            members, at = [], at + 1
            continue
        kind = _kind(lines, at, in_table=in_table)
        in_table = kind is BlockKind.TABLE_ROW
        if kind is not None:
            yield from _paragraphs(members)
            members = []
            last, following = _code_end(lines, at) if kind is BlockKind.CODE else (at, at + 1)
            yield Block(line.start, line.start, lines[last].end, kind)
            at = following
            continue
        marker = _marker_length(line, members)
        if marker:
            yield from _paragraphs(members)
            members = []
        members.append(_Member(line, marker))
        at += 1
    yield from _paragraphs(members)


def _kind(lines: Sequence[_Line], at: int, *, in_table: bool) -> BlockKind | None:
    """Return the kind of line *at* by itself; None for a line of a paragraph or list item."""
    words = lines[at].words
    if not words:
        return BlockKind.RULE
    if words[0] in _MARKUP:
        if _FENCE.match(words):
            return BlockKind.CODE
        if len(words) <= _LONGEST_HEADING and _HEADING.match(words):
            return BlockKind.HEADING
        if _RULE.match(words):
            return BlockKind.RULE
    if _is_row(lines, at, in_table=in_table):
        return BlockKind.TABLE_ROW
    return None


def _code_end(lines: Sequence[_Line], opened: int) -> tuple[int, int]:
    """Return the last line of the code that is fenced from line *opened*, and the line after it.

    As in CommonMark, a fence that is never closed extends to the end.
    """
    fence = _FENCE.match(lines[opened].words)
    marks = fence[0] if fence else ""
    last = opened
    for at in range(opened + 1, len(lines)):
        words = lines[at].words
        if lines[at].end > lines[at].start:
            last = at
        if words.startswith(marks) and not words.strip(marks[0]):
            return at, at + 1
    return last, len(lines)


def _is_underline(line: _Line, above: _Member) -> bool:
    if above.marker or not _UNDERLINE.match(line.words):
        return False
    # "---" below a full sentence is a rule here; CommonMark would make the sentence a heading.
    ended = line.words[0] == "-" and _TERMINATED.search(above.line.words[-6:])
    return len(above.line.words) <= _LONGEST_HEADING and not ended


def _is_row(lines: Sequence[_Line], at: int, *, in_table: bool) -> bool:
    """Tell whether line *at* is a table row: with borders, below a row, or like a neighbour."""
    words = lines[at].words
    if "|" in words and _PIPE.search(words):
        if in_table or _DELIMITER.match(words):
            return True
        if len(words) > 2 and words[0] == "|" and words[-1] == "|":
            return True
    columns = _columns(words)
    if columns is None:
        return False
    neighbours = [lines[near].words for near in (at - 1, at + 1) if 0 <= near < len(lines)]
    return any(
        _columns(words) == columns or (columns[0] == "|" and _DELIMITER.match(words))
        for words in neighbours
    )


def _columns(words: str) -> tuple[str, int] | None:
    """Return the separator of a line's columns and its number; None for a line without columns."""
    if "|" in words and _PIPE.search(words):
        return "|", words.strip("|").count("|")
    if len(words) > _LONGEST_COLUMNS:
        return None
    if "\t" in words:
        return "\t", 0  # empty cells are often dropped at the end of a row
    gaps = len(_GAP.findall(words)) if "   " in words else 0
    return (" ", gaps) if gaps else None


def _marker_length(line: _Line, above: Sequence[_Member]) -> int:
    """Return the length of the list marker that *line* begins with; 0 when there is none.

    A number that opens a line in the middle of a sentence ("… on page␤12. The") is not a marker.
    """
    if bullet := _BULLET.match(line.words):
        return bullet.end()
    number = _NUMBER.match(line.words)
    if number is None:
        return 0
    if not above or above[0].marker or _FIRST_NUMBER.match(line.words):
        return number.end()
    return number.end() if _TERMINATED.search(above[-1].line.words[-6:]) else 0


def _paragraphs(members: Sequence[_Member]) -> Iterator[Block]:
    """Yield the blocks of consecutive lines, joining lines that continue a sentence."""
    if not members:
        return
    wrap = _wrap_width(members)
    first, reads_on = members[0], False
    for above, below in pairwise(members):
        hanging = first.marker > 0 and below.line.indent > first.line.indent
        if hanging or _reads_on(above, below, wrap=wrap, wrapped_so_far=reads_on):
            reads_on = True
            continue
        yield _block(first, above)
        first, reads_on = below, False
    yield _block(first, members[-1])


def _block(first: _Member, last: _Member) -> Block:
    start = first.line.start
    body = min(start + first.line.quoted + first.marker, last.line.end)
    kind = BlockKind.LIST_ITEM if first.marker else BlockKind.PARAGRAPH
    return Block(start, body, last.line.end, kind)


def _wrap_width(members: Sequence[_Member]) -> int | None:
    """Return the width at which these lines were wrapped; None when they were not wrapped.

    A line was wrapped if the next word would not have fitted. Since this also holds for lists of
    short lines, at least a third of the lines must begin with a lower-case letter (or with a
    letter without case).
    """
    if len(members) < 3:
        return None
    width = max(member.line.width for member in members)
    if not _NARROWEST_WRAP <= width <= _WIDEST_WRAP:
        return None
    breaks = list(pairwise(members))
    full = sum(_is_full(above, below, width) for above, below in breaks)
    small = sum(not below.line.words[:1].isupper() for _, below in breaks)
    wrapped = full >= 2 and full >= 0.6 * len(breaks) and small >= len(breaks) / 3
    return width if wrapped else None


def _is_full(above: _Member, below: _Member, width: int) -> bool:
    word = _FIRST_WORD.match(below.line.words)
    return above.line.width + 1 + (word.end() if word else 0) > width


def _reads_on(above: _Member, below: _Member, *, wrap: int | None, wrapped_so_far: bool) -> bool:
    """Tell whether the break between two lines is a space inside running text."""
    words, following = above.line.words, below.line.words
    if len(words) == above.marker:
        return True  # a marker on a line of its own
    if wrap is not None and _is_full(above, below, wrap):
        return True
    small = following[0].islower()
    if small and words.endswith("-") and words[-2:-1].isalpha():
        return True
    if _LABEL.match(following) or words.endswith(":"):
        return False
    if small:
        if below.line.quoted:
            return True
        # Short lines in lower case are a list without markers.
        prose = words[0].isupper() and words.count(" ") >= 3
        return wrapped_so_far or prose or len(words) >= _NARROWEST_WRAP
    return _LINKING.search(words[-12:]) is not None
