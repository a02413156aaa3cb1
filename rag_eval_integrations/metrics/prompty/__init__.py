"""Metrics in words: `NAME.metric.prompty` files (PromptPex), for prompt tests and for RAG calls."""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.metrics.prompty._frontmatter import Input
from rag_eval_integrations.metrics.prompty.file import Prompty, load_prompty, parse_prompty
from rag_eval_integrations.metrics.prompty.metric import (
    VARIABLES,
    PromptyMetric,
    discover_metrics,
    lint,
    metric_files,
)
from rag_eval_integrations.metrics.prompty.reply import (
    Outcome,
    Reading,
    Verdict,
    read_score,
    read_verdict,
)

__all__ = [
    "VARIABLES",
    "Input",
    "Outcome",
    "Prompty",
    "PromptyMetric",
    "Reading",
    "Verdict",
    "discover_metrics",
    "lint",
    "load_prompty",
    "metric_files",
    "parse_prompty",
    "read_score",
    "read_verdict",
]

publish(__name__, __all__)
