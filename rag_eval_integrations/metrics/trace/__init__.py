"""TRACe: context relevance, context utilization, completeness, adherence (arXiv:2407.11005).

formulas    labels or probabilities ─▶ counts ─▶ values; pure functions
evidence    the `evidence` object and the `reason` of each score
metric      `Trace`: a labelled call ─▶ six scores
diagnose    scores ─▶ the part of the app that they point at
"""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.metrics.trace.formulas import Diagnosis, Formulas, diagnose
from rag_eval_integrations.metrics.trace.metric import TRACE_SCORES, Trace

__all__ = ["TRACE_SCORES", "Diagnosis", "Formulas", "Trace", "diagnose"]

publish(__name__, __all__)
