"""Rows: a line of a file becomes a call with its recorded labels, and recorded labels are scored.

Lines may be CALLS rows, LABELLED rows (CALLS rows with `labels`), EVALS rows, and RAGBench rows as
published.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import JsonValue

from rag_eval_integrations._scoring import by_of, nothing_to_judge, score_labelling
from rag_eval_integrations.dataset._names import REQUIRED
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.judges._reconcile import reconcile
from rag_eval_integrations.judges.suspicion import Suspicion
from rag_eval_integrations.metrics import TRACE_SCORES, CallMetric, Formulas, LabelMetric, Trace
from rag_eval_integrations.records import (
    Evaluation,
    JudgeInfo,
    Labelling,
    Labels,
    RagCall,
    Sentence,
    Sentences,
    SentencizedCall,
)
from rag_eval_integrations.records._json import (
    as_input_error,
    check_schema,
    excerpt,
    from_object,
    is_finite,
    rename_hint,
    whole_text,
)
from rag_eval_integrations.records.labels import UTILIZED
from rag_eval_integrations.sentences import Splitter, document_number, sentencize
from rag_eval_integrations.sentences._sentencize import RECORDED, locate
from rag_eval_integrations.traces._values import id_from

_CALL_FIELDS = frozenset(RagCall.model_fields) | {"row_key"}
_SENTENCE_FIELDS = ("documents_sentences", "response_sentences")

_LABEL_FIELDS = (
    "relevance_explanation",
    "all_relevant_sentence_keys",
    "overall_supported_explanation",
    "overall_supported",
    "sentence_support_information",
    "all_utilized_sentence_keys",
    "unsupported_response_sentence_keys",
    "unasked_keys",
)
"""Fields of the labelling JSON, which RAGBench publishes as columns."""

_REQUIRED_LABELS = frozenset(
    name for name, field in Labels.model_fields.items() if field.is_required()
)

_PUBLISHED = (
    "adherence_score",
    "relevance_score",
    "utilization_score",
    "completeness_score",
    "trulens_groundedness",
    "trulens_context_relevance",
    "ragas_faithfulness",
    "ragas_context_relevance",
    "gpt3_adherence",
    "gpt3_context_relevance",
    "gpt35_utilization",
)
"""RAGBench's score and predictor columns; they are gold and baselines, and not part of a call."""

_RESPONSE_KEY = re.compile("[a-z]+")

_MOST_DOCUMENTS = 100_000
"""Documents of a row without `document_ids`: a key alone must not take the memory of millions."""


@dataclass(frozen=True)
class Row:
    """The content of one line."""

    call: RagCall
    labels: Labels | None = None
    """Recorded labels as they were written; None without recorded labels."""
    labeller: JudgeInfo | None = None
    """The judge that made the recorded labels; None without recorded labels."""
    published: Mapping[str, float | None] = field(default_factory=dict)
    """RAGBench's score and predictor columns, by name."""


def call_from(content: dict[str, Any]) -> RagCall:
    """Read the call of a parsed line and ignore its labels and scores.

    Raises:
        InputError: a field is missing or wrong; names the field.
    """
    # In the order of the line, because the order of a set changes with the process's hash seed.
    labels = ("labels", *_LABEL_FIELDS, *_PUBLISHED)
    return row_from({name: value for name, value in content.items() if name not in labels}).call


