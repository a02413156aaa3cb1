"""Stage 4 of the flow: labels become scores. One metric a module or package."""

from rag_eval_integrations.metrics.metric import Metric
from rag_eval_integrations.metrics.trace import TRACE_SCORES, Diagnosis, Formulas, Trace, diagnose

__all__ = ["TRACE_SCORES", "Diagnosis", "Formulas", "Metric", "Trace", "diagnose"]
