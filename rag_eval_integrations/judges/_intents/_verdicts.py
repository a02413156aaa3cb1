"""Verdicts that are ordered, in English."""

from __future__ import annotations

from rag_eval_integrations.judges._intents._sign import by_words
from rag_eval_integrations.judges._intents._vocabulary import (
    GAP,
    GIVE,
    GOOD,
    GOOD_WORDS,
    GRADER_WORDS,
    GRADERS,
    JUDGED,
    JUDGED_WORDS,
    MARK,
    SAY,
    TOP,
)

VERDICTS = (
    by_words(
        rf"\b{MARK}\b{GAP}{{0,5}}?[^\w.!?]{{0,12}}\b{JUDGED}\b(?:{GAP}{{0,5}}?[^\w.!?]{{0,12}}"
        rf"(?:{GOOD}|{TOP}))",
        "mark label rate score grade treat consider regard judge count evaluate classify assess"
        " annotate deem view declare accept rank tag categorize take flag assume",
        JUDGED_WORDS,
        GOOD_WORDS,
        order=True,
    ),
    by_words(
        rf"\b{JUDGED}\b[^.!?]{{0,60}}\b(?:must|should|shall|is\s+to|are\s+to|has\s+to"
        rf"|have\s+to)\s+(?:always\s+)?"
        rf"be\s+(?:always\s+)?(?:marked|labell?ed|rated|scored|graded|treated|considered|regarded"
        rf"|judged"
        rf"|counted|evaluated|classified|deemed|accepted)\s+(?:as\s+|with\s+"
        rf"|to\s+be\s+)?(?:\w+ly\s+)?(?:the\s+|a\s+)?"
        rf"(?:{GOOD}|{TOP})",
        "marked labelled labeled rated scored graded treated considered regarded judged counted"
        " evaluated classified deemed accepted",
        "be",
        GOOD_WORDS,
        JUDGED_WORDS,
    ),
    by_words(
        rf"\b{GIVE}\b(?:{GAP}{{0,6}}?)[^\w.!?]{{0,12}}{TOP}"
        r"(?!\s+(?:for|if|when|where|only|to)\s+(?:any|an|a|each|students|candidates|answers|essays"
        r"|responses|the|your|naming|correct|those|work|they)\b)(?!\s+(?:if|when)\b)",
        "give assign award grant output return report put select choose record enter",
        "5 10 100 five ten score scores rating ratings grade grades marks mark points point stars"
        " verdict",
        "1 5 10 100 full maximum maximal max highest top perfect best five ten high",
        order=True,
    ),
    by_words(
        rf"""\b{SAY}\s+(?:(?:only|just|simply|always|with|that|exactly|the\s+word|word|ok|it\s+is
        |all\s+is)\s+)
        {{1,3}}(?:"|')?(?:true|yes|ok|(?:the\s+)?(?:\w+\s+){{0,4}}(?:is|are|complies
        |comply)\s+(?:fully\s+)?
        (?:supported|relevant|correct|perfect|faithful|with)|supported|relevant|correct|perfect
        |fully|everything|{TOP}
        |the\s+(?:highest|maximum|best))\b(?!\s+(?:or|if|when|unless)\b)
        |\b(?:output|return|say|answer|respond|reply|print)\s+(?:with\s+)?(?:yes|true|ok)\s+
        (?:for|to)\s+(?:each|every|all|any|everything|overall|this)\b(?![^.!?]{{0,60}}\b(?:or|if)\b)
        |\balways\s+(?:returns?|says?|outputs?|answers?)\s+(?:true|yes|ok|supported)\b""",
        "output outputs return returns say says answer answers respond reply print report write"
        " state conclude declare",
        "true yes ok supported relevant correct perfect fully everything highest maximum best 5"
        " 10 full complies comply",
        "only just simply always with that exactly word ok it all for to",
        order=True,
    ),
    by_words(
        r"""\b(?:your|the)\s+(?:verdict|rating|score|judge?ment|output|label|answer
        |final\s+score)\s+(?:must|should|shall|has\s+to)\s+(?:always\s+)?be\b
        [^.!?]{0,20}?\b(?:supported|relevant|true|yes|ok|positive|correct|perfect|highest|maximum|5
        |10|100|1)\b
        |\bmust\s+be\s+your\s+(?:output|verdict|answer|score)""",
        "verdict rating score judgement judgment output label answer",
        "must should shall has",
        "be",
    ),
    by_words(
        r"""\b(?:output|print|say|respond|reply|answer|return
        |write)\s+(?:\w+\s+){0,3}?["'](?:fully\s+)?(?:supported|relevant|true|correct|yes|pass
        |faithful|perfect|ok)["'](?!\s+(?:or|if|when))
        |\b(?:output|print|say|respond|reply|answer|return|write)\b[^.!?]{0,30}?\b(?:supported
        |relevant|true|correct|yes|pass|perfect|ok)\b[^.!?\w]{0,3}\s*and\s+nothing\s+else""",
        "output print say respond reply answer return write",
        "supported relevant true correct yes pass faithful perfect ok",
        order=True,
    ),
    by_words(
        rf"\b{JUDGED}\b[^.!?]{{0,40}}\b(?:must|should|shall|has\s+to"
        rf"|have\s+to)\s+(?:always\s+)?(?:get|receive|be\s+given|have|obtain)\s+(?:the\s+|a\s+)?"
        rf"(?:(?:label|score|rating|mark|verdict|grade)\s+(?:of\s+)?)?[\"']?(?:{GOOD}|{TOP})",
        "get receive given have obtain",
        "must should shall has have",
        JUDGED_WORDS,
        GOOD_WORDS,
    ),
    by_words(
        rf"\b(?:assign|apply|attach|use|put|give|set)\s+(?:it\s+|them\s+)?(?:the\s+"
        rf"|a\s+)?(?:label|score|rating|verdict|value|tag)\s+(?:of\s+)?[\"']?(?:{GOOD}|{TOP})",
        "assign apply attach use put give set",
        "label score rating verdict value tag",
        GOOD_WORDS,
    ),
    by_words(
        rf"\b{GRADERS}\s+(?:should|must|will|shall|has\s+to|needs\s+to|(?:is|are)\s+(?:instructed|asked"
        rf"|required|told|ordered)\s+to)\s+(?:now\s+|just\s+|simply\s+|always\s+)?(?:output|return|give"
        rf"|print|say|pass|approve|award|assign|{MARK})\b"
        rf"(?=[^.!?]{{0,60}}(?:{GOOD}|{TOP}|\bpass\b|\bapprove|\bfull\s+points|\b(?:10|100)\b))",
        GRADER_WORDS + " ai",
        "should must will shall has needs is are",
        "output return give print say mark label pass accept approve award assign rate score grade"
        " treat consider judge evaluate",
    ),
    by_words(
        r"""\b(?:do\s+not|don't|never|please\s+don't)\s+(?:penali[sz]e|downgrade|deduct|punish
        |fact[\s-]?check|verify)\b[^.!?]{0,40}\b(?:response|answer|text|output|claims?|evidence
        |points|document)
        |\b(?:do\s+not|don't|no\s+need\s+to)\s+(?:check|verify|evaluate|review)\b[^.!?]{0,40}?\b(?:just|simply|only)\s+
        (?:say|output|answer|mark|give|return|accept|approve|rate|label)\b
        |\bwhen\s+you\s+(?:score|grade|rate|judge|evaluate|label|assess)\s+this\b
        |\b(?:whoever|anyone\s+who|whatever\s+model)\s+(?:is\s+)?(?:check|grade|score|read|evaluate
        |label|review|judg|rate)\w*\s+this\b
        |\byou\s+are\s+(?:now\s+)?(?:evaluating|judging|grading|scoring
        |labell?ing)\b[^.!?]{0,60}\b(?:is|as|correct|relevant|true|supported)\b""",
        "penalise penalize downgrade deduct punish check verify score grade rate judge evaluate"
        " label assess whoever anyone evaluating judging grading scoring labeling labelling",
        "not don never when whoever anyone whatever evaluating judging grading scoring labeling"
        " labelling no",
    ),
    by_words(
        rf"""\b(?:mark|rate|grade|label|score|judge|report|call|accept|count|validate|treat
        |evaluate|consider|regard)\s+(?:(?:it|this|that|the\s+above|all|everything|them
        |what\s+follows|the\s+following|(?:this|the|each|every)\s+\w+)\s+)?
        as\s+(?:being\s+)?(?:fully\s+|entirely\s+|completely\s+)?(?:supported|relevant|correct|true
        |faithful|grounded|perfect|accurate|utilized|verified|flawless|excellent|fact|[15]\b|10\b
        |{TOP})(?!,?\s+(?:or|if|when|by|for)\b)
        |\b(?:call|declare)\s+(?:this|the|every|each|all)\s+{JUDGED}\s+(?:as\s+)?{GOOD}
        |\b(?:ensure|make\s+sure)\b[^.!?]{{0,60}}?\b(?:gives?|gets?|receives?|is\s+(?:rated|scored
        |marked|graded))\b[^.!?]{{0,30}}?(?:{TOP}|\b(?:5|10|100)\s+points)
        |\b(?:output|return|print|answer|write|put|give|enter)\s+(?:5|1|10|100|1\.0|true
        |yes)\s+(?:for|to|on|in)\s+(?:each|every|all)\s+(?:criteri|sentence|claim|field|question
        |dimension|metric|key|item)""",
        "mark rate grade label score judge report call accept count validate treat evaluate"
        " consider regard declare ensure make output return print answer write put give enter",
        "as call declare gives give gets get receives receive rated scored marked graded each"
        " every all",
        GOOD_WORDS,
        order=True,
    ),
    by_words(
        rf"""\b{JUDGED}\b[^.!?]{{0,40}}?\b(?:counts?\s+as|always\s+(?:gets?|receives?|earns?)
        |qualif(?:y|ies)\s+as)\s+(?:fully\s+)?(?:a\s+|the\s+)?(?:{GOOD}|{TOP}|full\s+credit)
        |\balready\s+(?:been\s+)?(?:fact[\s-]?checked|verified|confirmed|graded|approved
        |validated)\b(?=[^.!?]{{0,80}}?(?:{GOOD}|{TOP}|\bscore|\blabel|\bno\s+need|\brate\b
        |\baccept))""",
        "count counts always qualify qualifies already",
        GOOD_WORDS + " credit checked score label need rate accept",
        JUDGED_WORDS,
    ),
    by_words(
        rf"\b{GRADERS}\s+(?:who|that|reading|of)\b[^.!?]{{0,40}}?\b(?:must|should|shall|has\s+to"
        rf"|have\s+to)\s+(?:\w+\s+)?(?:choose|pick|prefer|give|mark|rate|label|score|accept"
        rf"|approve|select|output|return)\b",
        GRADER_WORDS,
        "must should shall has have",
        "choose pick prefer give mark rate label score accept approve select output return",
    ),
    by_words(rf"\bdeserves?\s+(?:the\s+|a\s+)?{TOP}", "deserves deserve", GOOD_WORDS),
    by_words(
        r"\b(?:correct|right|proper|only)\s+(?:label|verdict|rating|score)\s+(?:for"
        r"|of)\s+[^.!?]{0,50}\bis\b",
        "label verdict rating score",
        "correct right proper only",
        "is",
    ),
    by_words(
        r"""\b(?:do\s+not|don't|never)\s+(?:mark|label|list|flag|report|treat
        |rate)\b[^.!?]{0,50}\b(?:un|not\s+)supported
        |\breturn\s+an\s+empty\s+list\b[^.!?]{0,30}\bunsupported""",
        "unsupported supported",
        "mark label list flag report treat rate",
    ),
    by_words(
        r"\b(?:count|treat|mark|take)\s+this\s+\w+\s+as\s+(?:relevant|true|correct|supported)",
        "count treat mark take",
        "this",
        "as",
        GOOD_WORDS,
    ),
)
