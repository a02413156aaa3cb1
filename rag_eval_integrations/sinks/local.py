"""Sinks of this machine: a function, the log, and a file of lines."""

from __future__ import annotations

import inspect
import json
import logging
import os
import re
from collections.abc import Callable, Sequence

from rag_eval_integrations import _target
from rag_eval_integrations._lines import LineFile
from rag_eval_integrations._visible import logger_of
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import Evaluation, to_line
from rag_eval_integrations.records.score import EVALS_SCHEMA
from rag_eval_integrations.sinks._traced import checked_names, chosen_metadata
from rag_eval_integrations.sinks.sink import PartlyWrittenError


class CallbackSink:
    """Calls a function with every evaluation.

    Args:
        function: a plain function of one `Evaluation`; it may block, and its return value is
            ignored.

    Raises:
        ConfigurationError: `function` cannot be called, is a class, or is async (nothing would
            await it).
    """

    def __init__(self, function: Callable[[Evaluation], object]) -> None:
        if not callable(function):
            raise ConfigurationError("function", function, "use a function of one Evaluation")
        if isinstance(function, type):
            raise ConfigurationError("function", function, "is a class; pass an object of it")
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 -- the method itself is asked for
        ):
            raise ConfigurationError(
                "function", function, "is async; use a plain function that schedules its own work"
            )
        self._function = function

    def write(self, batch: Sequence[Evaluation]) -> None:
        """Call the function once per evaluation, in order.

        A failure does not keep the function from being called for the rest of the batch.

        Args:
            batch: the evaluations.

        Raises:
            Exception: the function's own exception, when it raised once.
            ExceptionGroup: the function's exceptions, when it raised more than once.
        """
        failures: list[Exception] = []
        for evaluation in batch:
            try:
                self._function(evaluation)
            except Exception as error:  # noqa: BLE001 -- raised below, after the rest of the batch
                failures.append(error)
        if len(failures) == 1:
            raise failures[0]
        if failures:
            raise ExceptionGroup("the callback raised more than once", failures)


# --- The log


SCORES_LOG = "rag_eval_integrations.scores"
_WORD = re.compile(r"[\w:./@-]+")
_MAX_ID = 64  # characters of an id in the message


class LoggingSink:
    """Logs one record per call to the logger `rag_eval_integrations.scores`, at INFO.

    The message holds the id (escaped, at most 64 characters) and the scores, but no other text of
    the user. The record's attribute `rag_eval` holds the fields for a formatter or a log pipeline:
    `{id, run_id, scores, unscored, judge, latency_s}`, where `scores` maps names to values in
    [0, 1], `unscored` maps the other names to their code (`error` for a failure), and `latency_s`
    is the app's own time for the call in seconds, None when it was not captured. Chosen metadata
    stands there too, under `metadata`.

    Logging is not configured here: Python shows INFO records only if the app installs a handler.

    Args:
        metadata: names of fields of the call's metadata, given or captured, that go along.

    Raises:
        ConfigurationError: `metadata` is not a list of names.
    """

    def __init__(self, *, metadata: Sequence[str] = ()) -> None:
        self._logger = logger_of(SCORES_LOG)
        self._metadata = checked_names(metadata)

    def write(self, batch: Sequence[Evaluation]) -> None:
        """Log each evaluation of a batch; nothing if the logger is not enabled for INFO.

        Args:
            batch: the evaluations.
        """
        if self._logger.isEnabledFor(logging.INFO):
            for evaluation in batch:
                fields = _fields(evaluation, self._metadata)
                self._logger.info(
                    "call %s: %s",
                    _escaped_id(evaluation.id),
                    _scores_line(evaluation),
                    extra=fields,
                )


def _fields(evaluation: Evaluation, metadata: Sequence[str]) -> dict[str, object]:
    """Return the fields of a log record under `rag_eval`, with `metadata` if any is chosen."""
    capture = evaluation.capture
    scores = evaluation.scores.items()
    return {
        "rag_eval": {
            "id": evaluation.id,
            "run_id": None if capture is None else capture.run_id,
            "scores": {name: s.value for name, s in scores if s.value is not None},
            "unscored": {name: s.unscored or s.status for name, s in scores if s.value is None},
            "judge": evaluation.judge.name,
            "latency_s": None if capture is None else capture.latency_s,
            **({"metadata": chosen_metadata(evaluation, metadata)} if metadata else {}),
        }
    }


