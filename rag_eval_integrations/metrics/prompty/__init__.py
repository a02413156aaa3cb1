"""Metrics as prompt files (`NAME.metric.prompty`, PromptPex), for prompt tests and RAG calls.

_frontmatter   the YAML at the head of a file
file           a file ─▶ `Prompty`: messages that insert variables
_sandbox       a message + values ─▶ text, by Jinja in a sandbox
metric         `PromptyMetric`: a call ─▶ messages ─▶ model ─▶ `Score`; files of a folder
reply          the model's reply ─▶ a score of 0 to 100, or OK or ERR
"""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.metrics.prompty.file import Input, Prompty, load_prompty, parse_prompty
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
