"""Rows of EVALS read straight from their lines, of which only what is kept is looked at.

A record that is read in full is checked in every field, which takes five times as long. Here, a
line of this version's schema is trusted in the fields that no figure rests on, such as reasons and
evidence. Whatever else is not plainly as the library writes it gives None, and is then read in
full: every complaint is the full reader's, and so is every repair of what a judge wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from rag_eval_integrations.agreement._marks import Marks, marks_from
from rag_eval_integrations.agreement._side import (
    UNIT,
    Kept,
    Maker,
    listed_of,
    maker_by,
    origin_of,
    raw_of,
)
from rag_eval_integrations.agreement._table import Row
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.records import By, JudgeInfo, from_object
from rag_eval_integrations.records._json import Count
from rag_eval_integrations.records.score import EVALS_SCHEMA

Share = Annotated[float, Field(ge=0, le=1)]
Shares = dict[str, Share]
Told = dict[str, str | int | None]
Items = tuple[tuple[str, str | int | None], ...]
LineSentence = tuple[str, str, int | None, int | None]
"""Key, text and offsets."""

# Dictionaries take a fifth less time to make than objects. They are strict: what would have to be
# converted is left to the records.
_PART = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False)
_WHOLE = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


@with_config(_PART)
class _Estimate(TypedDict):
    value: Share
    method: str


@with_config(_PART)
class LineScore(TypedDict):
    """The fields of a score that figures rest on."""

    status: Literal["scored", "unscored", "error"]
    value: NotRequired[Share | None]
    raw: NotRequired[float | None]
    scale: NotRequired[tuple[float, float] | None]
    method: NotRequired[str | None]
    estimate: NotRequired[_Estimate | None]
    unscored: NotRequired[str | None]
    probability: NotRequired[Share | None]
    by: NotRequired[Told]


@with_config(_PART)
class LineSupport(TypedDict):
    """The fields of a `SentenceSupport` that figures rest on."""

    response_sentence_key: str
    supporting_sentence_keys: NotRequired[list[str]]
    fully_supported: NotRequired[bool | None]


@with_config(_PART)
class LineLabels(TypedDict):
    """The fields of `Labels` that figures rest on."""

    all_relevant_sentence_keys: list[str]
    all_utilized_sentence_keys: list[str]
    sentence_support_information: list[LineSupport]
    unsupported_response_sentence_keys: NotRequired[list[str] | None]
    relevant_probabilities: NotRequired[Shares | None]
    utilized_probabilities: NotRequired[Shares | None]
    supported_probabilities: NotRequired[Shares | None]
    estimates: NotRequired[Any]


@with_config(_WHOLE)
class _Sentences(TypedDict):
    documents: NotRequired[list[LineSentence]]
    response: NotRequired[list[LineSentence]]


@with_config(_WHOLE)
class _Usage(TypedDict):
    requests: NotRequired[Count]
    prompt_tokens: NotRequired[Count]
    completion_tokens: NotRequired[Count]
    cost_usd: NotRequired[Annotated[float, Field(ge=0)] | None]


@with_config(_WHOLE)
class Line(TypedDict):
    """The fields of a line of EVALS; those that nothing is read from are not looked into."""

    schema: Literal[2]
    id: str
    row_key: str
    question: str
    response: str | None
    reference: NotRequired[Any]
    history: NotRequired[Any]
    metadata: NotRequired[dict[str, Any]]
    capture: NotRequired[Any]
    by: NotRequired[Told]
    warnings: NotRequired[list[str]]
    scores: dict[str, LineScore]
    labels: LineLabels | None
    sentences: _Sentences
    document_ids: NotRequired[list[str | None]]
    relevant_ids: NotRequired[Any]
    judge: Told
    fingerprint: NotRequired[str | None]
    usage: NotRequired[_Usage]
    flags: NotRequired[list[str]]
    error: NotRequired[Any]


assert EVALS_SCHEMA == 2, "lines of another schema are read by other rules"


@cache
def _reader() -> Callable[[bytes], Line]:
    # Without the adapter's own method, whose arguments take a tenth of the time.
    return TypeAdapter(Line).validator.validate_json


def line_of(content: bytes) -> Line | None:
    """Read a line of EVALS; None where it has to be read in full."""
    try:
        line = _reader()(content)
    except (ValidationError, RecursionError):
        return None
    scores = line["scores"]
    for score in scores.values():
        status = score["status"]
        if (score.get("value") is not None) != (status == "scored"):
            return None
        if (score.get("unscored") is not None) != (status == "unscored"):
            return None
    return line if scores or not (line.get("by") or line.get("warnings")) else None


@lru_cache(4096)
def by_of(items: Items) -> tuple[str | int | None, ...]:
    """Check the items of a `By` as the record does; return its fields."""
    return maker_by(from_object(By, dict(items)))


@lru_cache(4096)
def judge_of(items: Items) -> JudgeInfo:
    """Make a judge of its items; many rows share it."""
    return from_object(JudgeInfo, dict(items))


def made_by(line: Line, score: LineScore) -> tuple[str | int | None, ...]:
    """Return the fields of a score's `By`: its own, and those that all scores of its row share."""
    shared = line.get("by", _NOTHING)
    own = score.get("by")
    if not own:
        return by_of(tuple(shared.items()))
    return by_of(
        tuple((shared | {key: one for key, one in own.items() if one is not None}).items())
    )


