"""Stage 4 of the flow: labels become scores. One metric a module or package."""

from rag_eval_integrations.metrics.metric import CompletionMetric, LabelMetric, Measured, Metric
from rag_eval_integrations.metrics.trace import TRACE_SCORES, Diagnosis, Formulas, Trace, diagnose

__all__ = [
    "TRACE_SCORES",
    "CompletionMetric",
    "Diagnosis",
    "Formulas",
    "LabelMetric",
    "Measured",
    "Metric",
    "Trace",
    "diagnose",
]
