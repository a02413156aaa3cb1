"""Corrections that people make on the served pages: each is in the file of labels at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag_eval_integrations.dataset._labels_file import (
    Draw,
    LabelsFile,
    LabelsWriter,
    Population,
    asked,
)
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.report._review_page import review_page


class _Correction(BaseModel):
    """A person's answer to a sentence of a call."""

    model_config = ConfigDict(extra="forbid", strict=True, str_strip_whitespace=True)

    row_key: str
    key: str
    label: bool
    who: str = Field(min_length=1, max_length=200)


LONGEST = 4_096
"""Bytes of a correction."""


class Corrections:
    """The file that corrections are appended to.

    Args:
        path: the file of people's labels; made by the first correction.
        who: name of the person that pages begin with.
    """

    def __init__(self, path: Path, who: str) -> None:
        self._path, self._who = path, who
        self._lock = threading.Lock()

    def page(self, evaluation: Evaluation, address: str) -> Iterator[str]:
        """Render the page that asks about one call, and sends answers to its own address."""
        held: list[dict[str, Any]] = []
        if self._path.exists():
            for (row_key, who), call in LabelsFile(self._path).calls.items():
                if row_key == evaluation.row_key:
                    held += [
                        {"who": who, "key": key, "label": label, "when": call.when}
                        for key, label in call.answers.items()
                    ]
        draw, name = _draw(evaluation), self._path.name
        return review_page([evaluation], draw, self._who, name, save=address, answers=held)

    def save(self, evaluation: Evaluation, body: bytes) -> None:
        """Append a correction.

        Raises:
            InputError: it is none, or of another call.
            ConfigurationError: the file holds something else, or another process writes it.
            OSError: the file cannot be written.
        """
        try:
            sent = _Correction.model_validate_json(body)
        except ValidationError as error:
            raise InputError(f"is not a correction: {error.errors()[0]['msg']}") from error
        keys = [sentence.key for sentence in asked(evaluation)]
        if sent.row_key != evaluation.row_key or sent.key not in keys:
            raise InputError("is of another call than the one that is here now; load the page anew")
        with (
            self._lock,
            LabelsWriter(self._path, sent.who, _draw(evaluation), field="labels") as labels,
        ):
            labels.answer(evaluation, sent.key, sent.label)


def _draw(evaluation: Evaluation) -> Draw:
    return Draw("single", None, 0, Population.of([evaluation.row_key]))
