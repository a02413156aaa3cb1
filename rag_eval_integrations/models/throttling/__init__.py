"""The one layer between the pipeline and a model that waits and retries.

    request ─▶ Line (order, pace, concurrency, circuit) ─▶ model ─▶ answer
                 ▲                                            │
                 └────────── wait (Retry-After, backoff) ◀── no answer

`judge` is the retry loop, `line` lets requests through in order, `limits` paces them by the minute,
`concurrency` finds how many at once the judge bears, `circuit` gives up on a dead judge.
"""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.models.throttling._queue import Reason, Waiting
from rag_eval_integrations.models.throttling.model import ThrottledModel

__all__ = ["Reason", "ThrottledModel", "Waiting"]

publish(__name__, __all__)
