"""Stage 3: what every output of the prompt has to keep."""

from __future__ import annotations

from rag_eval_integrations.errors import JudgeOutputError
from rag_eval_integrations.judges import Completer
from rag_eval_integrations.prompt_tests.cleaning import json_in, statements_in
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.sections import MARKS, sections
from rag_eval_integrations.prompt_tests.stages.asking import (
    ask,
    dialogue,
    strings_schema,
    with_author,
)

VERSION = "rules-1"

INSTRUCTIONS = f"""\
You take requirements out of prompts. You are given the prompt of an assistant; write down the \
rules that it sets for the assistant's output.

A rule can be checked by somebody who sees the output and nothing else. It says what the output is \
like, not how it is made. Where the prompt gives an example, write the general rule behind it. A \
rule is complete in itself: what it names is explained in it, lists are written out. Take only \
what the prompt says or clearly implies, and do not write one requirement twice.

{{count}}

Each rule is one sentence. Reply with a JSON object {{{{"rules": ["…", "…"]}}}}; the list is empty \
if the prompt asks for nothing that can be checked.

{MARKS}"""


async def write_rules(prompt: PromptUnderTest, model: Completer, count: int = 0) -> tuple[str, ...]:
    """Ask for the output rules.

    Args:
        prompt: the prompt under test.
        model: the generator.
        count: how many; 0 for all there are.

    Returns:
        The rules; none for a prompt that asks for nothing.

    Raises:
        JudgeError: no answer, or twice one of no use.
    """
    how_many = f"Write {count} rules, the most important ones." if count else "Write all of them."
    system = with_author(
        INSTRUCTIONS.format(count=how_many), prompt.instructions.get("outputRules")
    )
    return await ask(
        model,
        dialogue(system, sections({"prompt": prompt.text})),
        read_rules,
        version=VERSION,
        again='Reply with one JSON object {"rules": [...]} of sentences about the output.',
        schema=strings_schema("rules"),
    )


def read_rules(text: str) -> tuple[str, ...]:
    """Read the rules; repeated ones once.

    Raises:
        JudgeOutputError: nothing that is a list, or no words at all.
    """
    rules = tuple(dict.fromkeys(statements_in(text, "rules")))
    if not rules and json_in(text) is None:
        raise JudgeOutputError("the generator wrote no output rules", text)
    return rules
