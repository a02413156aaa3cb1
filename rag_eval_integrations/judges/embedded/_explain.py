"""Explanations of labels in words: the matching sentences, and the words that were not found.

Every explanation says that it is lexical, because the judge only compares words.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

from rag_eval_integrations.judges.embedded._features import CallFeatures
from rag_eval_integrations.judges.embedded._near_copies import Difference
from rag_eval_integrations.judges.embedded._overlap import Cover
from rag_eval_integrations.judges.embedded._words import stem, written

SHOWN = 5
"""Limit on the keys or words in one explanation."""

_QUOTED = 40
"""Limit on the characters of one quoted word."""

LEAST_GAIN = 0.1
"""Share of a response sentence's weight that a document sentence must add to support it."""


EXPLAIN_ABSENCE = (
    "Lexical estimate: the sentence only refuses, or only says that the documents do not tell; "
    "whether they do was not checked."
)
"""Explanation of a sentence that claims nothing of its own."""


def supporting(cover: Cover) -> tuple[int, ...]:
    """List the document sentences that support a response sentence: at most four, or none.

    The best match must hold twice `LEAST_GAIN` of the weight, and each further one must add
    `LEAST_GAIN`.
    """
    if not cover.gains or cover.gains[0] < 2 * LEAST_GAIN:
        return ()
    pairs = zip(cover.sentences, cover.gains, strict=True)
    return tuple([sentence for sentence, gain in pairs if gain >= LEAST_GAIN])


def explain_support(
    features: CallFeatures,
    number: int,
    text: str,
    cited: Sequence[str],
    probability: float,
    contradicted: Difference | None = None,
) -> str:
    """Explain the label of one response sentence.

    Args:
        features: the call's features.
        number: index of the response sentence.
        text: its text.
        cited: keys of the document sentences that support it.
        probability: its P(fully supported).
        contradicted: the detail that a document sentence contradicts.
    """
    row = features.response[number]
    if row.absent:
        return EXPLAIN_ABSENCE
    if cited:
        share = fsum(row.cover.gains[: len(cited)])
        match = f"{share:.0%} of its word weight is in {_some(cited)}"
    else:
        match = "no document sentence shares enough of its words"
    content = features.overlap.response[number].bag
    missing = content.difference(features.overlap.idf)
    if missing:
        # Cut into words again, so that the hot path need not keep the spellings.
        spelled = [word for word in dict.fromkeys(written(text)) if stem(word) in missing]
        cut = [w if len(w) <= _QUOTED else f"{w[: _QUOTED - 1]}…" for w in spelled]
        absent = "; in no document: " + _some([f'"{word}"' for word in cut])
    elif content:
        absent = "; all its words are in the documents"
    else:
        absent = "; it has no word to look for"
    conflict = f"conflict: {contradicted}; " if contradicted else ""
    return f"Lexical estimate {probability:.2f}: {conflict}{match}{absent}."


def explain_relevance(keys: Sequence[str], probabilities: Sequence[float], relevant: int) -> str:
    """Explain which document sentences were labelled relevant."""
    if not keys:
        return "Lexical estimate: there are no document sentences."
    ranked = sorted(range(len(keys)), key=lambda i: (-probabilities[i], i))[:SHOWN]
    best = ", ".join(f"{keys[i]} ({probabilities[i]:.2f})" for i in ranked)
    return (
        f"Lexical estimate: {relevant} of {len(keys)} document sentences share enough weighted "
        f"words with question and response; highest: {best}."
    )


def explain_adherence(
    keys: Sequence[str], supported: Sequence[float], probability: float, adherent: bool
) -> str:
    """Explain the verdict on the whole response."""
    verdict = "taken as supported" if adherent else "not taken as supported"
    text = f"Lexical estimate {probability:.2f} that the documents support all of the response"
    if not keys:
        return f"{text}: it has no sentences."
    least = min(range(len(keys)), key=lambda i: (supported[i], i))
    return f"{text}, {verdict}; least supported: {keys[least]} ({supported[least]:.2f})."


def _some(items: Sequence[str]) -> str:
    rest = len(items) - SHOWN
    return ", ".join(items[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")
