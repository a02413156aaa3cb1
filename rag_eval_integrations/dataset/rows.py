"""One line of a file becomes a row: a call, and its recorded labels where it has some.

Read are CALLS rows, LABELLED rows (a CALLS row with `labels`) and RAGBench rows as published.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from rag_eval_integrations.errors import InputError
from rag_eval_integrations.evaluator import nothing_to_judge, score_labelling
from rag_eval_integrations.judges import reconcile
from rag_eval_integrations.metrics import LabelMetric
from rag_eval_integrations.records import (
    Document,
    Evaluation,
    JudgeInfo,
    Labelling,
    Labels,
    RagCall,
    Sentence,
    Sentences,
    SentencizedCall,
    check_schema,
    from_object,
    whole_text,
)
from rag_eval_integrations.sentences import RECORDED, Splitter, document_number, locate, sentencize

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
)
"""The labelling JSON, which RAGBench publishes as columns."""

_REQUIRED_LABELS = frozenset(
    {
        "all_relevant_sentence_keys",
        "all_utilized_sentence_keys",
        "sentence_support_information",
    }
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
"""RAGBench's score and predictor columns: gold and rivals, so they stay out of a call."""

_ALL_LABEL_FIELDS = frozenset({"labels", *_LABEL_FIELDS})

_KEY = re.compile(r"(\d*)([a-z]+)")


@dataclass(frozen=True)
class Row:
    """What one line holds."""

    call: RagCall
    labels: Labels | None = None
    """Recorded labels as they were written; None where there are none."""
    labeller: JudgeInfo | None = None
    """Who made the recorded labels; None where there are none."""
    published: Mapping[str, float | None] = field(default_factory=dict)
    """RAGBench's score and predictor columns."""


def call_from(content: dict[str, Any]) -> RagCall:
    """Read the call of a parsed line, whatever labels it may bring.

    Raises:
        InputError: names the field and what is wrong with it.
    """
    # In the order of the line: that of a set would change with the process's hash seed.
    unlabelled = {name: held for name, held in content.items() if name not in _ALL_LABEL_FIELDS}
    return row_from(unlabelled).call


def row_from(content: dict[str, Any]) -> Row:
    """Read a parsed line with its recorded labels.

    Fields that no record knows are kept in the call's `metadata`; label and score columns are
    not, because a call must not bring its own verdict.

    Raises:
        InputError: names the field and what is wrong with it.
    """
    rest = dict(content)
    check_schema(rest)
    recorded = {name: rest.pop(name, None) for name in _SENTENCE_FIELDS}
    published = {name: _number(name, rest.pop(name)) for name in _PUBLISHED if name in rest}
    labels, labeller = _labels(rest)
    call = {name: rest.pop(name) for name in list(rest) if name in _CALL_FIELDS}
    call["metadata"] = _with_unknown(call.get("metadata", {}), rest)
    for name in ("question", "documents", "response"):
        if name not in call:
            hint = f"; the line has {', '.join(sorted(rest))}" if rest else ""
            raise InputError(f"is missing{hint}", field=name)
    if any(value is not None for value in recorded.values()):
        call.pop("sentences", None)
        made = from_object(RagCall, call)
        call["sentences"] = _recorded_sentences(made, **recorded)
    return Row(from_object(RagCall, call), labels, labeller, published)


def _with_unknown(metadata: Any, unknown: dict[str, JsonValue]) -> Any:
    if not isinstance(metadata, dict) or not unknown:
        return metadata  # what is no object is refused by the record, with its name
    for name in unknown:
        if name in metadata and metadata[name] != unknown[name]:
            raise InputError("stands beside `metadata` and, different, in it", field=name)
    return {**metadata, **unknown}


def _number(name: str, value: object) -> float | None:
    if value is None:
        return None
    if not isinstance(value, int | float):
        raise InputError(f"should be a number or null, not {value!r}", field=name)
    return float(value)


def _labels(rest: dict[str, Any]) -> tuple[Labels | None, JudgeInfo | None]:
    """Take the labels out of a line: the field `labels`, or RAGBench's columns."""
    columns = {name: rest.pop(name) for name in _LABEL_FIELDS if name in rest}
    model = rest.get("annotating_model_name")
    labeller = JudgeInfo(name="recorded", model=model if isinstance(model, str) else None)
    written = rest.pop("labels", None)
    if written is not None:
        return labels_from(written, "labels"), labeller
    if columns.keys() >= _REQUIRED_LABELS:
        return labels_from(columns, None), labeller
    if columns and not _REQUIRED_LABELS.isdisjoint(columns):
        missing = sorted(_REQUIRED_LABELS - columns.keys())
        raise InputError(f"is missing beside {', '.join(sorted(columns))}", field=missing[0])
    return None, None


def labels_from(written: object, name: str | None) -> Labels:
    """Read labels, naming fields below `name`.

    Raises:
        InputError: names the field.
    """
    try:
        return from_object(Labels, written)
    except InputError as error:
        path = ".".join(part for part in (name, error.field) if part)
        raise InputError(error.why, field=path or None) from error


