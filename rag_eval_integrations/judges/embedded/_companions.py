"""Names whose words no document puts together: "Ada Tomasi", where the documents have "Ada Vantin".

The other words of a sentence need not be in any order, so this rule finds names in sentences that
say in their own words what a document says, which the rules of `_slots` pass over.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from rag_eval_integrations.judges.embedded._alignment import always_capital
from rag_eval_integrations.judges.embedded._details import CLOSED_STEMS, is_name
from rag_eval_integrations.judges.embedded._negations import Token
from rag_eval_integrations.judges.embedded._overlap import Overlap
from rag_eval_integrations.judges.embedded._reading import Reader, copied
from rag_eval_integrations.judges.embedded._substitutions import Contradiction, may_be_same

_COPY = 0.5
"""Least share of the sentence's other words that its best document sentence or the question
holds. With .7, a hundredth fewer are found, and as many gold-supported sentences with them."""
_NEAR = 4
"""Words, on one side, among which a document may have the word."""
_FEW = 30
"""Sentences that hold a word, beyond which no more are looked at."""


def strangers(o: Overlap, number: int, text: str, read: Reader) -> Iterator[Contradiction]:
    """Find words of names that stand beside a word that they are beside in no document.

    A word that the documents have, and always with a capital, stands beside another with a capital
    that documents have beside others.

    Args:
        o: the index of the call.
        number: index of the response sentence.
        text: its text.
        read: reads sentences.
    """
    said, known = o.response[number], read.known_pairs
    names = said.names
    new = {
        (one, other)
        for at, (one, other) in enumerate(pairwise(said.stems))
        if other in names and (one in names or not at) and (one, other) not in known
    }
    if not new:
        return
    for one, other in pairwise(read.said(text).tokens):
        if (one.stem, other.stem) not in new:
            continue
        for changed, kept, step in ((other, one, 1), (one, other, -1)):
            if not (kept.written[0].isupper() and _may_be_name(changed, o, read)):
                continue
            found = _beside(kept.stem, step, changed.stem, o, read)
            if not found or any(may_be_same((changed.stem,), (stem,)) for stem in found):
                continue
            if copied(o, number, o.matches[number][0].sentence, (changed.stem,)) < _COPY:
                return
            written, sentence = min(found.values())
            yield Contradiction("name", changed.written, (written,), sentence)
            break


def _may_be_name(token: Token, o: Overlap, read: Reader) -> bool:
    return is_name(token) and token.stem not in CLOSED_STEMS and always_capital(token, o, read)


def _beside(word: str, step: int, but: str, o: Overlap, read: Reader) -> dict[str, tuple[str, int]]:
    """Return the words with a capital that documents have after (1) or before (-1) a word.

    None if `but` is near there: "Ada Tomasi" is "Ada Maria Tomasi".

    Returns:
        Their stems, with how they are written and a sentence that has them.
    """
    found: dict[str, tuple[str, int]] = {}
    for at in o.holders.get(word, ())[:_FEW]:
        tokens = read[at].tokens
        for place, token in enumerate(tokens):
            if token.stem != word or not token.written[0].isupper():
                continue
            near = tokens[place + 1 : place + _NEAR] if step > 0 else tokens[:place][:-_NEAR:-1]
            if any(other.stem == but for other in near):
                return {}
            if near and near[0].written[0].isupper() and not near[0].light:
                found.setdefault(near[0].stem, (near[0].written, at))
    return found
