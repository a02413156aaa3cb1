"""Reports for people: tables, running totals, comparisons of runs, and plots as an HTML page."""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.report._compare import compare
from rag_eval_integrations.report._paired import DifferenceInterval
from rag_eval_integrations.report.comparison import Change, Comparison, ScoreDifference, Verdict
from rag_eval_integrations.report.console import calls_table, plain, unsupported_sentences

__all__ = [
    "Change",
    "Comparison",
    "DifferenceInterval",
    "ScoreDifference",
    "Verdict",
    "calls_table",
    "compare",
    "plain",
    "unsupported_sentences",
]

publish(__name__, __all__)
