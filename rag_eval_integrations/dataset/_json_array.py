"""Reads JSON row by row, in flat memory: an array, or objects one behind the other.

A damaged row is one bad row, and others are read.

A row is parsed where it stands. One that cannot be is followed to its end by its strings and
brackets alone, which also finds the end of a row that is longer than allowed.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from rag_eval_integrations.dataset import _input
from rag_eval_integrations.dataset._line import NOT_AN_OBJECT, Patience
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.records import parse_object
from rag_eval_integrations.records._json import refuse_constant, shown

Found = tuple[int, dict[str, Any] | InputError]
"""Number of a row from 1, and the row or why it is none. A row of CSV has that of its line."""

_BLOCK = 1 << 18

_SPACE = re.compile(r"[ \t\r\n]*+")
_ESCAPED = re.compile("[\udc80-\udcff]")
_DECODER = json.JSONDecoder(parse_constant=refuse_constant)


class _Text:
    """The text of a file that is read block by block, of which only the unread part is kept."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        # Bytes that are not UTF-8 are the fault of the row in which they are, not of the block.
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self.held = ""
        self.at = 0
        self.ended = False
        self.damage: InputError | None = None
        self.foreign = False
        """Whether there was anything that is not UTF-8."""

    def more(self) -> bool:
        """Read a block behind the text that is held; False at the end of the file."""
        if self.ended:
            return False
        try:
            block = self._stream.read(_BLOCK)
        except _input.DAMAGE as error:
            self.damage = InputError(f"the gzip data is damaged ({error}); what follows is lost")
            block = b""
        text = self._decoder.decode(block, final=not block)
        self.ended = not block
        self.foreign = self.foreign or bool(_ESCAPED.search(text))
        self.held = self.held[self.at :] + text
        self.at = 0
        return True

    def skip_space(self) -> str:
        """Go to the next character that is not white space, and return it; "" at the end."""
        while True:
            match = _SPACE.match(self.held, self.at)
            assert match is not None
            self.at = match.end()
            if self.at < len(self.held):
                return self.held[self.at]
            if not self.more():
                return ""


def spans_lines(head: bytes) -> bool:
    """Tell whether a file begins with an object whose fields have lines of their own.

    Such a file holds one call, or one behind the other, as `jq` prints them.

    Args:
        head: what the file begins with, without white space before it.
    """
    first, _, rest = head.partition(b"\n")
    return (
        first[:1] == b"{"
        and first.rstrip()[-1:] in (b"{", b",", b"[")
        and (rest.lstrip()[:1] == b'"')
    )


def values(stream: BinaryIO, longest: int, patience: Patience) -> Iterator[Found]:
    """Read the rows of a JSON array, or objects one behind the other.

    A damaged row ends with its bracket, and others are read.
    """
    text = _Text(stream)
    text.more()
    if text.held[:2].encode("utf-8", "surrogateescape").startswith(_input.UTF_16):
        yield 1, InputError("not UTF-8, but probably UTF-16; convert the file")
        return
    text.held = text.held.removeprefix("\ufeff")
    opened = text.skip_space()
    if opened == "{":
        yield from _elements(text, longest, patience, in_array=False)
        return
    if opened != "[":
        if text.damage is not None:
            yield 1, text.damage
        elif text.at < len(text.held):
            why = f"not a JSON array: it begins with {shown(text.held[text.at :][:40])}"
            yield 1, InputError(why)
        return
    text.at += 1
    yield from _elements(text, longest, patience, in_array=True)


def _elements(text: _Text, longest: int, patience: Patience, *, in_array: bool) -> Iterator[Found]:
    """Read values up to the end of their array, or of the file."""
    number = 0
    comma = True  # or the array's begin: a row may follow
    while (found := text.skip_space()) and not (in_array and found == "]"):
        if found == "," and not comma and in_array:
            text.at += 1
            comma = True
            continue
        number += 1
        if found in ",:}]":
            if not patience.over:
                text.at += 1
                why = f"not JSON: a row should be here, not {shown(found)}"
                yield number, InputError(why)
                continue
            # Where a row may follow, no comma separates any.
            many = len(_MARKS.match(text.held, text.at)[0]) if comma else 1  # type: ignore[index]
            text.at += many
            yield from ((one, NOT_AN_OBJECT) for one in range(number, number + many))
            number += many - 1
            continue
        row = _element(text, longest, patience)
        if not comma:
            why = "not JSON: there is no comma before this row"
            row = NOT_AN_OBJECT if patience.over else InputError(why)
        yield number, row
        comma = not in_array
    if not found:
        if text.damage is not None:
            yield number + 1, text.damage
        elif in_array:
            yield number + 1, InputError("the array is not closed: the file was cut off")
        return
    text.at += 1
    if text.skip_space():
        yield number + 1, InputError("not JSON: there is more behind the end of the array")


