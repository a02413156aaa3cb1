"""A sink that appends evaluations to a file, one line of JSON each, never torn."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rag_eval_integrations._lines import LineFile
from rag_eval_integrations.records import Evaluation, to_line


class JsonlSink:
    """Appends each evaluation to a file as a line of EVALS.jsonl.

    A row is one `write` to a file opened with O_APPEND, so rows of several processes (gunicorn
    workers, a forked child) stand after one another, never within. The file is opened for each
    batch and closed after it: nothing is inherited by a fork, nothing is left open, and a file
    that was rotated away is made anew. Processes take turns by `flock` where there is one, so that
    a row that a full disk cut short is taken back; a part that a killed process left is ended with
    a line end, so that it does not spoil the next row.

    The data is handed to the operating system, not forced to the disk (no `fsync`).

    Args:
        path: the file; made by the first batch. Its folder has to be there.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()  # the app may change its folder later

    def write(self, batch: Sequence[Evaluation]) -> None:
        """Append the batch.

        Raises:
            OSError: when the file cannot be opened or written; rows before it are in the file.
        """
        lines = [to_line(evaluation).encode("ascii") for evaluation in batch]
        with LineFile(self.path) as file:
            file.end_last_line()
            for line in lines:
                file.append(line)
