"""Exchanges: in a response sentence, another word stands where a document has its own.

The place of a word is told by the words next to it, in order: "low CD4 cell count" in a document
and "high CD4 cell count" in the response differ in one word, whatever else both sentences say and
wherever else "high" stands. So these rules need less of a sentence to be copied than those of
`_alignment`, which compare what stands near in any order. The question may take a document's place:
"You can turn on the TV" does not answer "Can I turn off the TV?".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from itertools import pairwise
from typing import NamedTuple

from rag_eval_integrations.judges.embedded._opposites import OPPOSITE
from rag_eval_integrations.judges.embedded._overlap import Overlap
from rag_eval_integrations.judges.embedded._reading import COMPARED, MOST, Reader, copied
from rag_eval_integrations.judges.embedded._words import FUNCTION_WORDS, stem

QUESTION = -1
"""The question, as an index of a sentence."""
_MOST_BESIDE = 4
_LEAST_BESIDE = 2
COPY = 0.5
"""Least share of a response sentence's words that the best document sentence or the question holds,
for its words to be compared."""
_LONGEST = 400
"""Words of a sentence that are compared; a longer one is hardly one sentence."""
_SECOND = 0.5
"""Share of the best match's weight that another must have to be compared."""
_FEW = 30
"""Sentences that hold a word, beyond which no more are looked at."""
_ONLY = frozenset(map(stem, ["only", "just", "merely", "simply"]))
"""After these, a "not" denies nothing: "not only …, but also"."""


class Exchange(NamedTuple):
    """A word of the response, and what a document sentence or the question has in its place."""

    kind: str
    """`opposite`, `name`, `number`, `added` or `lost` (of a negation)."""
    said: tuple[str, ...]
    """Stems of the response; of a negation, what is denied or affirmed."""
    there: tuple[str, ...]
    """Stems in their place; none for a negation."""
    sentence: int
    """Index of the document sentence, or `QUESTION`."""
    before: int
    """Number of words before it that are the same, up to four; the beginnings of both sentences
    count as one."""
    after: int
    """The same for the words after it."""
    content: int
    """How many of these are no function words."""
    own: int
    """The most such words, on both sides, where a document has what the response says."""
    copied: float
    """Share of the response sentence's other words that the document sentence or the question
    holds."""


_Beside = tuple[int, int, int]
"""Equal words before, after, and how many of them are no function words."""
_Refs = Sequence[tuple[int, tuple[str, ...]]]
"""Sentences that are compared, and their words."""


def exchanges(o: Overlap, number: int, read: Reader) -> Iterator[Exchange]:
    """Find the words of a response sentence in whose place a document has another.

    Only those with two equal words beside them, and with more than beside the response's own word
    in any document.

    Args:
        o: the index of the call.
        number: index of the response sentence.
        read: reads document sentences.
    """
    said = o.response[number]
    if len(said.stems) > _LONGEST or len(o.question.stems) > _LONGEST:
        return
    matches = o.matches[number]
    least = _SECOND * matches[0].weight
    best = [
        match.sentence
        for match in matches[:COMPARED]
        if match.weight >= least and len(o.documents[match.sentence].stems) <= _LONGEST
    ]
    loose = _loose(o, number, best, read)
    negated = said.negated or any([o.documents[at].negated for at in best[:2]])
    if not (loose or negated):
        return
    mine = read.plain(said.stems)
    refs = [(at, read.plain(o.documents[at].stems)) for at in best]
    if loose:
        asked = (QUESTION, read.plain(o.question.stems))
        names = read.names(said.names)
        done = -1
        for at in [at for at, word in enumerate(mine) if word in loose][:MOST]:
            word = mine[at]
            if word in OPPOSITE:
                yield from _opposed(o, number, mine, at, [*refs, asked], read)
            if word in said.numbers and at:
                yield from _replaced(o, number, "number", mine, at, at, refs, read)
            elif word in names and at > done:
                first, done = _last_of(mine, at, names, -1), _last_of(mine, at, names)
                yield from _replaced(o, number, "name", mine, first, done, [*refs, asked], read)
    if negated:
        yield from _denied(o, number, mine, refs[:2])


