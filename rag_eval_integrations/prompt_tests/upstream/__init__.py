"""The file formats of PromptPex (microsoft/promptpex, "upstream"), which every stage writes."""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.prompt_tests.upstream.results import (
    checks_from_rows,
    checks_to_rows,
    results_from_rows,
    results_to_rows,
    rule_checks_from_rows,
    rule_checks_to_rows,
)
from rag_eval_integrations.prompt_tests.upstream.tests import from_test_rows, to_test_rows

__all__ = [
    "checks_from_rows",
    "checks_to_rows",
    "from_test_rows",
    "results_from_rows",
    "results_to_rows",
    "rule_checks_from_rows",
    "rule_checks_to_rows",
    "to_test_rows",
]

publish(__name__, __all__)
