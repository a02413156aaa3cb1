"""Stage 8, optional: a review of all tests, and the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_eval_integrations.errors import JudgeOutputError
from rag_eval_integrations.judges import Completer
from rag_eval_integrations.prompt_tests.cleaning import json_in
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.records import PromptTest
from rag_eval_integrations.prompt_tests.sections import MARKS, sections
from rag_eval_integrations.prompt_tests.stages.asking import ask, dialogue
from rag_eval_integrations.records import JsonObject

VERSION = "rating-1"

INSTRUCTIONS = f"""\
You review a collection of tests for an assistant. You are given its prompt and numbered tests. \
Write a short review: what the tests cover, what they miss, which repeat others, which are no \
valid inputs. Then choose the {{count}} tests that together try the prompt best.

Reply with a JSON object {{{{"review": "…", "keep": [numbers]}}}} with exactly {{count}} numbers.

{MARKS}"""

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "review": {"type": "string"},
        "keep": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["review", "keep"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Review:
    """What was said about a collection, and what is kept of it, in the collection's order."""

    text: str
    kept: list[PromptTest]


async def review_tests(
    prompt: PromptUnderTest, tests: Sequence[PromptTest], model: Completer, count: int
) -> Review:
    """Ask for a review and the best tests.

    Raises:
        JudgeError: no answer, or twice one that does not name as many tests as asked for.
    """
    count = min(count, len(tests))
    listed = "\n".join(
        f"{number}. rule: {test.rule or 'none'}\n   input: {test.testinput}"
        for number, test in enumerate(tests, start=1)
    )

    def read(text: str) -> Review:
        content = json_in(text)
        keep = content.get("keep") if isinstance(content, dict) else None
        numbers = {n for n in keep or [] if isinstance(n, int) and 1 <= n <= len(tests)}
        if not isinstance(content, dict) or len(numbers) != count:
            raise JudgeOutputError(f"the generator named {len(numbers)} tests, not {count}", text)
        return Review(str(content.get("review") or ""), [tests[n - 1] for n in sorted(numbers)])

    return await ask(
        model,
        dialogue(
            INSTRUCTIONS.format(count=count), sections({"prompt": prompt.text, "tests": listed})
        ),
        read,
        version=VERSION,
        again=f'Reply with one JSON object {{"review": "…", "keep": [{count} numbers]}}.',
        schema=SCHEMA,
    )
