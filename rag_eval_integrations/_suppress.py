"""Mark the model calls of an evaluation, so that they are not captured as RAG calls.

A judge may run LangChain or LlamaIndex inside an evaluation; the capture handlers of both
frameworks check `suppressed()` first. The mark is a context variable: it holds in threads that are
started with a copied context and never leaks into the app's own calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

SUPPRESSED: ContextVar[bool] = ContextVar("rag_eval_integrations_suppressed", default=False)


def suppressed() -> bool:
    """Return whether calls in this context belong to an evaluation and not to the app."""
    return SUPPRESSED.get()


@contextmanager
def suppress_capture() -> Iterator[None]:
    """Mark everything called inside as part of an evaluation."""
    token = SUPPRESSED.set(True)
    try:
        yield
    finally:
        SUPPRESSED.reset(token)
