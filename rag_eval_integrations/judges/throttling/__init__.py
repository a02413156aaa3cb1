"""The one layer between the pipeline and a model that waits and retries.

    request ─▶ Line (order, pace, concurrency, circuit) ─▶ completer ─▶ answer
                 ▲                                            │
                 └────────── wait (Retry-After, backoff) ◀── no answer

`judge` is the retry loop, `line` lets requests through in order, `limits` paces them by the minute,
`concurrency` finds how many at once the judge bears, `circuit` gives up on a dead judge.
"""

from rag_eval_integrations.judges.throttling.judge import ThrottledJudge
from rag_eval_integrations.judges.throttling.waiting import Reason, Waiting

__all__ = ["Reason", "ThrottledJudge", "Waiting"]
