"""Stage 4 of the flow: the scores. By, Score, Evaluation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from itertools import takewhile
from pathlib import Path
from string import ascii_lowercase
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    Field,
    PlainSerializer,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    computed_field,
    model_serializer,
    model_validator,
)

from rag_eval_integrations._visible import one_line
from rag_eval_integrations.errors import InputError, SchemaError
from rag_eval_integrations.records import _repr
from rag_eval_integrations.records._json import Count, JsonObject, Record, Text, excerpt
from rag_eval_integrations.records.call import Capture, Document, DocumentNumbers, Sentences, Turn
from rag_eval_integrations.records.labels import JudgeInfo, Labels, Probability, UnscoredCode, Usage
from rag_eval_integrations.records.run import Run

EVALS_SCHEMA = 2
"""Version of the lines of EVALS files."""
_MOST_SCHEMA = 1_000

ScoreStatus = Literal["scored", "unscored", "error"]


class By(Record):
    """The maker of a score; scores made differently are never averaged together."""

    judge: Text | None = None
    model: Text | None = None
    judge_version: Text | None = None
    prompt_version: Text | None = None
    formulas: Text | None = None
    relevance_baseline: Count | None = None
    splitter: Text | None = None
    windows: Count | None = None
    calibration: Text | None = None
    """Name, hash and number of rows of the calibration of its estimate; None without one."""

    def comparable(self) -> By:
        """Return the provenance without the fields that may differ among averaged scores.

        That is all but `splitter`, `windows` and the parts of `prompt_version` that tell which
        sections a call's prompt had: they differ from call to call, and the meaning does not.
        """
        version = without_sections(self.prompt_version)
        return self.model_copy(
            update={"splitter": None, "windows": None, "prompt_version": version}
        )


_SECTIONS = re.compile(r"(?:\+[a-z]+-\d+)+\Z")


def without_sections(version: str | None) -> str | None:
    """Return a prompt's version without the sections of one call, as in `labels-1+headers-1`."""
    return version and _SECTIONS.sub("", version)


class ScoreEstimate(Record):
    """An estimate of a score from a judge's probabilities; stands beside the labels' value."""

    value: Probability
    """The estimated score, in [0, 1]."""
    std_error: Annotated[float, Field(ge=0)] | None = None
    """Its standard error; None where it is not known."""
    method: Text
    """`calibrated`: the judge's own estimate; `expected`: the formulas over expected counts;
    `calibration`: mapped by the calibration that `by` names."""


class Score(Record):
    """One score: a value, or unscored with a reason, or an error. Never NaN."""

    name: Text = Field(exclude=True)
    """The key under which it stands in `Evaluation.scores`, and therefore not in its JSON."""
    status: ScoreStatus
    value: Annotated[float, Field(ge=0, le=1)] | None = None
    """In [0, 1], 1 is best; None unless scored."""
    raw: float | None = None
    """The value on the metric's own `scale`."""
    scale: tuple[float, float] | None = None
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    """`value` at or above it passes; None gives no verdict."""
    reason: Text | None = None
    """The score in words, or why there is none."""
    evidence: JsonObject | None = None
    """The facts that the score rests on; the fields depend on the metric."""
    method: Text | None = None
    """How the value came about: `labels`, `logprobs`, `monte_carlo` …"""
    estimate: ScoreEstimate | None = None
    """An estimate of the same score that is no count of the labels; never the value itself."""
    unscored: UnscoredCode | None = None
    """The code of why there is no value; None unless `status` is `unscored`."""
    n: Count | None = None
    """How many sentences or samples it was computed over."""
    mass: Probability | None = None
    std_error: Annotated[float, Field(ge=0)] | None = None
    distribution: dict[Text, Probability] | None = None
    probability: Probability | None = None
    """For a 0/1 score: the judge's probability that it is 1."""
    warnings: tuple[Text, ...] = ()
    by: By = By()

    @model_validator(mode="after")
    def _one_of_three_states(self) -> Score:
        """Check that value and code fit the status.

        Only a scored one has a value, only an unscored one a code.

        Raises:
            ValueError: it is otherwise.
        """
        if (self.value is not None) != (self.status == "scored"):
            raise ValueError(f"`value` = {self.value!r} with `status` = {self.status!r}")
        if (self.unscored is not None) != (self.status == "unscored"):
            raise ValueError(f"`unscored` = {self.unscored!r} with `status` = {self.status!r}")
        return self

    @model_validator(mode="before")
    @classmethod
    def _drop_computed(cls, content: object) -> object:
        """Drop a written `passed`."""
        if isinstance(content, dict) and "passed" in content:
            return {key: value for key, value in content.items() if key != "passed"}
        return content

    @computed_field  # type: ignore[prop-decorator]  # the documented pydantic idiom
    @property
    def passed(self) -> bool | None:
        """Tell whether the value reaches the threshold; None without a value or a threshold."""
        if self.value is None or self.threshold is None:
            return None
        return self.value >= self.threshold

    def __repr__(self) -> str:
        return f"<Score {_repr.score_line(self)}>"

    def __str__(self) -> str:
        return _repr.score_text(self)


