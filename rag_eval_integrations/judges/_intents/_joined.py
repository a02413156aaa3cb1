"""Orders in words that are joined, split or spelt with digits."""

from __future__ import annotations

from rag_eval_integrations.judges._intents._sign import by_parts

_FILL = "(?:all|any|every|each|the|of|my|our|these|those|this|that|other|and|given|current|single)"
_STRONG = "(?:previous|prior|earlier|above|preceding|former|system|your|foregoing|original|initial)"
_ALONE = (
    "(?:(?<!to)|(?<=youto))(?<!not)(?<!never)(?<!dont)(?<!they)(?<!who)(?<!which)(?<!often)(?<!can)"
)
_NOUN = "(?:instruction|rule|prompt|guideline|direction|command|directive)"
JOINED = (
    by_parts(
        "compact",
        rf"{_ALONE}(?:ignore|disregard|forget|bypass|erase)(?:{_FILL}{{0,4}}{_STRONG}(?:{_FILL}"
        rf"|{_STRONG}){{0,3}}{_NOUN}"
        rf"|{_FILL}{{0,4}}{_NOUN}s?(?:above|yougot|youwere|youhave|before|given))",
        "ignore disregard forget bypass erase",
        "instruction rule prompt guideline direction command directive",
    ),
    by_parts(
        "compact",
        rf"{_ALONE}(?:mark|label|rate|treat|grade|score|judge)(?:{_FILL}|following|below){{1,4}}"
        r"(?:sentence|claim|statement|response|answer|document)s?"
        r"(?:as|is|are|to|be|being|in|fully|completely|totally|entirely|always|the){0,4}"
        r"(?:supported|relevant|utilized|correct|true|perfect|grounded|faithful|ss|ioio|fivestars"
        r"|sstars|fullmarks)(?!or|if|when|unless)",
        "sentence claim statement response answer document",
        "mark label rate treat grade score judge",
        "supported relevant utilized correct true perfect grounded faithful ss ioio stars"
        " fullmarks",
    ),
    by_parts(
        "compact",
        rf"{_ALONE}(?:rate|grade|score|give){_FILL}{{1,3}}(?:response|answer|text|document)"
        r"(?:a|as|with|the){0,2}(?:ss|ioio|fivestars|sstars|fullmarks|perfectscore)",
        "responsess answerss textss documentss ioio stars fullmarks perfectscore",
        "rate grade score give",
    ),
    by_parts(
        "compact",
        r"noteto(?:the|all|any)?(?:ai|llm)?(?:grader|judge|evaluator)s?.{0,60}(?:givesss|sssout"
        r"|fullmark|correct|supported|perfect|relevant|sstars|gives)",
        "noteto",
    ),
)
