"""Input validity: is a test's input one that the input specification allows?"""

from __future__ import annotations

from dataclasses import dataclass

from rag_eval_integrations.judges import Completer
from rag_eval_integrations.prompt_tests.evaluators.asking import ANSWER, judged
from rag_eval_integrations.prompt_tests.records import Judged, PromptTest, Spec
from rag_eval_integrations.prompt_tests.sections import MARKS

VERSION = "validity-1"

INSTRUCTIONS = f"""\
You check whether an input is one that an assistant accepts. You are given a description of its \
valid inputs and one input. Go by the description alone; what it does not speak of is allowed. OK \
if the input keeps all of the description, ERR if it breaks any part.

{ANSWER}

{MARKS}"""


@dataclass(frozen=True)
class InputValidity:
    """Asks a judge whether a test is a valid input."""

    async def judge(self, spec: Spec, test: PromptTest, judge: Completer) -> Judged:
        """Judge one test."""
        if not spec.input_spec:
            return Judged(outcome="unknown", reason="there is no input specification")
        parts = {"valid input": spec.input_spec_text, "input": test.testinput}
        return await judged(judge, INSTRUCTIONS, parts, version=VERSION)