def _scores_line(evaluation: Evaluation) -> str:
    """Return the scores in a line: `name=0.123`, or the code of a missing value."""
    return " ".join(
        f"{_safe_name(name)}={score.unscored or score.status}"
        if score.value is None
        else f"{_safe_name(name)}={score.value:.3f}"
        for name, score in evaluation.scores.items()
    )


def _safe_name(name: str) -> str:
    """Return a score's name, as JSON unless it is a plain word: it cannot forge another score."""
    # A metric file chooses the name: a space or `=` in it could forge another score.
    return name if _WORD.fullmatch(name) else json.dumps(name)


def _escaped_id(text: str) -> str:
    """Return an id in one line of ASCII: cut to 64 characters, then escaped."""
    # The user chooses the id: a line break in it could forge a log line, and an escape sequence
    # could colour the terminal.
    short = text if len(text) <= _MAX_ID else f"{text[: _MAX_ID - 1]}…"
    return short.encode("unicode_escape").decode("ascii")


# --- A file of lines


_BEGINNING = f'{{"schema":{EVALS_SCHEMA},'.encode("ascii")
"""The beginning of every row; of the file too, unless a killed process left less."""
_SCHEMA = re.compile(rb'\{\s*"schema"\s*:\s*(\d+)\b')
_HEAD = 4096


class JsonlSink:
    """Appends each evaluation to a file as a line of EVALS.jsonl.

    A row is one `write` to a file opened with O_APPEND, so rows of several processes (gunicorn
    workers, a forked child) stand after one another, never within. The file is opened for each
    batch and closed after it: nothing is inherited by a fork, nothing is left open, and a file
    that was rotated away is made anew. Processes take turns by `flock` where there is one, so that
    a row that a full disk cut short is taken back; a part that a killed process left is ended with
    a line end, so that it does not spoil the next row.

    The data is handed to the operating system, not forced to the disk (no `fsync`).

    Links are followed. The file is made for its owner only, since it holds what users asked.

    Args:
        path: the file; made by the first batch. Its folder has to be there.

    Raises:
        ConfigurationError: `path` is no path, or there is something else than a regular file, or a
            file that holds something else than evaluations of this version's format.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = _target.path_from(path).absolute()  # the app may change its folder later
        if self.path.exists():
            with _target.resolved(self.path).open("rb") as stream:
                self._check(stream.read(_HEAD))

    def write(self, batch: Sequence[Evaluation]) -> None:
        """Append the batch.

        A last line that a killed process left unfinished is ended first.

        Raises:
            ConfigurationError: as for the constructor; another program has made the file meanwhile.
            OSError: when the file cannot be opened.
            PartlyWrittenError: when a row cannot be written; those before it are in the file.
        """
        lines = [to_line(evaluation).encode("ascii") for evaluation in batch]
        with LineFile(_target.resolved(self.path)) as file:
            self._check(file.head(_HEAD))
            file.end_last_line()
            for position, line in enumerate(lines):
                try:
                    file.append(line)
                except OSError as error:
                    raise PartlyWrittenError(batch[position:], error) from error

    def _check(self, head: bytes) -> None:
        """Refuse a file that does not begin with evaluations of this version's format.

        An empty file passes, and one with the beginning of a row that a killed process left.

        Raises:
            ConfigurationError: the file holds something else, or evaluations of another schema.
        """
        start = head.lstrip()
        first, ended, rest = start.partition(b"\n")
        while ended and first and _BEGINNING.startswith(first):  # left by a killed process
            start = rest.lstrip()
            first, ended, rest = start.partition(b"\n")
        schema = _SCHEMA.match(start)
        if schema is None and not _BEGINNING.startswith(start[: len(_BEGINNING)]):
            why = "holds something else than evaluations; use another file"
            raise ConfigurationError("path", str(self.path), why)
        if schema is not None and int(schema[1]) != EVALS_SCHEMA:
            raise ConfigurationError(
                "path",
                str(self.path),
                f"holds evaluations of schema {schema[1].decode()[:20]}, and this version writes "
                f"{EVALS_SCHEMA}; use another file, or move it away",
            )
