"""Metrics as prompt files (`NAME.metric.prompty`, PromptPex), for prompt tests and RAG calls.

_frontmatter   the YAML at the head of a file
file           a file ─▶ `Prompty`: messages that insert variables
_sandbox       a message + values ─▶ text, by Jinja in a sandbox
metric         `PromptyMetric`: a call ─▶ messages ─▶ model ─▶ `Score`; files of a folder
_reply         the model's reply ─▶ a score of 0 to 100, or OK or ERR
"""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.metrics.prompty.file import Prompty, load_prompty, parse_prompty
from rag_eval_integrations.metrics.prompty.metric import (
    PromptyMetric,
    discover_metrics,
)

__all__ = [
    "Prompty",
    "PromptyMetric",
    "discover_metrics",
    "load_prompty",
    "parse_prompty",
]

publish(__name__, __all__)
