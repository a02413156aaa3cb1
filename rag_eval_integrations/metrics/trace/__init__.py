"""TRACe: context relevance, context utilization, completeness, adherence (arXiv:2407.11005).

`formulas` are pure functions of counts; `expected` makes the counts from labels or probabilities;
`Trace` is the metric; `evidence` says what a score rests on; `diagnose` names what it points at.
"""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.metrics.trace._diagnose import Diagnosis, diagnose
from rag_eval_integrations.metrics.trace.formulas import Formulas
from rag_eval_integrations.metrics.trace.metric import TRACE_SCORES, Trace

__all__ = ["TRACE_SCORES", "Diagnosis", "Formulas", "Trace", "diagnose"]

publish(__name__, __all__)
