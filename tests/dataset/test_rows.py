"""Lines become rows: CALLS, LABELLED and RAGBench rows, and what is wrong with the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_eval_integrations import Capture, Document, RagCall, RagEvaluator, Trace
from rag_eval_integrations.dataset import labelled_from, score_labelled
from rag_eval_integrations.dataset._input import read_lines
from rag_eval_integrations.dataset.rows import call_from, row_from
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.records import Sentence, Sentences, Turn, to_line
from rag_eval_integrations.sentences import Punkt

PLAIN: dict[str, Any] = {"question": "q", "documents": ["A b. C d."], "response": "A b."}
LABELS: dict[str, Any] = {
    "all_relevant_sentence_keys": ["0a"],
    "all_utilized_sentence_keys": ["0a"],
    "sentence_support_information": [
        {"response_sentence_key": "a", "supporting_sentence_keys": ["0a"], "fully_supported": None}
    ],
}
RAGBENCH: dict[str, Any] = {
    **PLAIN, **LABELS, "id": "x1", "dataset_name": "madeup_test",
    "annotating_model_name": "annotator", "response_sentences": [["a", "A b."]],
    "documents_sentences": [[["0a", "A b."], ["0b", "C d."]]],
    "unsupported_response_sentence_keys": [], "adherence_score": True, "relevance_score": 0.5,
    "utilization_score": 0.5, "completeness_score": 1.0, "gpt3_adherence": None,
    "overall_supported_explanation": "…", "relevance_explanation": "…",
}  # fmt: skip


def test_a_calls_row() -> None:
    """Strings and objects as documents, all optional fields."""
    row = {
        **PLAIN,
        "documents": ["a", {"id": "7", "text": "b", "metadata": {"p": 1}, "score": 0.5}],
        "id": 12, "reference": "r", "metadata": {"m": None},
        "capture": {"framework": "plain", "status": "aborted"},
    }  # fmt: skip

    assert call_from(row) == RagCall(
        "q", ["a", Document("b", "7", {"p": 1}, 0.5)], "A b.", id="12", reference="r",
        metadata={"m": None}, capture=Capture(framework="plain", status="aborted"),
    )  # fmt: skip


def test_a_ragbench_row_as_published() -> None:
    """Its sentences and keys are used, its labels are labels, its scores stay out of the call."""
    row = row_from(RAGBENCH)

    assert row.call.sentences == Sentences(
        documents=(Sentence("0a", "A b.", 0, 4), Sentence("0b", "C d.", 5, 9)),
        response=(Sentence("a", "A b.", 0, 4),),
    )
    assert (row.labels and row.labels.unsupported_response_sentence_keys) == ()
    assert (row.labeller and row.labeller.model) == "annotator"
    columns = ("relevance_score", "adherence_score", "gpt3_adherence")
    assert [row.published[name] for name in columns] == [0.5, 1.0, None]
    names = ("dataset_name", "annotating_model_name")
    assert row.call.metadata == {name: RAGBENCH[name] for name in names}


def test_recorded_sentences_need_neither_nesting_nor_offsets() -> None:
    """`[[key, text], …]` is read, too; a sentence that is not in the text keeps its key."""
    flat = {**PLAIN, "documents": ["A.", "B."], "documents_sentences": [["0a", "A."], ["1a", "B."]]}
    other = {**PLAIN, "documents_sentences": [[["0a", "A  b."], ["0b", "C d."]]]}

    for row, sentences in (
        (flat, (Sentence("0a", "A.", 0, 2), Sentence("1a", "B.", 0, 2))),
        (other, (Sentence("0a", "A  b."), Sentence("0b", "C d.", 5, 9))),
    ):
        assert call_from(row).sentences == Sentences(documents=sentences)


def test_a_labelled_row() -> None:
    """A CALLS row with `labels`, which do not matter to its call."""
    row = row_from({**PLAIN, "labels": LABELS})

    assert (row.labels and row.labels.all_relevant_sentence_keys) == ("0a",)
    assert (row.labeller and row.labeller.name) == "recorded"
    broken = {**PLAIN, "labels": 5, "all_relevant_sentence_keys": 7}
    assert call_from(broken) == row.call


@pytest.mark.parametrize(
    ("change", "field", "why"),
    [
        ({"question": None}, "question", "valid string, not None"),
        ({"documents": ["a", 5]}, "documents[1]", "not 5"),
        ({"metadata": "x"}, "metadata", "not 'x'"),
        ({"metadata": {"model": 1}, "model": 2}, "model", "is given both at top level and in `metadata`"),
        ({"relevance_score": "high"}, "relevance_score", "not 'high'"),
        ({"documents_sentences": "x"}, "documents_sentences", "list of [key, text]"),
        ({"documents_sentences": [["0a", 5]]}, "documents_sentences[0]", "should be a [key, text] pair"),
        ({"documents_sentences": [[["0a", "x"], ["0a", "y"]]]}, "documents_sentences[0][1]", "twice"),
        ({"documents_sentences": [[["9a", "x"]]]}, "documents_sentences[0][0]", "'9a' is not a key"),
        ({"documents_sentences": [[[["0a", "x"]]]]}, "documents_sentences[0][0]", "nested too deeply"),
        ({"response_sentences": [["0a", "x"]]}, "response_sentences[0]", "not a key of a response"),
        ({"labels": 5}, "labels", "not 5"),
        ({"labels": {**LABELS, "all_relevant_sentence_keys": [5]}}, "labels.all_relevant_sentence_keys[0]", "not 5"),
        ({"labels": {"all_relevant_sentence_keys": []}}, "labels.sentence_support_information", "missing"),
        ({"all_relevant_sentence_keys": []}, "all_utilized_sentence_keys", "should have all label columns"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named(change: dict[str, Any], field: str, why: str) -> None:
    """Path of the field, and what is wrong with its value."""
    with pytest.raises(InputError) as caught:
        row_from({**PLAIN, **change})

    assert caught.value.field == field
    assert why in caught.value.why


@pytest.mark.parametrize(
    ("names", "advice"),
    [
        (("user_input", "retrieved_contexts", "response"),
         "write `user_input` as `question`, `retrieved_contexts` as `documents`"),
        (("input", "retrieval_context", "actual_output"),
         "write `input` as `question`, `retrieval_context` as `documents`, `actual_output` as "
         "`response`"),
        (("qestion", "documents", "response"), "write `qestion` as `question`"),
        (("zzz", "documents", "response"), "is missing"),
    ],
)  # fmt: skip
def test_other_tools_names_are_answered_with_ours(names: tuple[str, ...], advice: str) -> None:
    """A line and a call in code say what to write, for other tools' names and for slips."""
    given: dict[str, Any] = dict(zip(names, ("q", ["d"], "r"), strict=True))

    with pytest.raises(InputError) as of_a_line:
        row_from(dict(given))
    with pytest.raises(InputError) as of_a_call:
        RagCall(**given)

    missing = [name for name in PLAIN if name not in given]
    listed = ", ".join(sorted(given.keys() - PLAIN.keys()))
    assert f"field `{missing[0]}`: is missing; the line has {listed}" in str(of_a_line.value)
    assert advice in str(of_a_line.value)
    assert advice in str(of_a_call.value)


