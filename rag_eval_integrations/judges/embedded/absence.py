"""Sentences that say the documents do not tell: statements about the context, not from it.

Their words are rightly in no document, so word overlap calls them unsupported. Gold does not: of
the 104 sentences of RAGBench's development rows that this matches 3.8 % are unsupported (6.1 % of
all others); of 1,268 in RAGTruth 7.4 % overlap a span that humans marked.
"""

from __future__ import annotations

import re

from rag_eval_integrations.judges.embedded.words import stem

_DOCUMENTS = (
    r"(?:context|documents?|passages?|texts?|information|sources?|manuals?|articles?|excerpts?"
    r"|materials?|references?|guide)"
)
_NAMES = (
    "context document passage text information source manual article excerpt material reference"
    " guide"
)
DOCUMENT_STEMS = frozenset(map(stem, _NAMES.split()))
"""One of these stems is in every sentence that `says_documents_do_not_tell` matches: looking for
them first spares the pattern, ten times as slow."""
_TELL = (
    r"(?:mention|specif|provid|state|contain|includ|give|say|tell|cover|answer|address|discuss"
    r"|indicat|describ|list|detail|explain|clarif|determin|find|found|enough|information)"
)
_NOT = r"(?:n['’]t|\b(?:not|no|nothing|lacks?|without|cannot|unable|neither|insufficient))"

# Bounded gaps keep the search linear.
_ABSENCE = re.compile(
    rf"\b{_DOCUMENTS}\b[^.]{{0,80}}{_NOT}\b[^.]{{0,40}}\b{_TELL}"
    rf"|{_NOT}\b[^.]{{0,60}}\b{_TELL}[^.]{{0,60}}\b{_DOCUMENTS}\b",
    re.IGNORECASE,
)
# What follows these may claim something after all.
_TURN = re.compile(r"\b(?:but|however|although|though|nevertheless|instead)\b", re.IGNORECASE)
_LONGEST = 400  # characters; longer sentences say more than that nothing is said


def says_documents_do_not_tell(sentence: str) -> bool:
    """Whether a sentence says no more than that the documents do not tell something."""
    if len(sentence) > _LONGEST:
        return False
    match = _ABSENCE.search(sentence)
    return match is not None and _TURN.search(sentence, match.end()) is None
