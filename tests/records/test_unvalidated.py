"""The records of an evaluation, some of them made without validation, are as validated ones."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from rag_eval_integrations import Document, RagCall, RagEvaluator, Trace
from rag_eval_integrations.judges._reconcile import reconcile
from rag_eval_integrations.judges.embedded.judge import label_call
from rag_eval_integrations.records import to_line
from rag_eval_integrations.records._json import Record, from_object
from rag_eval_integrations.sentences import Punkt, sentencize

SENTENCES = st.sampled_from(["It has two floors.", "It has three floors.", "It is not, 1889 – no!"])
TEXTS = st.lists(SENTENCES | st.text(max_size=8), max_size=3).map(" ".join)
DOCUMENTS = st.lists(st.builds(Document, text=TEXTS), max_size=2)
META: dict[str, Any] = {"a": [1, {"b": None}]}
CALLS = st.builds(
    RagCall, question=TEXTS, documents=DOCUMENTS, response=TEXTS, metadata=st.just(META)
)
CONTRADICTED = RagCall("How many?", ["It has two floors."], "It has three floors.", metadata=META)
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


@example(CONTRADICTED)
@given(CALLS)
def test_records_are_as_validated(call: RagCall) -> None:
    """Types, values and lines: of sentences, of labels, and of evaluations by any formulas.

    Thresholds given as integers are floats; to reconcile changes no label; metadata is a copy.
    """
    split = sentencize(call, Punkt())
    labelling = label_call(split)
    evaluations = [RagEvaluator(metrics=[metric]).evaluate_sync(call) for metric in METRICS]

    for record in (split, split.sentences, labelling, *evaluations):
        validated = as_validated(record)
        assert record == validated
        assert repr(record) == repr(validated)
        assert repr(record.model_dump()) == repr(validated.model_dump())
        assert to_line(record) == to_line(validated)
    labels = labelling.labels
    assert labels is None or repr(reconcile(labels, split)) == repr(labels)
    for evaluation in evaluations:
        evaluation.metadata["a"].append(2)  # type: ignore[union-attr]
    assert call.metadata == META == {"a": [1, {"b": None}]}
