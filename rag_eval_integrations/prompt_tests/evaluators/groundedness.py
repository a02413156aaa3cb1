"""Rule groundedness: does an output rule stand in the prompt?"""

from __future__ import annotations

from dataclasses import dataclass

from rag_eval_integrations.judges import Completer
from rag_eval_integrations.prompt_tests.evaluators.asking import ANSWER, judged
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.records import Judged, Rule
from rag_eval_integrations.prompt_tests.sections import MARKS

VERSION = "groundedness-1"

INSTRUCTIONS = f"""\
You check whether a rule was taken from a prompt. You are given the prompt of an assistant and one \
rule about the assistant's output. OK if the prompt says the rule or clearly implies it, ERR if \
the rule adds something, changes something or contradicts the prompt.

{ANSWER}

{MARKS}"""


@dataclass(frozen=True)
class RuleGroundedness:
    """Asks a judge whether a rule comes from the prompt."""

    async def judge(self, prompt: PromptUnderTest, rule: Rule, judge: Completer) -> Judged:
        """Judge one rule."""
        parts = {"prompt": prompt.text, "rule": rule.text}
        return await judged(judge, INSTRUCTIONS, parts, version=VERSION)
