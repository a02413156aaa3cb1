"""Retrieval metrics: by gold ids (`Retrieval`), by labels (`LabelRetrieval`, `ContextRecall`)."""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.metrics.retrieval.gold import MEASURES, Retrieval
from rag_eval_integrations.metrics.retrieval.labelled import (
    LABEL_RETRIEVAL_SCORES,
    ContextRecall,
    LabelRetrieval,
)

__all__ = ["LABEL_RETRIEVAL_SCORES", "MEASURES", "ContextRecall", "LabelRetrieval", "Retrieval"]

publish(__name__, __all__)
