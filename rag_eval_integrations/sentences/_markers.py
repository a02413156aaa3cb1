"""Citation markers: `[1]`, `¹`, `【1】`, `(Source: x.pdf)`. They belong to the sentence in front.

A splitter decides where sentences end; a marker behind a full stop would then begin the next one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

LABELS = (
    r"sources?|source\(s\)|quellen?(?:angaben?)?|fuentes?|fonti|fontes?|bronnen|källor|источники"
    r"|来源|出典"
)
"""Words in front of the name of a source, as a pattern."""
FILES = r"pdf|docx?|xlsx?|pptx?|txt|md|rst|html?|csv|json|xml|epub|ipynb|eml|log"
"""Endings of files, as a pattern."""

_NUMBERS = r"\^?\d{1,3}(?:\s?[,;–-]\s?\^?\d{1,3}){0,20}"
_SUPERSCRIPT = "[⁰¹²³⁴-⁹]{1,4}(?:[,⁻–][⁰¹²³⁴-⁹]{1,4}){0,9}"
MARKER = (
    # The first characters spare most texts the rest; atomic, since some are markers in two ways.
    rf"(?=[\[(【<⁰¹²³⁴-⁹])(?>\[\[?{_NUMBERS}\]\]?(?:\(https?://[^\s()]{{1,200}}\))?|\[\^[\w-]{{1,20}}\]"
    rf"|【[^【】\n]{{1,60}}】|{_SUPERSCRIPT}|<sup>\[?{_NUMBERS}\]?</sup>"
    rf"|[(\[](?:(?i:{LABELS})\s?[:：]\s?[^()\[\]\n]{{1,120}}"
    rf"|(?i:sources?|docs?|documents?|refs?|chunk|passage)[ :._#-]{{0,2}}{_NUMBERS}"
    rf"|https?://[^\s()\[\]]{{1,200}}"
    rf"|(?:(?i:see|from) )?[\w.-]{{1,80}}\.(?:{FILES})(?:, ?pp?\. ?\d{{1,5}})?)[)\]])"
)
"""One marker, as a pattern without groups."""
OPENERS = frozenset("[(【<⁰¹²³⁴⁵⁶⁷⁸⁹")
"""First characters of markers."""
_RUN = re.compile(rf"{MARKER}\.?(?:[ \t,;\u00a0]{{0,3}}{MARKER}\.?){{0,20}}(?=\s|[A-Z]|\Z)")
_REST_OF_LINE = re.compile(r"[^\S\r\n]*([^\r\n]?)")
_SPACE = re.compile(r"\s*")
_ENDED = re.compile(rf"[.?!…。！？।؟](?:[\s\"'’”»)\]}}*_`]|{MARKER})*\Z")
_REACH = 64  # characters in front of a marker on a line of its own that are read
# A superscript behind a short word or a number is an exponent: "km²", "10⁶". The embedded judge was
# fitted to answers in which "(passage 1)" is words like others.
IN_A_CLAIM = (
    rf"(?<=[^\W\d_]{{3}}){_SUPERSCRIPT}|(?<=[\s.?!,;:…\"'’”»)\]*]){_SUPERSCRIPT}"
    rf"|(?![⁰¹²³⁴-⁹]|\((?i:passage)\b){MARKER}"
)
"""One marker inside of a claim, as a pattern without groups."""
_IN_A_CLAIM = re.compile(IN_A_CLAIM)


def after_markers(text: str, start: int) -> int:
    """Return the position of the word behind the markers at `start`; `start` without any."""
    run = _RUN.match(text, start)
    return _end(_SPACE, text, run.end()) if run else start


def without_markers(text: str) -> str:
    """Return a sentence without its markers; one of markers alone as it is."""
    if OPENERS.isdisjoint(text):
        return text
    claim = _IN_A_CLAIM.sub(" ", text)
    return claim if any(map(str.isalnum, claim)) else text


def joined(text: str, spans: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Join the markers behind a sentence to it; sentences of markers alone disappear.

    Markers on a line of their own are joined if nothing else stands there. One that goes on in
    lower case is the subject of its sentence: "[3] shows it."

    Args:
        text: the text.
        spans: its sentences, as a splitter gives them.
    """
    if OPENERS.isdisjoint([text[start] for start, _ in spans[1:]]):
        return spans  # nearly always
    sentences = [spans[0]]
    read = 0  # end of the markers that were read last
    for start, end in spans[1:]:
        last = sentences[-1]
        start = max(start, _end(_SPACE, text, last[1]))
        while start >= read and (run := _RUN.match(text, start)):
            read = run.end()
            if _belongs(text, last, start, read):
                last, start = (last[0], read), _end(_SPACE, text, read)
        sentences[-1] = last
        if start < end:
            sentences.append((start, end))
    return sentences


def _belongs(text: str, last: tuple[int, int], start: int, end: int) -> bool:
    """Tell whether the markers `text[start:end]` belong to the sentence `last` before them."""
    rest = _REST_OF_LINE.match(text, end)
    following = rest[1] if rest else ""
    if len(f"{text[last[1] : start]}|".splitlines()) > 1:
        ended = _ENDED.search(text, max(last[0], last[1] - _REACH), last[1])
        return not following and ended is not None
    return not following.islower() or text[last[0]].islower()


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Return where a pattern that matches everywhere ends."""
    match = pattern.match(text, start)
    return match.end() if match else start
