"""`EmbeddedJudge` (stage 3): lexical features and frozen coefficients; no model, key or network.

_words, _language     text ─▶ stems; refuses calls that are not in English
_overlap              a call ─▶ the words that its sentences share, weighted
_features, _response_features   shared words ─▶ one row of numbers per sentence
_near_copies          response sentences that repeat a document sentence but for one detail
_model                rows ─▶ probabilities and estimates, by the coefficients in `model.json`
judge                 `EmbeddedJudge`: probabilities ─▶ labels and their explanations
"""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.judges.embedded.judge import EmbeddedJudge

__all__ = ["EmbeddedJudge"]

publish(__name__, __all__)
