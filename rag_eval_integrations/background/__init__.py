"""Background evaluation: accept calls in microseconds, evaluate them off the request path.

`BackgroundEvaluator` is a target for the handlers of LangChain and LlamaIndex
(`RagEvalCallbackHandler(background)`), or is called by the app itself
(`background.submit(call)`). `Budget` limits what it spends, `Counters` count the outcome of every
call, and `TrafficSummary` estimates the scores over all traffic.
"""

from __future__ import annotations

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.background.budget import Budget
from rag_eval_integrations.background.counters import (
    Counters,
)
from rag_eval_integrations.background.runner import BackgroundEvaluator

__all__ = [
    "BackgroundEvaluator",
    "Budget",
    "Counters",
]

publish(__name__, __all__)
