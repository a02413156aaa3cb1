"""Orders to drop instructions, in English."""

from __future__ import annotations

from rag_eval_integrations.judges._intents._sign import by_both, by_words
from rag_eval_integrations.judges._intents._vocabulary import (
    DROP,
    EARLIER,
    ELSEWHERE,
    GAP,
    GRADER_WORDS,
    GRADERS,
    MACHINES,
    RULE_WORDS,
    RULES,
)

ORDERS = (
    *(
        by_words(
            rf"\b{DROP}\b(?={GAP}{{0,7}}[^\w.!?]{{0,12}}{RULES}\b)"
            rf"(?=[^.!?]{{0,90}}\b{EARLIER}\b){GAP}{{0,7}}?{RULES}\b{ELSEWHERE}",
            *groups,
            RULE_WORDS,
            order=True,
        )
        for groups in (
            (
                "ignore disregard forget override bypass neglect discard drop dismiss erase"
                " abandon replace overlook scrap delete cancel overwrite suspend nullify"
                " attention throw set put cast leave away",
            ),
            ("follow obey heed apply following obeying", "not don never stop cease"),
        )
    ),
    by_words(
        r"""\b(?:ignore|disregard|forget|discard|erase)\s+(?:
        (?:all\s+|everything\s+|the\s+|what\s+is\s+)*(?:above|previous|preceding
        |foregoing)\s*(?:[.!,:;]|\Z|and\b)
        |(?:everything|anything|all|what(?:ever)?(?:'s)?)\s+(?:that\s+)?(?:you\s+(?:were|have|had
        |are|know|learned|ha)
        |the\s+(?:user|system|developer|operator)|i\s+(?:said|told)|(?:is|was|came|comes|stands
        |has\s+been|were)?\s*
        (?:(?:written|said|stated|told|given)\s+)?(?:above|before|earlier|previously|so\s+far)))""",
        "ignore disregard forget discard erase",
        "above previous preceding foregoing before earlier previously everything anything all"
        " what whatever",
        order=True,
    ),
    by_words(
        r"""\b(?:(?:your|the\s+above|these|all)\s+(?:\w+\s+){0,3}?(?:instructions?|rules
        |guidelines?|prompts?|directions|restrictions|directives)
        (?:\s+(?:given|stated|above|earlier|before)){0,2}
        |(?:instructions?|rules|guidelines?|prompts?|directions|restrictions
        |directives)\s+(?:(?:given|stated)\s+)?
        (?:above|earlier|before|in\s+the\s+system\s+\w+|you\s+(?:were|have\s+been)\s+given)
        |prior\s+directions|previous\s+instructions)
        \s+(?:now\s+)?(?:no\s+longer\s+(?:apply|count|hold)|(?:is|are|were|have\s+been)\s+(?:now\s+
        |hereby\s+)?(?:
        cancel|void|outdated|obsolete|revoked|suspended|lifted|invalid|overrid
        |replaced\s+by\s+(?:this|these|the\s+following)
        |superseded\s+by\s+(?:this|these|the\s+following)|wrong|a\s+(?:test
        |joke)))(?!\w*\s+(?:since|after|in\s+\d|on\s+\d|and\s+replaced\s+by\s+this\s+contract))""",
        RULE_WORDS,
        "longer cancelled canceled void outdated obsolete revoked suspended lifted invalid"
        " overridden replaced superseded wrong test joke",
    ),
    by_words(
        r"\byour\s+(?:task|job|role|instructions?|goal)\s+(?:has|have)\s+(?:now\s+)?(?:changed"
        r"|been\s+(?:updated|replaced|changed))",
        "task job role instruction instructions goal",
        "changed updated replaced",
    ),
    by_words(
        r"\bi\s+(?:hereby\s+)?(?:instruct|order|command|require|authori[sz]e)\s+you\s+to\b",
        "instruct order command require authorize authorise",
        "you",
    ),
    by_words(
        r"""\b(?:admin(?:istrator)?|developer|system|root)\s+override\b|\b(?:developer|debug|admin
        |god)\s+mode\s+(?:is\s+)?(?:on|enabled|activated)\b
        |\bdisable\s+(?:the\s+|all\s+|your\s+)?(?:fact[\s-]?check\w*|verification|evaluation
        |grading|filters|safety|guardrails|judging)\b""",
        "override mode disable",
        "admin administrator developer system root debug god fact verification evaluation grading"
        " filters safety guardrails judging",
    ),
    by_words(
        r"\bfree\s+(?:of|from)\s+(?:all\s+)?(?:of\s+)?(?:your|any|the)\s+(?:restriction|rule"
        r"|guideline|instruction)",
        "free",
        RULE_WORDS,
    ),
    by_words(r"\bnew\s+(?:instructions?|task|rules|objective|orders?)\s*:", "new", RULE_WORDS),
    by_words(
        r"\b(?:your\s+(?:real|true|new|actual|only)|the\s+(?:real|actual|true))\s+(?:task|job"
        r"|goal|instructions?|objective)\s+(?:is|are)\b",
        "task job goal instruction instructions objective",
        "real true new actual only",
        "is are",
    ),
    by_words(
        r"\b(?:print|reveal|show|repeat|leak"
        r"|display)\s+(?:me\s+)?(?:all\s+)?(?:of\s+)?your\s+(?:system\s+)?(?:prompt|instructions)",
        "print reveal show repeat leak display",
        "prompt instructions",
    ),
    by_both(
        r"""\bfrom\s+now\s+on,?\s+(?:you\s+(?:are|must|will|should)|every\s+\w+\s+(?:is|counts)
        |approve|accept|always|only|say|mark|label|treat|respond|answer)""",
        "from",
        "from~now~on",
    ),
    by_words(
        rf"\binstructions?\s+(?:to|for)\s+(?:the\s+)?(?:{GRADERS}|{MACHINES})\b",
        "instruction instructions",
        GRADER_WORDS,
    ),
    by_words(
        r"""\bskip\s+(?:the\s+|any\s+|all\s+)?(?:evaluation|fact[\s-]?check|grading|verification)\b
        |\bstop\s+(?:the\s+)?(?:evaluati\w+|grading|judging|checking
        |verif\w+)\b[^.!?]{0,30}\b(?:and|now|here)\b""",
        "skip stop",
        "evaluation evaluating fact grading judging checking verification verifying",
    ),
    by_words(
        r"\bevaluation\s+is\s+(?:finished|over|complete|done)\b.{0,30}\b(?:print|output|return"
        r"|say|write)\b",
        "evaluation",
        "finished over complete done",
    ),
    by_words(
        r"\binstead,?\s+(?:of\s+\w+ing\s+)?(?:just\s+)?(?:repeat|output|print"
        r"|say)\s+(?:the\s+word|only|that)\b",
        "instead",
        "repeat output print say",
    ),
    by_words(
        r"""\b(?:previous|prior|earlier|system|above|old|original)\s+(?:prompt|instructions?
        |message)\b[^.!?]{0,30}?\b(?:was|were|is|are)\s+
        (?:\w+\s+){0,2}?(?:mistake|wrong|error|accident|test|fake|decoy|ignored|void)\b
        |\b(?:not\s+as|instead\s+of|rather\s+than
        |contrary\s+to)\s+(?:what\s+)?the\s+(?:system\s+)?(?:prompt|instructions)\b""",
        "prompt instruction instructions message",
        "mistake wrong error accident test fake decoy ignored void not instead rather contrary",
    ),
    by_words(
        r"\b(?:ignore|disregard|forget)\s+(?:all\s+)?(?:of\s+)?(?:the\s+|these\s+"
        r"|your\s+)?(?:documents|evidence|context|sources|rubric|criteria|question"
        r"|guidelines)\b(?!\s+(?:that|which|of|on|in|from|whose|about)\b)",
        "ignore disregard forget",
        "documents evidence context sources rubric criteria question guidelines",
        order=True,
    ),
    by_words(
        r"""\byou\s+are\s+(?:now\s+)(?:\w+\s+){0,4}?(?:mode|judge|unrestricted|lenient|generous
        |allowed\s+to|free\s+to|free\s+of|no\s+longer)\b
        |\bi\s+am\s+(?:the|your)\s+(?:system\s+)?(?:administrator|developer|admin|operator|owner
        |creator)\b[^?]{0,60}?\b(?:skip|you|instruct|accept|ignore|approve|order)\b
        |\b(?:skip|omit)\s+(?:your|any|all|the)\s+checks?\b
        |\bfrom\s+(?:here|this\s+point|now)\s+on(?:wards?)?,?\s+(?:ignore|trust|accept|approve
        |treat|label|mark|you\s+(?:are|must|will|should))\b""",
        "mode judge unrestricted lenient generous allowed free longer administrator developer admin"
        " operator owner creator checks check onward onwards here point",
        "you skip omit from",
        "am are skip omit onward onwards on",
    ),
)
