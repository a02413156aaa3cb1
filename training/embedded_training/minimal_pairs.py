"""Minimal pairs: a sentence of a response, and the same with one change; nothing is random.

A wrong detail (number, name, antonym, unit, date, an added or a lost negation) should rank below
its original and be unsupported. A control says the same in other words and should stay as it was.
The tables are the generator's own: the judge does not read them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple
from zlib import crc32


class Change(NamedTuple):
    """One change of a sentence."""

    kind: str
    text: str
    """The sentence after the change."""
    words: tuple[str, ...]
    """Words one of which a reason should name; empty for a control."""


class Material(NamedTuple):
    """What a call offers for exchange."""

    names: tuple[str, ...]
    numbers: tuple[str, ...]
    common: frozenset[str]
    """Words that the documents also write in lower case: no names, whatever opens a sentence or
    stands in a heading."""


WRONG = ("number", "name", "antonym", "unit", "date", "added", "lost")
CONTROLS = ("adverb", "clauses", "numeral", "plural", "spelled unit", "contraction", "date form")

_NUMBER = re.compile(r"(?<![\w.,/\-\[$€£:])\d{1,3}(?:,\d{3})+(?![\w/\-:])|"
                     r"(?<![\w.,/\-\[:])\d+(?:\.\d+)?(?![\w/\-\]:]|[.,]\d)")  # fmt: skip
_LIST_MARK = re.compile(
    r"\s{0,9}(?:[-*•]|\(?\d{1,2}[.)])\s|^\s*(?:passage|step) \d+", re.IGNORECASE
)
_NEXT_MARK = re.compile(r".{0,3}[.:;!?)\"”]\s+")
"""Before the mark of the next list item, which the splitter left at the end of a sentence."""
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}(?: [A-Z][a-z]{2,}){0,2}(?![\w'’-])")
_FIRST = re.compile(r"[A-Z][a-z]{2,}(?: [A-Z][a-z]{2,}){0,2}(?= [a-z])")

_MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September",
           "October", "November", "December"]  # fmt: skip
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_DATES = [*_MONTHS, *_DAYS]
_UNITS = [["seconds", "minutes", "hours", "days", "weeks", "months", "years"],
          ["second", "minute", "hour", "day", "week", "month", "year"],
          ["millimetres", "centimetres", "metres", "kilometres"], ["mm", "cm", "km"],
          ["inches", "feet", "yards", "miles"], ["meters", "miles", "feet", "kilometers"],
          ["mg", "g", "kg"], ["pounds", "ounces", "kilograms", "grams"],
          ["kB", "MB", "GB", "TB"], ["dollars", "euros", "pounds"],
          ["°C", "°F"]]  # fmt: skip
_SPELLED = {"km": "kilometres", "cm": "centimetres", "mm": "millimetres", "kg": "kilograms",
            "mg": "milligrams", "GB": "gigabytes", "MB": "megabytes", "minutes": "min",
            "seconds": "sec", "hours": "hrs", "%": " percent", " percent": "%",
            "inches": "in", "pounds": "lbs", "meters": "metres"}  # fmt: skip
_ANTONYMS = """
increase decrease; increased decreased; increases decreases; increasing decreasing; higher lower
high low; more less; before after; first last; left right; up down; on off; open close
start stop; begin end; early late; earlier later; large small; larger smaller; always never
most least; maximum minimum; positive negative; male female; north south; east west
northern southern; eastern western; inside outside; internal external; above below; front rear
upper lower; top bottom; enable disable; enabled disabled; allow forbid; allowed forbidden
add remove; added removed; buy sell; won lost; accept reject; safe unsafe; possible impossible
effective ineffective; strong weak; common rare; public private; old young; older younger; hot cold
warm cool; fast slow; heavy light; light dark; long short; longer shorter; wide narrow; rich poor
similar different; same different; good bad; better worse; best worst; raise lower; rise fall
include exclude; includes excludes; included excluded; lock unlock; connect disconnect
connected disconnected; install uninstall; require prohibit; active inactive; direct indirect
severe mild; chronic acute; major minor; mother father; son daughter; brother sister; wife husband
born died; manual automatic; full empty; deep shallow; hard soft; thick thin; wet dry; near far
"""
_OPPOSITE: dict[str, str] = {}
for _pair in _ANTONYMS.replace("\n", ";").split(";"):
    if _pair.strip():
        _one, _other = _pair.split()
        _OPPOSITE.setdefault(_one, _other)
        _OPPOSITE.setdefault(_other, _one)
_HELP = re.compile(r"\b(is|are|was|were|can|will|should|must|has been|have been|had been|does|did|"
                   r"could|would|may)\b(?! not\b| only\b| also\b| just\b|n['’]t|[,.?])"
                   )  # fmt: skip
_NOT = re.compile(r"\b(is|are|was|were|can|will|should|must|do|does|did|could|would|may|has|have"
                  r"|had)(?: not\b|n['’]t\b)|\b(can)not\b|\b(never) (?=[a-z])")  # fmt: skip
_ADVERB = re.compile(r"(?<=[a-z]) (also|often|usually|generally|[a-z]{3,}ly)(?= [a-z])")
_NO_ADVERB_WORDS = """
only early apply supply reply daily weekly monthly yearly family assembly likely friendly
multiply comply rely july italy elderly nearly hardly rarely approximately roughly unlikely
barely directly indirectly exactly fully partly
"""
_NO_ADVERB = frozenset(_NO_ADVERB_WORDS.split())
_FRONTED = re.compile(r"(When|If|While|After|Before|In|On|During|At|For|By|Since|Because|Although) "
                      r"([^,.;:]{4,80}), ([a-z][^,.;:]{9,160})\.$")  # fmt: skip
_PLURAL = re.compile(
    r"(?<=[a-z]) ([a-z]{4,}[^s\Wuiy])s(?= (?:and|or|of|in|for|that|with|to|from)\b)"
)
_WORDS = [
    "zero", "one", "two", "three", "four", "five", "six",
    "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
]  # fmt: skip
_SPELLED_NUMBER = re.compile(rf"\b({'|'.join(_WORDS[2:])})\b(?!-)")
_SHORTENED = re.compile(r"\b(is|are|was|were|do|does|did|could|would|should|has|have) not\b")
_LONG = re.compile(r"\b(is|are|was|were|do|does|did|could|would|should|has|have)n['’]t\b")
_DATE = re.compile(rf"\b({'|'.join(_MONTHS)}) (\d{{1,2}}), (\d{{4}})\b")
_OTHER_DATE = re.compile(rf"\b(\d{{1,2}}) ({'|'.join(_MONTHS)}) (\d{{4}})\b")


_LOWER = re.compile(r"\b[a-z][\w'-]+")


def material(sentences: Sequence[str]) -> Material:
    """List the names and the numbers of a call's document sentences."""
    names = dict.fromkeys(name for text in sentences for name in _NAME.findall(text))
    numbers = dict.fromkeys(number for text in sentences for number in _NUMBER.findall(text))
    common = frozenset(word for text in sentences for word in _LOWER.findall(text))
    named = tuple(name for name in names if not set(name.split()) & set(_DATES)
                  and not common.intersection(name.lower().split()))  # fmt: skip
    return Material(named, tuple(numbers), common)


