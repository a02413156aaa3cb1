"""Stage 4, metrics: labels become scores (`Trace`), or a model grades a call (`GEval`, prompty).

Each metric is a package of its own; those that ask a model are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_eval_integrations._lazy import lazy, publish
from rag_eval_integrations.metrics.metric import (
    CompletionMetric,
    LabelMetric,
    Measured,
    Metric,
    ModelMetric,
)
from rag_eval_integrations.metrics.trace import TRACE_SCORES, Diagnosis, Formulas, Trace, diagnose

if TYPE_CHECKING:
    from rag_eval_integrations.metrics.geval import GEval
    from rag_eval_integrations.metrics.prompty import PromptyMetric

__all__ = [
    "TRACE_SCORES",
    "CompletionMetric",
    "Diagnosis",
    "Formulas",
    "GEval",
    "LabelMetric",
    "Measured",
    "Metric",
    "ModelMetric",
    "PromptyMetric",
    "Trace",
    "diagnose",
]

__getattr__, __dir__ = lazy(
    __name__,
    {"GEval": "geval", "PromptyMetric": "prompty"},
)

publish(__name__, __all__)
