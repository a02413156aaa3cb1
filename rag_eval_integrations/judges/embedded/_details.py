"""The details of a sentence that can contradict another: numbers, units, dates, denied words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from rag_eval_integrations.judges.embedded._negations import Negation, Token, negations, token_of
from rag_eval_integrations.judges.embedded._words import (
    ASCII_WORD,
    FUNCTION_WORDS,
    NEGATIONS,
    NOT_PLAIN,
    WORD,
    OfWords,
    stem,
)


def _split(text: str) -> list[str]:
    return text.split()


# --- Tokens: words as written, with marks that end the scope of a negation


_SIGNS = {"%": " percent ", "$": " dollar ", "€": " euro ", "£": " sterling ", "°": " degree "}
_SIGN = re.compile("[" + re.escape("".join(_SIGNS)) + "]")
_GLUED = re.compile(r"(?<=\d)(?=(?:[kmcµ]?m|[kmµ]?g|[kKMGT]?[bB]|ml|ft|lbs?|oz|hrs?|min|sec)\b)")
"""Between a number and its unit: "5km" is two words."""
_TOKEN = re.compile(WORD.pattern + r"|[.,;:!?()—–]")
# Half of all sentences are ASCII without digits and apostrophes: the first pattern finds the same
# in them in a third of the time.
_PLAIN_TOKEN = re.compile(r"[a-zA-Z]+|[.,;:!?()]")
_ASCII_TOKEN = re.compile(ASCII_WORD.pattern + r"|[.,;:!?()]", re.ASCII)
_LIST_MARK = re.compile(r"\s{0,20}(?:[-*•]|\(?\d{1,2}[.)])\s")
_LONGEST = 2_000
"""Characters of a sentence that are looked at; a longer one is hardly one sentence."""


_DIGIT = re.compile(r"\d")
_ODD = re.compile(r"[-*•\d" + "".join(_SIGNS) + "]")
"""Characters without which a text has no list mark, sign or digit."""
_PER_CENT = re.compile(r"\bper cent\b", re.IGNORECASE)
_NUMERIC_DATE = re.compile(
    r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b|\b(\d{1,2})[/.](\d{1,2})[/.](\d{4})\b", re.ASCII
)
_MONTHS = _split("""
January February March April May June July August September October November December
""")


def _spelled_date(match: re.Match[str]) -> str:
    """Write a date with the name of its month, unless day and month may be either number."""
    year, month, day, one, other, last = [int(part or 0) for part in match.groups()]
    if not year:
        if one <= 12 and other <= 12 and one != other:
            return match[0]
        year, month, day = last, *((other, one) if one > 12 else (one, other))
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return match[0]
    return f"{day} {_MONTHS[month - 1]} {year}"


class Details:
    """A sentence as tokens; what is made of them is made when it is needed."""

    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)

    @cached_property
    def stems(self) -> frozenset[str]:
        """Stems of all words, and the marks."""
        return frozenset([token.stem for token in self.tokens])

    @cached_property
    def names(self) -> tuple[int, ...]:
        """Places of the words that are written as names are."""
        return tuple([at for at, token in enumerate(self.tokens) if _NAMES[token.written]])

    @cached_property
    def numbers(self) -> tuple[Number, ...]:
        return _numbers(self.tokens)

    @cached_property
    def members(self) -> dict[str, dict[str, str]]:
        """Closed class → canonical member → as written."""
        return _members(self.tokens)

    @cached_property
    def negations(self) -> tuple[Negation, ...]:
        return negations(self.tokens)


class Number(NamedTuple):
    value: float
    written: str
    beside: frozenset[str]
    """Stems of the words beside it, such as its unit."""
    unit: str | None
    """Canonical unit that follows it."""
    hedged: bool
    at: int
    """Its first token."""
    last: int
    """Its last token."""


def _tokens(text: str) -> tuple[Token, ...]:
    text = text[:_LONGEST]
    # Searching for some characters spares most sentences patterns that try each character.
    if _ODD.search(text):
        text = _LIST_MARK.sub("", text, count=1)
        text = _SIGN.sub(lambda sign: _SIGNS[sign[0]], text)
        if _DIGIT.search(text):
            text = _GLUED.sub(" ", text)
            text = _NUMERIC_DATE.sub(_spelled_date, text)
    if " cent" in text.lower():
        text = _PER_CENT.sub("percent", text)
    pattern = _TOKEN
    if text.isascii():
        pattern = _ASCII_TOKEN if NOT_PLAIN.search(text) else _PLAIN_TOKEN
    return tuple(map(token_of, pattern.findall(text)))


def same_words(text: str) -> bool:
    """Tell whether the tokens of a text surely hold the words that `words` finds in it, no others.

    They need not where a list mark, sign, date or "per cent" is written otherwise.
    """
    return (
        len(text) <= _LONGEST
        and text.isascii()
        and not _ODD.search(text)
        and " cent" not in text.lower()
    )


# --- Closed classes: a sentence that names another member says something else


_UNITS = """
time: second|seconds sec s; minute|minutes min mins; hour|hours hr hrs h; day|days daily;
 week|weeks weekly; month|months monthly; year|years yr yrs annually yearly; decade|decades;
 century|centuries
