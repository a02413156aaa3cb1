"""Every exception that the library raises on purpose.

    RagEvalError
    ├── ConfigurationError      (also ValueError)    a user's mistake, raised at construction
    ├── MissingDependencyError  (also ImportError)   an extra is not installed
    ├── InputError              (also ValueError)    a line of a file cannot be read as a record
    │   └── SchemaError                              another version of the library wrote the file
    ├── JudgeError                                   a judge could not be asked or understood
    │   ├── JudgeOutputError                         it answered, but not with what was asked for
    │   ├── JudgeRejectedError                       it will not answer; asking again is no use
    │   └── JudgeUnavailableError                    it did not answer; asking again may help
    └── ReentryError            (also RuntimeError)  a sync facade was called on the library's loop

Failures of an evaluation are not exceptions: they are data (`Score.status`, `Evaluation.error`).
"""

from __future__ import annotations


class RagEvalError(Exception):
    """Base of every exception below: catch it to catch them all."""


class ConfigurationError(RagEvalError, ValueError):
    """A user's mistake in an argument, raised where the object is made."""

    def __init__(self, field: str, value: object, why: str) -> None:
        super().__init__(f"`{field}` = {value!r}: {why}")
        self.field = field
        """Name of the argument."""
        self.value = value
        """What was given."""


class MissingDependencyError(RagEvalError, ImportError):
    """A module needs an extra that is not installed; the message names the command."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"{package} is not installed; run: pip install 'rag-eval-integrations[{extra}]'"
        )
        self.extra = extra
        """Name of the extra, as in `pip install 'rag-eval-integrations[EXTRA]'`."""


class InputError(RagEvalError, ValueError):
    """A line that is not a record: says where, which field and why."""

    def __init__(self, why: str, *, field: str | None = None, line: int | None = None) -> None:
        self.why = why
        """What is wrong, without the place."""
        self.field = field
        """Path of the field, such as `documents[2].text`; None when the line is no object."""
        self.line = line
        """Line number from 1; None outside of a file."""
        super().__init__(why)

    def __str__(self) -> str:
        place = [f"line {self.line}"] if self.line is not None else []
        place += [f"field `{self.field}`"] if self.field else []
        return ": ".join([*place, self.why])


class SchemaError(InputError):
    """A line in another version's format: the whole file is refused, and has to be made anew."""


class JudgeError(RagEvalError):
    """A judge could not be asked, or its answer could not be used."""


class JudgeOutputError(JudgeError):
    """A judge answered with something that is not what was asked for; the answer is attached."""

    def __init__(self, why: str, raw: str) -> None:
        super().__init__(why)
        self.raw = raw
        """The judge's own text, unchanged."""


class JudgeRejectedError(JudgeError):
    """A judge refuses the request itself (wrong key, unknown model, bad request): final."""

    def __init__(self, why: str, *, status: int | None = None) -> None:
        super().__init__(why)
        self.status = status
        """HTTP status, where there is one."""


class JudgeUnavailableError(JudgeError):
    """A judge did not answer (429, 5xx, timeout, no connection, a broken reply): may be retried."""

    def __init__(
        self, why: str, *, status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(why)
        self.status = status
        """HTTP status; None when there was no reply."""
        self.retry_after = retry_after
        """Seconds that the judge asked to wait; None when it did not say."""


class ReentryError(RagEvalError, RuntimeError):
    """A sync facade was called on the loop thread that would have to serve it."""
