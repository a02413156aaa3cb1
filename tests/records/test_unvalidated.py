"""The records of an evaluation, some of them made without validation, are as validated ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_eval_integrations import Document, RagCall, RagEvaluator, Trace
from rag_eval_integrations.judges import reconcile
from rag_eval_integrations.judges.embedded import label_call
from rag_eval_integrations.records import SCHEMA, Record, Turn, Usage, from_object, to_line
from rag_eval_integrations.sentences import Punkt, sentencize

TEXTS = st.text(max_size=40) | st.lists(
    st.sampled_from(["The tower", "is", "not", "in", "Paris", "1889", "two", ". It", "!", "– no"]),
    max_size=30,
).map(" ".join)
DOCUMENTS = st.lists(st.builds(Document, text=TEXTS), max_size=3)
META = st.just({"a": [1, {"b": None}]})
CALLS = st.builds(RagCall, question=TEXTS, documents=DOCUMENTS, response=TEXTS, metadata=META)
METRICS = (
    Trace(),
    Trace(formulas="ragbench", thresholds={"adherence": 1, "completeness": 0.5}),
    Trace(hard=True),
)


def as_validated(record: Record) -> Record:
    """The same again, made from its JSON."""
    return from_object(type(record), json.loads(to_line(record), object_hook=_without_schema))


def _without_schema(content: dict[str, Any]) -> dict[str, Any]:
    content.pop("schema", None)
    return content


@settings(max_examples=25)
@given(CALLS)
def test_sentences_and_labels_are_as_validated(call: RagCall) -> None:
    """Types, values and line are those of a validated record; to reconcile changes no label."""
    split = sentencize(call, Punkt())
    labelling = label_call(split)

    for record in (split, split.sentences, labelling):
        validated = as_validated(record)
        assert record == validated
        assert repr(record) == repr(validated)
        assert to_line(record) == to_line(validated)
    labels = labelling.labels
    assert labels is None or repr(reconcile(labels, split)) == repr(labels)


@pytest.mark.parametrize("metric", METRICS, ids=["gpt-labeling", "ragbench", "hard"])
@settings(max_examples=25)
@given(call=CALLS)
def test_evaluations_are_as_validated(metric: Trace, call: RagCall) -> None:
    """Scores, labels and all: thresholds given as integers included; metadata is a copy."""
    evaluation = RagEvaluator(metrics=[metric]).evaluate_sync(call)

    validated = as_validated(evaluation)
    assert evaluation == validated
    assert repr(evaluation) == repr(validated)
    evaluation.metadata["a"].append(2)  # type: ignore[union-attr]
    assert call.metadata == {"a": [1, {"b": None}]}


@settings(max_examples=25)
@given(call=CALLS)
def test_a_line_is_what_a_dump_gives(call: RagCall) -> None:
    """Every field of a record is in its line, behind the schema; an evaluation's says it itself."""
    call = call.model_copy(update={"history": (Turn(role="user", content="hi"),)})
    evaluation = RagEvaluator().evaluate_sync(call)

    for record in (call, Usage(requests=1)):
        content = {"schema": SCHEMA, **record.model_dump(mode="json")}
        assert list(json.loads(to_line(record)).items()) == list(content.items())
    assert to_line(evaluation) == to_line(as_validated(evaluation))
