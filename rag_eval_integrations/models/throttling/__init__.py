"""Rate limits, adaptive concurrency, retries and a circuit breaker around a model.

    request ─▶ AdmissionQueue (order, rate limits, concurrency, circuit) ─▶ model ─▶ answer
                 ▲                                                            │
                 └───────────────── wait (Retry-After, backoff) ◀──────── no answer

`ThrottledModel` in model.py is the retry loop; `_queue` admits requests in order and says what
they wait for, and `_limits` holds the protocol `Permits`, the limits per minute of a process, the
adaptive concurrency and the circuit breaker.
"""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.models.completion import Waiting
from rag_eval_integrations.models.throttling._limits import LocalPermits, Permits
from rag_eval_integrations.models.throttling.model import ThrottledModel

__all__ = ["LocalPermits", "Permits", "ThrottledModel", "Waiting"]

publish(__name__, __all__)
