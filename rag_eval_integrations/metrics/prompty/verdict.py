"""What a judge wrote becomes OK, ERR or unknown. Pure.

Held against 32,290 recorded replies of PromptPex's judges: no labelled one reads differently here,
and 6 of its 143 unknown ones are told (`Ok` on a line of its own, `**ERR**`, `return ERR.`, a
verdict alone on the first line). A reply that only contains a verdict word is unknown: 1,262 of
the replies that end in OK hold words like "does not comply".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["ok", "err", "unknown"]

_DECORATION = " \t\r\n*_`.!\"'()[]<>:;,~#-"
_LAST = re.compile(r"(?:^|(?<=\W))(OK|ERR)\Z")
_ALONE: dict[str, Literal["ok", "err"]] = {"ok": "ok", "err": "err"}
_LEADS = re.compile(r"(?i)\b(?:verdict|decision|result|answer|evaluation)\W{0,6}\Z")
# Upstream reads these as OK: a verdict that is denied, or one of two that are offered.
_DENIED = re.compile(r"(?i)(?:\bnot|n't)\s+(?:\w+\s+)?\Z")
_OFFERED = re.compile(r"(?i)(?:\bok|\berr)\W*(?:\bor\b|/|\|)\W*\Z")


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's verdict on one text."""

    outcome: Outcome
    reason: str
    """What the judge said about it; for `unknown`, why it is unknown."""


def read_verdict(text: str) -> Verdict:
    """Read a reply: the last word decides, else the first line when it is a verdict alone.

    Any case and decoration (`**Ok**`) when the word stands alone on its line; inside of a line
    only `OK` and `ERR` as they are asked for, so that "looks ok" is no verdict.
    """
    whole = text.strip()
    if not whole:
        return Verdict("unknown", "the reply is empty")
    lines = whole.splitlines()
    found, said = _last_word(whole, lines[-1])
    if found is None and len(lines) > 1:
        found, said = _bare(lines[0]), "\n".join(lines[1:])
    if found is None:
        return Verdict("unknown", f"the reply does not end in OK or ERR: {_short(whole)}")
    return Verdict(found, said.strip().strip("*").strip())


def _last_word(whole: str, line: str) -> tuple[Literal["ok", "err"] | None, str]:
    alone = _bare(line)
    if alone is not None:
        return alone, whole[: len(whole) - len(line)]
    ended = whole.rstrip(_DECORATION)
    match = _LAST.search(ended)
    if match is None:
        return None, ""
    before = ended[: match.start()]
    if _OFFERED.search(before[-20:]):
        return None, ""
    if match[1] == "ERR":
        return "err", _LEADS.sub("", before)
    return (None, "") if _DENIED.search(before[-40:]) else ("ok", _LEADS.sub("", before))


def _bare(line: str) -> Literal["ok", "err"] | None:
    return _ALONE.get(line.strip(_DECORATION).lower())


def _short(text: str, most: int = 120) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