# --- Scores by their names


_AS_OTHERS_SAY = {
    "faithfulness": "supported_fraction",
    "groundedness": "supported_fraction",
    "hallucination": "adherence",
    "contextualrelevancy": "context_relevance",
    "contextrelevancy": "context_relevance",
    "contextprecision": "document_precision",
    "contextualprecision": "document_precision",
    "contextualrecall": "context_recall",
    "answerrelevancy": "geval:relevance",
    "answerrelevance": "geval:relevance",
    "responserelevancy": "geval:relevance",
    "relevance": "geval:relevance",
    "answercorrectness": "answer_f1",
    "qacorrectness": "answer_f1",
    "factualcorrectness": "answer_f1",
    "exactmatch": "answer_contains",
    "tokenrecall": "answer_token_recall",
    "contextprecisionwithreference": "document_precision",
    "contextprecisionwithoutreference": "document_precision",
    "contextrecall": "context_recall",
}
"""Letters of names that ragas, deepeval and TruLens give to scores and metrics → the nearest score
of ours, as in `docs/coming-from.md`."""
_MADE_BY = {
    "document_precision": "label_retrieval",
    "context_recall": "context_recall",
    "geval:relevance": "geval:relevance",
    "answer_f1": "correctness",
    "answer_contains": "correctness",
    "answer_token_recall": "correctness",
}


def score_hint(name: object, names: Iterable[str]) -> str:
    """Suggest a valid score for an unknown name, and list all scores.

    For another tool's name it is our nearest score, else a score with a similar name; if there is
    none, up to 20 scores are listed.

    Args:
        name: what was asked for, perhaps by the name that another tool gives it.
        names: the scores that there are.
    """
    known = list(dict.fromkeys(names))[:_MOST_NAMES]
    word = str(name)[:_MOST_NAME].lower()
    letters = "".join(filter(str.isalpha, word)).removeprefix("llm").removesuffix("metric")
    others = get_close_matches(letters, _AS_OTHERS_SAY, 1, 0.9)
    ours = _AS_OTHERS_SAY[others[0]] if others else None
    if ours is not None:
        metric = _MADE_BY.get(ours, "trace")
        by = "" if ours in known or ours == metric else f", by the metric `{metric}`"
        return f"`{ours}` is nearest to it{by}"
    if near := get_close_matches(word, known, 1):
        return f"did you mean {near[0]!r}?"
    return f"the scores are {', '.join(map(one_line, known))}" if known else "there are no scores"


def metric_hint(name: str, known: Iterable[str]) -> str:
    """Suggest a valid metric or score for an unknown name; empty if none is similar.

    It ends so that more words can follow.
    """
    hint = score_hint(name, known)
    return f"{hint} Else " if hint.endswith("?") else f"{hint}; " if "nearest" in hint else ""


