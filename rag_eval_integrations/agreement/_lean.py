"""Rows of EVALS read straight from their lines, of which only what is kept is looked at.

A record that is read in full is checked in every field, which takes five times as long. Here, a
line of this version's schema is trusted in the fields that no figure rests on, such as reasons and
evidence. Whatever else is not plainly as the library writes it gives None, and is then read in
full: every complaint is the full reader's, and so is every repair of what a judge wrote.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag_eval_integrations.agreement._marks import marks_from
from rag_eval_integrations.agreement._side import Kept, Maker, listed_of, maker_by, origin_of
from rag_eval_integrations.agreement._table import Row
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.records import By, JudgeInfo, from_object
from rag_eval_integrations.records._json import Count
from rag_eval_integrations.records.score import EVALS_SCHEMA

Share = Annotated[float, Field(ge=0, le=1)]
Shares = dict[str, Share]
Told = dict[str, str | int | None]
Items = tuple[tuple[str, str | int | None], ...]


class _Part(BaseModel):
    # Strict: what would have to be converted is left to the records.
    model_config = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False, frozen=True)


class _Whole(_Part):
    model_config = ConfigDict(extra="forbid")


class _Estimate(_Part):
    value: Share
    method: str


class _Score(_Part):
    status: Literal["scored", "unscored", "error"]
    value: Share | None = None
    raw: float | None = None
    scale: tuple[float, float] | None = None
    method: str | None = None
    estimate: _Estimate | None = None
    unscored: str | None = None
    probability: Share | None = None
    by: Told = Field(default_factory=dict)


class _Support(_Part):
    response_sentence_key: str
    supporting_sentence_keys: tuple[str, ...] = ()
    fully_supported: bool | None = None


class LineLabels(_Part):
    all_relevant_sentence_keys: list[str]
    all_utilized_sentence_keys: list[str]
    sentence_support_information: list[_Support]
    unsupported_response_sentence_keys: list[str] | None = None
    relevant_probabilities: Shares | None = None
    utilized_probabilities: Shares | None = None
    supported_probabilities: Shares | None = None
    estimates: Any = None


class _Sentences(_Whole):
    documents: tuple[tuple[str, str, int | None, int | None], ...] = ()
    response: tuple[tuple[str, str, int | None, int | None], ...] = ()


class _Usage(_Whole):
    requests: Count = 0
    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    cost_usd: Annotated[float, Field(ge=0)] | None = None


_NO_USAGE = _Usage()


class Line(_Whole):
    """The fields of a line of EVALS; those that nothing is read from are not looked into."""

    schema_: Literal[2] = Field(alias="schema")
    id: str
    row_key: str
    question: str
    response: str | None
    reference: Any = None
    history: Any = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    capture: Any = None
    by: Told = Field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    scores: dict[str, _Score]
    labels: LineLabels | None
    sentences: _Sentences
    document_ids: tuple[str | None, ...] = ()
    relevant_ids: Any = None
    judge: Told
    fingerprint: str | None = None
    usage: _Usage = _NO_USAGE
    flags: tuple[str, ...] = ()
    error: Any = None


assert EVALS_SCHEMA == 2, "lines of another schema are read by other rules"


def line_of(content: bytes) -> Line | None:
    """Read a line of EVALS; None where it has to be read in full."""
    if b"NaN" in content or b"Infinity" in content:  # no numbers of JSON, wherever they stand
        return None
    try:
        line = Line.model_validate_json(content)
    except (ValidationError, RecursionError):
        return None
    for score in line.scores.values():
        status = score.status
        if (score.value is not None) != (status == "scored"):
            return None
        if (score.unscored is not None) != (status == "unscored"):
            return None
    return line if line.scores or not (line.by or line.warnings) else None


@lru_cache(4096)
def by_of(items: Items) -> tuple[str | int | None, ...]:
    """Check the items of a `By` as the record does; return its fields."""
    return maker_by(from_object(By, dict(items)))


@lru_cache(4096)
def judge_of(items: Items) -> JudgeInfo:
    """Make a judge of its items; many rows share it."""
    return from_object(JudgeInfo, dict(items))


UNIT = (0.0, 1.0)


def predicted_row(line: Line) -> Row | None:
    """Return what is kept of a judge's row; None where it has to be read in full."""
    try:
        shared = by_of(tuple(line.by.items()))
        judge = judge_of(tuple(line.judge.items()))
        scores = []
        for name, score in line.scores.items():
            value, raw, scale, estimate = score.value, score.raw, score.scale, score.estimate
            if value is not None and raw is None and scale is None:
                given = score.model_fields_set
                if "raw" not in given and "scale" not in given:
                    raw, scale = value, UNIT
            by = shared
            if score.by:
                own = {key: one for key, one in score.by.items() if one is not None}
                by = by_of(tuple((line.by | own).items()))
            maker = Maker(score.method, scale, None if estimate is None else estimate.method, by)
            found = None if estimate is None else estimate.value
            scores.append((name, maker, value, score.probability, found, raw))
    except InputError:
        return None
    labels, usage = line.labels, line.usage
    listed = 0
    if labels is not None:
        listed = listed_of(labels.all_relevant_sentence_keys, labels.all_utilized_sentence_keys)
    kept = Kept(
        scores,
        origin_of(judge, line.fingerprint, line.flags),
        -1 if line.response is None else len(line.response),
        listed,
        (usage.requests, usage.prompt_tokens, usage.completion_tokens),
        usage.cost_usd,
    )
    marks = None if labels is None else marks_from(labels, line.sentences)
    return Row(line.id, line.row_key, line.question, kept, marks)
