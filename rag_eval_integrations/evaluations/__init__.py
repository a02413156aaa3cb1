"""Many evaluations at once: what they come to, as plain data and text.

collection   `Evaluations`: a list of evaluations that can be looked at, saved and compared
summary      `Summary`: the one model of figures that terminal, pages, Markdown and JSON show
comparison   `compare`: what became better or worse between runs of the same calls
console      tables and single calls on a terminal

Files are made in `dataset` and pages in `report`, above.
"""

from typing import TYPE_CHECKING

from rag_eval_integrations._lazy import lazy

if TYPE_CHECKING:
    from rag_eval_integrations.evaluations._groups import Groups
    from rag_eval_integrations.evaluations._paired import ScoreDifference, Verdict
    from rag_eval_integrations.evaluations._pairing import Change
    from rag_eval_integrations.evaluations.collection import Evaluations, MeanOf
    from rag_eval_integrations.evaluations.comparison import Comparison, compare
    from rag_eval_integrations.evaluations.console import calls_table, plain, unsupported_sentences
    from rag_eval_integrations.evaluations.summary import (
        PatternFigures,
        RankFigures,
        RetrievalFigures,
        ScoreFigures,
        Summary,
    )
    from rag_eval_integrations.records.mean import Interval

__all__ = [
    "Change",
    "Comparison",
    "Evaluations",
    "Groups",
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
]

_HOMES = {
    "_groups": ("Groups",),
    "_paired": ("ScoreDifference", "Verdict"),
    "_pairing": ("Change",),
    "collection": ("Evaluations", "MeanOf"),
    "comparison": ("Comparison", "compare"),
    "console": ("calls_table", "plain", "unsupported_sentences"),
    "summary": ("Interval", "PatternFigures", "RankFigures", "RetrievalFigures", "ScoreFigures",
                "Summary"),
}  # fmt: skip
__getattr__, __dir__ = lazy(__name__, _HOMES)
