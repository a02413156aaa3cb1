"""The exceptions that the library raises on purpose.

    RagEvalError
    ├── ConfigurationError      (also ValueError)    an argument cannot be used
    ├── MissingDependencyError  (also ImportError)   an extra is not installed
    ├── InputError              (also ValueError)    a line of a file is not a valid record
    │   └── SchemaError                              another version of the library wrote the file
    ├── JudgeError                                   a judge or model gave no usable answer
    │   ├── JudgeOutputError                         it answered, but not in the requested form
    │   ├── JudgeRejectedError                       it refused the request; a retry cannot help
    │   └── JudgeUnavailableError                    it did not answer; a retry may help
    └── ReentryError            (also RuntimeError)  the library's loop cannot serve a sync facade

Failures of an evaluation are not exceptions: they are data (`Score.status`, `Evaluation.error`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_eval_integrations.records import Usage


__all__ = [
    "ConfigurationError",
    "InputError",
    "JudgeError",
    "JudgeOutputError",
    "JudgeRejectedError",
    "JudgeUnavailableError",
    "MissingDependencyError",
    "RagEvalError",
    "ReentryError",
    "SchemaError",
]


class RagEvalError(Exception):
    """Base class of the library's exceptions: catch it to catch them all."""


class ConfigurationError(RagEvalError, ValueError):
    """An argument that cannot be used; raised when the object is constructed.

    Args:
        field: name of the argument.
        value: the value that was given.
        why: the reason it cannot be used, and what to pass instead.
        missing: whether no value was given, so that the message shows none.
    """

    def __init__(self, field: str, value: object, why: str, *, missing: bool = False) -> None:
        from rag_eval_integrations._visible import visible  # noqa: PLC0415 -- for a mistake only

        value = _presentable(field, value)
        message = f"`{field}`: {why}" if missing else f"`{field}` = {safe_text(value)}: {why}"
        # It may quote names of a file, also where nobody escapes.
        super().__init__(visible(message))
        self.field = field
        """Name of the argument."""
        self.value = value
        """The value that was given; of a URL without its password and query, of `extra_body` the
        names of its fields."""
        self.why = why
        """The reason, without argument and value."""
        self.missing = missing
        """Whether no value was given."""


_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
# Greedy up to the last "@": a password may contain any character.
_USER = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)?.*@", re.DOTALL)


def without_secrets(url: str) -> str:
    """Return a URL for a message, without user, password, query and fragment.

    It need not be a valid URL: the scheme may be missing.
    """
    anonymous_url = _USER.sub(r"\1***@", url)
    return re.split(r"[?#]", anonymous_url, maxsplit=1)[0]


def _presentable(field: str, value: object) -> object:
    """Return a wrong argument as a message may show it: without keys and secrets of URLs."""
    if isinstance(value, str) and value and field == "api_key":
        return "***"
    if isinstance(value, str) and (field.endswith("url") or _URL.fullmatch(value)):
        return without_secrets(value)
    if isinstance(value, Mapping) and field in ("extra_body", "--extra-body"):
        return [*map(str, value)]
    return value


def whole_number(field: str, value: object, least: int = 1, most: int | None = None) -> None:
    """Refuse an argument that is not a whole number in a range; a bool is not one.

    Raises:
        ConfigurationError: it is not; names the argument and the range.
    """
    if type(value) is not int or value < least or (most is not None and value > most):
        up_to = "" if most is None else f" to {most}"
        raise ConfigurationError(field, value, f"use a whole number from {least}{up_to}")


def safe_text(value: object, write: Callable[[object], str] = repr) -> str:
    """Return the text of a value, or of its type where writing it fails; never raises."""
    try:
        return write(value)
    except Exception:  # noqa: BLE001 -- 5,000 digits, 10,000 lists in lists, a user's `__repr__`
        return f"<{type(value).__name__} that cannot be shown>"