def test_unknown_fields_keep_the_order_of_the_line() -> None:
    """Metadata is written as it was read, in every process: no set decides its order."""
    names = [f"field_{number}" for number in range(20)]

    call = call_from({**PLAIN, **dict.fromkeys(names, 1)})

    assert list(call.metadata) == names


# --- What no row may do: end the run

BIG, ZEROS = "9" * 5_000, "0" * 400
DEEP = "[" * 10_000 + "]" * 10_000


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("adherence_score", f"1{ZEROS}"), ("gpt3_adherence", "-1e999"),
        ("documents_sentences", f'[["{BIG}a", "x"]]'),
        ("documents_sentences", '[["999999999999a", "x"]]'),
        ("metadata", DEEP), ("metadata", "[" * 900 + "]" * 900), ("response", "4"),
        ("metadata", '{"a": ' + "[" * 70 + "]" * 70 + "}"), ("anything", "[" * 900 + "]" * 900),
        ("question", '{"text": "q"}'), ("documents", '{"text": "d"}'), ("id", "[1]"),
        ("documents", "[" + '{"text": 1},' * 2_000 + "1]"), ("history", "[[]]"),
        ("documents", f'[{{"text": "d", "score": 1{ZEROS}}}]'), ("started_at", f"1{ZEROS}"),
        ("sentences", '{"documents": [["0a", "x", 1e999, 2]]}'), ("schema", f"1{ZEROS * 10}"),
        ("labels", f'{{"overall_supported": 1{ZEROS}}}'),
    ],
    ids=lambda value: f"{value:.20}",
)  # fmt: skip
def test_a_row_beyond_every_limit_is_one_bad_row(field: str, text: str, tmp_path: Path) -> None:
    """The line says what is wrong, in few words, and the good one after it is read."""
    good = json.dumps(PLAIN)
    bad = f'{good[:-1]}, "{field}": {text}}}'
    path = tmp_path / "calls.jsonl"
    path.write_text(f"{bad}\n{good}\n", encoding="ascii")

    first, second = read_lines(path, row_from)

    assert (first.value, second.error) == (None, None)
    assert 0 < len(str(first.error or "")) < 1_000


HUGE = 10**5_000


@pytest.mark.parametrize(
    "more",
    [
        {"metadata": {"n": HUGE}}, {"id": HUGE}, {"adherence_score": HUGE}, {1: "a"},
        {"documents": b"bytes"},
    ],
    ids=lambda more: next(iter(map(str, more))),
)  # fmt: skip
def test_objects_that_json_cannot_hold_are_one_bad_row(more: dict[Any, Any]) -> None:
    """Rows may come from Python as well."""
    with pytest.raises(InputError) as caught:
        row_from({**PLAIN, **more})
    assert len(str(caught.value)) < 1_000


def test_a_key_of_an_evaluation_takes_no_memory() -> None:
    """One sentence of document 999,999,999 does not make a billion documents."""
    line = json.loads(to_line(RagEvaluator().evaluate_sync(call_from(PLAIN))))
    line["sentences"]["documents"][0][0] = "999999999a"

    with pytest.raises(InputError, match="names document 999999999"):
        labelled_from(line, Punkt())


def test_the_conversation_stays_with_the_call() -> None:
    """Of a labelled row and, when its evaluation is scored again, of that."""
    row = {**RAGBENCH, "history": [{"role": "user", "content": "hi"}]}
    scored = score_labelled(labelled_from(row, Punkt()), [Trace()])
    again = score_labelled(labelled_from(json.loads(to_line(scored)), Punkt()), [Trace()])

    assert scored.history == again.history == (Turn(role="user", content="hi"),)
    assert again.row_key == scored.row_key


def test_what_pandas_writes_into_labelled_rows_is_read() -> None:
    """A null for each optional field that only other rows have, and a whole number as a float."""
    absent = dict.fromkeys(("reference", "history", "relevant_ids", "metadata", "labels"))
    row = row_from({**RAGBENCH, **absent, "id": 7.0})

    assert row.call == row_from({**RAGBENCH, "id": "7"}).call
    assert row.labels is not None