@as_input_error()
def row_from(content: dict[str, Any]) -> Row:
    """Read a parsed line with its recorded labels.

    Unknown fields are kept in the call's `metadata`, except label and score columns, because a call
    must not contain its own verdict.

    Raises:
        InputError: a field is missing or wrong; names the field.
    """
    rest = dict(content)
    check_schema(rest)
    recorded = {name: rest.pop(name, None) for name in _SENTENCE_FIELDS}
    published = {name: _number(name, rest.pop(name)) for name in _PUBLISHED if name in rest}
    labels, labeller = _labels(rest)
    fields = {name: rest.pop(name) for name in list(rest) if name in _CALL_FIELDS}
    # pandas writes a null for what a row lacks.
    call = {name: value for name, value in fields.items() if value is not None or name in REQUIRED}
    if "id" in call:
        call["id"] = id_from(call["id"])
    call["metadata"] = _with_unknown(call.get("metadata", {}), rest)
    if missing := [name for name in REQUIRED if name not in call]:
        hint = f"; the line has {', '.join(sorted(rest))}" if rest else ""
        rename = rename_hint(rest, missing)
        raise InputError(f"is missing{hint}{': ' + rename if rename else ''}", field=missing[0])
    if any(value is not None for value in recorded.values()):
        call.pop("sentences", None)
        call["sentences"] = _recorded_sentences(from_object(RagCall, call), recorded)
    return Row(from_object(RagCall, call), labels, labeller, published)


def _with_unknown(metadata: Any, unknown: dict[str, JsonValue]) -> Any:
    """Add unknown fields to the metadata; refuse a field with two values."""
    if not isinstance(metadata, dict) or not unknown:
        return metadata  # the record refuses anything but an object, naming the field
    for name in unknown:
        if name in metadata and metadata[name] != unknown[name]:
            raise InputError(
                "is given both at top level and in `metadata`, with different values", field=name
            )
    return {**metadata, **unknown}


def _number(name: str, value: object) -> float | None:
    """Return a finite number or None; refuse anything else, naming the field."""
    if value is None:
        return None
    if not isinstance(value, int | float):
        raise InputError(f"should be a number or null, not {excerpt(value)}", field=name)
    if not is_finite(value):
        raise InputError(f"should be a finite number, not {excerpt(value)}", field=name)
    return float(value)


def _labels(rest: dict[str, Any]) -> tuple[Labels | None, JudgeInfo | None]:
    """Remove the labels from a line and read them: the field `labels`, or RAGBench's columns.

    None without any; a line with some of the columns is refused.
    """
    columns = {name: rest.pop(name) for name in _LABEL_FIELDS if name in rest}
    model = rest.get("annotating_model_name")
    labeller = JudgeInfo(name="recorded", model=model if isinstance(model, str) else None)
    content = rest.pop("labels", None)
    if content is not None:
        try:
            return from_object(Labels, content), labeller
        except InputError as error:
            path = ".".join(part for part in ("labels", error.field) if part)
            raise InputError(error.why, field=path) from error
    missing = sorted(_REQUIRED_LABELS - columns.keys())
    if len(missing) == len(_REQUIRED_LABELS):
        return None, None
    if missing:
        raise InputError(
            f"is missing; the line has {', '.join(sorted(columns))}, so it should have all label "
            "columns",
            field=missing[0],
        )
    return from_object(Labels, columns), labeller


def _recorded_sentences(call: RagCall, recorded: Mapping[str, object]) -> Sentences:
    """Read the recorded sentences of a row; refuse unknown and repeated keys."""
    by_document: list[list[tuple[str, str]]] = [[] for _ in call.documents]
    response: list[tuple[str, str]] = []
    seen: set[str] = set()
    for field_name, kind in zip(_SENTENCE_FIELDS, ("document", "response"), strict=True):
        for path, key, text in _pairs(recorded[field_name], field_name):
            number = document_number(key)
            is_known = _RESPONSE_KEY.fullmatch(key) is not None
            if kind == "document":
                is_known = number is not None and number < len(by_document)
            if not is_known:
                raise InputError(f"{excerpt(key)} is not a key of a {kind} sentence", field=path)
            if key in seen:
                raise InputError(f"the key {excerpt(key)} occurs twice", field=path)
            seen.add(key)
            (response if number is None else by_document[number]).append((key, text))
    documents: list[Sentence] = []
    for document, keyed in zip(call.documents, by_document, strict=True):
        documents += locate(keyed, document.text)
    return Sentences(documents=tuple(documents), response=locate(response, call.response or ""))