def changes(sentence: str, of: Material) -> list[Change]:
    """Make at most one change of each kind."""
    made = []
    for kind, make in _MAKERS.items():
        change = make(sentence, of, crc32(f"{kind}|{sentence}".encode()))
        if change is not None and change[0] != sentence:
            made.append(Change(kind, *change))
    return made


Made = tuple[str, tuple[str, ...]] | None


def _replace(sentence: str, match: re.Match[str], new: str, group: int = 0) -> str:
    return sentence[: match.start(group)] + new + sentence[match.end(group) :]


def _number(sentence: str, of: Material, pick: int) -> Made:
    mark = _LIST_MARK.match(sentence)
    matches = [m for m in _NUMBER.finditer(sentence, mark.end() if mark else 0)
             if not _NEXT_MARK.fullmatch(sentence[max(0, m.start() - 3) : m.start()])
             or sentence[m.end() :].strip(" .")]  # fmt: skip
    if not matches:
        return None
    match = matches[pick % len(matches)]
    plain = match[0].replace(",", "")
    value = float(plain)
    other = [n for n in of.numbers if n not in sentence and ("," in n) == ("," in match[0])
             and (len(n) == 4) == (len(plain) == 4)]  # fmt: skip
    if other and pick // 7 % 2:
        new = other[pick // 14 % len(other)]
    elif 1500 <= value <= 2100:
        new = str(int(value) + (pick // 7 % 12 + 1) * (1 if pick % 2 else -1))
    elif "." in plain:
        new = f"{value * (1.5, 2, 3)[pick % 3]:.{len(plain.split('.')[1])}f}"
    else:
        new = str(int(value * (2, 3)[pick % 2]) + pick // 7 % 3 + (not value))
    if "," in match[0] and "," not in new:
        new = f"{int(float(new)):,}"
    if new in sentence:
        return None
    return _replace(sentence, match, new), (new,)


def _name(sentence: str, of: Material, pick: int) -> Made:
    matches = [m for m in _NAME.finditer(sentence) if not set(m[0].split()) & set(_DATES)
             and not of.common.intersection(m[0].lower().split())]  # fmt: skip
    first = _FIRST.match(sentence)
    if first and first[0] in of.names:
        matches.append(first)
    if not matches:
        return None
    match = matches[pick % len(matches)]
    said = set(re.findall(r"\w+", sentence))
    size = len(match[0].split())
    other = [n for n in of.names if not said & set(n.split())]
    other = [n for n in other if len(n.split()) == size] or other
    if not other:
        return None
    new = other[pick // 7 % len(other)]
    return _replace(sentence, match, new), tuple(new.split())


def _antonym(sentence: str, of: Material, pick: int) -> Made:
    matches = [m for m in re.finditer(r"\b[a-z]+\b", sentence) if m[0] in _OPPOSITE]
    if not matches:
        return None
    match = matches[pick % len(matches)]
    return _replace(sentence, match, _OPPOSITE[match[0]]), (_OPPOSITE[match[0]], match[0])


def _unit(sentence: str, of: Material, pick: int) -> Made:
    matches = []
    for units in _UNITS:
        pattern = r"(?<=\d)[ -]?(" + "|".join(units) + r")(?!\w)"
        matches += [(match, units) for match in re.finditer(pattern, sentence)]
    if not matches:
        return None
    match, units = matches[pick % len(matches)]
    place = units.index(match[1])
    new = units[(place + 1 + pick // 7 % (len(units) - 1)) % len(units)]
    return _replace(sentence, match, new, 1), (new.strip("°"),)


def _date(sentence: str, of: Material, pick: int) -> Made:
    matches = list(
        re.finditer(r"\b(?:" + "|".join(_DATES) + r")\b(?! (?:be|have|not|also)\b)", sentence)
    )
    if not matches:
        return None
    match = matches[pick % len(matches)]
    names = _MONTHS if match[0] in _MONTHS else _DAYS
    new = names[(names.index(match[0]) + 1 + pick // 7 % (len(names) - 1)) % len(names)]
    return _replace(sentence, match, new), (new,)


def _added(sentence: str, of: Material, pick: int) -> Made:
    match = _HELP.search(sentence)
    if match is None or re.search(r"\b(?:not|no|never|cannot|without|\w+n['’]t)\b", sentence):
        return None
    one, *rest = match[0].split()
    new = "cannot" if one == "can" else " ".join([one, "not", *rest])
    return _replace(sentence, match, new), ("not", "is denied")


def _lost(sentence: str, of: Material, pick: int) -> Made:
    match = _NOT.search(sentence)
    if match is None or " only " in sentence[match.end() : match.end() + 6]:
        return None
    return _replace(sentence, match, match[1] or match[2] or ""), ("not", "is affirmed")


def _control(make: Callable[[str, int], str | None]) -> Callable[[str, Material, int], Made]:
    def made(sentence: str, of: Material, pick: int) -> Made:
        text = make(sentence, pick)
        return None if text is None else (text, ())

    return made


def _adverb(sentence: str, pick: int) -> str | None:
    matches = [m for m in _ADVERB.finditer(sentence) if m[1] not in _NO_ADVERB]
    return _replace(sentence, matches[pick % len(matches)], "") if matches else None


def _clauses(sentence: str, pick: int) -> str | None:
    match = _FRONTED.match(sentence)
    if match is None:
        return None
    return f"{match[3][0].upper()}{match[3][1:]} {match[1].lower()} {match[2]}."


def _numeral(sentence: str, pick: int) -> str | None:
    if match := _SPELLED_NUMBER.search(sentence):
        return _replace(sentence, match, str(_WORDS.index(match[1])))
    mark = _LIST_MARK.match(sentence)
    for match in _NUMBER.finditer(sentence, mark.end() if mark else 0):
        if match[0].isdigit() and 2 <= int(match[0]) <= 20 and match.start():
            return _replace(sentence, match, _WORDS[int(match[0])])
    return None


def _plural(sentence: str, pick: int) -> str | None:
    match = _PLURAL.search(sentence)
    return _replace(sentence, match, match[1], 0).replace(match[1], " " + match[1], 1) if (
        match and match[1] not in sentence[: match.start()]) else None  # fmt: skip


def _spelled_unit(sentence: str, pick: int) -> str | None:
    for short, spelled in _SPELLED.items():
        match = re.search(r"(?<=\d) ?" + re.escape(short.strip()) + r"(?!\w)", sentence)
        if match:
            new = spelled if spelled == "%" else " " + spelled.strip()
            return _replace(sentence, match, new)
    return None


def _contraction(sentence: str, pick: int) -> str | None:
    if match := _SHORTENED.search(sentence):
        return _replace(sentence, match, f"{match[1]}n't")
    if match := _LONG.search(sentence):
        return _replace(sentence, match, f"{match[1]} not")
    return None


def _date_form(sentence: str, pick: int) -> str | None:
    if match := _DATE.search(sentence):
        month, day, year = match.groups()
    elif match := _OTHER_DATE.search(sentence):
        day, month, year = match.groups()
    else:
        return None
    if pick % 2:
        new = f"{year}-{_MONTHS.index(month) + 1:02}-{int(day):02}"
    else:
        new = f"{day} {month} {year}" if match.re is _DATE else f"{month} {day}, {year}"
    return _replace(sentence, match, new)


_MAKERS: dict[str, Callable[[str, Material, int], Made]] = {
    "number": _number, "name": _name, "antonym": _antonym, "unit": _unit, "date": _date,
    "added": _added, "lost": _lost, "adverb": _control(_adverb), "clauses": _control(_clauses),
    "numeral": _control(_numeral), "plural": _control(_plural),
    "spelled unit": _control(_spelled_unit), "contraction": _control(_contraction),
    "date form": _control(_date_form),
}  # fmt: skip
