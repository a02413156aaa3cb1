"""Prompt tests: prompt → rules → tests → outputs → compliance (PromptPex, arXiv:2503.05070).

    Generation(prompt, folder, model)          generates rules and tests, in editable files
    run_tests(prompt, tests, models)           gets outputs from any number of models or apps
    PromptEvaluation(prompt, spec, judges)     judges compliance and evaluates metric files
    Report(name, results)                      rates, overview, failures, comparison of runs

`Project` does all of this in a folder, like `rag-eval prompt-tests`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_eval_integrations._lazy import lazy

if TYPE_CHECKING:
    from rag_eval_integrations.prompt_tests.evaluate import PromptEvaluation
    from rag_eval_integrations.prompt_tests.evaluators import (
        InputValidity,
        NonCompliance,
        RuleGroundedness,
        SpecAgreement,
    )
    from rag_eval_integrations.prompt_tests.generate import GenerateOptions, Generation
    from rag_eval_integrations.prompt_tests.journal import Journal
    from rag_eval_integrations.prompt_tests.models import App, apps_of, model_of
    from rag_eval_integrations.prompt_tests.project import Project
    from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest, Scenario
    from rag_eval_integrations.prompt_tests.records import (
        Choice,
        Judged,
        MetricResult,
        PromptTest,
        Result,
        Rule,
        RuleCheck,
        Spec,
        TestCheck,
    )
    from rag_eval_integrations.prompt_tests.report import (
        ComplianceError,
        Rate,
        Report,
        assert_compliance,
        compare,
    )
    from rag_eval_integrations.prompt_tests.run import run_tests, run_tests_sync
    from rag_eval_integrations.prompt_tests.upstream.files import read_upstream

__getattr__, __dir__ = lazy(
    __name__,
    {
        "App": "models",
        "Choice": "records",
        "ComplianceError": "report",
        "GenerateOptions": "generate",
        "Generation": "generate",
        "InputValidity": "evaluators",
        "Journal": "journal",
        "Judged": "records",
        "MetricResult": "records",
        "NonCompliance": "evaluators",
        "Project": "project",
        "PromptEvaluation": "evaluate",
        "PromptTest": "records",
        "PromptUnderTest": "prompt",
        "Rate": "report",
        "Report": "report",
        "Result": "records",
        "Rule": "records",
        "RuleCheck": "records",
        "RuleGroundedness": "evaluators",
        "Scenario": "prompt",
        "Spec": "records",
        "SpecAgreement": "evaluators",
        "TestCheck": "records",
        "apps_of": "models",
        "assert_compliance": "report",
        "compare": "report",
        "model_of": "models",
        "read_upstream": "upstream.files",
        "run_tests": "run",
        "run_tests_sync": "run",
    },
)


__all__ = [
    "App",
    "Choice",
    "ComplianceError",
    "GenerateOptions",
    "Generation",
    "InputValidity",
    "Journal",
    "Judged",
    "MetricResult",
    "NonCompliance",
    "Project",
    "PromptEvaluation",
    "PromptTest",
    "PromptUnderTest",
    "Rate",
    "Report",
    "Result",
    "Rule",
    "RuleCheck",
    "RuleGroundedness",
    "Scenario",
    "Spec",
    "SpecAgreement",
    "TestCheck",
    "apps_of",
    "assert_compliance",
    "compare",
    "model_of",
    "read_upstream",
    "run_tests",
    "run_tests_sync",
]
