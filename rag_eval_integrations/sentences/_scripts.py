"""Candidates for sentence ends: the terminators of every script, with closing marks after them.

There are two kinds of terminators. "。" or "؟" ends a sentence by itself, whether white space
follows or not (Chinese, Japanese, Hindi, Arabic, Amharic …). "." "?" "!" "…" also occur inside
names, numbers and addresses, so they count only before white space, and the splitter decides about
them. In Chinese and Japanese, which have no spaces, they also end a sentence between two
characters.

A run of terminators ("?!", "...") counts as one. Quotes, brackets and references that close
directly after it belong to the sentence that ends: `He left.” She`, `(It rains.) We`,
`so it is.[3] Then`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

End = tuple[int, int, int, int, bool]
"""A position at which a sentence may end: five values.

1. Start of the run of terminators.
2. Start of the closing marks after the run; the same as 3. when there are none.
3. End of the sentence.
4. Start of the next sentence.
5. True when the terminator always ends a sentence; otherwise the words around it decide.
"""


SPACED_MARKS = ".?!…‼⁇⁈⁉"
"""Terminators that count only before white space."""

CERTAIN_MARKS = (
    "。！？｡．"  # Chinese, Japanese
    "।॥"  # Devanagari and most scripts of India
    "؟۔܀܁܂߹"  # Arabic, Urdu, Syriac, N'Ko
    "։"  # Armenian
    "።፧፨"  # Ethiopic
    "။"  # Burmese
    "។៕"  # Khmer
    "༎།"  # Tibetan
    "᠃᠉᙮꓿꘎꘏"  # Mongolian, Canadian syllabics, Lisu, Vai
    "\u037e"  # the Greek question mark, which looks like ";"
)
"""Terminators that end a sentence everywhere except between two digits."""

# The groups are closing marks, marks that may close or open, and white space.
# "“" and "«" close in German and Danish, and open in English, French and Chinese: see `ends`.
# The pattern begins with a plain set, which `re` finds ten times as fast as a repeated one.
_TERMINATOR = re.compile(f"[{SPACED_MARKS}{CERTAIN_MARKS}]")
_RUN = re.compile(
    rf"{_TERMINATOR.pattern}{_TERMINATOR.pattern}*+"
    r"((?:[\"'’”»›)\]}*_`」』）】》〉〕］｝\u200b-\u200f\u2060\u2069\ufeff]"
    r"|\[\d[\d,;–-]{0,20}\])*)"
    r"([“«]?+)"
    r"(\s*+)"
)
_CERTAIN = frozenset(CERTAIN_MARKS)
# A quote or bracket between spaces also closes: "the end. ” Then", "C'est fini. » Puis".
_CLOSING = frozenset('")]}”»')
_LATE_CLOSING = re.compile(r"[\")\]}”»]{1,3}(?=\s|\Z)\s*")
_GOES_ON = re.compile(r"[,;:、，；：]|と(?![てきもこ])|って")
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


def positions(text: str) -> Iterator[int]:
    """Yield the position of each terminator."""
    return map(re.Match.start, _TERMINATOR.finditer(text))


def closes(text: str, mark: int, stop: int) -> bool:
    """Tell whether the run at *mark* reaches to *stop*, so that no sentence ends before it."""
    run = _RUN.match(text, mark, stop)
    return run is not None and run.end() == stop and not run[2]


def ends(text: str, start: int, stop: int) -> Iterator[End]:
    """Yield the positions inside `text[start:stop]` at which a sentence may end, in order.

    The end of this range is not among them. The time is proportional to the length of the range.
    """
    for run in _RUN.finditer(text, start, stop):
        (mark, following), closing, after = run.span(), run.start(1), run.end(2)
        certain = text[mark] in _CERTAIN or (
            closing > mark + 1 and not _CERTAIN.isdisjoint(text[mark:closing])
        )
        if certain and after == following:
            after = following = run.start(2)  # in "好。“" without a space, the quote opens
        if following >= stop or (after == following and not certain and not _between(text, run)):
            continue
        certain = certain or after == following
        if certain and _is_inside(text, mark, closing, following):
            continue
        if after < following and text[following] in _CLOSING:
            late = _LATE_CLOSING.match(text, following, stop)
            if late:
                after, following = following + len(late[0].rstrip()), late.end()
                if following >= stop:
                    continue
        yield mark, closing, after, following, certain


def _between(text: str, run: re.Match[str]) -> bool:
    """Tell whether "." "?" or "!" stands between two characters of a script without spaces."""
    if run.start() == 0 or text[run.start()] == "…":
        return False
    before, behind = text[run.start() - 1], text[run.end() : run.end() + 1]
    return bool(_IDEOGRAPH.match(before) and _IDEOGRAPH.match(behind))


def _is_inside(text: str, mark: int, closing: int, following: int) -> bool:
    """Tell whether the mark stands inside a number ("3．14") or ends only a quotation."""
    if closing == following and mark > 0:
        return text[mark - 1].isdigit() and text[following].isdigit()
    # 「行く。」と言った: the quotation is part of the sentence around it.
    return text[following - 1] in '」』”’"）)' and _GOES_ON.match(text, following) is not None