length: millimetre|millimetres millimeter millimeters mm; centimetre|centimetres centimeter
 centimeters cm; metre|metres meter meters m; kilometre|kilometres kilometer kilometers km;
 inch|inches; foot|feet ft; yard|yards; mile|miles mi
mass: microgram|micrograms mcg; milligram|milligrams mg; gram|grams gramme grammes g;
 kilogram|kilograms kg kilo kilos; tonne|tonnes ton tons; ounce|ounces oz; pound|pounds lb lbs
volume: millilitre|millilitres milliliter milliliters ml; litre|litres liter liters l;
 gallon|gallons; pint|pints
temperature: celsius|c centigrade; fahrenheit|f; kelvin
money: dollar|dollars usd; euro|euros eur; sterling|gbp; yen|yen; rupee|rupees; franc|francs
data: kilobyte|kilobytes kb; megabyte|megabytes mb; gigabyte|gigabytes gb; terabyte|terabytes tb
power: watt|watts w; kilowatt|kilowatts kw; megawatt|megawatts mw; volt|volts v; amp|amps ampere
magnitude: hundred|hundreds; thousand|thousands; million|millions m mn; billion|billions bn;
 trillion|trillions
"""
_DATES = """
month: january|jan; february|feb; march|mar; april|apr; may; june|jun; july|jul; august|aug;
 september|sep sept; october|oct; november|nov; december|dec
weekday: monday|mondays mon; tuesday|tuesdays tue; wednesday|wednesdays wed; thursday|thursdays thu;
 friday|fridays fri; saturday|saturdays sat; sunday|sundays sun
season: spring; summer|summers; autumn|autumns; winter|winters
"""
_SHORT = frozenset(
    _split("""
s h m g l c f w v mi min sec second mon sat sun mar jan dec may march
""")
)
"""Written so, a word is a unit only after a number, and a month or day only with a capital."""
_SCALE = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_IN_SECONDS: dict[str, float] = {
    "second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800,
    "month": 2_629_800, "year": 31_557_600, "decade": 315_576_000, "century": 3_155_760_000,
}  # fmt: skip


def _classes(table: str) -> dict[str, tuple[str, str]]:
    """Map each spelling to its class and canonical member."""
    found = {}
    for line in re.sub(r"\n ", " ", table).strip().splitlines():
        name, members = line.split(":")
        for member in members.split(";"):
            for word in (names := member.replace("|", " ").split()):
                found[word] = (name, names[0])
    return found


_UNIT, DATE = _classes(_UNITS), _classes(_DATES)
_SPELLINGS = frozenset((*_UNIT, *DATE))
CLOSED_STEMS = frozenset(map(stem, (*_UNIT, *DATE))) | frozenset((*_UNIT, *DATE))
OF_UNITS = frozenset(name for name, _ in _UNIT.values())
_BASE: dict[str, dict[str, float]] = {
    "time": _IN_SECONDS,
    "length": {
        "millimetre": 0.001, "centimetre": 0.01, "metre": 1.0, "kilometre": 1000.0,
        "inch": 0.0254, "foot": 0.3048, "yard": 0.9144, "mile": 1609.344,
    },
    "mass": {
        "microgram": 1e-6, "milligram": 0.001, "gram": 1.0, "kilogram": 1000.0, "tonne": 1e6,
        "ounce": 28.35, "pound": 453.6,
    },
    "volume": {"millilitre": 0.001, "litre": 1.0, "gallon": 3.785, "pint": 0.473},
    "data": {"kilobyte": 1.0, "megabyte": 1e3, "gigabyte": 1e6, "terabyte": 1e9},
    "power": {"watt": 1.0, "kilowatt": 1e3, "megawatt": 1e6},
}  # fmt: skip
_IN_BASE = {unit: (name, value) for name, units in _BASE.items() for unit, value in units.items()}


def _members(tokens: Sequence[Token]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    if _SPELLINGS.isdisjoint([token.low for token in tokens]):
        return found
    for at, token in enumerate(tokens):
        low = token.low
        entry = _UNIT.get(low)
        if entry is not None:
            after = at and (value_of(tokens[at - 1].written) is not None)
            if (low in _SHORT and not after) or (entry[0] == "magnitude"):
                entry = None
        if entry is None:
            entry = DATE.get(low)
            if low in _SHORT and not (token.written[0].isupper() and at):
                entry = None
        if entry is not None:
            found.setdefault(entry[0], {}).setdefault(entry[1], token.written)
    return found


# --- Numbers, in digits and in words


_SMALL = _split("""
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen
""")
_TENS = _split("""
twenty thirty forty fifty sixty seventy eighty ninety
""")
_ORDINALS = _split("""
first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth
fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth
""")
NUMBER_WORDS = (
    {word: float(n) for n, word in enumerate(_SMALL)}
    | {word: 10.0 * n for n, word in enumerate(_TENS, start=2)}
    | {word: float(n) for n, word in enumerate(_ORDINALS, start=1)}
    | {"dozen": 12.0}
)
NUMBER_STEMS = frozenset(map(stem, NUMBER_WORDS))
_ORDINAL_END = re.compile(r"(?<=\d)(?:st|nd|rd|th)$")
_DIGITS = re.compile(r"\d[\d.,]*")
_AROUND = frozenset(
    _split("""