def _loose(o: Overlap, number: int, best: Sequence[int], read: Reader) -> set[str]:
    """List the words that may have been exchanged."""
    said = o.response[number]
    stems = said.stems
    found: set[str] = set()
    details = read.names(said.names | said.numbers)
    if details:
        # A name or a number beside a word as in a document is in its place.
        pairs = o.pairs
        bound: set[str] = set()
        for one, other in pairwise(stems):
            if one in details:
                if other not in details and other not in FUNCTION_WORDS and (one, other) in pairs:
                    bound.add(one)
            elif other in details and one not in FUNCTION_WORDS and (one, other) in pairs:
                bound.add(other)
        found.update(details - bound)
    for word in read.opposed(number):
        others = OPPOSITE[word]
        if not others.isdisjoint(read.asked) or not all(
            [others.isdisjoint(read.stems(at)) for at in best]
        ):
            found.add(word)
    return found


def _last_of(stems: Sequence[str], at: int, wanted: Set[str], step: int = 1) -> int:
    """Return the end of a run of wanted words."""
    while 0 <= at + step < len(stems) and stems[at + step] in wanted:
        at += step
    return at


def _agree(
    mine: tuple[str, ...], at: int, theirs: Sequence[str], other: int, step: int
) -> tuple[int, int]:
    """Count the equal words from two places on, and those of them that are no function words."""
    count = content = 0
    while count < _MOST_BESIDE:
        inside, within = 0 <= at < len(mine), 0 <= other < len(theirs)
        if not (inside and within):
            return (count + 1, content) if inside == within else (count, content)
        if mine[at] != theirs[other]:
            break
        content += mine[at] not in FUNCTION_WORDS
        count, at, other = count + 1, at + step, other + step
    return count, content


def _beside(
    mine: tuple[str, ...], first: int, last: int, theirs: Sequence[str], a: int, b: int
) -> _Beside:
    """Compare what stands before `first` and after `last` with what is before `a` and after `b`."""
    before, one = _agree(mine, first - 1, theirs, a - 1, -1)
    after, other = _agree(mine, last + 1, theirs, b + 1, 1)
    return before, after, one + other


def _places(stems: Sequence[str], word: str) -> list[int]:
    found = []
    at = -1
    for _ in range(stems.count(word)):
        at = stems.index(word, at + 1)
        found.append(at)
    return found


def _opposed(
    o: Overlap, number: int, mine: tuple[str, ...], at: int, refs: _Refs, read: Reader
) -> Iterator[Exchange]:
    word = mine[at]
    others = OPPOSITE[word]
    found: dict[bool, tuple[_Beside, int, str]] = {}
    for sentence, theirs in refs:
        if others.isdisjoint(read.asked if sentence == QUESTION else read.stems(sentence)):
            continue
        for other in others.intersection(theirs):
            for place in _places(theirs, other):
                beside = _beside(mine, at, at, theirs, place, place)
                of = sentence == QUESTION
                if of not in found or (beside[:2], other) > (found[of][0][:2], found[of][2]):
                    found[of] = (beside, sentence, other)
    if not found:
        return
    own = 0
    for _, theirs in refs:
        for place in _places(theirs, word):
            own = max(own, sum(_beside(mine, at, at, theirs, place, place)[:2]))
    for beside, sentence, other in found.values():
        yield from _exchange(o, number, "opposite", (word,), (other,), sentence, beside, own)


def _exchange(
    o: Overlap,
    number: int,
    kind: str,
    said: tuple[str, ...],
    there: tuple[str, ...],
    sentence: int,
    beside: _Beside,
    own: int,
) -> Iterator[Exchange]:
    if _LEAST_BESIDE <= sum(beside[:2]) > own:
        share = copied(o, number, sentence, said) if sentence != QUESTION else 1.0
        yield Exchange(kind, said, there, sentence, *beside, own, share)


