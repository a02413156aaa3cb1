"""What differs between a response sentence and the document sentences that it nearly copies.

The words beside a detail tell what stands in its place: a name, a number, a date, a unit, an
opposite word, or a negation. Each difference comes with the share of the other words that both
sentences have, and with the share of the words beside it; rules that call it a contradiction are in
`_contradictions`. All work on a sentence is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from rag_eval_integrations.judges.embedded._details import (
    CITING,
    CLOSED_STEMS,
    NUMBER_STEMS,
    OF_UNITS,
    Details,
    is_name,
    same_quantity,
    same_words,
)
from rag_eval_integrations.judges.embedded._negations import Negation, Token, denials
from rag_eval_integrations.judges.embedded._opposites import OPPOSITE
from rag_eval_integrations.judges.embedded._overlap import Overlap
from rag_eval_integrations.judges.embedded._reading import (
    COMPARED,
    MOST,
    Reader,
    alike,
    conditions,
    copied,
)
from rag_eval_integrations.judges.embedded._words import stem

_BESIDE = 3
"""Words on either side of a detail that tell its place."""
_LIGHT = 0.3
"""Weight of a function word beside a detail; that of other words is 1."""


class Difference(NamedTuple):
    """One detail of a response sentence in whose place a document sentence has another."""

    kind: str
    """`number`, `name`, `date`, `unit`, `opposite` or `negation`."""
    said: str
    """The detail as the response writes it."""
    there: tuple[str, ...]
    """What the document sentence has instead."""
    sentence: int
    """Index of that document sentence."""
    alike: float
    """Share of the response sentence's other words that the document sentence holds."""
    place: float
    """Share of the words beside the detail that stand beside the other as well."""
    elsewhere: float
    """Best share, as `alike`, of a document sentence that has the detail; 0 if none has it."""
    copied: float
    """Share of the other words that the document sentence or the question holds."""
    exact: int = 0
    """On how many sides the next word is the same, 0 to 2. For a negation: 1 if the sentence that
    denies has more denials than the other, else 0."""


# --- The place of a detail: the words beside it


def _beside(tokens: Sequence[Token], first: int, last: int) -> dict[str, float]:
    """Weigh the words beside some tokens; marks are passed over, the end of a sentence is not."""
    found: dict[str, float] = {}
    for step, at in ((-1, first - 1), (1, last + 1)):
        left = _BESIDE
        while left and 0 <= at < len(tokens):
            word = tokens[at].stem
            if word[0].isalnum():
                found[word] = _LIGHT if tokens[at].light else 1.0
                left -= 1
            at += step
    return found


def _same_place(mine: dict[str, float], theirs: dict[str, float], asked: Set[str]) -> float:
    """Return the share of the weight beside a detail that is beside the other, or is asked for."""
    total = sum(mine.values())
    if not total:
        return 0.0
    return sum([w for word, w in mine.items() if word in theirs or word in asked]) / total


# --- Differences


def differences(o: Overlap, number: int, text: str, read: Reader, share: float) -> list[Difference]:
    """Find what differs between a response sentence and its best document sentences.

    Args:
        o: the index of the call.
        number: index of the response sentence.
        text: its text.
        read: reads document sentences.
        share: share of its words that the best of them or the question holds.
    """
    matches = o.matches[number]
    for match in matches[:2]:
        at = match.sentence
        if match is not matches[0]:
            share = copied(o, number, at, ())
        if match.weight < _SECOND * matches[0].weight or share < _NO_COPY:
            break
        details, denials = _may_differ(o, number, at, read)
        found: list[Difference] = []
        if details or denials:
            own = read.said(text)
            if details:
                found += _details(o, number, own, at, read)
            if denials:
                found += _negations(o, number, own, at, read)
        # A full copy of the first needs no second.
        if found or alike(o, number, at, ()) > 0.95:
            return found
    return []


_TELLING = OPPOSITE.keys() | CLOSED_STEMS | NUMBER_STEMS


