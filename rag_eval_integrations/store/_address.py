"""Where a store is, and what of it may be shown: a URL's password may be anywhere in it.

evals.db, sqlite:///evals.db      a file
postgresql://USER@HOST/NAME       a database; a driver's name (`postgresql+psycopg`) is ignored
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from rag_eval_integrations import _target
from rag_eval_integrations.errors import ConfigurationError, without_secrets

if TYPE_CHECKING:
    from sqlalchemy import URL

_FORM = "postgresql://USER@HOST/NAME"
_LIBPQ = re.compile(r"(.*\s)?(host|hostaddr|dbname|password)\s*=", re.DOTALL)
"""A connection as libpq writes it: `host=db user=app password=…`."""
_SLIP = re.compile(r"postgres(ql)?(\+\w+)?(:|//)|[^/]*:[^/]*@", re.IGNORECASE)
"""A URL without `://`, which would be the name of a file: `postgresql//…`, `user:…@host/name`."""
_ANSWERS_WITHIN = "10"
"""Seconds for which a connection is tried, unless the URL says `connect_timeout`."""


@dataclass(frozen=True)
class Address:
    """Where a store is: in a file, or at a URL."""

    name: str
    """The path or URL, without secrets."""
    path: str = ""
    """Of the file; empty for a URL."""
    url: URL | None = None

    def hide(self, words: str) -> str:
        """Return a driver's words without the passwords of the URL."""
        secrets: list[object] = []
        if self.url is not None:
            query = self.url.query.items()
            secrets = [self.url.password, *(value for key, value in query if "password" in key)]
        for secret in {*filter(None, map(str, secrets))}:
            for form in (secret, quote(secret, safe="")):
                words = words.replace(form, "***")
        return words


def address_of(where: str | os.PathLike[str]) -> Address:
    """Read a path or URL.

    Raises:
        ConfigurationError: it is neither, or may hide a password where nobody looks for one.
    """
    if not isinstance(where, str):
        path = str(_target.path_from(where, "store"))
        return Address(path, path)
    if _LIBPQ.match(where):
        why = f"is libpq's form; use {_FORM}, and PGPASSWORD or ~/.pgpass for the password"
        raise ConfigurationError("store", "…", why)
    if where.startswith("sqlite:///"):
        return Address(where, where.removeprefix("sqlite:///"))
    if "://" in where:
        return _at_server(where)
    if _SLIP.match(where):
        raise ConfigurationError("store", without_secrets(where), f"use {_FORM}, or a path")
    return Address(where, where)


def _at_server(text: str) -> Address:
    """Read the URL of a PostgreSQL database.

    Raises:
        ConfigurationError: it is not one.
    """
    from sqlalchemy import exc, make_url  # noqa: PLC0415  # takes .2 s

    name = without_secrets(text)
    try:
        url = make_url(text)
    except exc.ArgumentError:
        url = None
    except ValueError:  # what stands for the port may be a password
        scheme = text.partition("://")[0]
        why = f"has a port that is not a number; use {_FORM.replace('/NAME', ':PORT/NAME')}"
        raise ConfigurationError("store", f"{scheme}://…", why) from None
    if url is None or url.get_backend_name() != "postgresql":
        raise ConfigurationError("store", name, f"use a path, sqlite:///PATH or {_FORM}")
    if "@" in f"{url.host}{url.database}{text.partition('?')[2]}":
        why = "has an @ in its user, password or query; write it as %40, and ? as %3F"
        raise ConfigurationError("store", name, why)
    query = {"connect_timeout": _ANSWERS_WITHIN, **url.query}
    return Address(name, url=url.set(drivername="postgresql+psycopg", query=query))
