"""Keeps a judge's own model calls from being captured as RAG calls.

Host judges run the user's framework inside an evaluation; the capture handlers of both hosts ask
`suppressed()` first. A context variable, so it holds across threads started with a copied context
and never leaks into the app's own calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

SUPPRESSED: ContextVar[bool] = ContextVar("rag_eval_integrations_suppressed", default=False)


def suppressed() -> bool:
    """Whether calls of this context belong to an evaluation, not to the app."""
    return SUPPRESSED.get()


@contextmanager
def suppress_capture() -> Iterator[None]:
    """Mark everything called inside as part of an evaluation."""
    token = SUPPRESSED.set(True)
    try:
        yield
    finally:
        SUPPRESSED.reset(token)
