"""`Calibration`: maps that bring a judge's estimates of scores closer to a user's gold.

`rag-eval calibrate` fits it (`agreement.calibrate`) and writes it as a JSON file; `Trace` applies
it to the estimates, never to the values, which are counts of the labels beside them.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import cached_property
from math import exp, log
from operator import not_
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from rag_eval_integrations import _target
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.judges.judge import Judge, judge_base, judge_info
from rag_eval_integrations.records import By
from rag_eval_integrations.records._json import Count, Record, Text, from_object, parse_object
from rag_eval_integrations.records.labels import Probability
from rag_eval_integrations.records.score import without_sections

EDGE = 0.005
"""Scores closer to 0 or 1 are taken for this one, whose logarithm of the odds is finite."""
MOST_KNOTS = 6
"""Most knots of an isotonic map."""
_DIGITS = 6
_HASH = 12
_FORMAT = "rag-eval calibration 1"
_LARGEST = 1_000_000  # bytes; a file of three judges has 6,000

Method = Literal["identity", "platt", "mixture", "isotonic"]
Weight = Annotated[float, Field(ge=0, le=1e6)]
Finite = Annotated[float, Field(ge=-1e6, le=1e6)]
Error = Annotated[float, Field(ge=0, le=1)]


def log_odds(score: float) -> float:
    """Return log(p / (1 - p)) of a score in [0, 1], which is kept off the ends by `EDGE`."""
    score = min(1 - EDGE, max(EDGE, score))
    return log(score / (1 - score))


class ScoreMap(Record):
    """Calibration map of one score of one judge, with its errors on held-out rows."""

    method: Method
    """`identity`: left as it is; `platt`: σ(intercept + slope · log-odds); `mixture`: the same with
    `words` · log-odds of the embedded judge's estimate in the sum; `isotonic`: a line through
    `knots`, constant before the first and after the last."""
    estimator: Text
    """What is mapped: `labels`, the value; else the `method` of the score's estimate."""
    slope: Weight = 1.0
    # Not written where it says nothing, so that files of other maps keep their hash.
    words: Annotated[Weight, Field(exclude_if=not_)] = 0.0
    intercept: Finite = 0.0
    knots: Annotated[tuple[tuple[Probability, Probability], ...], Field(max_length=MOST_KNOTS)] = ()
    """Estimate and calibrated estimate, both ascending."""
    n: Count
    """Number of gold rows that the map was fitted to."""
    questions: Count
    """Number of different questions among them."""
    needed: Count = 0
    """Number of questions that the target error asks for."""
    std_error: Error | None = None
    """Root of the mean squared distance of gold from the calibrated score, held out; the standard
    error of calibrated scores."""
    rmse: tuple[Error, Error] | None = None
    """Root mean squared error before and after, held out; None where nothing was compared."""
    calibration_error: tuple[Error, Error] | None = None
    """Expected calibration error in ten bins before and after, held out."""
    why: Text = ""
    """Why the score is left as it is; empty for a map that changes it."""

    @model_validator(mode="after")
    def _ascends(self) -> Self:
        """Check that the knots ascend, and that isotonic maps, and only these, have some."""
        for knot, other in zip(self.knots, self.knots[1:], strict=False):
            if not (knot[0] < other[0] and knot[1] <= other[1]):
                raise ValueError(f"`knots` should ascend, and {other} comes after {knot}")
        if (self.method == "isotonic") != bool(self.knots):
            raise ValueError(f"`method` = {self.method!r} with {len(self.knots)} knots")
        return self

    def __call__(self, score: float, words: float = 0.5) -> float:
        """Map a score; both are in [0, 1], and a larger one is never mapped to a smaller one.

        A mixture also takes the embedded judge's estimate, `words`, in [0, 1].
        """
        if self.method == "identity":
            return score
        if self.method == "isotonic":
            return round(self._on_line(score), _DIGITS)
        odds = self.intercept + self.slope * log_odds(score) + self.words * log_odds(words)
        return round(1 / (1 + exp(-odds)), _DIGITS)

    def _on_line(self, score: float) -> float:
        """Interpolate a score between the knots."""
        before = self.knots[0]
        for knot in self.knots:
            if score <= knot[0]:
                (x0, y0), (x1, y1) = before, knot
                return y1 if x1 == x0 else y0 + (y1 - y0) * (score - x0) / (x1 - x0)
            before = knot
        return before[1]


