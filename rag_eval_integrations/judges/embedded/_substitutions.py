"""Differences that contradict: which of those in a near copy are told, and how they are written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from rag_eval_integrations.judges.embedded._alignment import (
    Difference,
    always_capital,
    elsewhere,
)
from rag_eval_integrations.judges.embedded._details import (
    CITING,
    CLOSED_STEMS,
    is_name,
    value_of,
)
from rag_eval_integrations.judges.embedded._negations import Token, denials
from rag_eval_integrations.judges.embedded._overlap import Overlap
from rag_eval_integrations.judges.embedded._reading import (
    Reader,
    alike,
    conditions,
)
from rag_eval_integrations.judges.embedded._slots import QUESTION, Exchange
from rag_eval_integrations.judges.embedded._words import stem

_QUOTED = 40


class Contradiction(NamedTuple):
    """One detail of a response sentence that a document sentence contradicts."""

    kind: str
    """`number`, `name`, `negation`, `opposite`, `date` or `unit`."""
    said: str
    """The detail as the response writes it."""
    documents: tuple[str, ...]
    """Details in its place, as the document sentence writes them."""
    sentence: int
    """Index of that document sentence, or `QUESTION`."""

    def __str__(self) -> str:
        where = "question" if self.sentence == QUESTION else "documents"
        if self.kind == "negation":
            return f"{self.said} ({where}: {', '.join(self.documents)})"
        there = ", ".join(map(cut, self.documents[:3]))
        return f"{self.kind} {cut(self.said)} ({where}: {there})"


def cut(text: str) -> str:
    return text if len(text) <= _QUOTED else f"{text[: _QUOTED - 1]}…"


def _names_the_same(one: Difference, other: Contradiction) -> bool:
    if "negation" in (one.kind, other.kind):
        return one.kind == other.kind
    return one.said in other.said or other.said in one.said


_LIMITS = {
    "name": (0.7, 0.7, 1), "number": (0.6, 0.6, 1), "opposite": (0.5, 0.4, 0),
    "unit": (0.4, 0.2, 0), "date": (0.4, 0.2, 0),
}  # fmt: skip
"""For each kind the lowest share of the other words that are copied, of the words beside the
detail, and the least number of sides on which the next word is the same. On half of the rows, one
of a hundred gold-supported sentences of a set at most passes them (docs/embedded-judge.md)."""
_APART, _LIMITS_APART = 0.15, (0.6, 0.4, 0)
"""The limits for a name that no other match has with more than this share of the other words: in
questions that take two documents, the name of one stands in a copy of the other."""
_SMALL = frozenset(
    map(
        stem, ["on", "off", "up", "down", "above", "below", "under", "with", "without", "in", "out"]
    )
)
"""Opposites that are common, and mostly in another sense."""


def _contradicts(one: Difference) -> bool:
    if one.kind == "negation":
        if one.there == ("denied",):
            return one.exact > 0 and one.place > 0.99 and one.copied >= 0.7
        return one.exact > 0 and (
            (one.place >= 0.75 and one.copied >= 0.65) or (one.place >= 0.5 and one.copied >= 0.9)
        )
    share, place, sides = _LIMITS[one.kind]
    if one.kind == "opposite" and stem(one.said) in _SMALL:
        place, sides = 0.7, 1
    if one.kind == "name" and one.elsewhere <= _APART:
        share, place, sides = _LIMITS_APART
    return (
        one.copied >= share
        and one.place >= place
        and one.exact >= sides
        and one.elsewhere <= max(one.alike, one.copied) - 0.1
    )


def _of_difference(one: Difference) -> Contradiction:
    if one.kind != "negation":
        return Contradiction(one.kind, one.said, one.there, one.sentence)
    if one.there == ("denied",):
        return Contradiction("negation", f"“{cut(one.said)}” is affirmed", one.there, one.sentence)
    return Contradiction("negation", f"“{cut(one.said)}” is added", one.there, one.sentence)


def of_differences(
    found: Sequence[Difference], known: Sequence[Contradiction]
) -> list[Contradiction]:
    """List the differences that contradict, but those that `known` names already.

    A denial is named once, since one "not" changes one sentence.
    """
    named = list(known)
    for one in found:
        if _contradicts(one) and not any(_names_the_same(one, other) for other in named):
            named.append(_of_difference(one))
    return named[len(known) :]


# --- Exchanges


def of_exchanges(
    o: Overlap,
    number: int,
    found: Iterable[Exchange],
    text: str,
    read: Reader,
    known: Sequence[Contradiction],
) -> list[Contradiction]:
    """List the exchanges that contradict, as `of_differences` lists differences."""
    named = list(known)
    for one in found:
        if not _exchanged(one, o, read):
            continue
        made = _of_exchange(one, o, number, text, read)
        if made is not None and not any(
            other.kind == made.kind or _say_the_same(other, made) for other in named
        ):
            named.append(made)
    return named[len(known) :]


def _say_the_same(one: Contradiction, other: Contradiction) -> bool:
    return one.said in other.said or other.said in one.said


_LEAST = {"opposite": (3, 2, 0.5), "added": (3, 1, 0.5), "lost": (3, 1, 0.5),
          "number": (4, 2, 0.4), "name": (2, 1, 0.0)}  # fmt: skip
"""For each kind the least number of equal words beside an exchange, how many of these are no
function words, and the share of the other words that are copied. Of gold-supported sentences of
the development half, four of a hundred thousand to four of a thousand pass these of a kind."""


def _exchanged(one: Exchange, o: Overlap, read: Reader) -> bool:
    """Tell whether the words beside an exchange suffice to call it a contradiction."""
    beside, content, share = _LEAST[one.kind]
    if one.sentence != QUESTION and one.there and read.stems(one.sentence).issuperset(one.said):
        beside = _MANY
    if one.before + one.after < beside or one.content < content or one.copied < share:
        return False
    both = one.before > 0 and one.after > 0
    if one.sentence == QUESTION and one.kind == "name":
        return not one.own and (both or one.before + one.after >= _ONE_SIDE)
    if one.sentence == QUESTION or one.kind in ("added", "lost"):
        return both
    return one.kind != "name" or one.content > 1 or one.before + one.after > _LEAST["name"][0]


_ONE_SIDE = 3
"""The least number of equal words on one side of a name that a question has."""
_MANY = 5
"""The least number of equal words if the document sentence has the response's word as well: "turn
it on or off" may be told by halves."""


