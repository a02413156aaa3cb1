"""Evaluator objects for LangSmith and openevals: views on one `RagEvaluator`.

run tree | values ─▶ RagCall ─▶ RagEvaluator (one judge request per call) ─▶ {key, score, comment}
"""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.langchain.evaluators.base import (
    GEvalEvaluator,
    MetricEvaluator,
    TraceEvaluator,
    as_evaluators,
)
from rag_eval_integrations.sinks import LangSmithSink as LangSmithFeedback

__all__ = [
    "GEvalEvaluator",
    "LangSmithFeedback",
    "MetricEvaluator",
    "TraceEvaluator",
    "as_evaluators",
]

publish(__name__, __all__)
