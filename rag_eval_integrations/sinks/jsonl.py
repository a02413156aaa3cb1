"""A sink that appends evaluations to a file, one line of JSON each, never torn."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from rag_eval_integrations import _target
from rag_eval_integrations._lines import LineFile
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import EVALS_SCHEMA, Evaluation, to_line
from rag_eval_integrations.sinks.sink import PartlyWrittenError

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

        Raises:
            ConfigurationError: as for the constructor; another program has made the file meanwhile.
            OSError: when the file cannot be opened.
            PartlyWrittenError: when a row cannot be written; those before it are in the file.
        """
        lines = [to_line(evaluation).encode("ascii") for evaluation in batch]
        with LineFile(_target.resolved(self.path)) as file:
            self._check(file.head(_HEAD))
            file.end_last_line()
            for written, line in enumerate(lines):
                try:
                    file.append(line)
                except OSError as error:
                    raise PartlyWrittenError(batch[written:], error) from error

    def _check(self, head: bytes) -> None:
        """Refuse to mix evaluations with something else, by the beginning of the file."""
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
                "path", str(self.path),
                f"holds evaluations of schema {schema[1].decode()[:20]}, and this version writes "
                f"{EVALS_SCHEMA}; use another file, or move it away",
            )  # fmt: skip
