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

from rag_eval_integrations.sentences._layout import (
    BLANK,
    BULLETED,
    DELIMITS,
    FENCE,
    HAS_COLUMNS,
    HAS_PIPES,
    HYPHENATED,
    INTRODUCES,
    IS_FENCE,
    IS_HEADING,
    IS_ROW,
    IS_RULE,
    LABELLED,
    LINKS,
    LONGEST_HEADING,
    NARROWEST_WRAP,
    NUMBERED,
    PROSE,
    QUOTED,
    SMALL,
    UNDERLINES,
    Lines,
    columns,
)


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
    """Return the kind of line *at* by itself; None for a line of a paragraph or list item."""
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
    return _joined(lines, first, stop, marker, body, kind)


def _joined(
    lines: Lines, first: int, stop: int, marker: int, body: int, kind: BlockKind
) -> Iterator[Block]:
    """Yield the blocks of several lines, joining those that continue a sentence."""
    facts, start, end = lines.facts, lines.start, lines.end
    # A marker on a line of its own belongs to the words below it, as does a line that hangs.
    alone = marker == len(lines.words[first])
    indent = lines.indent(first) if marker else None
    full = _full_lines(lines, first, stop)
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


def _full_lines(lines: Lines, first: int, stop: int) -> Collection[int]:
    """Return the lines that were wrapped; none when the text was not.

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
    word = _FIRST_WORD.match(following)
    return taken + 1 + (word.end() if word else 0) > width