_MARKS = re.compile(r"[,:}\]]++")
_STRING = r'"[^"\\]*+(?>(?:\\.[^"\\]*)*)"'


def _bracketed(depth: int) -> str:
    """Write the pattern of a list or object, with as many levels in it."""
    inside = rf'(?>(?:[^"\[\]{{}}]+|{_STRING}{f"|{_bracketed(depth - 1)}" if depth else ""})*)'
    return rf"(?:\[{inside}\]|\{{{inside}\}})"


_VALUE = re.compile(rf'[^"\[\]{{}},]*+(?:{_STRING}|{_bracketed(2)}|(?=[\]}},]))', re.S)
"""A value with at most three brackets in each other, found as `_Scan` finds it, and faster."""
_WITH_A_FIELD = re.compile(r'\{[ \t\r\n]*+"')


def _element(text: _Text, longest: int, patience: Patience) -> dict[str, Any] | InputError:
    """Read the value at which the text is, and go behind it."""
    if patience.over:
        # An error of the decoder counts the lines before it: it is given this value alone.
        match = _VALUE.match(text.held, text.at)
        if match is not None and match.end() < len(text.held):
            text.at = match.end()
            return _quickly(match[0]) if len(match[0]) <= longest else NOT_AN_OBJECT
    elif not text.foreign:
        try:
            value, end = _DECODER.raw_decode(text.held, text.at)
        except (ValueError, RecursionError):
            pass  # not whole yet, or not JSON: its brackets say where it ends
        else:
            if isinstance(value, dict) and end - text.at <= longest:
                text.at = end
                return value
    size, whole = _to_end(text, longest)
    if whole is None:
        return InputError(f"is {size:,} characters long; the limit is {longest:,}")
    if text.damage is not None and text.at >= len(text.held):
        return text.damage
    if text.foreign and _ESCAPED.search(whole):
        return InputError("not UTF-8")
    try:
        return parse_object(whole)
    except InputError as error:
        return error


def _quickly(whole: str) -> dict[str, Any] | InputError:
    """Parse a value; one that is none is not told why."""
    if _WITH_A_FIELD.match(whole) is None or _ESCAPED.search(whole):
        return NOT_AN_OBJECT
    try:
        value = _DECODER.decode(whole)
    except (ValueError, RecursionError):
        return NOT_AN_OBJECT
    return value if isinstance(value, dict) else NOT_AN_OBJECT


def _to_end(text: _Text, longest: int) -> tuple[int, str | None]:
    """Go behind the value at which the text is, by its strings and brackets alone.

    Returns:
        Number of characters, and the value's text; None when it is longer than allowed.
    """
    scan = _Scan()
    parts: list[str] = []
    size = 0
    while True:
        start = text.at
        text.at = scan.of(text.held, start)
        size += text.at - start
        if size <= longest:
            parts.append(text.held[start : text.at])
        else:
            parts.clear()
        if scan.done or not text.more():
            if not scan.done:
                text.at = len(text.held)  # behind a backslash at the very end
            return size, "".join(parts) if size <= longest else None


_OPENING = {"]": "[", "}": "{"}
_MARK = re.compile(r'["\[\]{}]')
_SCALAR_END = re.compile(r'["\[\]{},]')
_STRING_PART = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*', re.S)


class _Scan:
    """Looks for the end of a JSON value, damaged or not, in one piece of text after the other."""

    def __init__(self) -> None:
        self._opened: list[str] = []  # brackets that are not closed yet
        self._counts = {"[": 0, "{": 0}
        self._in_string = False
        self.done = False

    def of(self, held: str, at: int) -> int:
        """Return the place behind the value, or that up to which it was looked for."""
        while not self.done:
            if self._in_string:
                part = _STRING_PART.match(held, at)
                assert part is not None
                at = part.end()
                if held[at : at + 1] != '"':
                    return at  # the end, or a backslash that is the last character
                at += 1
                self._in_string = False
                self.done = not self._opened
                continue
            mark = (_MARK if self._opened else _SCALAR_END).search(held, at)
            if mark is None:
                return len(held)
            at = self._past(mark)
        return at

    def _past(self, mark: re.Match[str]) -> int:
        found = mark[0]
        if found == '"':
            self._in_string = True
        elif found in "[{":
            self._opened.append(found)
            self._counts[found] += 1
        elif not self._opened:  # behind a number or a word
            self.done = True
            return mark.start()
        elif self._counts[_OPENING[found]]:
            while True:  # closes what is open inside of it, too, and was never closed
                opening = self._opened.pop()
                self._counts[opening] -= 1
                if opening == _OPENING[found]:
                    break
            self.done = not self._opened
        return mark.end()
