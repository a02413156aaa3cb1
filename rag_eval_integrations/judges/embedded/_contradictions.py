"""Contradictions: a response sentence that says what a document says, except for one detail.

A number, a unit, a date, a name or a negation that differs contradicts a document only if the rest
of the sentence matches. Four tests tell: most other words stand in one document sentence; that
sentence has a detail of the same kind in its place; the response's own detail is in no document;
and nothing says the same in other words ("forty" and 40, "2 years" and "24 months", "isn't").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from rag_eval_integrations.judges.embedded._alignment import always_capital, differences, doubt
from rag_eval_integrations.judges.embedded._companions import strangers
from rag_eval_integrations.judges.embedded._details import (
    CLOSED_STEMS,
    NUMBER_WORDS,
    OF_UNITS,
    Details,
    Number,
    is_name,
    same_quantity,
    value_of,
)
from rag_eval_integrations.judges.embedded._negations import Token, denied
from rag_eval_integrations.judges.embedded._overlap import Overlap
from rag_eval_integrations.judges.embedded._reading import (
    COMPARED,
    MOST,
    Reader,
    alike,
    conditions,
    copied,
)
from rag_eval_integrations.judges.embedded._slots import COPY, exchanges
from rag_eval_integrations.judges.embedded._substitutions import (
    Contradiction,
    cut,
    of_differences,
    of_exchanges,
)
from rag_eval_integrations.judges.embedded._words import FUNCTION_WORDS, stem

_ALIKE, _ALIKE_UNIT, _ALIKE_NAME, _ALIKE_FIRST = 0.5, 0.3, 0.55, 0.7
"""Lowest share of the other words that one document sentence must hold: in general, for a number
with the same unit, for a name, and for a name that opens the sentence, as any word may."""


# --- A response sentence against the documents


def contradictions(
    o: Overlap, response: Sequence[str], documents: Sequence[str], question: str = ""
) -> dict[int, list[Contradiction]]:
    """Find the details of response sentences that their best document sentences contradict.

    Args:
        o: the index of the call.
        response: texts of the response sentences.
        documents: texts of all document sentences, in the order of the index.
        question: text of the question.

    Returns:
        Index of a contradicted response sentence → its details, at least one.
    """
    return compare(o, response, documents, question=question)[0]


class Compared(NamedTuple):
    """What the comparison of a response with its best document sentences found."""

    contradictions: dict[int, list[Contradiction]]
    """Index of a contradicted response sentence → its details, at least one."""
    doubts: list[float]
    """Log-odds that each response sentence loses for what differs; see `doubt`."""


def compare(
    o: Overlap,
    response: Sequence[str],
    documents: Sequence[str],
    details: Callable[[str], Details] = Details,
    question: str = "",
) -> Compared:
    """Compare response sentences with their best document sentences; see `contradictions`.

    `details` reads a document sentence. Without `question`, no words are compared with it.
    """
    read = Reader(o, documents, details, question)
    found: dict[int, list[Contradiction]] = {}
    doubts = [0.0] * len(response)
    for number, text in enumerate(response):
        if not text or not o.matches[number]:
            continue
        share = copied(o, number, o.matches[number][0].sentence, ())
        here = differences(o, number, text, read, share)
        doubts[number] = doubt(o, number, here, read)
        contradicted = _of_sentence(o, number, text, read)
        contradicted += of_differences(here, contradicted)
        if share >= COPY and not contradicted:
            found_here = exchanges(o, number, read)
            contradicted += of_exchanges(o, number, found_here, text, read, contradicted)
            if not contradicted:
                contradicted += strangers(o, number, text, read)
        if contradicted:
            found[number] = contradicted
    return Compared(found, doubts)


def _of_sentence(o: Overlap, number: int, text: str, read: Reader) -> list[Contradiction]:
    said, matches = o.response[number], o.matches[number][:COMPARED]
    if not matches:
        return []
    best = [match.sentence for match in matches]
    # Most sentences have no detail that could differ: these sets tell, before any text is read.
    theirs = [o.documents[at] for at in best]
    numbers = bool(said.numbers) or not _NUMBER_STEMS.isdisjoint(said.stems)
    members = CLOSED_STEMS.intersection(said.stems)
    if numbers or members:
        held = frozenset[str]().union(*[read.stems(at) for at in best])
        numbers = not said.numbers <= held or not _NUMBER_STEMS.isdisjoint(said.stems)
        closed = not members <= held
    else:
        closed = False
    first = said.stems[0]
    names = (first not in theirs[0].bag and first not in _FUNCTION_STEMS) or any(
        [not said.names - words.bag <= o.question.bag for words in theirs[:2]]
    )
    negated = any([said.negated != words.negated for words in theirs[:2]])
    if not (numbers or names or closed or negated):
        return []
    own = read.said(text)
    found: list[Contradiction] = []
    if numbers and own.numbers:
        found += _number_conflicts(o, number, own, best, read)
    if closed:
        found += _class_conflicts(o, number, own, best, read)
    if names:
        found += _name_conflicts(o, number, own, best, read)
    if negated:
        found += _negation_conflicts(o, number, own, best, read)
    return found


_NUMBER_STEMS = frozenset(map(stem, NUMBER_WORDS)) - {"1", "2", "0"} | frozenset(
    {"hundred", "thousand"}
)
_FUNCTION_STEMS = frozenset(map(stem, FUNCTION_WORDS)) | FUNCTION_WORDS


def _number_conflicts(
    o: Overlap, number: int, own: Details, best: Sequence[int], read: Reader
) -> list[Contradiction]:
    known = {n.value for at in best for n in read.numbers(at)}
    known |= {value for word in o.question.numbers if (value := value_of(word)) is not None}
    apart = {stem(part) for n in own.numbers for part in n.written.split()}
    apart |= {token.stem for token in own.tokens if token.stem[:1].isdigit()}
    found = []
    for one in own.numbers[:MOST]:
        if one.value in known or _with_same_unit(o, one, read):
            continue
        elsewhere = _anywhere(o, one)
        for at in best:
            theirs = [
                n for n in read.numbers(at) if n.value not in {mine.value for mine in own.numbers}
            ]
            if not theirs or _says_the_same(one, read.numbers(at)):
                if theirs:
                    break
                continue
            instead = [n for n in theirs if n.beside & one.beside]
            if not instead and _like_year(one.value):
                instead = [n for n in theirs if _like_year(n.value)]
            share = alike(o, number, at, apart)
            if instead and share >= (_ALIKE_FIRST if elsewhere else _ALIKE_UNIT):
                pass
            elif not instead and not elsewhere and one.value > 12 and share >= _ALIKE_FIRST:
                instead = theirs
            else:
                continue
            found.append(Contradiction("number", one.written, _written(instead), at))
            break
    return found


def _anywhere(o: Overlap, one: Number) -> bool:
    """Tell whether any document has the number in digits, or its words."""
    if one.value == int(one.value) and str(int(one.value)) in o.idf:
        return True
    return all(stem(part) in o.idf for part in one.written.split())


def _with_same_unit(o: Overlap, one: Number, read: Reader) -> bool:
    """Tell whether a document sentence has the number, in digits, beside one of the same words."""
    if one.value != int(one.value):
        return False
    held = o.holders.get(str(int(one.value)), ())
    return any(
        n.value == one.value and (n.beside & one.beside or not one.beside)
        for at in held[:COMPARED]
        for n in read[at].numbers
    )


def _like_year(value: float) -> bool:
    return 1000 <= value <= 2100 and value == int(value)


def _says_the_same(one: Number, others: Iterable[Number]) -> bool:
    """Tell whether a number is another one, rounded or in another unit."""
    for other in others:
        near = 0.1 if one.hedged or other.hedged else 0.005
        if abs(one.value - other.value) <= near * abs(other.value) and not _like_year(one.value):
            return True
        if one.unit != other.unit and same_quantity(one, other):
            return True
    return False


def _written(numbers: Iterable[Number]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([n.written for n in numbers]))


def _class_conflicts(
    o: Overlap, number: int, own: Details, best: Sequence[int], read: Reader
) -> list[Contradiction]:
    found = []
    for name, members in own.members.items():
        elsewhere = {member for at in best for member in read[at].members.get(name, ())}
        new = [member for member in members if member not in elsewhere]
        if not new:
            continue
        apart = {stem(word) for word in members.values()}
        for at in best:
            theirs = read[at].members.get(name, {})
            instead = [written for member, written in theirs.items() if member not in members]
            if not instead or alike(o, number, at, apart) < _ALIKE:
                continue
            if name in OF_UNITS:
                # Another unit with another number may be the same quantity.
                mine = {n.value for n in own.numbers if n.unit in new}
                if mine and mine.isdisjoint({n.value for n in read[at].numbers if n.unit}):
                    continue
            kind = "unit" if name in OF_UNITS else "date"
            found.append(Contradiction(kind, members[new[0]], tuple(instead), at))
            break
    return found


def _name_conflicts(
    o: Overlap, number: int, own: Details, best: Sequence[int], read: Reader
) -> list[Contradiction]:
    unasked = [at for at in own.names if own.tokens[at].stem not in o.question.bag]
    if not unasked:
        return []
    names = [
        at
        for at in unasked
        if own.tokens[at].stem not in o.idf and own.tokens[at].stem[:5] not in read.beginnings
    ]
    if len(names) > 1 and names[:2] != [0, 1] and names[0] == 0:
        names = names[1:]  # "Note that Lyon …": two capitals for two reasons
    if not names:
        found = _name_of_another(o, number, own, [at for at in unasked if at], best, read)
        for at in best[:2]:
            found = found or _name_untied(o, number, own, unasked, at, read)
        return found
    names = names[:MOST]
    mine = [own.tokens[at] for at in names]
    known = own.stems | o.question.bag
    apart = {token.stem for token in mine}
    opens = names == [0]
    for at in best:
        if alike(o, number, at, apart) < (_ALIKE_FIRST if opens else _ALIKE_NAME):
            continue
        there = read[at].tokens
        theirs = [place for place in read[at].names if there[place].stem not in known]
        if opens:
            # Any word has a capital here, so it has to stand where the other name stands.
            beside = _beside(own.tokens, 0)
            theirs = [p for p in theirs if beside & _beside(there, p)]
        # "South Korea" for "Korea" only adds; "Ann Weber" for "Eva Weber" is another name.
        tied = {own.tokens[p].stem for name in names for p in (name - 1, name + 1)
                if 0 <= p < len(own.tokens) and is_name(own.tokens[p])} - apart  # fmt: skip
        if shared := tied & read[at].stems:
            theirs = [p for p in theirs if shared & _beside(there, p)]
        instead = [there[place].written for place in theirs]
        if instead and not any(_misspelt(token.written, instead) for token in mine):
            written = " ".join([token.written for token in mine])
            return [Contradiction("name", written, (" ".join(dict.fromkeys(instead)),), at)]
    return []


def _name_of_another(
    o: Overlap,
    number: int,
    own: Details,
    names: Sequence[int],
    best: Sequence[int],
    read: Reader,
) -> list[Contradiction]:
    """Find a name of the documents in a place where the best match has another one."""
    if not names:
        return []
    there = read[best[0]].tokens
    stems = read[best[0]].stems
    strange = [at for at in names if own.tokens[at].stem not in stems][:MOST]
    if not strange or alike(o, number, best[0], [own.tokens[at].stem for at in strange]) < 0.9:
        return []
    known = own.stems | o.question.bag
    for at in strange:
        place = (_around(own.tokens, at, -1), _around(own.tokens, at, 1))
        for other in read[best[0]].names:
            token = there[other]
            if not other or token.stem in known:
                continue
            if None in place or place != (_around(there, other, -1), _around(there, other, 1)):
                continue
            if not any(own.tokens[at].stem in o.documents[i].bag for i in best[1:]):
                mine = own.tokens[at].written
                return [Contradiction("name", mine, (token.written,), best[0])]
    return []


def _name_untied(
    o: Overlap, number: int, own: Details, names: Sequence[int], best: int, read: Reader
) -> list[Contradiction]:
    """Find a name in the place of another that no document ties to the sentence's other names.

    "Sydney is the capital of Australia" copies a sentence about Canberra, and none has Sydney and
    Australia. Where the rest of the sentence has no name ("is an actor"), both may be true.
    """
    stems = read.stems(best)
    strange = [at for at in names if own.tokens[at].stem not in stems][:MOST]
    mine = {own.tokens[at].stem for at in strange}
    if not mine or alike(o, number, best, mine) < 0.99:
        return []
    if strange[0] == 0 and not always_capital(own.tokens[0], o, read):
        return []
    tied = {own.tokens[at].stem for at in own.names} | o.question.names
    tied = (tied & stems) - mine
    held = [at for one in mine for at in o.holders.get(one, ())[:_FEW]]
    if not tied or len(held) >= _FEW or any(not tied.isdisjoint(read.stems(at)) for at in held):
        return []
    place = {_around(own.tokens, strange[0], -1), _around(own.tokens, strange[-1], 1)}
    there, known = read[best].tokens, own.stems | o.question.bag
    for other in read[best].names:
        if there[other].stem in known:
            continue
        if place == {_around(there, other, -1), _around(there, other, 1)}:
            written = " ".join([own.tokens[at].written for at in strange])
            last = other
            while last + 1 < len(there) and is_name(there[last + 1]):
                last += 1
            instead = " ".join([one.written for one in there[other : last + 1]])
            return [Contradiction("name", written, (instead,), best)]
    return []


_FEW = 50
"""Sentences that hold a name, from which on they are not read."""


def _around(tokens: Sequence[Token], at: int, step: int) -> str | None:
    """Return the stem of the first word beside a name that is not a name."""
    at += step
    while 0 <= at < len(tokens) and is_name(tokens[at]):
        at += step
    return tokens[at].stem if 0 <= at < len(tokens) else None


def _beside(tokens: Sequence[Token], at: int) -> set[str]:
    return {
        token.stem
        for token in (*tokens[max(0, at - 1) : at], *tokens[at + 1 : at + 2])
        if token.stem[0].isalnum() and token.stem not in _OBJECTS
    }


_TYING = "to the a an one your this these that all any by with in for of if"
_OBJECTS = frozenset(_TYING.split())
"""Words beside an imperative ("Select the …", "Move to …"), which has a capital as a name has."""


def _misspelt(name: str, others: Sequence[str]) -> bool:
    """Tell whether a name may be another one, spelt differently."""
    return any(SequenceMatcher(None, name, other).ratio() > 0.7 for other in others[:MOST])


def _negation_conflicts(
    o: Overlap, number: int, own: Details, best: Sequence[int], read: Reader
) -> list[Contradiction]:
    mine, denies = denied(own.tokens)
    for at in best[:2]:
        if alike(o, number, at, ()) < _ALIKE:
            continue
        theirs, deny = denied(read[at].tokens)
        if denies == deny or conditions(own.tokens) != conditions(read[at].tokens):
            continue
        differing = sorted((theirs & own.stems) if deny else (mine & read[at].stems))
        for word in differing:
            if _affirmed_elsewhere(word, best, at, read, denying=denies):
                continue
            shown = next(token.written for token in own.tokens if token.stem == word)
            how = ("denied", "affirmed") if denies else ("affirmed", "denied")
            return [Contradiction("negation", f"“{cut(shown)}” is {how[0]}", (how[1],), at)]
    return []


def _affirmed_elsewhere(
    word: str, best: Sequence[int], at: int, read: Reader, *, denying: bool
) -> bool:
    """Tell whether another match says of the word what the response says."""
    for other in best:
        if other != at and word in read[other].stems:
            found, denies = denied(read[other].tokens)
            if denies == denying and (not denying or word in found):
                return True
    return False
