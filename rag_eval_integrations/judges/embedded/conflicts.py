"""What a response sentence says otherwise than the document sentences it matches.

Overlap takes "built in 1899" for support of "built in 1889": all other words agree. So numbers,
dates, units, names, opposites and negations are compared with the *matched* sentences, not with
all documents. Two of these help to tell unsupported sentences and are features; all are said in
the explanation.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from rag_eval_integrations.judges.embedded.overlap import Overlap
from rag_eval_integrations.judges.embedded.words import Words, stem

_OPPOSITES = """
increase decrease; rise fall; high low; higher lower; more less; more fewer; before after
first last; north south; east west; young old; younger older; large small; larger smaller
big little; long short; longer shorter; open close; start end; begin end; left right; up down
male female; man woman; positive negative; true false; win lose; won lost; buy sell; hot cold
warm cool; early late; earlier later; always never; all none; same different; include exclude
allow prevent; enable disable; accept reject; maximum minimum; majority minority; inside outside
internal external; above below; over under; front back; top bottom; forward backward
safe dangerous; possible impossible; able unable; legal illegal; best worst; better worse
good bad; present absent; born died; both neither; yes no; husband wife; father mother
son daughter; brother sister; attach remove; connect disconnect; install uninstall; on off
with without; strong weak; effective ineffective; common rare; public private; active inactive
direct indirect; fast slow; light dark; heavy light; wet dry; upper lower; success failure
agree disagree; support oppose; gain loss; new old; symptomatic asymptomatic; known unknown
significant insignificant
"""


def _table() -> dict[str, frozenset[str]]:
    opposites: dict[str, set[str]] = {}
    for pair in _OPPOSITES.replace("\n", ";").split(";"):
        if pair.strip():
            one, other = map(stem, pair.split())
            opposites.setdefault(one, set()).add(other)
            opposites.setdefault(other, set()).add(one)
    return {word: frozenset(others) for word, others in opposites.items()}


_OPPOSITE = _table()
SPELLED = {stem(word): word for word in _OPPOSITES.replace(";", " ").split()}
"""The words of the table by their stems."""


class Conflicts(NamedTuple):
    """What does not agree with the matched sentences; stems, sorted, empty where all agrees."""

    numbers: tuple[str, ...] = ()
    """Numbers in neither the matched sentences nor the question."""
    other_numbers: tuple[str, ...] = ()
    """What the matched sentences have instead: first of all with the same unit ("10 minutes")."""
    opposites: tuple[tuple[str, str], ...] = ()
    """A word, and its opposite that the matched sentences have in its place."""
    negation: float = 0.0
    """1 when only the sentence is negated, -1 when only its best match is."""


NONE = Conflicts()


def conflicts(o: Overlap, number: int, matched: tuple[int, ...]) -> Conflicts:
    """Compare a response sentence with the document sentences that cover it."""
    if not matched:
        return NONE
    sentence = o.response[number]
    against = [o.documents[i] for i in matched]
    numbers: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    if sentence.numbers:
        theirs = frozenset[str]().union(*[words.numbers for words in against])
        numbers = tuple(sorted(sentence.numbers - theirs - o.question.bag))
        if numbers and theirs:
            others = _instead(sentence, numbers, against) or tuple(
                sorted(theirs - sentence.numbers)
            )
    opposites: tuple[tuple[str, str], ...] = ()
    own = _OPPOSITE.keys() & sentence.stems
    opposed = frozenset[str]().union(*[_OPPOSITE[word] for word in own])
    # "on" and "off" are in many sentences: most calls end here, before the sets are made.
    if not all([opposed.isdisjoint(words.stems) for words in against]):
        said = frozenset(sentence.stems)
        found = frozenset[str]().union(*[words.stems for words in against])
        opposites = tuple(
            [(w, min(_OPPOSITE[w] & found - said)) for w in sorted(own - found)
             if _OPPOSITE[w] & found - said]
        )  # fmt: skip
    negation = float(sentence.negated - against[0].negated)
    return Conflicts(numbers, others, opposites, negation)


def _instead(sentence: Words, numbers: tuple[str, ...], against: list[Words]) -> tuple[str, ...]:
    """Numbers that the matched sentences have before the word that follows ours."""
    units = {after for word, after in pairwise(sentence.stems) if word in numbers}
    return tuple(
        sorted(
            {
                word
                for words in against
                if words.numbers
                for word, after in pairwise(words.stems)
                if after in units and word in words.numbers and word not in sentence.numbers
            }
        )
    )
