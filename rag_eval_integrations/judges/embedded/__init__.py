"""The judge that needs nothing: lexical features, frozen coefficients, stated as estimates."""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.judges.embedded.judge import EmbeddedJudge, label_call

__all__ = ["EmbeddedJudge", "label_call"]

publish(__name__, __all__)
