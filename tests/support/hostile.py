r"""Texts that want to act where they are printed: sixty of them, and what a printed text may hold.

Each is short, so that it fits in ids, file names and cells. Plant them wherever users' text enters,
and hold the output to `acting`, `formulas` and, for pages, to a real parser.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata

TERMINAL = (
    "\x1b[31mred",  # colour
    "\x1b[2J\x1b[Hcleared",  # clear the screen
    "\x1b]0;title\x07",  # rename the window
    "\x1b]8;;http://evil.example/\x1b\\click\x1b]8;;\x1b\\",  # hyperlink
    "\x1b]52;c;ZXZpbA==\x07",  # write the clipboard
    "\x1b[8mhidden\x1b[28m",  # invisible ink
    "\x1b[6n",  # ask the terminal to type
    "\x1bPq#0\x1b\\",  # a picture
    "\x1bc",  # reset
    "\x9b31mC1 red",  # the same in one character
    "\x9d0;C1 title\x9c",
    "\x90q\x9c",
    "bell\x07\x07",
    "good\b\b\b\bevil",  # write over
    "first\rsecond",
    "a\x0bvertical",
    "a\x0cnew page",
    "nul\x00byte",
    "del\x7fete",
    "shift\x0eout\x0f",
    "tab\tbed",
    "next\x85line",
    "OK\nFAILED: forged line",
    "ok\r\nrag-eval: forged",
)
HIDING = (
    "user\u202etxt.exe",  # right to left override
    "a\u202db\u202c",
    "a\u202a\u202bb",
    "\u2066isolate\u2069",
    "\u2067rtl\u2068",
    "\u200eleft\u200fright\u061c",
    "line\u2028separator",
    "para\u2029graph",
    "zero\u200bwidth",
    "joi\u200dner\u200c",
    "soft\u00adhyphen",
    "word\u2060joiner\ufeff",
    "tag\U000e0041\U000e0042\U000e007f",  # ASCII in invisible ink
    "filler\u3164\uffa0\u115f",
    "combining\u034fjoiner",
    "selected\ufe00\ufe0f\ufe0f\U000e0100",
    "note\ufff9a\ufffab\ufffb",
)
MARKUP = (
    "[red]loud[/red]",
    "[link=http://evil.example/]x[/link]",
    "[/nope] [bold",
    ":smile: :boom:",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></svg><b>bold</b>",
    "![i](http://evil.example/i.png)",
    "[a](javascript:alert(1)) [b][c]",
    "<http://evil.example/> https://evil.example www.evil.example me@evil.example",
    "[r]: http://evil.example 'x'",
    "**b** __b__ *i* _i_ ~~s~~ ~s~ `c` $m$",
    "# heading\n## more\n> quote\n- item\n1. one",
    "```\nfence\n``` `` ` \\` \\",
    "a | b \\| c \\\\| d\n|---|---|",
    "&lt;b&gt; &amp; &#42; &copy; @someone #123 GH-1 :+1:",
    "===\n---\n***\n",
)
FORMULAS = (
    "=cmd|' /C calc'!A0",
    " \u3000\uff1dHYPERLINK(1)",
)
HOSTILE = (*TERMINAL, *HIDING, *MARKUP, *FORMULAS)

_ACTING = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINED = re.compile(
    "(?<=[\u2600-\u27bf\u2b1b\u2b1c\u2b50\ufe0f\U0001f000-\U0001faff])\u200d(?=[\u2600-\u27bf\u2b1b\u2b1c\u2b50\U0001f000-\U0001faff])"
    "|(?<=[\u0620-\u07ff\u0860-\u0dff\u0f00-\u109f\u1780-\u18aa\ua840-\uabff])[\u200c\u200d](?=[\u0620-\u07ff\u0860-\u0dff\u0f00-\u109f\u1780-\u18aa\ua840-\uabff])"
)
"""Joiners in emoji, and in words of scripts that need them: they belong to the text."""
_BLANK = set("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\ufe00\U000e0100")


def acting(text: str) -> list[str]:
    """List the characters of an output, other than line breaks, that act or hide."""
    acts = {c for c in _JOINED.sub("", text) if unicodedata.category(c) in _ACTING or c in _BLANK}
    return sorted(map(ascii, acts - {"\n"}))


def formulas(page: str) -> list[str]:
    """List the cells of a CSV, headers included, that a spreadsheet would calculate."""
    rows = csv.reader(io.StringIO(page, newline=""), strict=True)
    signs = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
    return [c for row in rows for c in row if c.strip().startswith(signs) and not _number(c)]


def _number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