_MOST_DIGITS = 5
"""Digits of a document's number."""
_MOST_NAME = 100
_MOST_NAMES = 20


class Scores(dict[str, Score]):
    """A mapping of scores by name, whose `KeyError` lists the names."""

    __slots__ = ()

    def __missing__(self, name: object) -> Score:
        raise KeyError(f"no score {excerpt(name)}: {score_hint(name, self)}")


# --- What the scores of a call show


Pattern = Literal[
    "hallucination", "nothing_relevant_retrieved", "context_ignored", "incomplete", "healthy"
]


@dataclass(frozen=True)
class Diagnosis:
    """One pattern found in the scores of a call."""

    pattern: Pattern
    problem: str
    """The problem, in one sentence."""
    fix: str
    """The first thing to change."""


_WORDS: dict[Pattern, tuple[str, str]] = {
    "hallucination": (
        "The response says something that the documents do not support.",
        "Check the unsupported sentences; tell the model to answer from the documents only.",
    ),
    "nothing_relevant_retrieved": (
        "No retrieved sentence is relevant to the question.",
        "Tune the retriever (query, chunking, top-k, filters), or add the missing documents.",
    ),
    "context_ignored": (
        "Relevant text was retrieved, but the response leaves most of it unused.",
        "Instruct the model in the prompt to answer from the documents.",
    ),
    "incomplete": (
        "The response is grounded but leaves out half of the relevant text or more.",
        "Ask the model for a more complete answer, or retrieve less that repeats itself.",
    ),
    "healthy": (
        "Relevant text was found and used, and the response is grounded in it.",
        "Nothing to change.",
    ),
}
DIAGNOSES = {pattern: Diagnosis(pattern, *words) for pattern, words in _WORDS.items()}
"""Every pattern, the gravest first."""


def patterns_in(
    scores: Mapping[str, Score],
    *,
    adherent: float = 1.0,
    irrelevant: float = 0.0,
    ignored: float = 0.4,
    incomplete: float = 0.5,
) -> list[Diagnosis]:
    """Return the patterns that hold, the gravest first; `metrics.diagnose` tells the cut-offs.

    `healthy` stands alone, and only where all four scores have a value. Empty where they show
    nothing.
    """
    relevance, used, complete, grounded = (
        scores[name].value if name in scores else None
        for name in ("context_relevance", "context_utilization", "completeness", "adherence")
    )
    if used is not None and scores["context_utilization"].by.formulas == "ragbench":
        # These formulas give the used share of all sentences; that of the relevant ones is meant.
        used = min(1.0, used / relevance) if relevance else None
    patterns: list[Pattern] = []
    if grounded is not None and grounded < adherent:
        patterns.append("hallucination")
    if relevance is not None and relevance <= irrelevant:
        patterns.append("nothing_relevant_retrieved")
    elif relevance is not None and used is not None and used <= ignored:
        patterns.append("context_ignored")
    elif not patterns and grounded is not None and complete is not None and complete <= incomplete:
        patterns.append("incomplete")
    if not patterns and None not in (relevance, used, complete, grounded):
        patterns.append("healthy")
    return [DIAGNOSES[pattern] for pattern in patterns]


# --- The end of the flow: one call's scores with all that they rest on. Evaluation


Stage = Literal["app", "sentences", "judge", "metrics"]
"""`app`: the call itself failed while it was run to be evaluated."""


class EvaluationError(Record):
    """The failure of a call that could not be evaluated."""

    type: Text
    """Name of the exception's class."""
    message: Text
    stage: Stage


