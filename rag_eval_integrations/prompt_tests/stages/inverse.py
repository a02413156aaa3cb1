"""Stage 4: for each output rule, one that contradicts it."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from rag_eval_integrations.errors import JudgeOutputError
from rag_eval_integrations.judges import Completer
from rag_eval_integrations.prompt_tests.cleaning import NUMBER, json_in, one_line, statements_in
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.sections import MARKS, sections
from rag_eval_integrations.prompt_tests.stages.asking import ask, dialogue, with_author
from rag_eval_integrations.records import JsonObject

logger = logging.getLogger(__name__)

VERSION = "inverse-rules-1"

INSTRUCTIONS = f"""\
You are given numbered rules for the output of an assistant. Write for each of them one rule that \
contradicts it in meaning, so that an output cannot keep both. Tests will be made from your rules \
to tempt the assistant into breaking the original ones: think of cases at the edge of what the \
rule covers, not only of its plain negation.

Each is one sentence, complete in itself. Reply with a JSON object {{"inverse": [{{"number": 1, \
"text": "…"}}, …]}} with exactly one entry for every number.

{MARKS}"""

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "inverse": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"number": {"type": "integer"}, "text": {"type": "string"}},
                "required": ["number", "text"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["inverse"],
    "additionalProperties": False,
}


async def write_inverse_rules(
    prompt: PromptUnderTest, rules: Sequence[str], model: Completer
) -> dict[int, str]:
    """Ask for the inverse rules; once more for those that are left out.

    Returns:
        By the rule's number from 1. What is missing after the second question is missing here, and
        said in a warning.

    Raises:
        JudgeError: no answer, or twice one of no use.
    """
    found: dict[int, str] = {}
    for _ in (1, 2):
        missing = {n: text for n, text in enumerate(rules, start=1) if n not in found}
        if not missing:
            break
        try:
            found.update(await _ask_for(prompt, missing, model))
        except JudgeOutputError:
            if not found:
                raise
    absent = [str(number) for number in range(1, len(rules) + 1) if number not in found]
    if absent:
        logger.warning("%s: no inverse rule for rule %s", prompt.name, ", ".join(absent))
    return dict(sorted(found.items()))


async def _ask_for(
    prompt: PromptUnderTest, rules: dict[int, str], model: Completer
) -> dict[int, str]:
    listed = "\n".join(f"{number}. {text}" for number, text in rules.items())
    system = with_author(INSTRUCTIONS, prompt.instructions.get("inverseOutputRules"))
    return await ask(
        model,
        dialogue(system, sections({"rules": listed})),
        lambda text: read_inverse_rules(text, list(rules)),
        version=VERSION,
        again='Reply with one JSON object {"inverse": [{"number": …, "text": "…"}, …]}.',
        schema=SCHEMA,
    )


def read_inverse_rules(text: str, numbers: Sequence[int]) -> dict[int, str]:
    """Match what was written to the rules asked for.

    By number where entries have one; in order where they have none and are as many as asked for,
    or fewer (then the last are missing). What has a number that was not asked for is left out.

    Raises:
        JudgeOutputError: nothing that can be matched.
    """
    entries = _entries(text)
    numbered = {n: said for n, said in entries if n is not None and n in numbers}
    if not numbered:
        unnumbered = [said for n, said in entries if n is None]
        if len(unnumbered) > len(numbers):
            raise JudgeOutputError(
                f"the generator wrote {len(unnumbered)} inverse rules for {len(numbers)} rules",
                text,
            )
        numbered = dict(zip(numbers, unnumbered, strict=False))
    if not numbered:
        raise JudgeOutputError("the generator wrote no inverse rules", text)
    return numbered


def _entries(text: str) -> list[tuple[int | None, str]]:
    content = json_in(text)
    if isinstance(content, dict):
        content = next((value for value in content.values() if isinstance(value, list)), None)
    if isinstance(content, list) and content and all(isinstance(one, dict) for one in content):
        return [
            (_number(one.get("number")), one_line(str(one["text"])))
            for one in content
            if str(one.get("text") or "").strip()
        ]
    lines = text.splitlines()
    matches = [NUMBER.match(line) for line in lines]
    if any(matches):
        return [
            (int(match[1]), one_line(line[match.end() :]))
            for match, line in zip(matches, lines, strict=True)
            if match and line[match.end() :].strip()
        ]
    return [(None, one) for one in statements_in(text, "inverse")]


def _number(value: object) -> int | None:
    if isinstance(value, str) and value.strip().isdigit():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