_NOTHING: Told = {}


def predicted_row(line: Line) -> Row | None:
    """Return what is kept of a judge's row; None where it has to be read in full."""
    try:
        judge = judge_of(tuple(line["judge"].items()))
        shared = by_of(tuple(line.get("by", _NOTHING).items()))
        scores = []
        for name, score in line["scores"].items():
            value, scale, raw = score.get("value"), score.get("scale"), None
            if "raw" in score or "scale" in score:
                raw = raw_of(score.get("raw"), value, scale)
            elif value is not None:
                scale = UNIT
            estimate = score.get("estimate")
            by = made_by(line, score) if "by" in score else shared
            method, found = (
                (None, None) if estimate is None else (estimate["method"], estimate["value"])
            )
            maker = Maker(score.get("method"), scale, method, by)
            scores.append((name, maker, value, score.get("probability"), found, raw))
    except InputError:
        return None
    labels, response = line["labels"], line["response"]
    kept = Kept(
        scores,
        origin_of(judge, line.get("fingerprint"), line.get("flags", ())),
        -1 if response is None else len(response),
        0 if labels is None else listed_in(labels),
        *usage_of(line),
    )
    return Row(line["id"], line["row_key"], line["question"], kept, marks_in(line))


def usage_of(line: Line) -> tuple[tuple[int, int, int], float | None]:
    """Return the requests and tokens of a row, and its cost."""
    usage = line.get("usage")
    if usage is None:
        return (0, 0, 0), None
    counts = (
        usage.get("requests", 0), usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0),
    )  # fmt: skip
    return counts, usage.get("cost_usd")


def listed_in(labels: LineLabels) -> int:
    """See `Side.listed`."""
    return listed_of(labels["all_relevant_sentence_keys"], labels["all_utilized_sentence_keys"])


def marks_in(line: Line) -> Marks | None:
    """Reduce a line's labels to marks; None without labels."""
    labels, sentences = line["labels"], line["sentences"]
    if labels is None:
        return None
    return marks_from(
        labels["all_relevant_sentence_keys"],
        labels["all_utilized_sentence_keys"],
        [
            (
                one["response_sentence_key"],
                one.get("supporting_sentence_keys", ()),
                one.get("fully_supported"),
            )
            for one in labels["sentence_support_information"]
        ],
        (
            labels.get("relevant_probabilities"),
            labels.get("utilized_probabilities"),
            labels.get("supported_probabilities"),
        ),
        sentences.get("documents", ()),
        sentences.get("response", ()),
    )