def _of_exchange(
    one: Exchange, o: Overlap, number: int, text: str, read: Reader
) -> Contradiction | None:
    tokens = read.said(text).tokens
    asked = one.sentence == QUESTION
    theirs = read.said(read.question).tokens if asked else read[one.sentence].tokens
    at = _place(tokens, one.said)
    if at is None:
        return None
    said = _written(tokens, at, one.said)
    if one.kind in ("added", "lost"):
        more = denials(tokens) - denials(theirs)
        if more <= 0 if one.kind == "added" else more >= 0:
            return None
        if conditions(tokens) != conditions(theirs) and one.before + one.after <= _MANY:
            return None  # "check whether it is not damaged"
        how = ("affirmed", "denied") if one.kind == "lost" else ("denied", "affirmed")
        return Contradiction("negation", f"“{cut(said)}” is {how[0]}", (how[1],), one.sentence)
    if one.kind == "name" and not _other_name(one, tokens, at, o, number, read):
        return None
    if one.kind == "number" and (
        at == 0
        or tokens[at - 1].low in CITING
        or value_of(one.said[0]) is None
        or value_of(one.there[0]) is None
    ):
        return None
    other = _place(theirs, one.there)
    if other is None:
        return None
    return Contradiction(one.kind, said, (_written(theirs, other, one.there),), one.sentence)


def _place(tokens: Sequence[Token], stems: Sequence[str]) -> int | None:
    """Return where words stand next to each other, without marks between them."""
    for at, token in enumerate(tokens):
        if token.stem == stems[0] and [t.stem for t in tokens[at : at + len(stems)]] == [*stems]:
            return at
    return None


def _written(tokens: Sequence[Token], at: int, stems: Sequence[str]) -> str:
    return " ".join([token.written for token in tokens[at : at + len(stems)]])


_MOST_WORDS = 4
"""Words of a name; a longer row of capitals is a heading or a menu."""


def _other_name(
    one: Exchange, tokens: Sequence[Token], at: int, o: Overlap, number: int, read: Reader
) -> bool:
    """Tell whether a name is one, and another than the one in its place."""
    if not is_name(tokens[at]) or len(one.there) > _MOST_WORDS or may_be_same(one.said, one.there):
        return False
    if not CLOSED_STEMS.isdisjoint(one.said + one.there):
        return False
    if one.said[0] in o.holders and not always_capital(tokens[at], o, read):
        return False
    opens = at == 0 or not tokens[at - 1].written[0].isalnum()
    if opens and len(one.said) == 1:
        return False
    if one.sentence == QUESTION:
        return True
    share = alike(o, number, one.sentence, one.said)
    if share < _ALIKE or not read.asked.isdisjoint(one.said):
        return False
    return not one.own or elsewhere(o, number, set(one.said), one.sentence, read) < share


_ALIKE = 0.3


def may_be_same(one: Sequence[str], other: Sequence[str]) -> bool:
    """Tell whether two names may be one: misspelt, joined, or the initials of the other."""
    a, b = "".join(one), "".join(other)
    if a in b or b in a or SequenceMatcher(None, a, b).ratio() > _SPELT:
        return True
    return "".join([word[0] for word in one]) == b or "".join([word[0] for word in other]) == a


_SPELT = 0.6