class Evaluation(Record):
    """One evaluated call: a line of EVALS.jsonl.

    Its JSON is the line (`model_dump_json`, and `model_validate_json` back), ASCII only. The JSON
    differs from the fields in four ways, and nothing is lost:

    * `schema`, the version of the format, stands first.
    * `by` and `warnings` hold what is the same for every score: the fields of `by` on which all
      scores agree, and the warnings that all scores begin with. A score has the rest.
    * A score's name is its key in `scores`; `passed` is there when the score has a verdict; `raw`
      and `scale` are left out where the scale is [0, 1] and `raw` is the value.
    * Fields that have their default (null, empty, 0) are left out, except those without one.

    `docs/evals.md` describes every field, `records/evals.schema.json` is the JSON Schema. Python's
    side (`model_dump()`, `score.by`, `score.warnings`) is whole.
    """

    writes_schema: ClassVar[bool] = True

    id: Text
    row_key: Text
    """Identity of the call (`RagCall.row_key`)."""
    question: Text
    response: Text | None
    reference: Text | None = None
    history: tuple[Turn, ...] = ()
    """Earlier turns of the conversation, oldest first."""
    metadata: JsonObject = Field(default_factory=dict)
    capture: Capture | None = None
    started_at: Annotated[datetime, PlainSerializer(datetime.isoformat)] | None = None
    """When the call began; None where that is not known."""
    app: Text | None = None
    """Name of the app or chain, as the call has it."""
    scores: Annotated[dict[Text, Score], AfterValidator(Scores)]
    """By score name, in the order of the metrics."""
    labels: Labels | None
    """None when the judge was not asked, or gave none."""
    sentences: Sentences
    document_ids: tuple[Text | None, ...] = ()
    """One per document, in order; None for a document without an id."""
    document_headers: tuple[Text | None, ...] = ()
    """One per document, in order; None for a document without a header, and empty where none has
    one. Judges are shown them."""
    earlier: DocumentNumbers = ()
    """The call's: numbers of the documents of earlier turns."""
    alternatives: tuple[Text, ...] = ()
    """The call's: further expected outputs."""
    relevant_ids: tuple[Text, ...] | None = None
    """The call's: ids of the relevant documents, known beforehand; None where they are not known.
    Retrieval scores were made with them, and an evaluation is not reused for others."""
    judge: JudgeInfo
    fingerprint: Text | None = None
    """Digest of everything that decides the scores besides the call: judge, metrics, splitter.
    An evaluation with the same `row_key` and fingerprint need not be made again."""
    usage: Usage = Usage()
    flags: tuple[Text, ...] = ()
    """Words that a reader should know before trusting the scores, such as `lexical_estimate`."""
    error: EvaluationError | None = None
    run: Run | None = None
    """The run that made it; None where a program of your own did. It stands last in the line."""

    @property
    def documents(self) -> tuple[Document, ...]:
        """The documents, without metadata and scores: sentences joined by a space.

        A document without sentences is empty.
        """
        texts: dict[int, list[str]] = {number: [] for number in range(len(self.document_ids))}
        for sentence in self.sentences.documents:
            number = sentence.key.rstrip(ascii_lowercase)
            if number.isdecimal() and len(number) <= _MOST_DIGITS:
                texts.setdefault(int(number), []).append(sentence.text)
        ids, headers = dict(enumerate(self.document_ids)), dict(enumerate(self.document_headers))
        return tuple(
            Document(
                text=" ".join(texts.get(number, ())),
                id=ids.get(number),
                header=headers.get(number),
            )
            for number in range(max(texts, default=-1) + 1)
        )

    @property
    def diagnosis(self) -> list[Diagnosis]:
        """The patterns that the scores show, the gravest first; `metrics.diagnose` has cut-offs."""
        return patterns_in(self.scores)

    def model_dump_json(self, **options: Any) -> str:
        """Write the evaluation as a line of EVALS.jsonl, without the line end.

        Args:
            options: pydantic's. `exclude_defaults` and `ensure_ascii` are on unless turned off.
        """
        return super().model_dump_json(
            **{"exclude_defaults": True, "ensure_ascii": True, **options}
        )

    def __repr__(self) -> str:
        return f"<Evaluation of {_repr.evaluation_line(self)}>"

    def __str__(self) -> str:
        return _repr.evaluation_text(self)

    def _repr_html_(self) -> str:
        # Written above this room, as the cells of many calls are.
        from rag_eval_integrations.evaluations._notebook import evaluation_html  # noqa: PLC0415

        return evaluation_html(self)

    @model_serializer(mode="wrap")
    def _row(
        self, handler: SerializerFunctionWrapHandler, info: SerializationInfo
    ) -> dict[str, Any]:
        """Write the row of EVALS: what all scores share stands once.

        Only for JSON; for Python the fields stay as they are.
        """
        row = handler(self)
        return {"schema": EVALS_SCHEMA, **_hoist_shared(row)} if info.mode == "json" else row

    @model_validator(mode="before")
    @classmethod
    def _spread(cls, content: object) -> object:
        """Give every score what the row holds once; refuse another schema."""
        if not isinstance(content, dict):
            return content
        content = dict(content)
        schema = content.pop("schema", EVALS_SCHEMA)
        if schema != EVALS_SCHEMA:
            raise _other_schema(schema)
        scores = content.get("scores")
        scores = scores if isinstance(scores, dict) else {}
        if scores and all(isinstance(score, dict) for score in scores.values()):
            by, warnings = content.pop("by", {}), content.pop("warnings", ())
            if not isinstance(by, dict) or not isinstance(warnings, list | tuple):
                raise ValueError("`by` should be an object and `warnings` a list")
            content["scores"] = {
                name: _spread(name, _with_raw(score), by, warnings)
                for name, score in scores.items()
            }
        return content


