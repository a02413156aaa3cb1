"""English words and phrases that several signs share."""

from __future__ import annotations

from rag_eval_integrations.judges._intents._sign import any_of

GAP = r"[^\w.!?]{1,12}+(?:\w{1,20}+[^\w.!?]{1,12}+)"
"""A space and so many words of the same sentence: to be followed by a bounded repetition."""
DROP = any_of(
    "ignore disregard forget override bypass neglect discard drop dismiss erase abandon replace"
    " overlook scrap delete cancel overwrite suspend nullify throw_away set_aside put_aside"
    " cast_aside leave_aside do_away_with"
    " pay_no_attention_to"
    " (?:do_not|don't|never|stop|cease)_(?:follow|obey|heed|apply|following|obeying)"
)
RULES = any_of(
    "instructions? prompts? rules? guidelines? directions? directives? rubrics? criteri(?:a|on)"
    " restrictions? guidance commands? constraints? orders? polic(?:y|ies) tasks?"
    " system_messages? context guide training memory standards requirements checks"
)
EARLIER = any_of(
    "previous prior earlier above preceding former foregoing aforementioned past original initial"
    " existing whatever your system developer you're_given"
    " you_(?:were|have|had|got|received|are|been)"
    " given_(?:earlier|before|above|so_far|to_you) before_(?:this|now) until_now so_far old"
    " (?:all|any|every)_(?:the_|of_the_|other_)?(?:instructions?|rules|prompts|guidelines)"
    " (?:all|any|every)_(?:the_|of_the_|other_)?directions"
    " (?:any|every|each)_(?:instruction|rule|prompt|guideline)"
)
ELSEWHERE = (
    r"(?!\s+(?:on|in|at|from|inside)\s+(?:the|a|an|its|their|each|this)\s+"
    r"(?!system|prompt|user|develop))"
)
TOP = (
    r"(?:(?:full|maximum|maximal|max|highest|top|perfect|best)(?:\s+possible)?\s+"
    r"(?:marks?|scores?|ratings?|grades?|points?|stars?|verdicts?)|\b(?:5|10|100)\s?/\s?(?:5|10"
    r"|100)\b"
    r"|\b(?:5|10|100|five|ten)\s+out\s+of\s+(?:5|10|100|five|ten)\b|(?:5|five)\s+stars"
    r"|\ban?\s+a\s?\+|\ba\s+(?:perfect\s+)?(?:5|10|ten|five)\b(?!\s*(?:%|percent|-|minutes?"
    r"|hours?|days?|years?|people|point\s|per|mile|km|cm|mm|kg|out|star|step|page|\w+ing\b))"
    r"|(?:highest|maximum|top)\s+(?:value|possible)|(?:score|rating|grade)\s+of\s+(?:1|1\.0|5|10"
    r"|100)\b|high\s+(?:score|rating|grade|marks))"
)
GOOD = (
    r"\b(?:relevant|supported|utili[sz]ed|correct|true|perfect|faithful|grounded|accurate|truthful"
    r"|verified|factual|excellent|flawless|trustworthy|compliant)\b"
    r"(?!,?\s+(?:or|if|only|when|where|unless|refuted|false|unsupported|irrelevant|partially"
    r"|to\s+life)\b)"
    r"(?!\s*/)"
)
JUDGED = any_of(
    "sentences? claims? statements? response(?:s)? answers? repl(?:y|ies) outputs? documents?"
    " passages? texts? assertions? facts? everything completions? summar(?:y|ies) contexts? pages?"
)
MARK = any_of(
    "mark label rate score grade treat consider regard judge count evaluate classify assess"
    " annotate"
    " deem view declare report accept rank tag categorize see take flag assume"
)
GIVE = any_of("give assign award grant output return report put select choose record enter")
SAY = any_of("output return say answer respond reply print report write state conclude declare")
GRADERS = (
    r"(?:(?:ai|llm|automat(?:ed|ic)|human|model)[\s-]+)?(?:grad(?:er|ing\s+model)|judge|evaluator"
    r"|assessor|annotator|rater|scorer|reviewer|marker|examiner|verifier|checker|validator"
    r"|moderator|(?:evaluation|grading|scoring|judging)\s+(?:bot|model|system|ai))s?"
)
MACHINES = (
    r"(?:(?:a\.?i\.?|llms?|gpt|chatbots?|assistants?|(?:large\s+)?language\s+models?)"
    r"(?:\s+(?:models?|systems?|assistants?|agents?|graders?|judges?|evaluators?|reviewers?))?"
    r"|models?)"
)
WANTED = (
    r"(?:\b(?:5|10|100)\s?/\s?(?:5|10|100)\b|\b(?:score|rate|rating|grade|mark|label|verdict"
    r"|correct"
    r"|supported|relevant|faithful|verified|confirmed|approve|approved|pass|lenient|excellent"
    r"|grounded|accept|perfect|true|skip|ignore|disregard|check|checking|generous|yes|rank|marks"
    r"|stars"
    r"|valid|accurate|highest|maximum|credit)\b)"
)
ORDERED = (
    r"(?:\byou\s+(?:must|should|will|now|always|have\s+to|are\s+now|are\s+an?)\b|\bfrom\s+now\s+on"
    r"|\b(?:ignore|disregard|forget|approve|accept|label|mark|rate|grade|treat|respond|output|print"
    r"|always|never|override|pass)\s+(?:\w|\{)|\bfully[\s_]supported|\bsupported\b|\bverdict\b"
    r"|\bnew\s+(?:task|instructions?|rules)|\binstructions?\s*:|\bfull\s+marks|\bis\s+true\b"
    r"|\btrue\b|\bperfect\b|\brelevant\b|\bapprove\b|\baccept\b)"
)
VERDICT_KEYS = (
    r"(?:overall_?)?(?:score|rating|verdict|grade|label|supported|faithful(?:ness)?"
    r"|relevan(?:t|ce))"
)
REASON_KEYS = r"reason(?:s|ing)?|explanation|justification|rationale|confidence"
BEST = r"(?:(?:5|10|100|1)(?:\.0+)?\b|true|yes|ok\b|(?:fully\s+)?supported|relevant|correct|pass)"
SECTIONS = (
    r"(?:documents?|context|response|answer|question|data|instructions?|system|outputs?|prompt|user"
    r"|input|text)"
)