class MissingDependencyError(RagEvalError, ImportError):
    """A required extra that is not installed; the message gives the command to install it.

    Args:
        package: name of the missing package.
        extra: name of the extra that installs it.
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"{package} is not installed; run: pip install 'rag-eval-integrations[{extra}]'"
        )
        self.extra = extra
        """Name of the extra, as in `pip install 'rag-eval-integrations[EXTRA]'`."""


@contextmanager
def extra(name: str, package: str | None = None) -> Iterator[None]:
    """Say how to install what an import inside of the `with` does not find.

    Args:
        name: name of the extra.
        package: the package to name; None for the module that is missing.

    Raises:
        MissingDependencyError: a module is not there.
    """
    try:
        yield
    except ImportError as error:
        raise MissingDependencyError(package or error.name or name, name) from error


class InputError(RagEvalError, ValueError):
    """A line that is not a valid record; the message gives the line, the field and the reason.

    Args:
        why: the reason, without the place.
        field: path of the field; None when the line is not a JSON object.
        line: line number from 1; None outside of a file.
        path: the file; None where whoever reads the message knows which.
        unit: word for the place, where it is not a line of text: `row`.
    """

    def __init__(
        self,
        why: str,
        *,
        field: str | None = None,
        line: int | None = None,
        path: str | None = None,
        unit: str = "line",
    ) -> None:
        self.why = why
        """The reason, without the place."""
        self.field = field
        """Path of the field, such as `documents[2].text`; None when the line is not an object."""
        self.line = line
        """Line number from 1; None outside of a file."""
        self.path = path
        """The file; None where whoever reads the message knows which."""
        self.unit = unit
        """What the number counts: `line`, or `row` of a JSON array, a table or a list."""
        super().__init__(why)

    def __str__(self) -> str:
        place = [self.path] if self.path is not None else []
        place += [f"{self.unit} {self.line}"] if self.line is not None else []
        place += [f"field `{self.field}`"] if self.field else []
        return ": ".join([*place, self.why])


class SchemaError(InputError):
    """A line in another version's format: the whole file is refused, and has to be made anew."""


class JudgeError(RagEvalError):
    """A judge or model that could not be asked, or whose answer could not be used."""

    usage: Usage | None = None
    """Usage of the requests that were made for it; None where it is not known, or counted."""


class JudgeOutputError(JudgeError):
    """An answer that does not have the requested form; the answer is attached.

    Args:
        why: the reason it cannot be used.
        raw: the answer's text.
        usage: usage of the requests that were made for it; None where they are counted elsewhere.
    """

    def __init__(self, why: str, raw: str, *, usage: Usage | None = None) -> None:
        super().__init__(why)
        self.raw = raw
        """The answer's text, unchanged."""
        self.usage = usage


class JudgeRejectedError(JudgeError):
    """A refusal of the request itself (wrong key, unknown model, bad request); not retried.

    Args:
        why: the reason, as far as it is known.
        status: HTTP status; None when there was none.
    """

    def __init__(self, why: str, *, status: int | None = None) -> None:
        super().__init__(why)
        self.status = status
        """HTTP status; None when there was none."""


class JudgeUnavailableError(JudgeError):
    """A missing answer (429, 5xx, timeout, no connection, a broken reply); may be retried.

    Args:
        why: the reason, as far as it is known.
        status: HTTP status; None when there was no reply.
        retry_after: seconds to wait before a retry, as the server asked; None when it did not.
        connected: False if no connection could be made (refused, unknown host, TLS, proxy), or if
            something else than a chat endpoint answers.
    """

    def __init__(
        self,
        why: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        connected: bool = True,
    ) -> None:
        super().__init__(why)
        self.status = status
        """HTTP status; None when there was no reply."""
        self.retry_after = retry_after
        """Seconds to wait before a retry, as the server asked; None when it did not."""
        self.connected = connected
        """False if no connection could be made: refused, unknown host, TLS failure, dead proxy.

        Or if something else answers, such as a web page, with a `status` then. The request never
        reached an endpoint, and usually a setting is wrong. A timeout, also one
        while connecting, is True: a busy endpoint may answer later."""


class ReentryError(RagEvalError, RuntimeError):
    """A sync facade called where the library's loop cannot serve it.

    On the thread of that loop itself, or where another loop keeps it from running (gevent).
    """
