"""G-Eval (arXiv:2303.16634): criteria in words, evaluation steps, an expected score.

_presets           a ready-made metric ─▶ the arguments of `GEval`
_settings          arguments ─▶ checked settings
_sections          RagCall ─▶ the sections that the model is shown
_prompt            criteria ─▶ model ─▶ evaluation steps, once; steps + sections ─▶ messages
_estimators        messages ─▶ model ─▶ log-probabilities, else samples, else one answer
_reply             answer ─▶ score and its position in the text, also as published tables did
_expectation       position ─▶ token ─▶ Σ k·p(k) / Σ p(k)
metric             `GEval`, also from YAML files
"""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.metrics.geval.metric import (
    GEval,
    read_geval,
)

__all__ = [
    "GEval",
    "read_geval",
]

publish(__name__, __all__)