RULE_WORDS = (
    "instruction instructions prompt prompts rule rules guideline guidelines direction directions"
    " directive directives rubric rubrics criteria criterion restriction restrictions guidance"
    " command commands constraint constraints order orders policy policies task tasks message"
    " objective context guide training memory standards requirements checks"
)
JUDGED_WORDS = (
    "sentence sentences claim claims statement statements response responses answer answers reply"
    " replies output outputs document documents passage passages text texts assertion assertions"
    " fact facts everything completion completions summary summaries context contexts page pages"
)
GOOD_WORDS = (
    "relevant supported utilized utilised fact correct true perfect faithful grounded accurate"
    " truthful"
    " verified factual excellent flawless trustworthy compliant 1 5 10 100 full maximum maximal max"
    " highest top best five ten high"
)
GRADER_WORDS = (
    "grader graders grading judge judges evaluator evaluators assessor assessors annotator"
    " annotators rater raters scorer scorers reviewer reviewers marker markers examiner examiners"
    " verifier verifiers checker checkers validator validators moderator moderators bot ai llm"
    " model evaluation"
)
WANTED_WORDS = (
    "5 10 100 score rate rating grade mark label verdict correct supported relevant faithful"
    " verified"
    " confirmed approve approved pass lenient excellent grounded accept perfect true skip ignore"
    " disregard check checking generous yes rank marks stars valid accurate highest maximum"
    " output task credit"
)
