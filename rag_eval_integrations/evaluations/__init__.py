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
    from rag_eval_integrations.evaluations._paired import ScoreDifference
    from rag_eval_integrations.evaluations.collection import Evaluations
    from rag_eval_integrations.evaluations.comparison import Comparison, compare
    from rag_eval_integrations.evaluations.console import unsupported_sentences
    from rag_eval_integrations.evaluations.summary import (
        ScoreFigures,
        Summary,
    )

__all__ = [
    "Comparison",
    "Evaluations",
    "Groups",
    "ScoreDifference",
    "ScoreFigures",
    "Summary",
    "compare",
    "unsupported_sentences",
]

_HOMES = {
    "_groups": ["Groups"],
    "_paired": ["ScoreDifference"],
    "collection": ["Evaluations"],
    "comparison": ["Comparison", "compare"],
    "console": ["unsupported_sentences"],
    "summary": ["ScoreFigures", "Summary"],
}
__getattr__, __dir__ = lazy(__name__, _HOMES)