about around approximately roughly nearly almost over under more less than least most up to some
circa between
""")
)
_VAGUE = frozenset({"one", "first", "second", "zero"})
"""Words that are mostly not used as numbers."""


def _value(word: str) -> float | None:
    if not word[0].isdigit():
        return NUMBER_WORDS.get(word.lower())
    low = word.lower()
    low = _ORDINAL_END.sub("", low)
    if not _DIGITS.fullmatch(low):
        return None
    try:
        return float(re.sub(r",(?=\d{3}(?!\d))", "", low).replace(",", "."))
    except ValueError:  # several points, as in a version
        return None


value_of = OfWords(_value).__getitem__
"""Returns the number that a word is, or None; remembered."""


def _numbers(tokens: Sequence[Token]) -> tuple[Number, ...]:
    found: list[Number] = []
    values = list(map(value_of, [token.written for token in tokens]))
    if not any([value is not None for value in values]):
        return ()
    at, size = 0, len(tokens)
    while at < size:
        value = values[at]
        if value is None:
            at += 1
            continue
        first, last = at, at
        low = tokens[at].low
        if low in _TENS and at + 1 < size and tokens[at + 1].low in _SMALL[1:10]:
            value, last = value + NUMBER_WORDS[tokens[at + 1].low], at + 1
        while last + 1 < size and (scale := _UNIT.get(tokens[last + 1].low)):
            if scale[0] != "magnitude" or tokens[last + 1].low in _SHORT:
                break
            value, last = value * _SCALE[scale[1]], last + 1
        beside = [
            token.stem
            for token in (*tokens[max(0, first - 1) : first], *tokens[last + 1 : last + 2])
            if token.stem.isalpha() and token.stem not in FUNCTION_WORDS
        ]
        # "9 am" and "9 a.m.": beside a number this is no function word, but says that it is a time.
        after = [token.low for token in tokens[last + 1 : last + 4]]
        if after[:1] in (["am"], ["pm"]) or after in (["a", ".", "m"], ["p", ".", "m"]):
            beside.append("o'clock")
        unit = None
        if last + 1 < size and (entry := _UNIT.get(tokens[last + 1].low)):
            unit = entry[1]
        before = {token.stem for token in tokens[max(0, first - 3) : first]}
        if first == last and low in _VAGUE:
            at = last + 1
            continue
        found.append(
            Number(
                value,
                " ".join([token.written for token in tokens[first : last + 1]]),
                frozenset(beside),
                unit,
                not _AROUND.isdisjoint(before),
                first,
                last,
            )
        )
        at = last + 1
    return tuple(found)


def same_quantity(one: Number, other: Number) -> bool:
    """Tell whether two numbers say the same: equal, rounded, or in another unit."""
    a, b = _IN_BASE.get(one.unit or ""), _IN_BASE.get(other.unit or "")
    if a and b and one.unit != other.unit:
        if a[0] != b[0]:
            return False
        near = 0.1 if one.hedged or other.hedged else 0.05 if a[0] == "time" else 0.02
        return abs(one.value * a[1] - other.value * b[1]) <= near * other.value * b[1]
    if one.value == other.value:
        return True
    if one.hedged or other.hedged:
        return abs(one.value - other.value) <= 0.1 * abs(other.value) and not (
            1000 <= one.value <= 2100
        )
    return False


# --- Names


CITING = frozenset(
    [
        "passage", "passages", "document", "documents", "source", "sources", "context", "excerpt",
        "article", "step", "note", "yes", "answer", "warning", "caution", "tip", "figure", "table",
    ]
)  # fmt: skip
_ADVERBS = frozenset(["finally", "usually", "firstly", "lastly"])
"""Words with a capital that are no names: they cite a document, or open a line."""


def is_name(token: Token) -> bool:
    """Tell whether a word is written as names are; remembered."""
    return _NAMES[token.written]


def _is_name(word: str) -> bool:
    if not word[0].isupper() or len(word) < 3 or not word.isalpha():
        return False
    low = word.lower()
    return not (
        low in FUNCTION_WORDS
        or low in DATE
        or low in NEGATIONS
        or low in NUMBER_WORDS
        or low in CITING
        or (low.endswith("ly") and (len(low) > 7 or low in _ADVERBS))
    )


_NAMES = OfWords(_is_name)