def _may_differ(o: Overlap, number: int, at: int, read: Reader) -> tuple[bool, bool]:
    """Tell by the words alone whether details and denials may differ, before any text is read."""
    said, theirs = o.response[number], o.documents[at]
    new = read.own(number) - read.stems(at)
    if not new:
        return False, said.negated or theirs.negated
    strange = new - read.asked
    details = (
        not new.isdisjoint(read.opposed(number))
        or (said.stems[0] in strange and said.stems[0] in o.holders)
        or not strange.isdisjoint(said.names)
        or not strange.isdisjoint(said.numbers)
        or not strange.isdisjoint(_TELLING)
    )
    return details, said.negated or theirs.negated


def elsewhere(o: Overlap, number: int, stems: Set[str], but: int, read: Reader) -> float:
    """Return the share of the other words in the best other match that has the detail."""
    shares = [
        alike(o, number, match.sentence, stems)
        for match in o.matches[number]
        if match.sentence != but and stems <= read.stems(match.sentence)
    ]
    return max(shares, default=0.0)


def _tied(
    o: Overlap, number: int, stems: Set[str], beside: dict[str, float], but: int, read: Reader
) -> bool:
    """Tell whether another match has the detail with a word that is beside it here."""
    tied = {word for word, weight in beside.items() if weight == 1.0} - stems
    return any(
        stems <= (held := read.stems(match.sentence)) and not tied.isdisjoint(held)
        for match in o.matches[number]
        if match.sentence != but
    )


def _has_others(o: Overlap, own: Details, at: int, read: Reader) -> bool:
    """Tell by its words alone whether a document sentence may have other details, before reading.

    The answer is exact: no only where reading would find none.
    """
    stems, said, words = read.stems(at), own.stems, o.documents[at]
    if own.numbers and (words.numbers or not NUMBER_STEMS.isdisjoint(stems)):
        return True
    if own.members and not CLOSED_STEMS.isdisjoint(stems):
        return True
    for word in said & OPPOSITE.keys():
        if word not in stems and not OPPOSITE[word].isdisjoint(stems):
            return True
    text = read.texts[at]
    if not same_words(text):
        return True
    new = [s for i in own.names if (s := own.tokens[i].stem) not in stems and s not in read.asked]
    return bool(new) and not said.issuperset(map(stem, _CAPITALS.findall(text)))


_CAPITALS = re.compile(r"[A-Z][a-zA-Z]{2,}")
"""All words of an ASCII text that may be names."""


def _details(o: Overlap, number: int, own: Details, at: int, read: Reader) -> Iterator[Difference]:
    if not _has_others(o, own, at, read):
        return
    theirs = read[at]
    said, held = own.stems, theirs.stems
    asked = read.asked
    every = frozenset[str]()
    pairs = [
        ("name", _names(own, held, asked, o, read), partial(_names, theirs, said, every, o, read)),
        ("number", _numbers(own, theirs, asked), partial(_numbers, theirs, own, every)),
        # What a question asks ("Is it open?") is not said by a document that says the opposite.
        (
            "opposite",
            _opposed(own, held, asked if own.negations else every),
            partial(_opposed, theirs, said, every),
        ),
    ]
    for name in own.members:
        kind = "unit" if name in OF_UNITS else "date"
        mine = _members(own, theirs, name, asked)
        pairs.append((kind, mine, partial(_members, theirs, own, name, every)))
    for kind, mine, others in pairs:
        if not mine:
            continue
        there = others()
        if not there:
            continue
        for first, last, written in mine:
            stems = {token.stem for token in own.tokens[first : last + 1]}
            beside = _beside(own.tokens, first, last)
            places = [
                (_same_place(beside, _beside(theirs.tokens, a, b), o.question.bag), -a, text, a, b)
                for a, b, text in there
                if _may_replace(kind, own.tokens[first].stem, theirs.tokens[a].stem, written, text)
            ]
            if not places:
                continue
            place, _, instead, a, b = max(places)
            yield Difference(
                kind,
                written,
                (instead,),
                at,
                alike(o, number, at, stems),
                place,
                1.0
                if _is_year(written) and _tied(o, number, stems, beside, at, read)
                else elsewhere(o, number, stems, at, read),
                copied(o, number, at, stems),
                sum(
                    _next(own.tokens, x, step) == _next(theirs.tokens, y, step)
                    for x, y, step in ((first, a, -1), (last, b, 1))
                ),
            )