def _replaced(
    o: Overlap,
    number: int,
    kind: str,
    mine: tuple[str, ...],
    first: int,
    last: int,
    refs: _Refs,
    read: Reader,
) -> Iterator[Exchange]:
    """Find what stands in place of a name, or of a number, in the best of the sentences."""
    run = mine[first : last + 1]
    most = 1 if kind == "number" else MOST
    best: tuple[_Beside, int, tuple[str, ...]] = ((0, 0, 0), 0, ())
    before = mine[first - 1] if first else ""
    after = mine[last + 1] if last + 1 < len(mine) else ""
    for sentence, theirs in refs:
        words = o.question if sentence == QUESTION else o.documents[sentence]
        others = words.numbers if kind == "number" else words.names
        if not others:
            continue
        follows, precedes = before in theirs, after in theirs
        if not (follows or precedes):
            continue
        if kind == "name":
            others = read.names(others)
        found: list[tuple[int, int]] = []
        if follows:
            found += _next_to(theirs, before, others, 1, most)
        if precedes:
            found += _next_to(theirs, after, others, -1, most)
        for a, b in found:
            there = theirs[a : b + 1]
            if not any(word in run for word in there):
                beside = _beside(mine, first, last, theirs, a, b)
                best = max(best, (beside, sentence, there), key=_of_both)
    beside, sentence, there = best
    if sum(beside[:2]) < _LEAST_BESIDE:
        return
    own = _own(o, mine, first, last, read)
    yield from _exchange(o, number, kind, run, there, sentence, beside, own)


def _own(o: Overlap, mine: tuple[str, ...], first: int, last: int, read: Reader) -> int:
    """Count the most equal words beside a detail where a document has it."""
    run = mine[first : last + 1]
    own = 0
    for at in o.holders.get(run[0], ())[:_FEW]:
        theirs = read.plain(o.documents[at].stems[:_LONGEST])
        for a in _places(theirs, run[0]):
            b = a + len(run) - 1
            if theirs[a : b + 1] == run:
                own = max(own, sum(_beside(mine, first, last, theirs, a, b)[:2]))
    return own


def _of_both(one: tuple[_Beside, int, tuple[str, ...]]) -> int:
    return one[0][0] + one[0][1]


def _next_to(
    stems: Sequence[str], word: str, others: Set[str], step: int, most: int
) -> list[tuple[int, int]]:
    """List the runs of `others` beside a word, on one side of it: where each begins and ends."""
    found = []
    for at in _places(stems, word):
        near = at + step
        if 0 < near < len(stems) and stems[near] in others:
            far = _last_of(stems, near, others, step) if most > 1 else near
            found.append((near, far) if step > 0 else (far, near))
    return found


def _denied(o: Overlap, number: int, mine: tuple[str, ...], refs: _Refs) -> Iterator[Exchange]:
    """Find a "not" that only one of two sentences has between the same words."""
    for kind in ("lost", "added"):
        best: tuple[_Beside, int, int] | None = None
        own = 0
        for sentence, theirs in refs:
            one, two = (theirs, mine) if kind == "lost" else (mine, theirs)
            for at in _nots(one):
                for place in _places(two, one[at + 1]):
                    denied = place > 0 and two[place - 1] == "not"
                    beside = _beside(one, at, at, two, place - denied, place - 1)
                    if denied:
                        own = max(own, sum(beside[:2]))
                    elif best is None or sum(beside[:2]) > sum(best[0][:2]):
                        best = (beside, sentence, place if kind == "lost" else at + 1)
        if best is None or sum(best[0][:2]) <= max(own, _LEAST_BESIDE - 1):
            continue
        beside, sentence, place = best
        if kind == "lost":
            # Another sentence, or another part of this one, may affirm the same.
            for _, theirs in refs:
                for other in _places(theirs, mine[place]):
                    if not (other and theirs[other - 1] == "not"):
                        affirmed = _beside(mine, place, place - 1, theirs, other, other - 1)
                        own = max(own, sum(affirmed[:2]))
        what = next((w for w in mine[place : place + 4] if w not in FUNCTION_WORDS), mine[place])
        yield from _exchange(o, number, kind, (what,), (), sentence, beside, own)


def _nots(stems: Sequence[str]) -> list[int]:
    return [
        at
        for at in _places(stems, "not")
        if at + 1 < len(stems) and stems[at + 1] not in _ONLY
    ]  # fmt: skip