def _pairs(value: object, path: str) -> list[tuple[str, str, str]]:
    """Flatten `[[key, text], …]`, which may be nested by document, to (path, key, text)."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError("should be a list of [key, text] pairs", field=path)
    pairs: list[tuple[str, str, str]] = []
    for index, item in enumerate(value):
        place = f"{path}[{index}]"
        if isinstance(item, list) and len(item) == 2 and all(isinstance(x, str) for x in item):
            pairs.append((place, item[0], whole_text(item[1])))  # as the call's own texts are
        elif isinstance(item, list) and all(isinstance(inner, list) for inner in item):
            if place.count("[") > 1:
                raise InputError("is nested too deeply", field=place)
            pairs += _pairs(item, place)
        else:
            raise InputError("should be a [key, text] pair", field=place)
    return pairs


# --- Scoring recorded labels without a judge: LABELLED rows, RAGBench rows, and EVALS rows


@dataclass(frozen=True)
class Labelled:
    """One labelled row: a call and its labelling, ready to be scored."""

    call: SentencizedCall
    labelling: Labelling
    """Labels as they were written, not reconciled."""
    evaluation: Evaluation | None = None
    """The row itself, if it is an EVALS row."""
    published: Mapping[str, float | None] = field(default_factory=dict)
    """RAGBench's score and predictor columns, by name."""
    row_key: str | None = None
    """The call's in EVALS, of which people's labels repeat the sentences; None for its own."""


@as_input_error()
def labelled_from(content: dict[str, Any], splitter: Splitter) -> Labelled:
    """Read a parsed LABELLED, RAGBench or EVALS row.

    Args:
        content: the parsed line.
        splitter: splits a call that has no recorded sentences.

    Raises:
        InputError: a field is missing or wrong, or the row holds no labels; names the field.
        SchemaError: an evaluation in another version's format.
    """
    if "scores" in content and "judge" in content:
        return labelled_from_evaluation(from_object(Evaluation, content))
    row = row_from(content)
    if row.labels is None or row.labeller is None:
        why = "is missing: the row has no recorded labels; `rag-eval run` has a judge label calls"
        raise InputError(why, field="labels")
    labelling = Labelling(labels=row.labels, judge=row.labeller)
    recorded_key = content.get("row_key") if row.labels.unasked_keys else None
    row_key = recorded_key if isinstance(recorded_key, str) else None
    call = sentencize(row.call, splitter)
    return Labelled(call, labelling, published=row.published, row_key=row_key)


def labelled_from_evaluation(evaluation: Evaluation) -> Labelled:
    """Take the call and its labels out of an evaluation.

    Documents are joined from their sentences; the call keeps its identity.

    Raises:
        InputError: a key names more documents than any row has.
    """
    numbers = [document_number(s.key) or 0 for s in evaluation.sentences.documents]
    most = max(len(evaluation.document_ids), _MOST_DOCUMENTS)
    for index, number in enumerate(numbers):
        if number >= most:
            place = f"sentences.documents[{index}]"
            raise InputError(f"names document {number}, and the row has fewer", field=place)
    # An EVALS row holds sentences instead of documents. Joining them is close enough, because only
    # the number of documents and their ids matter from here on. The row keeps its identity.
    same = RagCall.model_fields.keys() & Evaluation.model_fields.keys() - {"sentences"}
    fields = {name: getattr(evaluation, name) for name in same}
    call = RagCall(documents=evaluation.documents, **fields)
    scores = evaluation.scores
    of_labels = (scores[name] for name in TRACE_SCORES if name in scores)
    first = next(of_labels, next(iter(scores.values()), None))
    by = first.by if first else None
    warnings = dict.fromkeys(w for s in evaluation.scores.values() for w in s.warnings)
    labelling = Labelling(
        labels=evaluation.labels,
        judge=evaluation.judge,
        usage=evaluation.usage,
        windows=(by.windows if by and by.windows else 1),
        warnings=tuple(warnings),
        flags=tuple(flag for flag in evaluation.flags if flag == "lexical_estimate"),
        prompt_version=by.prompt_version if by else None,
        unscored=first.unscored if first and evaluation.labels is None else None,
        reason=first.reason if first and evaluation.labels is None else None,
    )
    splitter = (by.splitter if by else None) or RECORDED
    sentencized = SentencizedCall(call=call, sentences=evaluation.sentences, splitter=splitter)
    return Labelled(sentencized, labelling, evaluation)


