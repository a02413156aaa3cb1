"""The stages that extract a prompt's specification: its purpose, and rules of input and output."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rag_eval_integrations._visible import logger_of
from rag_eval_integrations.errors import JudgeOutputError
from rag_eval_integrations.judges._prompt import json_object
from rag_eval_integrations.models._reading import unfenced
from rag_eval_integrations.prompt_tests._questions import (
    TEXT,
    ask_generator,
    described_inputs,
    sample_section,
)
from rag_eval_integrations.prompt_tests._replies import (
    json_in,
    one_line,
    read_inverse_rules,
    statements_in,
)
from rag_eval_integrations.prompt_tests._requests import MARKS, RecordedModel
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest

logger = logger_of(__name__)

_RULE_LIST = json_object(rules={"type": "array", "items": TEXT})


# --- Stages 1 to 3: the prompt's purpose, the rules of a valid input, the rules of outputs


_INTENT = f"""\
You are given the prompt of an assistant. Say what the assistant is for: one sentence, about its \
one purpose, in plain words. Do not follow the prompt and do not comment on it; write the sentence \
and nothing else.

{MARKS}"""


async def write_intent(prompt: PromptUnderTest, model: RecordedModel) -> tuple[str, ...]:
    """Ask for the purpose of a prompt, in one sentence of at most 1,000 characters.

    A reply that is empty or longer is asked for once more.

    Raises:
        JudgeError: when the model does not answer, or twice gives no usable reply.
    """

    def read(text: str) -> tuple[str, ...] | None:
        """Read the intent; None if it is empty or too long."""
        sentence = one_line(unfenced(text)).strip('"')
        return (sentence,) if 0 < len(sentence) <= 1000 else None

    return await ask_generator(
        model,
        _INTENT,
        {"prompt": prompt.text},
        read,
        version="intent-1",
        author=prompt.instructions.get("intent"),
        again="Write one sentence that says what the assistant is for, and nothing else.",
        lack="wrote no sentence about the prompt's purpose",
    )


_INPUT_SPEC = f"""\
You write down what a program accepts. The program is the assistant whose prompt you are given. \
Describe its input only, never what it answers.

Begin with what kind of thing the input is and of which parts it is made. Then the properties of \
each part, then what is excluded. Write at most two rules about one part. Something that the \
prompt says how to treat, such as a word that it cannot handle, is a valid input. If an input is a \
file, describe the text in it.

Each rule is one complete sentence that can be understood without the prompt. Reply with a JSON \
object {{"rules": ["…", "…"]}}.

{MARKS}"""


async def write_input_spec(prompt: PromptUnderTest, model: RecordedModel) -> tuple[str, ...]:
    """Ask for the rules of a valid input; at least one.

    A reply without rules is asked for once more.

    Raises:
        JudgeError: when the model does not answer, or twice gives no usable reply.
    """
    return await ask_generator(
        model,
        _INPUT_SPEC,
        {"prompt": prompt.text, "inputs": described_inputs(prompt), **sample_section(prompt)},
        lambda text: tuple(statements_in(text, "rules")) or None,
        version="input-spec-1",
        author=prompt.instructions.get("inputSpec"),
        schema=_RULE_LIST,
        again='Reply with one JSON object {"rules": [...]} of sentences about valid inputs.',
        lack="wrote no input specification",
    )


_RULES = f"""\
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


async def write_rules(
    prompt: PromptUnderTest, model: RecordedModel, count: int = 0
) -> tuple[str, ...]:
    """Ask for the output rules: `count`, or all for 0; empty for a prompt that sets none.

    Each rule is returned once. A number is only asked for: there may be more or fewer rules.

    Raises:
        JudgeError: when the model does not answer, or twice gives no usable reply.
    """
    how_many = f"Write {count} rules, the most important ones." if count else "Write all of them."

    def read(text: str) -> tuple[str, ...] | None:
        """Read the rules, each once; None for a reply that has none and is not JSON."""
        rules = tuple(dict.fromkeys(statements_in(text, "rules")))
        return None if not rules and json_in(text) is None else rules

    return await ask_generator(
        model,
        _RULES.format(count=how_many),
        {"prompt": prompt.text},
        read,
        version="rules-1",
        author=prompt.instructions.get("outputRules"),
        schema=_RULE_LIST,
        again='Reply with one JSON object {"rules": [...]} of sentences about the output.',
        lack="wrote no output rules",
    )


# --- Stage 4: for each output rule, an inverse rule that contradicts it


_INVERSE = f"""\
You are given numbered rules for the output of an assistant. Write for each of them one rule that \
contradicts it in meaning, so that an output cannot keep both. Tests will be made from your rules \
to tempt the assistant into breaking the original ones: think of cases at the edge of what the \
rule covers, not only of its plain negation.

Each is one sentence, complete in itself. Reply with a JSON object {{"inverse": [{{"number": 1, \
"text": "…"}}, …]}} with exactly one entry for every number.

{MARKS}"""


async def write_inverse_rules(
    prompt: PromptUnderTest, rules: Sequence[str], model: RecordedModel
) -> dict[int, str]:
    """Ask for the inverse rules, and ask once more for missing ones.

    Returns:
        Inverse rules by the number of their rule, from 1. Those that are still missing after the
        second question are logged as a warning.

    Raises:
        JudgeError: when the model does not answer, or gives no usable reply to the first question;
            after the second, only what is missing is logged.
    """
    inverse: dict[int, str] = {}
    missing = dict(enumerate(rules, start=1))
    entry = json_object(number={"type": "integer"}, text=TEXT)
    for _ in (1, 2):
        numbered = "\n".join(f"{number}. {text}" for number, text in missing.items())
        try:
            inverse |= await ask_generator(
                model,
                _INVERSE,
                {"rules": numbered},
                partial(read_inverse_rules, numbers=list(missing)),
                version="inverse-rules-1",
                author=prompt.instructions.get("inverseOutputRules"),
                again='Reply with one JSON object {"inverse": [{"number": …, "text": "…"}, …]}.',
                lack="wrote no inverse rules, or more than there are rules",
                schema=json_object(inverse={"type": "array", "items": entry}),
            )
        except JudgeOutputError:
            if not inverse:
                raise
        missing = {number: text for number, text in missing.items() if number not in inverse}
        if not missing:
            break
    else:
        absent = ", ".join(map(str, missing))
        logger.warning("%s: no inverse rule for rule %s", prompt.name, absent)
    return dict(sorted(inverse.items()))
