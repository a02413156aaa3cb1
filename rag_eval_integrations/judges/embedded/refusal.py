"""Sentences that only refuse ("I don't know.", "N/A"): they claim nothing that needs support.

487 sentences of RAGTruth's QA rows are such, and none of them overlaps a span that humans marked.
"""

from __future__ import annotations

import re

from rag_eval_integrations.judges.embedded.words import written

ADVERBS = r"(?: (?:\w+ly|be|been|to|even|actually|also))*"
"""Pattern of what may stand before a verb."""

_CANNOT = (
    r"(?:can ?not|can['’]t|could not|couldn['’]t|(?:am |are |was |were |['’]m |['’]re )?"
    r"(?:unable|not able) to|won['’]t be able to|will not be able to)"
)
_REFUSAL = re.compile(
    r"\W{0,3}(?:(?:(?:i am|i['’]m|we are|we['’]re)? ?(?:very |so |really )?(?:sorry|afraid)"
    r"|(?:i |my )?apolog(?:ies|i[sz]e)|unfortunately)[,.;:]? (?:but |that )?){0,2}"
    r"(?:(?:i|we) (?:really |honestly |simply |just )?(?:do not|don['’]t) "
    r"(?:know(?: (?:who|what|when|where|which|whether)\b[^.,;:\d]{0,100}[.!?]*$)?"
    r"|have (?:an?y?|the|that|this|enough|sufficient) (?:answer|information|context|data)s?)"
    rf"|(?:(?:i|we) ?|(?:this|that|it|the question)(?: question)? )?{_CANNOT}{ADVERBS}"
    r" (?:answer(?:ed)?|help|assist|respond|determined?|provide (?:an|the|that) answer|say|tell)"
    r"|no (?:relevant |sufficient )?(?:answer|information)"
    r"|(?:insufficient|not enough) (?:information|context|data)"
    r"|(?:the |this )?(?:provided |given )?(?:contexts?|documents?|passages?|excerpts?|snippets?"
    r"|search results?) (?:is|are) silent"
    r"|n ?/ ?a|not available)(?![\w'’])",
    re.IGNORECASE,
)
_POINTLESS = """
a able about above alone an and any anything answer answers are as asked at available based be been
by context current currently data document documents enough exact for found from give given has
have help here i in information is it matter me moment my of on or passage passages point provided
query question questions request right sorry specific subject sufficient text texts that the them
there these this those time to topic unfortunately was we what with you your
"""
_REST = frozenset(_POINTLESS.split())
"""All that may follow a refusal: none of these claims anything."""


def is_refusal(sentence: str) -> bool:
    """Whether the whole sentence is a refusal: "I don't know.", "N/A", "I cannot answer that."."""
    match = _REFUSAL.match(sentence)
    return match is not None and _REST.issuperset(written(sentence[match.end() :].lower()))
