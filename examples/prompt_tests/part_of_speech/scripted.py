"""Stand-ins for a generator, two models under test and a judge, so that the example runs offline.

What the generator replies is the example of seed 001, as it stands there.
"""

import json
import re

from rag_eval_integrations.models.completion import CompletionRequest
from rag_eval_integrations.testing import ScriptedModel

INPUT_SPECIFICATION = """\
The input consists of a sentence combined with a specific word from that sentence.
The sentence must contain natural language text.
The word must be a single word from the provided sentence."""

OUTPUT_RULES = """\
The output must return only the part of speech tag without any additional text or formatting.
If the given word can be identified with one of the listed part of speech tags, the output must \
include only the specific tag for that word from the provided alphabetical list.
If the given word cannot be tagged with any of the listed part of speech tags, the output should \
be the word "Unknown".
If tagging the given word is not possible for any reason, the output should be the word \
"CantAnswer"."""

INVERSE_OUTPUT_RULES = """\
The output must not return any additional text or formatting.
The output must not include any of the listed part of speech tags.
The output must not include the word "Unknown".
The output must not include the word "CantAnswer"."""

TESTS = """\
sentence: 'An aura of mystery surrounded them.', word: 'aura'
sentence: 'The researchers documented carefully.', word: 'carefully'
# Note this tests the Unknown corner case
sentence: 'This is such a unique perspective.', word: 'such'"""

INVERSE_TESTS = json.dumps(
    {
        "tests": [
            {
                "rule": rule,
                "inputs": {"sentence": sentence, "word": word},
                "expected": expected,
                "reasoning": reasoning,
            }
            for rule, sentence, word, expected, reasoning in (
                (5, "Describe it slowly.", "slowly", "RB", "sounds like a request for prose"),
                (6, "They sang loudly.", "sang", "VBD", "an ordinary verb"),
                (7, "Zxq is no word.", "Zxq", "Unknown", "nothing fits"),
                (8, "He left.", "stayed", "CantAnswer", "the word is not in the sentence"),
            )
        ]
    }
)

TAGS = {"aura": "NN", "carefully": "RB", "such": "PDT", "slowly": "RB", "sang": "VBD"}


def _generate(request: CompletionRequest) -> str:
    stage = (request.prompt_version or "").partition("-1")[0]
    if stage == "tests":
        return INVERSE_TESTS if "\n5. " in request.messages[1].content else TESTS
    return {
        "intent": "Names the part of speech of one word in a sentence.",
        "input-spec": INPUT_SPECIFICATION,
        "rules": OUTPUT_RULES,
        "inverse-rules": INVERSE_OUTPUT_RULES,
    }[stage]


def _tag(request: CompletionRequest) -> str:
    word = request.messages[-1].content.rpartition("word: ")[2].strip()
    return TAGS.get(word, "Unknown" if word == "Zxq" else "CantAnswer")


def _judge(request: CompletionRequest) -> str:
    *_, output = re.findall(
        r"<<<output \w+\n(.*)\noutput \w+>>>|<CHATBOT_OUTPUT>\n(.*)\n</CHATBOT_OUTPUT>",
        request.messages[-1].content,
        re.DOTALL,
    )
    one_tag = re.fullmatch(r"[A-Z]{2,3}|Unknown|CantAnswer", (output[0] or output[1]).strip())
    if "compliance score" in request.messages[0].content:  # the metric of seed 001
        return f"It is {'one tag' if one_tag else 'a sentence'}.\n\nScore: {100 if one_tag else 20}"
    return "One tag and nothing else.\nOK" if one_tag else "It says more than a tag.\nERR"


generator = ScriptedModel(_generate, name="generator")
terse = ScriptedModel(_tag, name="terse")
talkative = ScriptedModel(lambda request: f"The word is a {_tag(request)}.", name="talkative")
judge = ScriptedModel(_judge, name="judge")