def score_labelled(
    labelled: Labelled,
    metrics: Sequence[LabelMetric | CallMetric],
    *,
    raw_keys: bool = False,
    flags: bool = True,
) -> Evaluation:
    """Score one labelled row without a judge; one without labels is unscored.

    Args:
        labelled: the row.
        metrics: the metrics to score.
        raw_keys: count the key lists as recorded, with repeats and keys of sentences that do not
            exist. This reproduces RAGBench's published columns (100 % of rows to 1e-9); cleaned
            keys differ on .5 % of the rows, by at most .17.
        flags: whether to look for `suspected_injection`, as in `RagEvaluator`.
    """
    speaks = Suspicion() if flags else None
    raw_labels = labelled.labelling.labels
    if raw_labels is None:
        # An evaluation without labels stays unscored, and a failed one keeps its error.
        return _unlabelled(labelled, metrics, speaks)
    labelling = _reconciled(labelled, raw_labels)
    if raw_keys and labelling.labels is not None:
        labels = _with_raw_keys(labelling.labels, raw_labels)
        labelling = labelling.model_copy(update={"labels": labels})
    scored = score_labelling(labelled.call, labelling, metrics, speaks=speaks)
    if labelled.row_key is not None:
        return scored.model_copy(update={"row_key": labelled.row_key})
    return _with_identity(scored, labelled.evaluation) if labelled.evaluation else scored


def trace_of(scores: Mapping[str, Any]) -> Trace | None:
    """Make the metric with the formulas that TRACe scores were made by; None without any."""
    by = next((scores[name].by for name in TRACE_SCORES if name in scores), None)
    if by is None or by.formulas is None:
        return None
    return Trace(cast(Formulas, by.formulas), by.relevance_baseline)


def score_gold(labelled: Labelled, trace: Trace) -> Evaluation:
    """Score a gold row by the formulas alone: its scores have no reasons, evidence and flags.

    Under the `ragbench` formulas the key lists count as recorded, as in the published columns;
    the labels are cleaned all the same.
    """
    raw_labels, recorded = labelled.labelling.labels, labelled.evaluation
    call = labelled.call.call
    if raw_labels is None:
        return _unlabelled(labelled, [trace], None)
    labelling = _reconciled(labelled, raw_labels)
    by = by_of(labelled.call, labelling)
    labels = labelling.labels
    if labels is None:
        scores = trace.score(labelled.call, labelling, by)
    else:
        raw = trace.formulas == "ragbench"
        counted = _with_raw_keys(labels, raw_labels) if raw else labels
        scores = trace.numbers(labelled.call, counted, by)
    return Evaluation.model_construct(
        id=call.id,
        row_key=labelled.row_key or (call.row_key if recorded is None else recorded.row_key),
        question=call.question,
        response=call.response,
        scores={score.name: score for score in scores},
        labels=labels,
        sentences=labelled.call.sentences,
        judge=labelling.judge,
        usage=labelling.usage,
    )


def _reconciled(labelled: Labelled, raw_labels: Labels) -> Labelling:
    """Return a labelling with cleaned labels; without labels where there is nothing to judge."""
    update: dict[str, Any] = {"labels": reconcile(raw_labels, labelled.call)}
    nothing = nothing_to_judge(labelled.call)
    if nothing is not None:
        update = {"labels": None, "unscored": nothing[0], "reason": nothing[1]}
    return labelled.labelling.model_copy(update=update)


def _with_raw_keys(labels: Labels, raw_labels: Labels) -> Labels:
    """Put the key lists back as they were recorded, with repeats and unknown keys."""
    names = (
        "all_relevant_sentence_keys",
        "all_utilized_sentence_keys",
        "unsupported_response_sentence_keys",
    )
    return labels.model_copy(update={name: getattr(raw_labels, name) for name in names})


