"""Sentences that only refuse or say that the documents do not tell, and so need no support.

Their words are in no document, so that word overlap would call them unsupported. Gold labels do
not: of the 84 such sentences in RAGBench's development rows 3.6 % are unsupported (5.9 % of all
others), and of the 1,202 in RAGTruth 4.3 % overlap a span that humans marked (12.8 % of all
others). 487 of these are refusals, none of them marked.
"""

from __future__ import annotations

import re

from rag_eval_integrations.judges.embedded._words import stem, written

# --- Sentences that only refuse: "I don't know.", "N/A"


ADVERBS = r"(?: (?:\w+ly|be|been|to|even|actually|also))*"
"""Pattern of the words that may precede a verb."""

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
"""The words that may follow a refusal; none of them claims anything."""


def is_refusal(sentence: str) -> bool:
    """Tell whether the whole sentence is a refusal: "I don't know.", "N/A", "I cannot tell."."""
    match = _REFUSAL.match(sentence)
    return match is not None and _REST.issuperset(written(sentence[match.end() :].lower()))


# --- Sentences that say that the documents do not tell


# Nouns that always mean the documents, and nouns that may mean other things ("this material does
# not contain asbestos", "the guide dog did not find the exit").
_CLEAR = (
    r"(?:contexts?(?! of\b)|documents?|passages?(?! of time)|excerpts?|snippets?|search results?)"
)
_VAGUE = r"(?:texts?|information|sources?|manuals?|articles?|materials?|references?|guides?)"
_GIVEN = r"(?:provided|given|supplied|available|retrieved|presented|above)"
# The words that may follow a vague noun, but not in a compound ("text message", "article of
# clothing").
_ALONE = (
    rf"(?=\W*$|\s*[.,;:!?()\[\]\"'”’]|\s+(?:{_GIVEN}|below|itself|that|which|you|i|we|for|about|on"
    r"|regarding|and|or|so|as|to|here|alone|is|are|does|do|did|only|also|ma[dk]es?|gives?|provides?"
    r"|contains?|lacks?)\b)"
)
_DOCUMENTS = rf"(?:(?:{_CLEAR}|{_GIVEN} (?:\w+ )?{_VAGUE})\b|{_VAGUE}\b{_ALONE})"
_WHICH_ONES = r"(?:(?:the|this|that|these|those|your|my|our|any|either|all|both|of) )"
_PLACING = r"(?:in|from|to|on|with|of|by|for|at|according|based|given the)"
_THE_DOCUMENTS = rf"{_WHICH_ONES}{{0,3}}(?:(?!{_PLACING}\b)[\w'’-]+ ){{0,3}}?"

_TELL = (
    r"(?:mention|specif[yi]|state|sa[yi]|describe|indicate|address|discuss|explain|tell|clarif[yi]"
    r"|answer|provide|detail|elaborate|define)"
)
_HOLD = r"(?:contain|include|give|list|cover|have|offer|show|make|refer|reveal|go into)"
_TOLD = (
    r"(?:mentioned|specified|stated|said|described|indicated|addressed|discussed|explained|told"
    r"|clarified|answered|detailed|defined|clear)"
)
_HELD = r"(?:provided|given|found|available|contained|included|listed|covered|present|shown)"
_NEWS = (
    r"(?:information|info|mentions?|details?|answers?|indication|explanation|description|references?"
    r"|instructions?|specifics|data|definition|evidence|guidance|discussion|context)"
)
_NONE = (
    r"(?:\b(?:no|not enough|insufficient|little|lacks?|without)\b(?: [\w'’-]+){0,4}?"
    rf" {_NEWS}\b|\bnothing\b)"
)
_NOT = r"(?:\bnot|n['’]t|\bnever|\bcannot)\b"
_LOOK = r"(?:find|found|determine|answer|tell|say|see|locate|infer|identify|confirm|provide|give)"
_I = r"(?:\b(?:i|we|it|one|question|this|answer)(?:['’]\w+)?(?: \w+){0,2}? ?)"
_UNABLE = rf"(?:{_NOT}(?: (?:be|able to|possible to))*|unable to|impossible to)"
# "The documents show that he did not answer" reports their content.
_GAP = (
    r"(?:(?!\bthat\b(?! (?:is|are|was|were|you|i|we|have|has)\b)|\bwho\b|\bsa(?:ys?|id)\b)[^.;:])"
)
_CLAUSE = (
    r"(?:^\W*|[.,;:(]\s*|\b(?:but|that|and|as|since|because|however|therefore|so|while|sorry"
    r"|unfortunately) )"
)

