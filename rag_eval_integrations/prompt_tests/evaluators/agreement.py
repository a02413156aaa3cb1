"""Spec agreement: is the extracted specification enough to answer as the prompt asks?

A model answers the test with nothing but the intent and the rules; the answer is judged by the
prompt itself. Upstream calls this coverage; it says nothing about how many rules are covered.
"""

from __future__ import annotations

from dataclasses import dataclass

from rag_eval_integrations.errors import JudgeError
from rag_eval_integrations.judges import Completer
from rag_eval_integrations.judges.completion import CompletionRequest, Message
from rag_eval_integrations.prompt_tests.evaluators.noncompliance import NonCompliance
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.records import Judged, PromptTest, Spec

VERSION = "agreement-1"

INSTRUCTIONS = """\
{intent}

Answer the user's input. Your answer has to keep these rules:
{rules}"""


@dataclass(frozen=True)
class SpecAgreement:
    """Has a model answer from the specification alone, and a judge compare with the prompt."""

    async def judge(
        self,
        prompt: PromptUnderTest,
        spec: Spec,
        test: PromptTest,
        model: Completer,
        judge: Completer,
    ) -> tuple[Judged, str]:
        """Judge one test: the verdict, and the answer that it is about."""
        system = INSTRUCTIONS.format(
            intent=spec.intent or "You are an assistant.",
            rules="\n".join(f"- {rule.text}" for rule in spec.output_rules),
        )
        request = CompletionRequest(
            messages=(
                Message(role="system", content=system),
                Message(role="user", content=test.testinput),
            ),
            prompt_version=VERSION,
        )
        try:
            answer = (await model.complete(request)).text
        except JudgeError as error:
            why = f"{type(error).__name__}: {error}"
            return Judged(outcome="unknown", reason=why, judge=model.name, failed=True), ""
        return await NonCompliance("prompt").judge(prompt, spec, test, answer, judge), answer