Place = tuple[int, int, str]
"""First and last token of a detail, and how it is written."""


def _may_replace(kind: str, mine: str, theirs: str, said: str, there: str) -> bool:
    """Tell whether one detail may stand for another of its kind."""
    if kind == "opposite":
        return theirs in OPPOSITE[mine]
    if kind == "number":
        # "15–20" without its dash is 1520.
        return _is_year(said) == _is_year(there) and not (len(there) > 3 and said in there)
    if kind == "name":
        return mine[:4] != theirs[:4]
    return True


def _next(tokens: Sequence[Token], at: int, step: int) -> str:
    """Return the stem of the next word on one side, without marks; empty at an end."""
    at += step
    while 0 <= at < len(tokens) and not tokens[at].written[0].isalnum():
        at += step
    return tokens[at].stem if 0 <= at < len(tokens) else ""


def _is_year(text: str) -> bool:
    return len(text) == 4 and text.isdigit() and "1000" <= text <= "2100"


def _opens(tokens: Sequence[Token], at: int) -> bool:
    """Tell whether any word would have a capital here."""
    return at == 0 or not tokens[at - 1].written[0].isalnum()


def always_capital(token: Token, o: Overlap, read: Reader) -> bool:
    """Tell whether the documents have a word, and write it as a name where they have it."""
    held = [t for at in o.holders.get(token.stem, ())[:COMPARED] for t in read[at].tokens
            if t.stem == token.stem]  # fmt: skip
    return bool(held) and all(t.written[0].isupper() for t in held)


def _names(
    details: Details, other: Set[str], asked: Set[str], o: Overlap, read: Reader
) -> list[Place]:
    """List the runs of words of names that the other sentence lacks."""
    found: list[Place] = []
    tokens = details.tokens
    last = 0
    for at in details.names:
        if at < last:
            continue
        last = at
        while (
            last < len(tokens)
            and tokens[last].stem not in other
            and tokens[last].stem not in asked
            and is_name(tokens[last])
            and (last > at or not _opens(tokens, at) or always_capital(tokens[at], o, read))
        ):
            last += 1
        if last > at:
            written = " ".join([token.written for token in tokens[at:last]])
            found.append((at, last - 1, written))
            if len(found) == MOST:
                break
    return found


def _numbers(details: Details, other: Details, asked: Set[str]) -> list[Place]:
    return [
        (n.at, n.last, n.written)
        for n in details.numbers[:MOST]
        if not any(same_quantity(n, m) for m in other.numbers[: 2 * MOST])
        and not (n.at == n.last and details.tokens[n.at].stem in asked)
        and not _marks_list(details.tokens, n.at)
    ]


def _marks_list(tokens: Sequence[Token], at: int) -> bool:
    """Tell whether a number ends a sentence as the mark of the next, or cites a document."""
    before = tokens[at - 1].written.lower() if at else ""
    return before in CITING or (before in (".", ":", ";", "!", "?") and at + 2 >= len(tokens))


def _members(details: Details, other: Details, name: str, asked: Set[str]) -> list[Place]:
    theirs = other.members.get(name, {})
    # Of units, those of quantities that the other sentence has in another unit are no others.
    same = {
        n.unit
        for n in (details.numbers[:MOST] if name in OF_UNITS else ())
        if any(same_quantity(n, m) for m in other.numbers[:MOST] if m.unit != n.unit)
    }
    new = {
        written
        for member, written in details.members.get(name, {}).items()
        if member not in theirs and member not in same and stem(written) not in asked
    }
    return [
        (at, at, token.written) for at, token in enumerate(details.tokens) if token.written in new
    ][:MOST]


def _opposed(details: Details, other: Set[str], asked: Set[str]) -> list[Place]:
    words = (details.stems & OPPOSITE.keys()) - other - asked
    if not words:
        return []
    return [
        (at, at, token.written) for at, token in enumerate(details.tokens) if token.stem in words
    ][:MOST]