class JudgeMaps(Record):
    """The maps of the scores of one judge; a cascade has several judges."""

    judge: Text | None
    model: Text | None = None
    judge_version: Text | None = None
    prompt_version: Text | None = None
    scores: dict[Text, ScoreMap]

    def is_for(self, by: By) -> bool:
        """Tell whether the maps are for the judge that made a score."""
        version = without_sections(self.prompt_version)
        return _judge_of(by) == (self.judge, self.model, self.judge_version, version)

    def __str__(self) -> str:
        parts = (self.judge, self.judge_version, self.model, self.prompt_version)
        return " ".join([part for part in parts if part])


class Calibration(Record):
    """The calibration of a judge's estimates: what `rag-eval calibrate` writes.

    Read one with `Calibration.read(path)`, and give it to `Trace(calibration=…)`.
    """

    format: Literal["rag-eval calibration 1"] = "rag-eval calibration 1"
    name: Text
    """The user's name for it."""
    formulas: Text
    """The set of formulas of the scores."""
    relevance_baseline: Count | None = None
    n: Count
    """Number of gold rows."""
    questions: Count
    target_error: Error
    """The standard error of a calibrated score that the number of rows was held against."""
    judges: tuple[JudgeMaps, ...]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Calibration:
        """Read a file of `rag-eval calibrate`.

        Raises:
            InputError: it is not such a file, or was changed since it was written.
            OSError: it cannot be read.
        """
        content = parse_object(_target.read_whole(path, "calibration", longest=_LARGEST))
        if content.get("format") != _FORMAT:
            raise InputError(
                f"is not a calibration file of this version: it needs {_FORMAT!r}", field="format"
            )
        stored_hash = content.pop("hash", None)
        calibration = from_object(cls, content)
        if stored_hash != calibration.hash:
            raise InputError(
                "does not match the content: the file was changed after `rag-eval calibrate` "
                "wrote it; make it anew",
                field="hash",
            )
        return calibration

    def to_json(self) -> str:
        """Render the file, its hash included."""
        content = {**self.model_dump(mode="json"), "hash": self.hash}
        return json.dumps(content, indent=1) + "\n"

    @cached_property
    def hash(self) -> str:
        """Twelve hexadecimal digits of the SHA-256 of the content."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:_HASH]

    @property
    def stamp(self) -> str:
        """The text that stands in `by.calibration` of every score: name, hash, number of rows."""
        return f"{self.name} {self.hash} (n={self.n})"

    def check(self, judge: Judge) -> None:
        """Refuse a judge that the maps were not fitted on.

        Args:
            judge: the judge that is to be calibrated; a cascade stands for all its judges.

        Raises:
            ConfigurationError: names the judges of both sides.
        """
        from rag_eval_integrations.judges.cascade import CascadeJudge  # noqa: PLC0415  # imports models

        base = judge_base(judge)
        parts = base.judges if isinstance(base, CascadeJudge) else (base,)
        asked = [judge_info(part) for part in parts]
        fitted = {(maps.judge, maps.judge_version) for maps in self.judges}
        given = {(info.name, info.version) for info in asked}
        if fitted == given:
            return
        these = ", ".join(f"{info.name} {info.version or ''}".strip() for info in asked)
        raise ConfigurationError(
            "calibration",
            self.name,
            f"was fitted on the judge {', '.join(map(str, self.judges))}, and this judge is "
            f"{these}; run `rag-eval calibrate` with this judge",
        )

    def maps_for(self, by: By) -> JudgeMaps:
        """Look up the maps of the judge that made a score.

        Raises:
            ConfigurationError: no such judge was fitted.
        """
        for maps in self.judges:
            if maps.is_for(by):
                return maps
        raise ConfigurationError(
            "calibration",
            self.name,
            f"was fitted on {', '.join(map(str, self.judges))}, and this call was labelled by "
            f"{' '.join([part for part in _judge_of(by) if part])}",
        )


def _judge_of(by: By) -> tuple[str | None, str | None, str | None, str | None]:
    """Return what identifies a judge: name, model and versions."""
    return by.judge, by.model, by.judge_version, without_sections(by.prompt_version)