def _other_schema(schema: object) -> InputError:
    """Make the error for a row of another schema version.

    A `SchemaError`, which concerns the whole file, for what may be a version; else an `InputError`
    about this row.
    """
    short = isinstance(schema, str) and len(schema) < _MOST_SCHEMA
    if not (schema is None or short or (isinstance(schema, int) and 0 <= schema < _MOST_SCHEMA)):
        # one bad row in a file of whatever version
        why = f"this version reads schema {EVALS_SCHEMA}, not {excerpt(schema)}"
        return InputError(why, field="schema")
    way = (
        "make it anew with `rag-eval run CALLS -o FILE` or, from recorded labels, with "
        "`rag-eval score LABELLED -o FILE`"
    )
    if isinstance(schema, int) and schema > EVALS_SCHEMA:
        way = "read it with the newer version of rag-eval-integrations that wrote it"
    why = f"this file has schema {excerpt(schema)}, this version reads {EVALS_SCHEMA}: {way}"
    return SchemaError(why, field="schema")


def _hoist_shared(row: dict[str, Any]) -> dict[str, Any]:
    """Move the fields of `by` and the warnings that all scores share into the row.

    What says nothing more is left out: `passed` where it is None, and a raw value like the value.
    The scores are changed in place; a row without scores is returned as it is.
    """
    scores = list(row.get("scores", {}).values())
    if not scores:
        return row
    makers = [score.pop("by", {}) for score in scores]
    warned = [list(score.pop("warnings", ())) for score in scores]
    by = dict(makers[0])
    for maker in makers:
        by = {name: value for name, value in by.items() if maker.get(name, maker) == value}
    columns = zip(*warned, strict=False)
    warnings = [column[0] for column in takewhile(lambda column: len(set(column)) == 1, columns)]
    for score, maker, warning in zip(scores, makers, warned, strict=True):
        if score.get("passed") is None:
            score.pop("passed", None)
        _without_raw(score)
        if len(maker) > len(by):
            score["by"] = {name: value for name, value in maker.items() if name not in by}
        if own := warning[len(warnings) :]:
            score["warnings"] = own
    shared_parts = {key: part for key, part in (("by", by), ("warnings", warnings)) if part}
    names = list(row)
    before = names[: names.index("scores")]  # what the scores share stands before them
    return {name: row[name] for name in before} | shared_parts | row


