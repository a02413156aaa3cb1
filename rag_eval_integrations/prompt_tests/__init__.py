"""Prompt tests: prompt → rules → tests → outputs → compliance (PromptPex, arXiv:2503.05070).

    Generation(prompt, folder, model)          generates rules and tests, in editable files
    run_tests(prompt, tests, models)           gets outputs from any number of models or apps
    PromptEvaluation(prompt, spec, judges)     judges compliance and evaluates metric files
    Report(name, results)                      rates, overview, failures, comparison of runs

`Project` does all of this in a folder, like `rag-eval prompt-tests`.
"""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.prompt_tests._contents import read_upstream
from rag_eval_integrations.prompt_tests.evaluate import (
    PromptEvaluation,
)
from rag_eval_integrations.prompt_tests.generate import GenerateOptions, Generation
from rag_eval_integrations.prompt_tests.project import Project
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.records import (
    PromptTest,
    Result,
    Rule,
    Spec,
)
from rag_eval_integrations.prompt_tests.report import (
    ComplianceError,
    Report,
    assert_compliance,
    compare,
)
from rag_eval_integrations.prompt_tests.run import (
    App,
    apps_of,
    run_tests,
    run_tests_sync,
)

__all__ = [
    "App",
    "ComplianceError",
    "GenerateOptions",
    "Generation",
    "Project",
    "PromptEvaluation",
    "PromptTest",
    "PromptUnderTest",
    "Report",
    "Result",
    "Rule",
    "Spec",
    "apps_of",
    "assert_compliance",
    "compare",
    "read_upstream",
    "run_tests",
    "run_tests_sync",
]

publish(__name__, __all__)
