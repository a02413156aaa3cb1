"""Stage 2: what a valid input of the prompt is."""

from __future__ import annotations

import json

from rag_eval_integrations.errors import JudgeOutputError
from rag_eval_integrations.judges import Completer
from rag_eval_integrations.prompt_tests.cleaning import statements_in
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.sections import MARKS, sections
from rag_eval_integrations.prompt_tests.stages.asking import (
    ask,
    dialogue,
    strings_schema,
    with_author,
)

VERSION = "input-spec-1"

INSTRUCTIONS = f"""\
You write down what a program accepts. The program is the assistant whose prompt you are given. \
Describe its input only, never what it answers.

Begin with what kind of thing the input is and of which parts it is made. Then the properties of \
each part, then what is excluded. Write at most two rules about one part. Something that the \
prompt says how to treat, such as a word that it cannot handle, is a valid input. If an input is a \
file, describe the text in it.

Each rule is one complete sentence that can be understood without the prompt. Reply with a JSON \
object {{"rules": ["…", "…"]}}.

{MARKS}"""

_MOST_SAMPLES = 5


async def write_input_spec(prompt: PromptUnderTest, model: Completer) -> tuple[str, ...]:
    """Ask for the rules that a valid input keeps.

    Raises:
        JudgeError: no answer, or twice one of no use.
    """
    parts = {"prompt": prompt.text, "inputs": describe_inputs(prompt)}
    if prompt.samples:
        parts["samples"] = samples_text(prompt, _MOST_SAMPLES)
    return await ask(
        model,
        dialogue(with_author(INSTRUCTIONS, prompt.instructions.get("inputSpec")), sections(parts)),
        read_input_spec,
        version=VERSION,
        again='Reply with one JSON object {"rules": [...]} of sentences about valid inputs.',
        schema=strings_schema("rules"),
    )


def read_input_spec(text: str) -> tuple[str, ...]:
    """Read the rules.

    Raises:
        JudgeOutputError: there is none.
    """
    rules = tuple(statements_in(text, "rules"))
    if not rules:
        raise JudgeOutputError("the generator wrote no input specification", text)
    return rules


def describe_inputs(prompt: PromptUnderTest) -> str:
    """List the names and types of a prompt's inputs."""
    return "\n".join(
        f"{one.name} ({one.type})" + (f": {one.description}" if one.description else "")
        for one in prompt.inputs.values()
    )


def samples_text(prompt: PromptUnderTest, most: int) -> str:
    """Write the author's samples, one JSON object a line."""
    return "\n".join(json.dumps(one, ensure_ascii=False) for one in prompt.samples[:most])