def _unlabelled(
    labelled: Labelled, metrics: Sequence[LabelMetric | CallMetric], speaks: Suspicion | None
) -> Evaluation:
    """Score an evaluation without labels again, by the metrics that need none."""
    recorded = labelled.evaluation
    assert recorded is not None
    if recorded.error is not None:
        return recorded
    scored = score_labelling(labelled.call, labelled.labelling, metrics, speaks=speaks)
    return _with_identity(scored, recorded)


def _with_identity(scored: Evaluation, recorded: Evaluation) -> Evaluation:
    """Give a new evaluation the recorded one's row key and document ids."""
    same = {"row_key": recorded.row_key, "document_ids": recorded.document_ids}
    return scored.model_copy(update=same)


# --- Evaluations as rows of RAGBench, so that code of others can compare our labels with theirs


_SCORES = {
    "relevance_score": "context_relevance",
    "utilization_score": "context_utilization",
    "completeness_score": "completeness",
}
_NAMED = ("generation_model_name", "dataset_name")


def ragbench_row(evaluation: Evaluation) -> dict[str, Any] | None:
    """Make the row of an evaluation, with the columns that RAGBench publishes.

    The scores are by RAGBench's formulas, whatever the evaluation's own are: they are functions of
    the labels. Document texts are their sentences, joined by a space. A row reads back with the
    same labels (`rag-eval score`, `agreement`).

    Returns:
        The row; None for an evaluation without labels.
    """
    labels = evaluation.labels
    if labels is None:
        return None
    labelled = labelled_from_evaluation(evaluation)
    call = labelled.call.call
    scores = score_labelled(labelled, [Trace("ragbench")], flags=False).scores
    by_document: list[list[list[str]]] = [[] for _ in call.documents]
    for sentence in evaluation.sentences.documents:
        by_document[document_number(sentence.key) or 0].append(_pair(sentence))
    adherence = scores["adherence"].value
    row: dict[str, Any] = {
        "id": evaluation.id,
        "question": evaluation.question,
        "documents": [document.text for document in call.documents],
        "response": evaluation.response,
        **{name: _text_or_none(evaluation.metadata.get(name)) for name in _NAMED},
        "annotating_model_name": evaluation.judge.model or evaluation.judge.name,
        "documents_sentences": by_document,
        "response_sentences": [_pair(sentence) for sentence in evaluation.sentences.claims],
        "sentence_support_information": [
            support.model_dump(mode="json") for support in labels.sentence_support_information
        ],
        "unsupported_response_sentence_keys": _unsupported(evaluation, labels),
        "adherence_score": None if adherence is None else adherence == 1,
        "overall_supported": labels.overall_supported,
        "overall_supported_explanation": labels.overall_supported_explanation,
        "relevance_explanation": labels.relevance_explanation,
        "all_relevant_sentence_keys": list(labels.all_relevant_sentence_keys),
        "all_utilized_sentence_keys": (
            None if UTILIZED in labels.unasked_keys else list(labels.all_utilized_sentence_keys)
        ),
        **({"unasked_keys": list(labels.unasked_keys)} if labels.unasked_keys else {}),
        **{column: scores[name].value for column, name in _SCORES.items()},
    }
    if evaluation.reference is not None:
        others = evaluation.alternatives
        row["reference"] = [evaluation.reference, *others] if others else evaluation.reference
    return row


def ragbench_line(evaluation: Evaluation) -> str | None:
    """Write the row of an evaluation as a line of JSON, ASCII only; None without labels."""
    row = ragbench_row(evaluation)
    return None if row is None else json.dumps(row) + "\n"


def _unsupported(evaluation: Evaluation, labels: Labels) -> list[str]:
    """Return the keys of the response sentences that are not fully supported."""
    recorded = labels.unsupported_response_sentence_keys
    if recorded is not None:
        return list(recorded)
    keys = (sentence.key for sentence in evaluation.sentences.claims)
    return [key for key in keys if labels.support(key) in ("none", "partial")]


def _pair(sentence: Sentence) -> list[str]:
    """Return a sentence as RAGBench writes it: a pair of key and text."""
    return [sentence.key, sentence.text]


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None
