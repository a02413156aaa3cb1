"""Off the request path: takes calls in microseconds, evaluates them behind the app's back.

`BackgroundEvaluator` is what the hosts' handlers call (`RagEvalCallbackHandler(background)`), or
what an app calls itself (`background.submit(call)`). `Budget` bounds what it spends, `Counters`
say what became of every call, `TrafficSummary` what the scores are over all traffic.
"""

from __future__ import annotations

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.background._worker import WhenFull
from rag_eval_integrations.background.aggregate import TrafficSummary, WeightedMean
from rag_eval_integrations.background.attachment import Attachment
from rag_eval_integrations.background.budget import Budget
from rag_eval_integrations.background.counters import Counters, SinkCounters
from rag_eval_integrations.background.runner import BackgroundEvaluator

__all__ = [
    "Attachment",
    "BackgroundEvaluator",
    "Budget",
    "Counters",
    "SinkCounters",
    "TrafficSummary",
    "WeightedMean",
    "WhenFull",
]

publish(__name__, __all__)
