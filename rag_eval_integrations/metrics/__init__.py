"""Stage 4, metrics: scores from labels (`Trace`), a model (`GEval`, prompty), gold (`Retrieval`).

Each metric is a package of its own; those that ask a model are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_eval_integrations._lazy import lazy, publish
from rag_eval_integrations.metrics.metric import (
    CallMetric,
    LabelMetric,
    Measured,
    Metric,
    ModelMetric,
)
from rag_eval_integrations.metrics.trace import TRACE_SCORES, Diagnosis, Formulas, Trace, diagnose

if TYPE_CHECKING:
    from rag_eval_integrations.metrics.citations import Citations
    from rag_eval_integrations.metrics.correctness import AnswerCorrectness
    from rag_eval_integrations.metrics.geval import GEval
    from rag_eval_integrations.metrics.prompty import PromptyMetric
    from rag_eval_integrations.metrics.retrieval import ContextRecall, LabelRetrieval, Retrieval

__all__ = [
    "TRACE_SCORES",
    "AnswerCorrectness",
    "CallMetric",
    "Citations",
    "ContextRecall",
    "Diagnosis",
    "Formulas",
    "GEval",
    "LabelMetric",
    "LabelRetrieval",
    "Measured",
    "Metric",
    "ModelMetric",
    "PromptyMetric",
    "Retrieval",
    "Trace",
    "diagnose",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "citations": ["Citations"],
        "correctness": ["AnswerCorrectness"],
        "geval": ["GEval"],
        "prompty": ["PromptyMetric"],
        "retrieval": ["ContextRecall", "LabelRetrieval", "Retrieval"],
    },
)

publish(__name__, __all__)
