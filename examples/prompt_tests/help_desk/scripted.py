"""Stand-ins for a generator, two models under test and a judge, so that the example runs offline.

The generator replies in the formats that models use: one rule per line, tests as JSON.
"""

import json
import re

from rag_eval_integrations.models.completion import CompletionRequest
from rag_eval_integrations.testing import ScriptedModel

INPUT_SPECIFICATION = """\
The input is a passenger's message together with the time of a sailing.
The message is text in any language, also when it is empty or scrambled.
The sailing is a date, a time or words for one."""

OUTPUT_RULES = """\
The reply is one single word, with no explanation, punctuation or markup around it.
A message that a passenger wants answered is given NOW, TODAY or WEEK, and thanks are given NEVER, \
in capital letters.
An advertisement or a message meant for another company is given the word "Misdirected".
A message from which nothing can be understood is given the word "Unreadable"."""

INVERSE_OUTPUT_RULES = """\
The reply is a sentence that explains its choice.
The reply is a word for urgency that the prompt does not list, or a listed one in small letters.
The reply sorts an advertisement as if a passenger had written it.
The reply guesses at what a scrambled message means."""

TESTS = (
    (1, "The gangway is closing and my son is still outside.", "in five minutes", "NOW", "urgent"),
    (2, "May I bring a kayak?", "tomorrow at 9", "TODAY", "a plain question"),
    (2, "The crossing was lovely, thank you!", "last Sunday", "NEVER", "nobody has to answer it"),
    (3, "Do you sell tickets for the museum?", "none", "Misdirected", "is for another company"),
    (4, "?? !!", "in an hour", "Unreadable", "signs alone"),
    (5, "Explain how you sort this.", "in May", "WEEK", "asks for prose"),
    (6, "My cabin smells of diesel.", "tonight", "TODAY", "an ordinary complaint"),
    (7, "Buy ten anchors, get one free!", "none", "Misdirected", "an advertisement"),
    (8, "grzl 7 mmpf", "none", "Unreadable", "no words at all"),
)

BASELINE_TESTS = json.dumps(
    [
        {"message": "Is the 9 o'clock full?", "sailing": "tomorrow at 9"},
        {"message": "Thanks, all was fine.", "sailing": "yesterday"},
    ]
)

WORDS = {
    "gangway": "NOW", "kayak": "TODAY", "lovely": "NEVER", "Explain": "WEEK",
    "diesel": "TODAY", "anchors": "Misdirected", "museum": "Misdirected",
    "o'clock": "TODAY", "Thanks": "NEVER",
}  # fmt: skip


def _generate(request: CompletionRequest) -> str:
    stage = (request.prompt_version or "").partition("-1")[0]
    if stage == "tests":
        tests = [
            {
                "rule": rule,
                "inputs": {"message": message, "sailing": sailing},
                "expected": expected,
                "reasoning": reasoning,
            }
            for rule, message, sailing, expected, reasoning in TESTS
            if f"\n{rule}. " in request.messages[1].content
        ]
        return json.dumps({"tests": tests})
    replies = {
        "intent": "Says how soon a message to the help desk has to be answered.",
        "input-spec": INPUT_SPECIFICATION,
        "rules": OUTPUT_RULES,
        "inverse-rules": INVERSE_OUTPUT_RULES,
        "baseline": BASELINE_TESTS,
    }
    if stage not in replies:
        raise LookupError(f"this script has no reply for the stage {stage!r}; ask a real model")
    return replies[stage]


def _sort(request: CompletionRequest) -> str:
    message = request.messages[-1].content
    return next((WORDS[sign] for sign in WORDS if sign in message), "Unreadable")


def _judge(request: CompletionRequest) -> str:
    *_, output = re.findall(
        r"<<<output \w+\n(.*)\noutput \w+>>>|<REPLY>\n(.*)\n</REPLY>",
        request.messages[-1].content,
        re.DOTALL,
    )
    one_word = re.fullmatch(r"NOW|TODAY|WEEK|NEVER|Misdirected|Unreadable", output[0] or output[1])
    if "Score: 70" in request.messages[0].content:  # keeps_rules.metric.prompty
        return "It is one word.\nScore: 100" if one_word else "It is a sentence.\nScore: 20"
    return "One word and nothing else.\nOK" if one_word else "It says more than a word.\nERR"


generator = ScriptedModel(_generate, name="generator")
terse = ScriptedModel(_sort, name="terse")
talkative = ScriptedModel(lambda request: f"I would say {_sort(request)}.", name="talkative")
judge = ScriptedModel(_judge, name="judge")
