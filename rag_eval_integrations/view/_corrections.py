"""Corrections that people make on the served pages: each is in the file of labels at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
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
from rag_eval_integrations.records._json import excerpt


class _Correction(BaseModel):
    """A person's answer to a sentence of a call."""

    model_config = ConfigDict(extra="forbid", strict=True, str_strip_whitespace=True)

    call: int
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
        self._path, self.who = path, who
        self._lock = threading.Lock()

    def page_data(self, address: str, calls: Iterable[Evaluation]) -> dict[str, Any]:
        """Return what a page needs to save corrections, with the corrections of its calls so far.

        Args:
            address: where they are sent to.
            calls: the calls.
        """
        labelled = LabelsFile(self._path).calls if self._path.exists() else {}
        on_page = {call.row_key for call in calls}
        given = [
            {"row_key": labels.row_key, "who": labels.who, "key": key, "label": label}
            for labels in labelled.values()
            if labels.row_key in on_page
            for key, label in labels.answers.items()
        ]
        return {"save": address, "file": self._path.name, "given": given}

    def save(self, body: bytes, call: Callable[[int], Evaluation | None]) -> None:
        """Append a correction.

        Args:
            body: what a page sent.
            call: returns the call of a number, from 1.

        Raises:
            InputError: it is not a correction, or is of another call.
            ConfigurationError: the file holds something else, or another process writes it.
            OSError: the file cannot be written.
        """
        try:
            sent = _Correction.model_validate_json(body)
        except ValidationError as error:
            raise InputError(f"is not a correction: {error.errors()[0]['msg']}") from error
        evaluation = call(sent.call)
        if evaluation is None or sent.row_key != evaluation.row_key:
            raise InputError("is of another call than the one that is here now; load the page anew")
        if sent.key not in [sentence.key for sentence in asked(evaluation)]:
            raise InputError(f"{excerpt(sent.key)} is not asked about")
        draw = Draw("single", None, 0, Population.of([evaluation.row_key]))
        with self._lock, LabelsWriter(self._path, sent.who, draw, field="labels") as labels:
            labels.answer(evaluation, sent.key, sent.label)
