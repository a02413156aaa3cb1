"""Evaluations on standard output, as a run writes them."""

from __future__ import annotations

import os
import sys
from typing import Self

from rag_eval_integrations import _target
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import Evaluation, RagCall, to_line


class EvaluationPipe:
    """Evaluations on standard output, as lines of EVALS in the order of the calls.

    It has the methods of `EvaluationFile`, and takes over nothing.
    """

    ordered = True
    stale = 0

    def __init__(self) -> None:
        if sys.stdout is None or sys.__stdout__ is None:
            raise ConfigurationError("--out", "-", "there is no standard output")
        self._rows = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def take(self, index: int, row: RagCall | Evaluation) -> Evaluation | None:
        """Return None: there is no earlier run."""
        return None

    def add(self, index: int, evaluation: Evaluation) -> None:
        """Write the row of the call at `index`; see `append`."""
        self.append(evaluation)

    def add_in_turn(self, turn: int, index: int, evaluation: Evaluation) -> None:
        """Write the row of the call at `index`, whose turn it is; see `append`."""
        self.append(evaluation)

    def settle(self) -> None:
        """Do nothing: no row waits."""

    def add_row(self, index: int, line: str, *, failed: bool) -> None:
        """Write a row that is there as a line; see `append`."""
        self._write(line)

    def append(self, evaluation: Evaluation) -> None:
        """Write a row.

        Raises:
            OSError: when standard output cannot be written.
        """
        self._write(to_line(evaluation))

    def _write(self, line: str) -> None:
        # JSON may hold a raw DEL, the one character of ASCII beside these that acts.
        line = line.replace("\x7f", "\\u007f")
        try:
            sys.stdout.buffer.write(line.encode("ascii") + b"\n")
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            # Python would try once more as it ends, and complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise OSError(
                f"standard output was closed by its reader after {self._rows} evaluations"
            ) from None
        except OSError as error:
            told = _target.readable(error, "standard output")
            raise OSError(f"{told}, after {self._rows} whole evaluations") from error
        self._rows += 1

    def finish(self) -> int:
        """Return the number of rows."""
        return self._rows