_UNIT_SCALE = [0.0, 1.0]


def _without_raw(score: dict[str, Any]) -> None:
    """Remove a raw value that says no more than the value; write null for a missing one.

    Changes the score in place, if it is scored.
    """
    if score.get("status") != "scored":
        return
    raw, scale = score.get("raw"), score.get("scale")
    if raw is None and scale is None:
        score["raw"] = None
    elif raw == score.get("value") and list(scale or ()) == _UNIT_SCALE:
        del score["raw"], score["scale"]


def _with_raw(score: dict[str, Any]) -> dict[str, Any]:
    """Add the raw value and scale that a line leaves out where they are the value and [0, 1].

    Any other score is returned as it is.
    """
    if score.get("status") != "scored" or "raw" in score or "scale" in score:
        return score
    return {**score, "raw": score.get("value"), "scale": _UNIT_SCALE}


def _spread(
    name: str, score: dict[str, Any], by: dict[str, Any], warnings: Sequence[Any]
) -> dict[str, Any]:
    """Give a score of a line its name and the fields that the row holds once.

    A score may say all of it itself: so does what `model_dump` gives. Its own fields of `by`
    replace the row's, and its warnings come after the row's.
    """
    own = score.get("by", {})
    if isinstance(own, dict):
        own = by | {key: value for key, value in own.items() if value is not None}
    more = score.get("warnings", ())
    if isinstance(more, list | tuple):
        more = [*warnings, *more]
    return {**score, "name": name, "by": own, "warnings": more}


# --- The JSON Schema of a line of EVALS.jsonl, which ships as evals.schema.json


EVALS_SCHEMA_FILE = Path(__file__).with_name("evals.schema.json")
"""`evals_schema()` as JSON with an indent of 1, written anew when the records change."""


def evals_schema() -> dict[str, Any]:
    """Describe a line of EVALS.jsonl as JSON Schema.

    It describes what `Evaluation` reads, changed where the line differs from its fields.
    """
    schema = _without_prose(Evaluation.model_json_schema())
    kinds, fields = schema["$defs"], schema.pop("properties")
    names = list(fields)
    # What the scores share stands before them.
    before = {name: fields[name] for name in names[: names.index("scores")]}
    warnings = {"type": "array", "items": {"type": "string"}}
    shared = {"by": {"$ref": "#/$defs/By"}, "warnings": warnings}
    schema["properties"] = {"schema": {"const": EVALS_SCHEMA}} | before | shared | fields
    schema["required"].insert(0, "schema")
    for name in ("Labels", "SentenceSupport"):  # a reply may have more fields, a line has not
        kinds[name]["additionalProperties"] = False
    kinds["Sentence"]["minItems"] = 4
    score = kinds["Score"]
    del score["properties"]["name"]  # the key in `scores`
    score["required"].remove("name")
    score["properties"]["passed"] = {"anyOf": [{"type": "boolean"}, {"type": "null"}]}
    for name in shared:
        del score["properties"][name]["default"]  # the row's
    score["allOf"] = [_only_if("scored", "value"), _only_if("unscored", "unscored")]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of EVALS.jsonl",
        "description": "docs/evals.md describes the fields. A field that is missing has its "
        "default; `by` and `warnings` of the row hold for every score.",
        **schema,
    }


def _only_if(status: str, name: str) -> dict[str, Any]:
    """Return the JSON Schema for a field that is set for one status only."""
    return {
        "if": {"properties": {"status": {"const": status}}},
        "then": {"required": [name], "properties": {name: {"not": {"type": "null"}}}},
        "else": {"properties": {name: {"type": "null"}}},
    }


def _without_prose(schema: Any) -> Any:
    """Drop titles and descriptions, which repeat names and docstrings."""
    if isinstance(schema, list):
        return [_without_prose(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _without_prose(part)
        for name, part in schema.items()
        if not (name in ("title", "description") and isinstance(part, str))
    }
