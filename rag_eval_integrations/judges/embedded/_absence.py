"""Sentences that only refuse or say that the documents do not tell, and so need no support.

Their words are in no document, so that word overlap alone would call them unsupported.
"""

from __future__ import annotations

import re

from rag_eval_integrations.judges.embedded._words import listed, written

_DOCUMENTS = (
    r"(?:(?:contexts?|documents?|passages?|excerpts?|snippets?|search results?)\b(?! of\b)"
    r"|(?:provided|given|available|supplied|retrieved) (?:\w+ )?(?:texts?|information|sources?"
    r"|materials?|manuals?|articles?)\b|(?:texts?|information|sources?|manuals?|articles?|guides?)"
    r"(?=\W*$|[.,;]| (?:do|does|did|is|are|has|have)\b))"
)
_TELL = (
    r"(?:mention|specif[yi]|state|sa[yi]|describe|indicate|address|discuss|explain|tell|clarify"
    r"|answer|provide|detail|elaborate|define|contain|include|give|list|cover|have|offer)"
)
_TOLD = (
    r"(?:mentioned|specified|stated|said|described|indicated|addressed|discussed|explained|told"
    r"|clarified|answered|determined?|defined|clear|provided|given|found|find|available|contained"
    r"|included|listed|covered|present|infer(?:red)?|tell|say|answer)"
)
_NO_NEWS = (
    r"(?:no|not enough|insufficient|little|lacks?|without)(?: [\w'’-]+){0,4}? (?:information"
    r"|mentions?|details?|answers?|indication|explanation|description|references?|instructions?"
    r"|data|definition|evidence)\b"
)
# Bounded gaps keep the search linear. The negated part begins at the group `no`.
_ABSENCES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:^|[.,;:(]\s*|\b(?:but|that|and|as|since|because|so|sorry|unfortunately) )\W*"
        rf"(?:(?:the|this|these|your|my|our|any) )?(?:\w+ ){{0,2}}?{_DOCUMENTS}"
        rf"(?:(?! that\b| who\b)[^.;:]){{0,60}}? (?P<no>(?:do|does)(?: not|n['’]t)(?: \w+ly)*"
        rf" {_TELL}|(?:\w+ )?{_NO_NEWS}|(?:is|are) silent)",
        r"(?P<no>(?:\bnot|n['’]t|\bnever|\bcannot|\bunable to|\bunclear)\b"
        rf"(?: [\w'’-]+){{0,4}}? {_TOLD}|\b{_NO_NEWS}|\bnothing)\b[^.]{{0,80}}?"
        rf"\b(?:in|within|by|from|on|with|using) (?:[\w'’-]+ ){{0,3}}?{_DOCUMENTS}",
        rf"\b(?:on|to|in|from|given) (?:[\w'’-]+ ){{0,3}}?{_DOCUMENTS}[^.]{{0,80}}?"
        rf"(?P<no>\b(?:(?:is|are|was|were)(?: not|n['’]t)|cannot be)(?: \w+ly)? {_TOLD}"
        rf"|\b{_NO_NEWS})",
    )
)
_TURN = re.compile(
    r"\b(?:but|however|although|though|instead)\b|,\s*(?:which|as|since|because)\b", re.IGNORECASE
)
"""Words after which a sentence may make a claim after all."""
_QUESTION = re.compile(r"(?<=know )(?:who|what|when|where|which|whether|how|why)\b[^.,;:\d]*", re.I)
_REFUSING = listed("""
know sorry answer answered help assist respond determine determined say tell information n available
silent
""")
_POINTLESS = _REFUSING | listed("""
a able about above again also am an and any anything are as asked at based be been but by can can't
cannot context contexts could couldn't data do document documents does don't enough excerpts for
found from give given has have haven't here i i'm in insufficient is it it's me my no not of on or
passage passages provide provided query question questions relevant request right so specific
sufficient that the them there these they this those time to topic unable unfortunately very was we
what will with won't you your
""")
"""A sentence of these words alone, with a word that refuses, claims nothing."""
_LONGEST = 400  # characters; longer sentences make other claims too
_DENIES = re.compile(
    r"n['’]t\b|\b(?:no|not|never|nothing|cannot|unable|insufficient|little|lacks?|without"
    r"|silent|unclear|n ?/ ?a|sorry)\b",
    re.IGNORECASE,
)
"""In all such sentences and few others: a fast test before the slow patterns."""


def says_documents_do_not_tell(sentence: str) -> bool:
    """Tell whether a sentence only says that the documents do not tell, or only refuses."""
    if len(sentence) > _LONGEST or _DENIES.search(sentence) is None:
        return False
    words = set(written(_QUESTION.sub("", sentence.lower().replace("’", "'"))))
    if words <= _POINTLESS and not words.isdisjoint(_REFUSING):
        return True
    match = next(filter(None, (pattern.search(sentence) for pattern in _ABSENCES)), None)
    return match is not None and _TURN.search(sentence, match.start("no")) is None
