"""Reports for people: the figures of many evaluations, tables on a terminal, and plots.

evaluations  `Evaluations`: a list of evaluations that can be looked at, saved and compared
html         `write_report`: one HTML file to look at, with every call and its evidence
summary      `Summary`: the one model of figures that every report shows
console      tables on a terminal
comparison   `compare`: what became better or worse between runs of the same calls
"""

from typing import TYPE_CHECKING

from rag_eval_integrations._lazy import lazy

if TYPE_CHECKING:
    from rag_eval_integrations.records.mean import Interval
    from rag_eval_integrations.report._compare import compare
    from rag_eval_integrations.report.comparison import (
        Change,
        Comparison,
        ScoreDifference,
        Verdict,
    )
    from rag_eval_integrations.report.console import calls_table, plain, unsupported_sentences
    from rag_eval_integrations.report.evaluations import Evaluations, MeanOf
    from rag_eval_integrations.report.html import write_report
    from rag_eval_integrations.report.summary import (
        PatternFigures,
        RankFigures,
        RetrievalFigures,
        ScoreFigures,
        Summary,
    )

__all__ = [
    "Change",
    "Comparison",
    "Evaluations",
    "Interval",
    "MeanOf",
    "PatternFigures",
    "RankFigures",
    "RetrievalFigures",
    "ScoreDifference",
    "ScoreFigures",
    "Summary",
    "Verdict",
    "calls_table",
    "compare",
    "plain",
    "unsupported_sentences",
    "write_report",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "Change": "comparison",
        "Comparison": "comparison",
        "Evaluations": "evaluations",
        "Interval": "summary",
        "MeanOf": "evaluations",
        "PatternFigures": "summary",
        "RankFigures": "summary",
        "RetrievalFigures": "summary",
        "ScoreDifference": "comparison",
        "ScoreFigures": "summary",
        "Summary": "summary",
        "Verdict": "comparison",
        "calls_table": "console",
        "compare": "_compare",
        "plain": "console",
        "unsupported_sentences": "console",
        "write_report": "html",
    },
)