def _recorded_sentences(
    call: RagCall, documents_sentences: object, response_sentences: object
) -> Sentences:
    by_document: list[list[tuple[str, str]]] = [[] for _ in call.documents]
    seen: set[str] = set()
    for path, key, text in _pairs(documents_sentences, "documents_sentences"):
        match = _KEY.fullmatch(key)
        if match is None or not match[1] or int(match[1]) >= len(by_document):
            raise InputError(f"{key!r} is no key of a document sentence", field=path)
        _once(key, seen, path)
        by_document[int(match[1])].append((key, text))
    answers: list[tuple[str, str]] = []
    for path, key, text in _pairs(response_sentences, "response_sentences"):
        match = _KEY.fullmatch(key)
        if match is None or match[1]:
            raise InputError(f"{key!r} is no key of a response sentence", field=path)
        _once(key, seen, path)
        answers.append((key, text))
    documents: list[Sentence] = []
    for document, keyed in zip(call.documents, by_document, strict=True):
        documents += locate(keyed, document.text)
    return Sentences(documents=tuple(documents), response=locate(answers, call.response or ""))


def _once(key: str, seen: set[str], path: str) -> None:
    if key in seen:
        raise InputError(f"the key {key!r} stands twice", field=path)
    seen.add(key)


def _pairs(value: object, path: str) -> list[tuple[str, str, str]]:
    """Flatten `[[key, text], …]`, also nested by document, to (path, key, text)."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError("should be a list of [key, text]", field=path)
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
            raise InputError("should be [key, text]", field=place)
    return pairs


# --- Scores recorded labels without a judge: LABELLED rows, RAGBench rows, and EVALS files


@dataclass(frozen=True)
class Labelled:
    """One labelled row: what it takes to score it, and what is published beside it."""

    call: SentencizedCall
    labelling: Labelling
    """Labels as they were written, not reconciled."""
    evaluation: Evaluation | None = None
    """The row itself, when it comes from an EVALS file."""
    published: Mapping[str, float | None] = field(default_factory=dict)
    """RAGBench's score and predictor columns."""


def labelled_from(content: dict[str, Any], splitter: Splitter) -> Labelled:
    """Read a parsed line of LABELLED.jsonl, of RAGBench, or of EVALS.jsonl.

    Raises:
        InputError: names the field; also when the row holds no labels.
        SchemaError: an evaluation in another version's format.
    """
    if "scores" in content and "judge" in content:
        return _from_evaluation(from_object(Evaluation, content))
    row = row_from(content)
    if row.labels is None or row.labeller is None:
        raise InputError("is missing: the row has no recorded labels", field="labels")
    labelling = Labelling(labels=row.labels, judge=row.labeller)
    return Labelled(sentencize(row.call, splitter), labelling, published=row.published)


def _from_evaluation(evaluation: Evaluation) -> Labelled:
    numbers = [document_number(s.key) or 0 for s in evaluation.sentences.documents]
    count = max([len(evaluation.document_ids), *(number + 1 for number in numbers)], default=0)
    texts: list[list[str]] = [[] for _ in range(count)]
    for number, sentence in zip(numbers, evaluation.sentences.documents, strict=True):
        texts[number].append(sentence.text)
    # An EVALS row holds the sentences, not the documents: their texts are near enough, since only
    # their number matters from here on. The row's own identity is kept.
    call = RagCall(
        question=evaluation.question,
        documents=tuple(Document(text=" ".join(sentences)) for sentences in texts),
        response=evaluation.response,
        id=evaluation.id,
        reference=evaluation.reference,
        metadata=evaluation.metadata,
        capture=evaluation.capture,
    )
    first = next(iter(evaluation.scores.values()), None)
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
    labelled: Labelled, metrics: Sequence[LabelMetric], *, raw_keys: bool = False
) -> Evaluation:
    """Score one labelled row.

    Args:
        labelled: the row.
        metrics: what to score.
        raw_keys: count the key lists as they were recorded, with repeats and keys of sentences
            that do not exist, as RAGBench's published columns do (100 % of rows to 1e-9; cleaned
            keys differ on .5 % of them, by at most .17).
    """
    written = labelled.labelling.labels
    if written is None:
        # An evaluation that had no labels has none now; an error stays the error it was.
        return _unlabelled(labelled, metrics)
    labels: Labels = reconcile(written, labelled.call)
    if raw_keys:
        labels = labels.model_copy(
            update={
                "all_relevant_sentence_keys": written.all_relevant_sentence_keys,
                "all_utilized_sentence_keys": written.all_utilized_sentence_keys,
                "unsupported_response_sentence_keys": written.unsupported_response_sentence_keys,
            }
        )
    labelling = labelled.labelling.model_copy(update={"labels": labels})
    nothing = nothing_to_judge(labelled.call)
    if nothing is not None:
        code, reason = nothing
        labelling = labelling.model_copy(
            update={"labels": None, "unscored": code, "reason": reason}
        )
    scored = score_labelling(labelled.call, labelling, metrics)
    return _with_identity(scored, labelled.evaluation) if labelled.evaluation else scored


def _unlabelled(labelled: Labelled, metrics: Sequence[LabelMetric]) -> Evaluation:
    recorded = labelled.evaluation
    assert recorded is not None
    if recorded.error is not None:
        return recorded
    scored = score_labelling(labelled.call, labelled.labelling, metrics)
    return _with_identity(scored, recorded)


def _with_identity(scored: Evaluation, recorded: Evaluation) -> Evaluation:
    same = {"row_key": recorded.row_key, "document_ids": recorded.document_ids}
    return scored.model_copy(update=same)
