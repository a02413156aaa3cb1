"""Baseline tests: made from the prompt alone, to compare the tests from rules with."""

from __future__ import annotations

import json
import re

from rag_eval_integrations.errors import JudgeOutputError
from rag_eval_integrations.judges import Completer
from rag_eval_integrations.prompt_tests.cleaning import json_in, unfenced
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.records import PromptTest
from rag_eval_integrations.prompt_tests.sections import MARKS, sections
from rag_eval_integrations.prompt_tests.stages.asking import ask, dialogue
from rag_eval_integrations.prompt_tests.stages.input_spec import describe_inputs
from rag_eval_integrations.prompt_tests.stages.read_tests import read_tests

VERSION = "baseline-1"

INSTRUCTIONS = f"""\
You are given the prompt of an assistant and the names of its inputs. Write {{count}} different \
inputs to test it with. {{form}} Put a line with only === between two tests, and write nothing else.

{MARKS}"""

_ONE = "Write each input as it would be typed, without quotes or a name in front."
_SEVERAL = "Write each test as one JSON object with a field for every input."
_PARTED = re.compile(r"^[ \t]*={3,}[ \t]*$", re.MULTILINE)
_TITLE = re.compile(
    r"\A\W*test(?:[ \t]*case)?[ \t]*\d+\W*(?:\n|\Z)"
    r"|\A[#*\s]*test(?:[ \t]*case)?[ \t]*\d+\**:[ \t:*]*",
    re.IGNORECASE,
)


async def write_baseline(prompt: PromptUnderTest, model: Completer, count: int) -> list[PromptTest]:
    """Ask for tests without rules; none for a count of 0.

    Raises:
        JudgeError: no answer, or twice one of no use.
    """
    if count < 1:
        return []
    form = _ONE if len(prompt.inputs) == 1 else _SEVERAL
    parts = sections({"prompt": prompt.text, "inputs": describe_inputs(prompt)})

    def read(text: str) -> list[PromptTest]:
        tests = read_baseline(text, prompt)[:count]
        if not tests:
            raise JudgeOutputError("the generator wrote no baseline tests", text)
        return tests

    return await ask(
        model,
        dialogue(INSTRUCTIONS.format(count=count, form=form), parts),
        read,
        version=VERSION,
        again=f"Write {count} inputs, with a line === between them, and nothing else.",
    )


def read_baseline(text: str, prompt: PromptUnderTest) -> list[PromptTest]:
    """Read tests that are parted by lines of ===; also a JSON list of them."""
    tests: dict[str, PromptTest] = {}
    content = json_in(text)
    lists = isinstance(content, dict) and any(isinstance(one, list) for one in content.values())
    if lists or isinstance(content, list):
        found = read_tests(text, prompt).tests
    else:
        found = []
        for part in _PARTED.split(unfenced(text)):
            bare = _TITLE.sub("", part.strip()).strip()
            if bare:
                found += _one(bare, prompt)
    for test in found:
        tests.setdefault(test.uid, test)
    return list(tests.values())


def baseline_text(tests: list[PromptTest]) -> str:
    """Write tests the way they are read: parted by lines of ===."""
    return "\n===\n".join(test.testinput for test in tests) + "\n"


def _one(text: str, prompt: PromptUnderTest) -> list[PromptTest]:
    if len(prompt.inputs) > 1:
        return read_tests(text, prompt).tests
    return read_tests(json.dumps([{"testinput": text}]), prompt).tests
