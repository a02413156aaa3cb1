"""Negations: the words that deny, and the words that they deny."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rag_eval_integrations.judges.embedded._words import FUNCTION_WORDS, NEGATIONS, OfWords, stem


def _split(text: str) -> list[str]:
    return text.split()


class Token(NamedTuple):
    """A word or mark; made once per word, see `token_of`."""

    written: str
    stem: str
    low: str
    """In lower case."""
    light: bool
    """True for a function word."""
    denying: bool
    """True for a word that denies those after it."""


def _made(word: str) -> Token:
    low = word.lower()
    return Token(word, stem(word), low, low in FUNCTION_WORDS, low.replace("’", "'") in _DENYING)


token_of = OfWords(_made).__getitem__
"""Returns the token of a word, remembered: a word comes in many sentences."""


class Negation(NamedTuple):
    """A word that denies others."""

    written: str
    scope: tuple[str, ...]
    """Stems of the first content words after it, at most three."""
    before: str
    """Stem of the content word before it."""


_BREAKS = frozenset(
    _split("""
. , ; : ! ? ( ) — – and but or because although though while which that who if when unless
""")
)
_DENYING = NEGATIONS - {"neither", "nor", "none", "nothing"} | {"lacks", "lacking"}
_ALSO_DENYING = frozenset(
    map(
        stem,
        _split("""
unable impossible lack lacks absent fail fails failed refuse refused prohibited forbidden banned
avoid prevent prevents unlikely hardly rarely few little except instead rather neither nor stop
stopped exclude excludes excluded deny denied reject rejected
"""),
    )
)
CONDITIONAL = frozenset(
    _split("""
if whether unless depending ensure check might maybe perhaps
""")
)
"""Words of sentences that neither affirm nor deny; comparable if both sentences have them."""
_SKIPPED = frozenset(
    _split("""
longer yet been being be have has had any a an the to very so
""")
)
_ALSO = frozenset(["only", "just", "merely", "simply"])
"""After these, a negation denies nothing: "not only …, but also"."""
_QUALIFYING = frozenset(
    _split("""
always necessarily all every exactly entirely completely fully both significantly
""")
)
"""What is denied with one of these is the word itself: "not always"."""


def denied(tokens: Sequence[Token]) -> tuple[frozenset[str], bool]:
    """Return the first content word after each negation, and whether anything is denied at all."""
    found: set[str] = set()
    denies = False
    for at, token in enumerate(tokens):
        if not token.denying and token.stem not in _ALSO_DENYING:
            continue
        if token.low == "no" and at + 1 < len(tokens) and tokens[at + 1].written in ",.":
            continue  # an answer, which says nothing alone
        if not token.denying:
            denies = True
            continue
        denies = True
        for other in tokens[at + 1 : at + 6]:
            if other.low in _BREAKS or other.low in _ALSO:
                break
            if other.written[0].isupper():
                break  # "not Lyon, but …"
            if other.low in _QUALIFYING or (
                other.stem not in FUNCTION_WORDS and other.low not in _SKIPPED
            ):
                found.add(other.stem)
                break
    return frozenset(found), denies


_MOST_NEGATIONS, _AHEAD, _SCOPE = 8, 9, 3
"""Negations that are listed, words after one that are looked at, and words that it may deny."""


def negations(tokens: Sequence[Token]) -> tuple[Negation, ...]:
    """List the negations with what they deny, as far as the clause goes; at most eight."""
    found: list[Negation] = []
    for at, token in enumerate(tokens):
        if not token.denying or len(found) == _MOST_NEGATIONS:
            continue
        ahead = [other.low for other in tokens[at + 1 : at + 2]]
        if ahead and (ahead[0] in _ALSO or (token.low == "no" and ahead[0] in ",.")):
            continue  # "not only", and an answer, which says nothing alone
        scope: list[str] = []
        for other in tokens[at + 1 : at + 1 + _AHEAD]:
            if other.low in _BREAKS or len(scope) == _SCOPE:
                break
            if not other.light and other.low not in _SKIPPED:
                scope.append(other.stem)
        before = next((t.stem for t in tokens[max(0, at - 4) : at][::-1]
                       if t.stem[0].isalnum() and not t.light), "")  # fmt: skip
        found.append(Negation(token.written, tuple(scope), before))
    return tuple(found)


def denials(tokens: Sequence[Token]) -> int:
    """Count the words that deny, those included that are no negations ("avoid")."""
    return sum([token.denying or token.stem in _ALSO_DENYING for token in tokens])
