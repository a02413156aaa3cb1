"""A sink that logs each evaluation, for apps whose logs are already collected."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Sequence

from rag_eval_integrations._visible import logger_of
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.sinks._traced import checked_names, chosen

_LOGGER = "rag_eval_integrations.scores"
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
        self._logger = logger_of(_LOGGER)
        self._metadata = checked_names(metadata)

    def write(self, batch: Sequence[Evaluation]) -> None:
        """Log each evaluation of a batch.

        Args:
            batch: the evaluations.
        """
        if self._logger.isEnabledFor(logging.INFO):
            for evaluation in batch:
                fields = _fields(evaluation, self._metadata)
                self._logger.info(
                    "call %s: %s", _shown(evaluation.id), _words(evaluation), extra=fields
                )


def _fields(evaluation: Evaluation, metadata: Sequence[str]) -> dict[str, object]:
    """Return the fields of a log record."""
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
            **({"metadata": chosen(evaluation, metadata)} if metadata else {}),
        }
    }


def _words(evaluation: Evaluation) -> str:
    """Write the scores in a line."""
    return " ".join(
        f"{_named(name)}={score.unscored or score.status}" if score.value is None
        else f"{_named(name)}={score.value:.3f}"
        for name, score in evaluation.scores.items()
    )  # fmt: skip


def _named(name: str) -> str:
    """Write a score's name so that it cannot forge another."""
    # A metric file chooses the name: a space or `=` in it could forge another score.
    return name if _WORD.fullmatch(name) else json.dumps(name)


def _shown(text: str) -> str:
    """Write an id on one line, cut and escaped."""
    # The user chooses the id: a line break in it could forge a log line, and an escape sequence
    # could colour the terminal.
    short = text if len(text) <= _MAX_ID else f"{text[: _MAX_ID - 1]}…"
    return short.encode("unicode_escape").decode("ascii")