def _negations(
    o: Overlap, number: int, own: Details, at: int, read: Reader
) -> Iterator[Difference]:
    """Find words that only one of the sentences denies, and both say."""
    theirs = read[at]
    if not own.negations and not theirs.negations:
        return
    share = copied(o, number, at, ())
    more = denials(own.tokens) - denials(theirs.tokens)
    conditional = conditions(own.tokens) != conditions(theirs.tokens)
    for ours, these, those, whose in (
        (True, own.negations, theirs.negations, theirs),
        (False, theirs.negations, own.negations, own),
    ):
        stems = whose.stems
        for one in these:
            if not one.scope or any(_same_denial(one, other) for other in those):
                continue
            if any(not stems.isdisjoint(OPPOSITE.get(word, ())) for word in one.scope):
                continue  # "not open" says the same as "closed"
            around = [one.before, *one.scope] if one.before else one.scope
            both = [word for word in around if word in stems]
            place = len(both) / len(around) / (2 if conditional else 1)
            said = one.written
            if not ours:
                said = next((t.written for t in own.tokens if t.stem in one.scope), "")
            yield Difference(
                "negation",
                said,
                ("affirmed" if ours else "denied",),
                at,
                alike(o, number, at, ()),
                place if ours or one.scope[0] in stems else 0.0,
                0.0,
                share,
                exact=(more if ours else -more) > 0,
            )


def _same_denial(one: Negation, other: Negation) -> bool:
    """Tell whether two negations deny the same: its first word, two of its words, or of whom."""
    if one.scope[:1] == other.scope[:1] or len(set(one.scope) & set(other.scope)) > 1:
        return True
    return one.before != "" and one.before == other.before


# --- Doubt: how much of a sentence's support its differences cost


_DOUBT, _DOUBT_DENIED = 0.2, 0.5
"""Log-odds that a difference costs in a full copy with the same words beside it: a detail, and a
negation. With 1.5 instead, AUROC of not adherent on unseen domains falls by .007."""
_UNHELD = 0.02
"""Log-odds that a name, a number or a word with an opposite costs that no match holds. With .3,
that AUROC falls by .008."""
_UNBOUND = 0.1
"""Log-odds that such a word costs that has another neighbour on both sides than in the documents
and the question. With half of it for each side instead, AUROC of not adherent on unseen domains
falls by .002, since paraphrases change one neighbour."""
_MOST_UNBOUND = 4
_MOST_DOUBT = 1.5
_NO_COPY = 0.35
"""Share of words, below which a sentence is no copy and is not compared."""
_SECOND = 0.8
"""Share of the best match's weight that the second must have to be compared."""


def doubt(o: Overlap, number: int, found: Sequence[Difference], read: Reader) -> float:
    """Return the log-odds that a response sentence loses for what differs; never negative."""
    said, matches = o.response[number], o.matches[number]
    cost = sum(
        [
            (_DOUBT_DENIED if one.kind == "negation" else _DOUBT)
            * one.copied
            * (0.3 + 0.7 * one.place)
            for one in found
        ]
    )
    left = (said.names | said.numbers | read.opposed(number)) - read.asked
    for match in matches[:COMPARED]:
        if not left:
            break
        held = left & read.stems(match.sentence)
        cost += _UNHELD * len(held) * (1 - match.weight / matches[0].weight)
        left = left - held
    cost += _UNHELD * min(4, len(left))
    if said.negated and not o.documents[matches[0].sentence].negated:
        cost += _UNHELD
    cost += _UNBOUND * min(_MOST_UNBOUND, _unbound(o, number, read))
    return min(_MOST_DOUBT, cost)


def _unbound(o: Overlap, number: int, read: Reader) -> int:
    """Count the names, numbers and words with an opposite that are next to no word as elsewhere."""
    said = o.response[number]
    words = said.names | said.numbers | read.opposed(number)
    if not words:
        return 0
    stems = said.stems
    known = bytes(map(read.known_pairs.__contains__, pairwise(stems)))
    count = 0
    at = known.find(_NEITHER)
    while at >= 0:
        count += stems[at + 1] in words
        at = known.find(_NEITHER, at + 1)
    return count


_NEITHER = b"\0\0"
"""Two pairs that are not known: a word with another neighbour on both sides."""
