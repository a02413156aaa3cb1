"""Differences that contradict: which of those in a near copy are told, and how they are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rag_eval_integrations.judges.embedded._alignment import Difference
from rag_eval_integrations.judges.embedded._words import stem

_QUOTED = 40


class Contradiction(NamedTuple):
    """One detail of a response sentence that a document sentence contradicts."""

    kind: str
    """`number`, `name`, `negation`, `date` or `unit`."""
    said: str
    """The detail as the response writes it."""
    documents: tuple[str, ...]
    """Details in its place, as the document sentence writes them."""
    sentence: int
    """Index of that document sentence."""

    def __str__(self) -> str:
        if self.kind == "negation":
            return f"{self.said} (documents: {', '.join(self.documents)})"
        there = ", ".join(map(cut, self.documents[:3]))
        return f"{self.kind} {cut(self.said)} (documents: {there})"


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
