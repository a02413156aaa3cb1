"""Reports on results: rates, overview, failures, comparison of two runs, and their files."""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.prompt_tests.report._compare import Change, Comparison, compare
from rag_eval_integrations.prompt_tests.report.rates import (
    JudgesAgreement,
    Rate,
    UnknownAs,
    by_majority,
    judges_agreement,
    overview,
    rate_of,
    wilson,
)
from rag_eval_integrations.prompt_tests.report.report import (
    Average,
    ComplianceError,
    Failure,
    Report,
    assert_compliance,
    average,
    failures,
)

__all__ = [
    "Average",
    "Change",
    "Comparison",
    "ComplianceError",
    "Failure",
    "JudgesAgreement",
    "Rate",
    "Report",
    "UnknownAs",
    "assert_compliance",
    "average",
    "by_majority",
    "compare",
    "failures",
    "judges_agreement",
    "overview",
    "rate_of",
    "wilson",
]

publish(__name__, __all__)
