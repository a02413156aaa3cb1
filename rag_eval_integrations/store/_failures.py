"""Failures of a database: those that pass, those of the settings, and faults of a statement.

PostgreSQL tells them apart by SQLSTATE. While a connection is made its driver has words alone; of
these, the refusals are known, and everything else is a server that is away.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from rag_eval_integrations._contain import words_of
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.store._address import Address

if TYPE_CHECKING:
    from sqlalchemy.exc import DBAPIError

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE = 60.0
"""Seconds for which a worker that ends by itself (`--once`) waits for a database."""
_PASSING = (
    "08",
    "25006",
    "40",
    "53",
    "55",
    "57",
    "58",
    "SQLITE_BUSY",
    "SQLITE_FULL",
    "SQLITE_IOERR",
    "SQLITE_LOCKED",
)
"""Connection, read-only, deadlock and serialization, resources, lock, operator, system."""
_REFUSED = ("28", "3D", "3F", "42501")
"""Authorization, no such database, no such schema, no right."""
_REFUSING = re.compile(
    r'authentication failed|no password supplied|no pg_hba\.conf entry|(role|database) ".*" does '
    r"not exist|not permitted to log in|permission denied|connection is bad: (?!connection|no )"
)
_ROLLED_BACK = "40"
_REPEATS = 5


class UnavailableError(OSError):
    """A database that cannot be used now; it may come back by itself.

    Args:
        words: what is wrong.
        kind: SQLSTATE, or SQLite's name of the failure; `08` where no connection could be made.
    """

    def __init__(self, words: str, kind: str) -> None:
        super().__init__(words)
        self.kind = kind


def kind_of(error: OSError) -> str:
    """Return the kind of a failure, of which one is logged."""
    return error.kind if isinstance(error, UnavailableError) else words_of(error)


def failure_of(error: DBAPIError, address: Address) -> Exception | None:
    """Convert a driver's exception to ours, in one line and without secrets.

    None for a fault of a statement.
    """
    from sqlalchemy import exc  # noqa: PLC0415  # takes .2 s

    driver: Any = error.orig
    words = address.hide(words_of(driver).partition("\n")[0])
    told = f"{address.name}: {words}"
    operational = isinstance(error, exc.OperationalError | exc.InterfaceError)
    if address.url is None:
        kind = getattr(driver, "sqlite_errorname", "")
        if kind.startswith(_PASSING):
            return UnavailableError(told, kind)
        return OSError(told) if operational or type(error) is exc.DatabaseError else None
    kind = driver.sqlstate
    if kind is None:
        connecting = error.statement is None
        if connecting and (not operational or _REFUSING.search(words)):
            return ConfigurationError("store", address.name, words)
        return UnavailableError(told, "08") if operational else None
    if kind.startswith(_REFUSED):
        return ConfigurationError("store", address.name, words)
    return UnavailableError(told, kind) if kind.startswith(_PASSING) else None


def repeated(transaction: Callable[P, T]) -> Callable[P, T]:
    """Retry a transaction that the server rolled back because of another one."""

    @wraps(transaction)
    def until_through(*args: P.args, **kwargs: P.kwargs) -> T:
        for _ in range(_REPEATS):
            try:
                return transaction(*args, **kwargs)
            except UnavailableError as error:
                if not error.kind.startswith(_ROLLED_BACK):
                    raise
        return transaction(*args, **kwargs)

    return until_through
