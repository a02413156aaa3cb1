"""Signs of text that wants to direct a judge: orders, verdicts, addresses, imitated messages.

Every repetition in a pattern is bounded, so that searching takes linear time. Words of other
languages are written without accents where their script is Latin: `plain` texts have none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, cached_property
from typing import Literal, NamedTuple

Reading = Literal["plain", "compact", "other"]
"""`plain`: ASCII in lower case, with punctuation; `compact`: its letters only, digits that stand
for letters among them; `other`: the text itself, in lower case and without marks."""
_NEAR = 20  # words
_LONGEST_THEN = 40


class Words:
    """The words of a plain text, in their order."""

    def __init__(self, plain: str, firsts: frozenset[str]) -> None:
        self.all = plain.translate(_SPACED).split()
        self.distinct = frozenset(self.all)
        self._firsts = firsts

    @cached_property
    def _places(self) -> list[tuple[int, str]]:
        firsts = self._firsts & self.distinct
        return [(at, word) for at, word in enumerate(self.all) if word in firsts]

    def near(self, groups: tuple[frozenset[str], ...]) -> bool:
        """Tell whether a word of the first group has one of every other group near it."""
        if any(group.isdisjoint(self.distinct) for group in groups):
            return False
        if len(groups) == 1:
            return True
        for at, word in self._places:
            if word in groups[0]:
                around = self.all[max(0, at - _NEAR) : at + _NEAR]
                if not any(group.isdisjoint(around) for group in groups[1:]):
                    return True
        return False


_SPACED = {code: " " for code in range(128) if not chr(code).isalnum()}


class Sign(NamedTuple):
    """A pattern, and what a text must have to be searched for it.

    The patterns alone would take a fifth of all work on a call; looking for words first reduces
    that to a fiftieth.
    """

    reading: Reading
    pattern: str
    words: tuple[frozenset[str], ...] = ()
    """Groups of words, one of each of which has to be near one of the first group."""
    parts: tuple[tuple[str, ...], ...] = ()
    """Groups of parts of the text, one of each of which has to be there."""
    is_order: bool = False
    """Whether it begins with a verb that has to be an imperative."""
    then: str = ""
    """A pattern that has to follow within `reach` characters; empty for none."""
    reach: int = 0

    def may_be_in(self, text: str, words: Words) -> bool:
        """Tell whether a text has what a search needs."""
        if self.words and not words.near(self.words):
            return False
        return all(any(part in text for part in group) for group in self.parts)

    def is_in(self, text: str) -> bool:
        """Tell whether a text has the pattern."""
        if self.then:
            return self._is_followed(text)
        if not self.is_order:
            return _compiled(self.pattern).search(text) is not None
        return any(
            _is_imperative(text, match.start()) for match in _compiled(self.pattern).finditer(text)
        )

    def _is_followed(self, text: str) -> bool:
        """Search behind every match, but no part of the text for every match again."""
        searched = 0
        for match in _compiled(self.pattern).finditer(text):
            start, stop = match.end(), match.end() + self.reach
            if _compiled(self.then).search(text, max(start, searched - _LONGEST_THEN), stop):
                return True
            searched = stop
        return False


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE | re.VERBOSE)


_BEFORE_AN_ORDER = re.compile(
    r"(?:\A|[^\w\s]|\n|\b(?:please|kindly|and|then|now|just|simply|must|should|shall|will|always|also"
    r"|so|instead|therefore|you|to|but|or|thus|again|only|ai|llm|judge|grader|evaluator|model|assistant"
    r"|system|admin|administrator|note))\s*\Z"
)
_NO_ORDER = re.compile(
    r"(?:\b(?<!\byou\s)to|\bnot|\bnever|n['’]t|\bthey|\bwho|\bwe|\bi|\bhe|\bshe|\bit|\bwhich|\bthat"
    r"|\bmay|\bcan|\bcould|\bwould|\bmight|\boften|\bpeople|\busers|\bstudents|\bjudges)\s+\Z"
)


def _is_imperative(text: str, start: int) -> bool:
    """Tell whether the verb at a position gives an order, by the words before it."""
    before = text[max(0, start - 30) : start]
    return _BEFORE_AN_ORDER.search(before) is not None and _NO_ORDER.search(before) is None


def _by_words(pattern: str, *groups: str, order: bool = False) -> Sign:
    return Sign("plain", pattern, tuple(frozenset(one.split()) for one in groups), is_order=order)


def _by_both(pattern: str, words: str, *groups: str) -> Sign:
    return _by_parts("plain", pattern, *groups)._replace(words=(frozenset(words.split()),))


def _by_parts(reading: Reading, pattern: str, *groups: str) -> Sign:
    return Sign(
        reading,
        pattern,
        parts=tuple(tuple(part.replace("~", " ") for part in one.split()) for one in groups),
    )


def _any(words: str) -> str:
    """Make an alternation of words that are separated by spaces; `_` stands for a space in one."""
    return "(?:" + "|".join(word.replace("_", r"\s+") for word in words.split()) + ")"


# --- English


_GAP = r"[^\w.!?]{1,12}+(?:\w{1,20}+[^\w.!?]{1,12}+)"
"""A space and so many words of the same sentence: to be followed by a bounded repetition."""
_DROP = _any(
    "ignore disregard forget override bypass neglect discard drop dismiss"
    " pay_no_attention_to (?:do_not|don't|never|stop|cease)_(?:follow|obey|heed|apply|use|following|obeying)(?:ing)?"
)
_RULES = _any(
    "instructions? prompts? rules? guidelines? directions? directives? rubrics? criteri(?:a|on)"
    " restrictions? guidance commands? constraints? orders? polic(?:y|ies) tasks? messages?"
)
_EARLIER = _any(
    "previous prior earlier above preceding former foregoing aforementioned past original initial"
    " existing your system developer you're_given you_(?:were|have|had|got|received|are|been)"
    " given_(?:earlier|before|above|so_far|to_you) before_(?:this|now) until_now so_far old"
    " (?:all|any|every)_(?:the_|of_the_|other_)?(?:instructions?|rules|prompts|guidelines|directions)"
    " (?:any|every|each)_(?:instruction|rule|prompt|guideline)"
)
_ELSEWHERE = r"(?!\s+(?:on|in|at|from|inside)\s+(?:the|a|an|its|their|each|this)\s+(?!system|prompt|user|develop))"
_TOP = (
    r"(?:(?:full|maximum|maximal|max|highest|top|perfect|best)(?:\s+possible)?\s+"
    r"(?:marks?|scores?|ratings?|grades?|points?|stars?|verdicts?)|\b(?:5|10|100)\s?/\s?(?:5|10|100)\b"
    r"|\b(?:5|10|100|five|ten)\s+out\s+of\s+(?:5|10|100|five|ten)\b|(?:5|five)\s+stars"
    r"|(?:score|rating|grade)\s+of\s+(?:1|1\.0|5|10|100)\b|high\s+(?:score|rating|grade|marks))"
)
_GOOD = (
    r"\b(?:relevant|supported|utili[sz]ed|correct|true|perfect|faithful|grounded|accurate|truthful"
    r"|verified|factual|excellent|flawless|trustworthy|compliant)\b"
    r"(?!,?\s+(?:or|if|when|where|unless|refuted|false|unsupported|irrelevant|partially|to\s+life)\b)"
    r"(?!\s*/)"
)
_JUDGED = _any(
    "sentences? claims? statements? response(?:s)? answers? repl(?:y|ies) outputs? documents?"
    " passages? texts? assertions? facts? everything completions? summar(?:y|ies) contexts? pages?"
)
_MARK = _any(
    "mark label rate score grade treat consider regard judge count evaluate classify assess annotate"
    " deem view declare report accept rank tag categorize see take flag assume"
)
_GIVE = _any("give assign award grant output return report put select choose record enter")
_SAY = _any("output return say answer respond reply print report write state conclude declare")
_GRADERS = (
    r"(?:(?:ai|llm|automat(?:ed|ic)|human|model)[\s-]+)?(?:grad(?:er|ing\s+model)|judge|evaluator"
    r"|assessor|annotator|rater|scorer|reviewer|marker|examiner|verifier|checker|validator"
    r"|moderator)s?"
)
_MACHINES = (
    r"(?:(?:a\.?i\.?|llms?|gpt|chatbots?|assistants?|(?:large\s+)?language\s+models?)"
    r"(?:\s+(?:models?|systems?|assistants?|agents?|graders?|judges?|evaluators?|reviewers?))?|models?)"
)
_WANTED = (
    r"(?:\b(?:5|10|100)\s?/\s?(?:5|10|100)\b|\b(?:score|rate|rating|grade|mark|label|verdict|correct"
    r"|supported|relevant|faithful|verified|confirmed|approve|approved|pass|lenient|excellent"
    r"|grounded|accept|perfect|true|skip|ignore|disregard|check|checking|generous|yes|marks|stars"
    r"|valid|accurate|highest|maximum)\b)"
)
_ORDERED = (
    r"(?:\byou\s+(?:must|should|will|now|always|have\s+to|are\s+now|are\s+an?)\b|\bfrom\s+now\s+on"
    r"|\b(?:ignore|disregard|forget|approve|accept|label|mark|rate|grade|treat|respond|output|print"
    r"|always|never|override|pass)\s+(?:\w|\{)|\bfully[\s_]supported|\bsupported\b|\bverdict\b"
    r"|\bnew\s+(?:task|instructions?|rules)|\binstructions?\s*:|\bfull\s+marks|\bis\s+true\b"
    r"|\btrue\b|\bperfect\b|\brelevant\b|\bapprove\b|\baccept\b)"
)
_SECTIONS = r"(?:documents?|context|response|answer|question|data|instructions?|system|outputs?|prompt|user|input|text)"

_RULE_WORDS = (
    "instruction instructions prompt prompts rule rules guideline guidelines direction directions"
    " directive directives rubric rubrics criteria criterion restriction restrictions guidance"
    " command commands constraint constraints order orders policy policies task tasks message"
    " messages objective"
)
_JUDGED_WORDS = (
    "sentence sentences claim claims statement statements response responses answer answers reply"
    " replies output outputs document documents passage passages text texts assertion assertions"
    " fact facts everything completion completions summary summaries context contexts page pages"
)
_GOOD_WORDS = (
    "relevant supported utilized utilised correct true perfect faithful grounded accurate truthful"
    " verified factual excellent flawless trustworthy compliant 1 5 10 100 full maximum maximal max"
    " highest top best five ten high"
)
_GRADER_WORDS = (
    "grader graders grading judge judges evaluator evaluators assessor assessors annotator"
    " annotators rater raters scorer scorers reviewer reviewers marker markers examiner examiners"
    " verifier verifiers checker checkers validator validators moderator moderators ai llm model"
)
_WANTED_WORDS = (
    "5 10 100 score rate rating grade mark label verdict correct supported relevant faithful verified"
    " confirmed approve approved pass lenient excellent grounded accept perfect true skip ignore"
    " disregard check checking generous yes marks stars valid accurate highest maximum output task"
)

_ENGLISH = (
    # Orders to drop instructions.
    *(
        _by_words(
            rf"\b{_DROP}\b(?={_GAP}{{0,7}}[^\w.!?]{{0,12}}{_RULES}\b)"
            rf"(?=[^.!?]{{0,90}}\b{_EARLIER}\b){_GAP}{{0,7}}?{_RULES}\b{_ELSEWHERE}",
            *groups,
            _RULE_WORDS,
            order=True,
        )
        for groups in (
            ("ignore disregard forget override bypass neglect discard drop dismiss attention",),
            ("follow obey heed apply use following obeying", "not don never stop cease"),
        )
    ),
    _by_words(
        rf"""\b(?:ignore|disregard|forget|discard)\s+(?:
        (?:all\s+|everything\s+|the\s+|what\s+is\s+)*(?:above|previous|preceding)\s*(?:[.!,:;]|\Z|and\b)
        |(?:everything|anything|all|what(?:ever)?)\s+(?:that\s+)?(?:you\s+(?:were|have|had|are|know|learned)
        |the\s+(?:user|system|developer|operator)|i\s+(?:said|told)|(?:is|was|came|comes|stands)\s+(?:above|before)
        |before\b))""",
        "ignore disregard forget discard",
        "above previous preceding everything anything all what whatever",
        order=True,
    ),
    _by_words(
        rf"""\b(?:previous|prior|earlier|above|preceding|your|system|old|original|existing|before)\b
        [^.!?]{{0,40}}?\b(?:instructions?|rules|guidelines?|prompts?|directions|restrictions|message|directives)\b
        [^.!?]{{0,40}}?\b(?:no\s+longer\s+(?:apply|count|hold)|(?:is|are|were|was|have\s+been)\s+(?:now\s+)?(?:
        cancel|void|outdated|obsolete|revoked|suspended|lifted|invalid|overrid|replaced\s+by\s+(?:this|these|the\s+following)
        |superseded\s+by\s+(?:this|these|the\s+following)|wrong|a\s+(?:test|joke)))""",
        _RULE_WORDS,
        "longer cancelled canceled void outdated obsolete revoked suspended lifted invalid overridden replaced superseded wrong test joke",
        "previous prior earlier above your system old original existing before",
    ),
    _by_words(
        r"\bfree\s+(?:of|from)\s+(?:all\s+)?(?:of\s+)?(?:your|any|the)\s+(?:restriction|rule|guideline|instruction)",
        "free",
        _RULE_WORDS,
    ),
    _by_words(r"\bnew\s+(?:instructions?|task|rules|objective|orders?)\s*:", "new", _RULE_WORDS),
    _by_words(
        r"\b(?:your|the)\s+(?:real|true|new|actual|only)\s+(?:task|job|goal|instructions?|objective)\s+(?:is|are)\b",
        "task job goal instruction instructions objective",
        "real true new actual only",
        "is are",
    ),
    _by_words(
        r"\b(?:print|reveal|show|repeat|leak|display)\s+(?:me\s+)?(?:all\s+)?(?:of\s+)?your\s+(?:system\s+)?(?:prompt|instructions)",
        "print reveal show repeat leak display",
        "prompt instructions",
    ),
    _by_both(
        r"""\bfrom\s+now\s+on,?\s+(?:you\s+(?:are|must|will|should)|every\s+\w+\s+(?:is|counts)
        |approve|accept|always|only|say|mark|label|treat|respond|answer)""",
        "from",
        "from~now~on",
    ),
    _by_words(
        rf"\binstructions?\s+(?:to|for)\s+(?:the\s+)?(?:{_GRADERS}|{_MACHINES})\b",
        "instruction instructions",
        _GRADER_WORDS,
    ),
    _by_words(
        r"""\bskip\s+(?:the\s+|any\s+|all\s+)?(?:evaluation|fact[\s-]?check|grading|verification)\b
        |\bstop\s+(?:the\s+)?(?:evaluati\w+|grading|judging|checking|verif\w+)\b[^.!?]{0,30}\b(?:and|now|here)\b""",
        "skip stop",
        "evaluation evaluating fact grading judging checking verification verifying",
    ),
    _by_words(
        r"\bevaluation\s+is\s+(?:finished|over|complete|done)\b.{0,30}\b(?:print|output|return|say|write)\b",
        "evaluation",
        "finished over complete done",
    ),
    _by_words(
        r"\binstead,?\s+(?:of\s+\w+ing\s+)?(?:just\s+)?(?:repeat|output|print|say)\s+(?:the\s+word|only|that)\b",
        "instead",
        "repeat output print say",
    ),
    # Verdicts that are ordered.
    _by_words(
        rf"\b{_MARK}\b{_GAP}{{0,5}}?[^\w.!?]{{0,12}}\b{_JUDGED}\b(?:{_GAP}{{0,5}}?[^\w.!?]{{0,12}}"
        rf"(?:{_GOOD}|{_TOP}))",
        "mark label rate score grade treat consider regard judge count evaluate classify assess annotate deem view declare accept rank tag categorize take flag assume",
        _JUDGED_WORDS,
        _GOOD_WORDS,
        order=True,
    ),
    _by_words(
        rf"\b{_JUDGED}\b[^.!?]{{0,60}}\b(?:must|should|shall|is\s+to|are\s+to|has\s+to|have\s+to)\s+(?:always\s+)?"
        rf"be\s+(?:always\s+)?(?:marked|labell?ed|rated|scored|graded|treated|considered|regarded|judged"
        rf"|counted|evaluated|classified|deemed|accepted)\s+(?:as\s+|with\s+|to\s+be\s+)?(?:\w+ly\s+)?(?:the\s+|a\s+)?"
        rf"(?:{_GOOD}|{_TOP})",
        "marked labelled labeled rated scored graded treated considered regarded judged counted evaluated classified deemed accepted",
        "be",
        _GOOD_WORDS,
        _JUDGED_WORDS,
    ),
    _by_words(
        rf"\b{_GIVE}\b(?:{_GAP}{{0,6}}?)[^\w.!?]{{0,12}}{_TOP}"
        r"(?!\s+(?:for|if|when|where|only|to)\s+(?:any|an|a|each|students|candidates|answers|essays"
        r"|responses|the|your|naming|correct|those|work|they)\b)(?!\s+(?:if|when)\b)",
        "give assign award grant output return report put select choose record enter",
        "5 10 100 five ten score scores rating ratings grade grades marks mark points point stars verdict",
        "1 5 10 100 full maximum maximal max highest top perfect best five ten high",
        order=True,
    ),
    _by_words(
        rf"""\b{_SAY}\s+(?:(?:only|just|simply|always|with|that|exactly|the\s+word|word|ok|it\s+is|all\s+is)\s+)
        {{1,3}}(?:"|')?(?:true|yes|ok|(?:the\s+)?(?:\w+\s+){{0,4}}(?:is|are|complies|comply)\s+(?:fully\s+)?
        (?:supported|relevant|correct|perfect|faithful|with)|supported|relevant|correct|perfect|fully|everything|{_TOP}
        |the\s+(?:highest|maximum|best))\b(?!\s+(?:or|if|when|unless)\b)
        |\b(?:output|return|say|answer|respond|reply|print)\s+(?:with\s+)?(?:yes|true|ok)\s+
        (?:for|to)\s+(?:each|every|all|any|everything|overall|this)\b(?![^.!?]{{0,60}}\b(?:or|if)\b)
        |\balways\s+(?:returns?|says?|outputs?|answers?)\s+(?:true|yes|ok|supported)\b""",
        "output outputs return returns say says answer answers respond reply print report write state conclude declare",
        "true yes ok supported relevant correct perfect fully everything highest maximum best 5 10 full complies comply",
        "only just simply always with that exactly word ok it all for to",
        order=True,
    ),
    _by_words(
        r"""\b(?:your|the)\s+(?:verdict|rating|score|judge?ment|output|label|answer|final\s+score)\s+(?:must|should|shall|has\s+to)\s+(?:always\s+)?be\b
        [^.!?]{0,20}?\b(?:supported|relevant|true|yes|ok|positive|correct|perfect|highest|maximum|5|10|100|1)\b
        |\bmust\s+be\s+your\s+(?:output|verdict|answer|score)""",
        "verdict rating score judgement judgment output label answer",
        "must should shall has",
        "be",
    ),
    _by_words(rf"\bdeserves?\s+(?:the\s+|a\s+)?{_TOP}", "deserves deserve", _GOOD_WORDS),
    _by_words(
        r"\b(?:correct|right|proper|only)\s+(?:label|verdict|rating|score)\s+(?:for|of)\s+[^.!?]{0,50}\bis\b",
        "label verdict rating score",
        "correct right proper only",
        "is",
    ),
    _by_words(
        r"""\b(?:do\s+not|don't|never)\s+(?:mark|label|list|flag|report|treat|rate)\b[^.!?]{0,50}\b(?:un|not\s+)supported
        |\breturn\s+an\s+empty\s+list\b[^.!?]{0,30}\bunsupported""",
        "unsupported supported",
        "mark label list flag report treat rate",
    ),
    _by_words(
        r"\b(?:count|treat|mark|take)\s+this\s+\w+\s+as\s+(?:relevant|true|correct|supported)",
        "count treat mark take",
        "this",
        "as",
        _GOOD_WORDS,
    ),
    # Fields of the labelling answer, and JSON that imitates a verdict.
    _by_parts(
        "plain",
        r"all_(?:relevant|utilized)_sentence_keys|fully_supported|overall_supported|sentence_support_information",
        "_",
        "_sentence_keys _supported _support_",
    ),
    _by_words(
        r"""["'](?:score|rating|verdict|grade|supported|faithful(?:ness)?|relevan(?:t|ce))["']\s{0,4}:\s{0,4}
        ["']?(?:\d|true|yes|ok|supported|relevant|correct|pass)[^{}]{0,120}?["'](?:reason(?:s|ing)?|explanation|justification|rationale|confidence)["']\s{0,4}:
        |["'](?:reason(?:s|ing)?|explanation|justification|rationale|confidence)["']\s{0,4}:[^{}]{0,160}?
        ["'](?:score|rating|verdict|grade|supported|faithful(?:ness)?|relevan(?:t|ce))["']\s{0,4}:\s{0,4}["']?(?:\d|true|yes|ok|supported|relevant|correct|pass)""",
        "score rating verdict grade supported faithful faithfulness relevant relevance",
        "reason reasons reasoning explanation justification rationale confidence",
    ),
    # Texts that speak to a judge.
    _by_words(
        rf"""(?:\b(?:note|message|attention|memo|notice|instructions?|hello|hey|hi|dear|hint|reminder|request|warning)\b|@|^to\b
        |\bif\s+you\s+are\b)[\s,:-]{{0,4}}(?:(?:to|for)\s+)?(?:the\s+|an?\s+|any\s+|all\s+|my\s+|our\s+|whichever\s+|whoever\s+is\s+the\s+)?{_GRADERS}\b
        (?!\s+[a-z]+,)""",
        _GRADER_WORDS,
        "note message attention memo notice instruction instructions hello hey hi dear hint reminder request warning if to",
        _WANTED_WORDS,
    )._replace(then=_WANTED, reach=130),
    _by_both(
        rf"@{_GRADERS}\b[^\n]{{0,60}}?{_WANTED}",
        "grader judge evaluator reviewer annotator rater assessor ai",
        "@",
    ),
    _by_words(
        rf"^\W{{0,6}}{_GRADERS}(?:\s+notes?)?\s{{0,9}}(?:[:,-]|--)\s",
        _GRADER_WORDS,
        "note notes verified confirmed claims supported check above 5 10 full highest maximum perfect best high top",
    )._replace(
        then=rf"(?:{_TOP}|\b(?:all\s+claims|verified|confirmed|fully\s+supported|need\s+to\s+check|above\s+is)\b)",
        reach=130,
    ),
    _by_words(
        rf"""(?:\b(?:note|message|attention|memo|notice|instructions?|hello|hey|hi|dear)\b[\s,:-]{{0,4}}(?:(?:to|for)\s+)?
        |\bif\s+you\s+are\s+|\bto\s+|\bas\s+)(?:the\s+|an?\s+|any\s+|all\s+|whichever\s+|whatever\s+)?{_MACHINES}\b
        (?:,?\s+(?:that|which|who)?\s*(?:is\s+|are\s+)?(?:read|evaluat|grad|judg|scor|label|review|rat|process|annotat|check|assess)\w*
        [^.!?]{{0,30}}?[,:;]?\s[^.!?]{{0,60}}?{_WANTED}|\s*[,:][^.!?]{{0,80}}?(?:{_WANTED}|\breal\s+task|\boutput\b))""",
        "ai llm llms gpt chatbot chatbots assistant assistants model models",
        "note message attention memo notice instruction instructions hello hey hi dear if whichever whatever",
        _WANTED_WORDS,
    ),
    _by_both(
        rf"""\b(?:ai|llm|gpt)\s*:\s*(?:please\s+)?{_any("rate mark label score grade treat approve accept rank output say ignore")}\b""",
        "ai llm gpt",
        "ai: llm: gpt:",
    ),
    # Delimiters of prompts and chat templates, and lines that imitate a message.
    _by_parts("plain", r"<<<\s{0,9}(?:question|documents|response)\b", "<<<"),
    _by_parts("plain", r"\b(?:question|documents|response)[^\n]{0,40}>>>", ">>>"),
    _by_parts(
        "plain",
        r"<\|\s{0,9}(?:im_start|im_end|system|user|assistant|endoftext|start_header_id|eot_id|begin_of_text)",
        "<|",
    ),
    _by_both(r"\[/?inst\]|<</?sys>>", "inst sys", "inst] sys>>"),
    _by_both(
        rf"""^[^\S\n]{{0,9}}(?:[#*>]{{1,6}}[^\S\n]{{0,3}})?(?:system|developer|instructions?)(?:\s(?:prompt|message|note))?[*]{{0,2}}\s?:
        [\s"'*]{{0,9}}(?:.{{0,40}}?[\s,]|){_ORDERED}""",
        "system developer instruction instructions prompt message note",
        "system: system~: developer: developer~: prompt: message: note: instruction: instructions: **:",
    ),
    _by_both(
        r"""^[^\S\n]{0,9}(?:[#*>]{1,6}[^\S\n]{0,3})?(?:assistant|ai)[*]{0,2}\s?:[\s"'*]{0,9}
        (?:\{|(?:the|this|all|every)\s[^.!?\n]{0,40}\b(?:supported|relevant|correct|true)\b)""",
        "assistant ai",
        "assistant: assistant~: assistant** ai:",
    ),
    _by_parts(
        "plain",
        rf"</{_SECTIONS}>[\s`]{{0,9}}(?:</\w{{1,20}}>)?[\s`]{{0,9}}<(?:instructions?|system|prompt|user)>",
        "</",
    ),
    _by_parts("plain", rf"</{_SECTIONS}>", "</")._replace(
        then=rf"(?:{_ORDERED}|\bsystem\s+note|\binstructions?\b)", reach=70
    ),
    _by_both(
        rf"<(?:system|instructions?|prompt|admin)>[^<]{{0,60}}?(?:{_ORDERED}|\breturn\s+true)",
        "system instruction instructions prompt admin",
        "<system> <instruction> <instructions> <prompt> <admin>",
    ),
    _by_both(
        rf"\bend\s+of\s+(?:the\s+|all\s+)?{_SECTIONS}\b(?=[^\w\s]|\s{{0,3}}\n)", "end", "end~of"
    )._replace(then=_ORDERED, reach=140),
)

# --- Words that are joined, split or spelt with digits


_FILL = "(?:all|any|every|each|the|of|my|our|these|those|this|that|other|and|given|current|single)"
_STRONG = "(?:previous|prior|earlier|above|preceding|former|system|your|foregoing|original|initial)"
_ALONE = (
    "(?:(?<!to)|(?<=youto))(?<!not)(?<!never)(?<!dont)(?<!they)(?<!who)(?<!which)(?<!often)(?<!can)"
)
_NOUN = "(?:instruction|rule|prompt|guideline|direction|command|directive)"
_COMPACT = (
    _by_parts(
        "compact",
        rf"{_ALONE}(?:ignore|disregard|forget|bypass)(?:{_FILL}{{0,4}}{_STRONG}(?:{_FILL}|{_STRONG}){{0,3}}{_NOUN}"
        rf"|{_FILL}{{0,4}}{_NOUN}s?(?:above|yougot|youwere|youhave|before|given))",
        "ignore disregard forget bypass",
        "instruction rule prompt guideline direction command directive",
    ),
    _by_parts(
        "compact",
        rf"{_ALONE}(?:mark|label|rate|treat|grade|score|judge)(?:{_FILL}|following|below){{1,4}}"
        r"(?:sentence|claim|statement|response|answer|document)s?"
        r"(?:as|is|are|to|be|being|in|fully|completely|totally|entirely|always|the){0,4}"
        r"(?:supported|relevant|utilized|correct|true|perfect|grounded|faithful)(?!or|if|when|unless)",
        "sentence claim statement response answer document",
        "mark label rate treat grade score judge",
        "supported relevant utilized correct true perfect grounded faithful",
    ),
    _by_parts(
        "compact",
        r"noteto(?:the|all|any)?(?:ai|llm)?(?:grader|judge|evaluator)s?.{0,60}(?:givesss|sssout|fullmark|correct|supported|perfect|relevant|sstars|gives)",
        "noteto",
    ),
)

# --- Other languages in Latin script


_DROP_LATIN = _any(
    # German, French, Spanish, Italian
    "ignoriere? ignorieren_sie ignoriert vergiss vergesst vergessen_sie missachten?(?:_sie)? uberspringe verwirf umgehe beachte_nicht"
    " ignore[zr]? oublie[zr]? ne_(?:tenez|tiens)_(?:pas|aucun|plus)_compte faites_abstraction contourne[zr]? ne_(?:suivez|suis|respectez)_pas"
    " ignor[ae]n? olvid[ae]n? h[aá]z_caso_omiso haga_caso_omiso no_haga?s?_caso omit[ae] descart[ae] no_sigas? desobedec[ea]"
    " dimentica(?:te|re)? dimentichi ignorate ignori non_(?:seguire|seguite|considerare|tenere_conto) trascura(?:te)?"
    # Portuguese, Dutch, Polish, Scandinavian, Czech, Romanian, Indonesian, Vietnamese, Turkish
    " esquec[ae]m? desconsider[ae] nao_siga despreze negeer vergeet zignoruj ignoruj pomin zapomnij nie_przestrzegaj"
    " ignorera glom bortse ignorer glem ignorujte zapomen ignora[tț]i uita abaikan lupakan bo_qua"
    " unut(?:un)? yok_say(?:in)? dikkate_alma(?:yin)? gormezden_gel(?:in)? goz_ard[i]?_et(?:in)? uymay?[i]?n?"
)
_RULES_LATIN = _any(
    "anweisung\\w* regeln? vorgaben? instruktion\\w* richtlinien? befehle? systemprompt prompts? bewertungskriterien"
    " consignes? instructions? regles? directives? instruccion(?:es)? reglas? indicacion(?:es)? directri\\w+ ordenes"
    " istruzion[ie] regol[ae] indicazioni direttive instruc(?:ao|oes) regras? orientac(?:ao|oes) diretriz(?:es)?"
    " instructies? regels richtlijn(?:en)? instrukcj\\w+ regul\\w* zasad\\w* polecen\\w* wytyczn\\w+"
    " instruktioner regler instrukser pokyn\\w* instrukce instructiunil\\w+ instruksi aturan perintah huong_dan chi_dan"
    " talimat\\w* kural\\w* yonerge\\w* komut\\w*"
)
_EARLIER_LATIN = _any(
    "vorherig\\w* vorig\\w* obig\\w* bisherig\\w* fruher\\w* vorangegangen\\w* vorstehend\\w* oben alle[nr]? dein\\w* system\\w*"
    " precedent\\w* ci-dessus plus_haut anterieur\\w* toutes? tous vos tes anterior\\w* previ[ao]s arriba tod[ao]s tus"
    " sopra tutt[ei] tue acima suas eerdere vorige bovenstaande poprzedni\\w* powyzsz\\w* wczesniejsz\\w* wszystki\\w*"
    " tidigare ovan alla tidligere ovenfor predchozi\\w* vsechn\\w* anterioare toate sebelumnya di_atas semua truoc tren"
    " onceki yukar[i]?daki tum butun sistem\\w*"
)
_MARK_LATIN = _any(
    "bewerten?(?:_sie)? markieren?(?:_sie)? behandeln?(?:_sie)? behandle betrachten?(?:_sie)? kennzeichne werte gib geben_sie vergib"
    " considere[zr]? marque[zr]? note[zr]? attribue[zr]? donne[zr]? evalue[zr]? traite[zr]?"
    " trat[ae] marc[ae] consider[ae] calific[ae] evalu[ae] asign[ae] da dale otorg[ae] puntu[ae] etiquet[ae]"
    " valuta(?:te)? segna(?:te)? assegna(?:te)? dai tratta(?:te)? contrassegna etichetta classifi(?:que|ca) atribu[ae] avali[ae] marqu[e]"
    " beschouw markeer beoordeel geef ocen oznacz traktuj uznaj przyznaj daj bedom markera ge tandai beri anggap"
)
_AS_LATIN = r"(?:als|comme|como|come|com|jako|som|sebagai)\s+(?:\w+\s+){0,2}?"
_GOOD_LATIN = _any(
    "belegt gestutzt relevant korrekt richtig wahr perfekt bewiesen"
    " etaye\\w* soutenu\\w* pertinent\\w* exact\\w* correct\\w* vrai\\w* parfait\\w* fonde\\w*"
    " respaldad\\w+ verdader\\w+ relevant\\w* perfect\\w* apoyad\\w+ sustentad\\w+ ciert\\w+"
    " supportat\\w+ corrett\\w+ ver[aeio] rilevant\\w+ perfett\\w+ fondat\\w+"
    " suportad\\w+ corret\\w+ verdadeir\\w+ perfeit\\w+ apoiad\\w+ fundamentad\\w+"
    " ondersteund juist poprawn\\w+ prawdziw\\w+ istotn\\w+ potwierdzon\\w+ sann\\w* benar didukung relevan"
)
_TOP_LATIN = (
    r"(?:\b(?:5|10|100)\s?/\s?(?:5|10|100)\b|\b5\s+(?:von|sur|de|su|van|na|av)\s+5\b|volle[nr]?\s+punktzahl"
    r"|(?:hochst|best)(?:e\s+)?(?:note|punktzahl|wertung)|hochste\s+(?:note|punktzahl|bewertung)|note\s+(?:maximale|parfaite)"
    r"|(?:meilleure|plus\s+haute)\s+note|(?:puntuacion|nota|calificacion)\s+maxima|maxima\s+(?:puntuacion|nota)"
    r"|punteggio\s+(?:massimo|pieno)|massimo\s+(?:dei\s+voti|punteggio|voto)|voto\s+massimo|pontuacao\s+maxima"
    r"|hoogste\s+(?:score|cijfer)|najwyzsz\w+\s+ocen\w+|maksymaln\w+\s+(?:ocen|liczb)\w+|hogsta\s+(?:betyg|poang)"
    r"|tam\s+puan|en\s+yuksek\s+puan|skor\s+tertinggi|nilai\s+(?:tertinggi|sempurna))"
)
_GRADERS_LATIN = _any(
    "prufer\\w* bewerter\\w* gutachter\\w* korrektor\\w* sprachmodell ki evaluateur\\w* correcteur\\w* juge modele ia"
    " evaluador\\w* calificador\\w* juez revisor\\w* modelo valutator\\w+ giudice modello avaliador\\w* juiz"
    " beoordelaar taalmodel oceniajac\\w+ sedzi\\w* degerlendirici\\w* hakem\\w* penilai bedomare"
)
_ASIDE_LATIN = _any(
    "hinweis anmerkung nachricht notiz an note message attention nota mensaje aviso atencion messaggio attenzione"
    " mensagem aviso atencao opmerking bericht uwaga wiadomosc not mesaj catatan obs"
)
_LATIN = (
    _by_words(
        rf"\b{_DROP_LATIN}\b(?=[^.!?]{{0,60}}\b{_RULES_LATIN}\b)(?=[^.!?]{{0,70}}\b{_EARLIER_LATIN}\b)"
        rf"|\b{_EARLIER_LATIN}\b[^.!?]{{0,40}}\b{_RULES_LATIN}\b[^.!?]{{0,40}}\b{_DROP_LATIN}\b"
        r"|\bbisherigen?\s+(?:anweisungen|regeln|vorgaben)\b[^.!?]{0,20}\b(?:gelten\s+nicht|sind\s+(?:ungultig|aufgehoben))",
        "ignoriere ignorier ignorieren ignoriert vergiss vergesst vergessen missachte missachten uberspringe verwirf umgehe beachte ignorez ignorer oublie oubliez oublier tenez tiens faites contourne contournez suivez suis respectez ignora ignore ignoran ignoren olvida olvide olvidan olviden caso omite omita descarta descarte siga sigas desobedece desobedeca dimentica dimenticate dimenticare dimentichi ignorate ignori seguire seguite considerare tenere trascura trascurate esqueca esquece esquecam desconsidere desconsidera despreze negeer vergeet zignoruj ignoruj pomin zapomnij przestrzegaj ignorera glom bortse glem ignorujte zapomen ignorati uita abaikan lupakan qua unut unutun yok dikkate gormezden goz uyma uymayn uymayin gelten sind",
    ),
    _by_words(
        rf"\b{_MARK_LATIN}\b[^.!?]{{0,60}}?(?:\b{_AS_LATIN}{_GOOD_LATIN}\b(?!\s+(?:oder|ou|o|of|lub|eller)\b)|{_TOP_LATIN})"
        rf"|{_TOP_LATIN}\s+(?:ver|verin)\b|\b(?:desteklen\w+|dogru|ilgili|gecerli)\s+olarak\s+(?:isaretle|say|kabul\s+et|degerlendir)",
        "bewerte bewerten markiere markieren behandle behandeln betrachte betrachten kennzeichne werte gib geben vergib considere considerez marque marquez note notez attribue attribuez donne donnez evalue evaluez traite traitez trata trate marca marque considera califica califique evalua evalue asigna asigne da dale otorga otorgue puntua etiqueta valuta valutate segna assegna assegnate dai tratta contrassegna etichetta classifique atribua avalie avalia beschouw markeer beoordeel geef ocen oznacz traktuj uznaj przyznaj daj bedom markera ge tandai beri anggap ver verin olarak",
        "als comme como come com jako som sebagai olarak 5 10 100 punktzahl hochstnote hochste bestnote maximale parfaite meilleure haute maxima massimo pieno dei hoogste najwyzsza najwyzszaoce maksymalna hogsta puan tertinggi sempurna najwyzsz",
    ),
    _by_words(
        rf"(?:\b{_ASIDE_LATIN}\b[^.!?\n]{{0,14}}?\b{_GRADERS_LATIN}\b|\bdegerlendirici\w*\s+not)",
        "prufer prufers bewerter gutachter korrektor sprachmodell ki evaluateur evaluateurs correcteur juge modele ia evaluador evaluadores calificador juez revisor modelo valutatore valutatori giudice modello avaliador avaliadores juiz beoordelaar taalmodel oceniajacego oceniajacy oceniajacych sedziego degerlendirici degerlendiriciye hakem hakeme penilai bedomare",
        "hinweis anmerkung nachricht notiz an note message attention nota mensaje aviso atencion messaggio attenzione mensagem atencao opmerking bericht uwaga wiadomosc not mesaj catatan obs",
    )._replace(then=rf"(?:{_TOP_LATIN}|\b{_GOOD_LATIN}\b)", reach=130),
)

# --- Other scripts


_OTHER = (
    _by_parts(
        "other",
        r"""(?:игнорируй|забудь|отмени|пропусти|отбрось|пренебреги|не\sобращай|не\sследуй|не\sсоблюдай|не\sвыполняй)(?:те)?\b
        (?=[^.!?]{0,60}(?:инструкц|правил|указани|команд|промпт|директив|предписани|требовани))
        (?=[^.!?]{0,80}(?:предыдущ|выше|прежн|все|всё|систем|свои|данн|раньше|прошл|эти))""",
        "инструкц правил указани команд промпт директив предписани требовани",
    ),
    _by_parts(
        "other",
        r"""(?:считай|пометь|отметь|оцени|поставь|присвой|признай|маркируй|выстави|отмечай|дай)(?:те)?\b[^.!?]{0,60}?
        (?:подтвержд|релевантн|обоснован|как\s(?:верн|правильн|корректн|истин)|(?:верн|правильн|истинн|корректн)ы[мхе]
        |(?:максимальн|высш|наивысш)\w+\s(?:оценк|балл)|\b5/5|\b10/10)""",
        "считай пометь отметь оцени поставь присвой признай маркируй выстави отмечай дай",
    ),
    _by_parts(
        "other",
        r"""(?:примечани|заметк|внимани|сообщени|указани|обращени|просьба)\w*[^.!?\n]{0,12}?(?:оценщик|судь|проверяющ|эксперт|модел|рецензент|\bии\b)
        [^\n]{0,100}?(?:верн|5/5|10/10|правильн|максим|подтвержд|балл|корректн)""",
        "оценщик судь проверяющ эксперт модел рецензент ии",
    ),
    _by_parts(
        "other",
        r"""(?:ігноруй|забудь|відкинь|пропусти|не\sзважай)(?:те)?\b(?=[^.!?]{0,60}(?:інструкц|правил|вказівк|команд))
        (?=[^.!?]{0,80}(?:попередн|вище|усі|всі|систем))""",
        "інструкц правил вказівк команд",
    ),
    _by_parts(
        "other",
        r"""(?:忽略|无视|無視|忘记|忘記|忘掉|不要理会|不要遵守|不要遵循|抛弃|取消|不再遵循|别管|绕过)[^。！？\n]{0,16}(?:指令|指示|规则|規則|提示|要求|命令|准则|設定|设定|指南)""",
        "指令 指示 规则 規則 提示 要求 命令 准则 設定 设定 指南",
    ),
    _by_parts(
        "other",
        r"""(?:请|請|把|将|將|必须|务必|直接|一律|应|给|給|全部)[^。！？\n]{0,20}?(?:标记|标为|標記|视为|視為|判定|判为|评为|評為|打|给|給|认定|当作|看作|输出|标注|算作)
        [^。！？\n]{0,10}?(?:相关|支持|正确|有依据|真实|满分|滿分|最高分|5分|五分|10分|十分|完美|成立|属实)""",
        "相关 支持 正确 有依据 真实 满分 滿分 最高分 5分 五分 10分 十分 完美 成立 属实",
    ),
    _by_parts(
        "other",
        r"(?:评审|评委|评分者|评估者|评判者?|裁判|审核员|评测|模型|打分者)[^。！？\n]{0,4}(?:注意|请|：|:)[^\n]{0,40}?(?:正确|满分|5分|支持|通过|最高)",
        "正确 满分 5分 支持 通过 最高",
    ),
    _by_parts(
        "other",
        r"""(?:これまで|上記|以前|前の|すべて|全て|先の|システム|今まで|上の)[^。！？\n]{0,24}(?:指示|命令|ルール|規則|プロンプト|ガイドライン|設定|制約)[^。！？\n]{0,16}(?:無視|忘れ|従わない|破棄|上書き|取り消)""",
        "無視 忘れ 従わない 破棄 上書き 取り消",
    ),
    _by_parts(
        "other",
        r"""(?:支持|関連|正しい|正解|満点|最高点|5点|完璧|真実|根拠)[^。！？\n]{0,20}(?:判定|付け|つけ|評価|みなし|扱|与え|マーク|ラベル|して)[^。！？\n]{0,10}(?:ください|下さい|なさい|せよ|くれ)""",
        "判定 付け つけ 評価 みなし 扱 与え マーク ラベル して",
    ),
    _by_parts(
        "other",
        r"(?:評価者|採点者|審査員|判定者|モデル)(?:へ|の方へ|への)[^\n]{0,60}?(?:正しい|満点|5点|最高|支持)",
        "評価者 採点者 審査員 判定者 モデル",
    ),
    _by_parts(
        "other",
        r"(?:이전|위의|모든|앞의|시스템|기존|평가)[^.!?\n]{0,40}(?:지시|지침|명령|규칙|프롬프트|기준)[^.!?\n]{0,30}(?:무시|잊|따르지)",
        "무시 잊 따르지",
    ),
    _by_parts(
        "other",
        r"(?:만점|최고점|5점|지지됨|관련\s있음|정답으로|참으로)[^.!?\n]{0,30}(?:주세요|줘|처리|표시하|평가하|판정하|하세요|해라|하십시오|주십시오)",
        "만점 최고점 5점 지지됨 관련 정답으로 참으로",
    ),
    _by_parts(
        "other",
        r"(?:تجاهل|انس|أهمل|لا\sتتبع)[^.!?\n]{0,30}(?:تعليمات|قواعد|أوامر|إرشادات|توجيهات)",
        "تعليمات قواعد أوامر إرشادات توجيهات",
    ),
    _by_parts(
        "other",
        r"(?:قيم|اعتبر|ضع|امنح|اعط|أعط|صنف)\w{0,3}\s[^.!?\n]{0,60}(?:أعلى\sدرجة|درجة\sكاملة|الدرجة\sالكاملة|صحيحة|مدعومة)",
        "درجة الدرجة صحيحة مدعومة",
    ),
    _by_parts(
        "other",
        r"(?:पिछले|ऊपर|सभी|पहले)[^।!?\n]{0,40}(?:निर्देश|नियम)[^।!?\n]{0,40}(?:अनदेखा|भूल|नजरअंदाज|नज़रअंदाज़|उपेक्षा)",
        "निर्देश नियम",
    ),
    _by_parts(
        "other",
        r"(?:התעלם|התעלמי|תתעלם|שכח)[^.!?\n]{0,40}(?:הוראות|כללים|הנחיות)",
        "הוראות כללים הנחיות",
    ),
)


def signs(fold: Callable[[str], str]) -> tuple[Sign, ...]:
    """Return all signs; those of other scripts are folded as the texts are that they are for."""
    folded = (
        Sign(
            "other", fold(one.pattern), parts=tuple(tuple(map(fold, group)) for group in one.parts)
        )
        for one in _OTHER
    )
    return (*_ENGLISH, *_COMPACT, *_LATIN, *folded)