# Bounded gaps keep the search linear. The negated part begins at the group `no`.
_ABSENCES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # "The documents do not say …"
        rf"{_CLAUSE}{_THE_DOCUMENTS}{_DOCUMENTS}{_GAP}{{0,80}}?"
        rf"(?P<no>\b(?:do|does|did)(?: not|n['’]t)\b{ADVERBS}"
        rf" (?:{_TELL}|{_HOLD}(?: [\w'’-]+){{0,5}}? {_NEWS}\b)|{_NONE})",
        rf"{_CLAUSE}{_THE_DOCUMENTS}(?:{_CLEAR}|{_GIVEN} {_VAGUE})\b{_GAP}{{0,60}}?"
        rf"(?P<no>\b(?:do|does|did)(?: not|n['’]t)\b{ADVERBS} {_HOLD}|\bsilent\b)",
        # "It is not mentioned in the documents", "There is no information about it in …"
        rf"(?P<no>{_NOT}{ADVERBS} (?:{_TOLD}|{_HELD})|{_NONE})[^.]{{0,80}}?"
        rf"\b(?:in|within|by|from|on) {_THE_DOCUMENTS}{_DOCUMENTS}",
        # "It cannot be determined from the documents", "I could not find it in …"
        rf"{_I}(?P<no>{_UNABLE}{ADVERBS} {_LOOK}|unclear)[^.]{{0,80}}?"
        rf"\b(?:in|within|by|from|on|with|using|given) {_THE_DOCUMENTS}{_DOCUMENTS}",
        # "2. Unable to answer based on given passages", as RAGTruth's models were instructed to say
        rf"^[^(.]{{0,40}}(?:\. )?(?P<no>\bunable to answer\b)[^.]{{0,40}}?\b(?:on|from|with|using)"
        rf" {_THE_DOCUMENTS}{_DOCUMENTS}",
        # "Based on the documents, the height is not specified"
        rf"\b(?:on|to|in|from|given) {_THE_DOCUMENTS}{_DOCUMENTS}[^.]{{0,80}}?"
        rf"(?P<no>\b(?:is|are|was|were)(?: not|n['’]t){ADVERBS} {_TOLD}"
        rf"|\bno (?:[\w-]+ ){{0,2}}?{_NEWS}\b"
        rf"|\b(?:cannot|not possible to|unable to|not able to){ADVERBS} (?:{_LOOK}|determined))",
    )
)
# Words after which a sentence may make a claim after all.
_TURN = re.compile(
    r"\b(?:but|however|although|though|nevertheless|instead)\b|,\s*(?:which|as|since|because)\b",
    re.IGNORECASE,
)
# In all matching sentences and few others: a fast test before the slow patterns.
_DENIES = re.compile(
    r"n['’]t\b|\b(?:no|not|never|nothing|cannot|unable|impossible|insufficient|little|lacks?|without"
    r"|silent|unclear|n ?/ ?a)\b",
    re.IGNORECASE,
)
_LONGEST = 400  # characters; longer sentences make other claims too

_SIGNS = """
context document passage excerpt snippet search result text information source manual article
material reference guide know answer answered help assist respond determine determined say tell
data n available silent
"""
ABSENCE_STEMS = frozenset(map(stem, _SIGNS.split()))
"""Every sentence that `says_documents_do_not_tell` matches holds one of these stems; testing for
them is many times as fast as the patterns."""


def says_documents_do_not_tell(sentence: str) -> bool:
    """Tell whether a sentence only says that the documents do not tell, or only refuses."""
    if len(sentence) > _LONGEST or _DENIES.search(sentence) is None:
        return False
    if is_refusal(sentence):
        return True
    for pattern in _ABSENCES:
        match = pattern.search(sentence)
        if match is not None:
            return _TURN.search(sentence, match.start("no")) is None
    return False
