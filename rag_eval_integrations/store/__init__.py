"""Capture and judging as two processes: nothing that was acknowledged is lost.

    app ─▶ Spool (files of SQLite) ─▶ rag-eval worker ─▶ Store (SQLite or PostgreSQL) ─▶ reports

`Spool` is a target for handlers and needs nothing but the standard library. `Store` holds calls
and evaluations, and is the queue of any number of workers (extras `store` and `postgres`).
"""

from typing import TYPE_CHECKING

from rag_eval_integrations._lazy import lazy

if TYPE_CHECKING:
    from rag_eval_integrations.store.database import Store
    from rag_eval_integrations.store.spool import Spool

__all__ = ["Spool", "Store"]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "database": ["Store"],
        "spool": ["Spool"],
    },
)
