"""Test Non-Compliance: does an output keep to what the prompt asks for?

It says nothing about whether the output is right: in PromptPex's data, outputs that comply average
35 of 100 on accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges import Completer
from rag_eval_integrations.prompt_tests.evaluators.asking import ANSWER, judged
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.records import Judged, PromptTest, Spec
from rag_eval_integrations.prompt_tests.sections import MARKS

Basis = Literal["rules", "prompt"]

VERSION = "noncompliance-1"

RULES = f"""\
You check whether the output of an assistant keeps the rules that were set for it. You are given \
the rules{{shown}} and the output.

Go by the rules alone, not by what you would have answered. Only what the output itself shows \
counts: a rule that does not apply here is kept, and a rule that cannot be checked from what you \
are given is left aside. You do not check whether the output is right, only whether it has the \
form and the kind of content that the rules ask for. One broken rule is enough for ERR; if every \
rule is kept, it is OK.

{ANSWER}

{MARKS}"""

PROMPT = f"""\
You check whether the output of an assistant is one that its prompt allows. You are given the \
prompt{{shown}} and the output.

Go by the prompt alone, not by what you would have answered. Only what the output itself shows \
counts: leave aside whatever cannot be checked from what you are given. You do not check whether \
the output is right, only whether it has the form and the kind of content that the prompt asks \
for. One clear violation is enough for ERR; without any, it is OK.

{ANSWER}

{MARKS}"""


@dataclass(frozen=True)
class NonCompliance:
    """Asks a judge whether an output complies.

    Args:
        basis: `rules` (seed 001: the output rules and the input specification) or `prompt`
            (upstream's code: the prompt's own text).
        see_input: show the judge the test's input; by default with `rules`, not with `prompt`.

    Raises:
        ConfigurationError: another basis.
    """

    basis: Basis = "rules"
    see_input: bool | None = None

    def __post_init__(self) -> None:
        if self.basis not in get_args(Basis):
            raise ConfigurationError("basis", self.basis, f"use {' or '.join(get_args(Basis))}")

    def check(self, prompt: PromptUnderTest, spec: Spec) -> None:
        """Say before the first request that there is nothing to judge by.

        Raises:
            ConfigurationError: no rules, with `basis="rules"`.
        """
        if self.basis == "rules" and not spec.output_rules:
            why = f"{prompt.name} has no output rules; use basis 'prompt', or write rules"
            raise ConfigurationError("basis", self.basis, why)

    async def judge(
        self, prompt: PromptUnderTest, spec: Spec, test: PromptTest, output: str, judge: Completer
    ) -> Judged:
        """Judge one output; an empty one does not comply, and no judge is asked."""
        if not output.strip():
            return Judged(outcome="err", reason="empty output")
        see_input = self.basis == "rules" if self.see_input is None else self.see_input
        parts: dict[str, str] = {}
        if self.basis == "prompt":
            parts["prompt"] = prompt.text
        else:
            parts["rules"] = "\n".join(
                f"{number}. {rule.text}" for number, rule in enumerate(spec.output_rules, start=1)
            )
            parts["valid input"] = spec.input_spec_text or "(not described)"
        if see_input:
            parts["input"] = test.testinput
        parts["output"] = output
        words = {"prompt": "", "rules": ", a description of valid inputs"}[self.basis]
        shown = f"{words}, the input" if see_input else words
        template = PROMPT if self.basis == "prompt" else RULES
        return await judged(
            judge, template.format(shown=shown), parts, version=f"{VERSION}/{self.basis}"
        )
