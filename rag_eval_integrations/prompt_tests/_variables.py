"""Values of the variables that a metric file can use to evaluate one output."""

from __future__ import annotations

from collections.abc import Sequence

from rag_eval_integrations.metrics.prompty._sandbox import Texts
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.records import PromptTest, Spec


def metric_values(
    prompt: PromptUnderTest,
    spec: Spec,
    test: PromptTest,
    output: str,
    contexts: Sequence[str] = (),
) -> dict[str, object]:
    """Return the values by variable: PromptPex's four and five more; unknown ones are empty.

    Args:
        prompt: the prompt under test.
        spec: its rules.
        test: the test that gave the output.
        output: the output.
        contexts: documents that a RAG app retrieved for the output.
    """
    return {
        "output": output,
        "prompt": prompt.text,
        "rules": spec.rules_text,
        "input": test.testinput,
        "intent": spec.intent,
        "inputSpec": spec.input_spec_text,
        "expected": test.expected,
        "groundtruth": test.usable_groundtruth or "",
        "contexts": Texts(contexts),
    }
