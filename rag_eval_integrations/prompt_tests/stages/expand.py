"""Stage 6, optional: longer and harder forms of tests."""

from __future__ import annotations

import json

from rag_eval_integrations.errors import JudgeOutputError
from rag_eval_integrations.judges import Completer
from rag_eval_integrations.prompt_tests.cleaning import json_in
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.records import PromptTest, Spec, make_uid
from rag_eval_integrations.prompt_tests.sections import MARKS, sections
from rag_eval_integrations.prompt_tests.stages.asking import ask, dialogue, with_author
from rag_eval_integrations.prompt_tests.stages.input_spec import samples_text
from rag_eval_integrations.records import JsonObject

VERSION = "expand-1"

INSTRUCTIONS = f"""\
You make a test of an assistant longer and more like real use. You are given what the assistant is \
for, the rules of its output, the rule that this test tries, and the test's inputs. Write the same \
inputs again, at least twice as long, richer in detail and still valid, so that they try the same \
rule. Reply with a JSON object that has exactly the same fields as the inputs.

{MARKS}"""


async def expand_test(
    test: PromptTest, prompt: PromptUnderTest, spec: Spec, model: Completer
) -> PromptTest:
    """Ask for a longer form; the first inputs are kept in `original`.

    Raises:
        JudgeError: no answer, or twice one of no use.
    """
    parts = {
        "purpose": spec.intent,
        "rules": spec.rules_text,
        "rule": test.rule,
        "inputs": json.dumps(test.inputs, ensure_ascii=False, indent=1),
    }
    if prompt.samples:
        parts["samples"] = samples_text(prompt, 5)
    system = with_author(INSTRUCTIONS, prompt.instructions.get("testExpansion"))

    def read(text: str) -> JsonObject:
        content = json_in(text)
        if not isinstance(content, dict) or set(content) != set(test.inputs):
            raise JudgeOutputError("the generator wrote no longer form of the test", text)
        return content

    inputs = await ask(
        model,
        dialogue(system, sections(parts)),
        read,
        version=VERSION,
        again=f"Reply with one JSON object with the fields {', '.join(test.inputs)}.",
        schema={
            "type": "object",
            "properties": {name: {"type": "string"} for name in test.inputs},
            "required": list(test.inputs),
            "additionalProperties": False,
        },
    )
    uid = make_uid(
        rule=test.rule, inverse=test.inverse, inputs=inputs, scenario=test.scenario,
        baseline=test.baseline,
    )  # fmt: skip
    original = test.original if test.original is not None else test.inputs
    return test.model_copy(update={"inputs": inputs, "uid": uid, "original": original})
