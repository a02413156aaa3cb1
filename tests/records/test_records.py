"""Records: frozen, closed, JSON round trip without loss, errors that name the field."""

from __future__ import annotations

import datetime
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rag_eval_integrations.errors import InputError
from rag_eval_integrations.records import (
    Capture,
    Document,
    Labels,
    RagCall,
    Score,
    SentenceSupport,
    Turn,
    Usage,
    from_line,
    to_line,
)

# Every character that a string can hold, lone surrogates and NUL included.
texts = st.text(st.characters(exclude_categories=()), max_size=40)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(texts, children, max_size=3),
    max_leaves=8,
)
metadata = st.dictionaries(texts, json_values, max_size=3)
documents = st.builds(
    Document,
    text=texts,
    id=st.none() | texts,
    metadata=metadata,
    score=st.none() | st.floats(-5, 5),
)
calls = st.builds(
    RagCall,
    question=texts,
    documents=st.lists(documents, max_size=3).map(tuple),
    response=st.none() | texts,
    id=texts,
    reference=st.none() | texts,
    metadata=metadata,
    history=st.lists(
        st.builds(Turn, role=st.sampled_from(["user", "assistant"]), content=texts), max_size=2
    ).map(tuple),
    started_at=st.none() | st.datetimes(timezones=st.just(datetime.UTC)),
    capture=st.none()
    | st.builds(
        Capture,
        framework=st.just("plain"),
        status=st.sampled_from(["ok", "aborted"]),
        metadata=metadata,
    ),
)


@given(call=calls)
def test_a_call_survives_json_unchanged(call: RagCall) -> None:
    """Any call, made of lone surrogates and NUL too, is the same after a line of JSON."""
    line = to_line(call)

    assert from_line(RagCall, line) == call
    assert "\n" not in line
    assert line.isascii()
    assert json.loads(line)["schema"] == 1


def test_a_score_has_every_field_of_the_file_format() -> None:
    """A score alone has exactly the fields that the format names, null where they do not apply."""
    row = json.loads(Score(name="x", status="scored", value=1).model_dump_json())

    assert set(row) == {
        "status", "value", "raw", "scale", "threshold", "passed", "reason", "evidence", "method",
        "estimate", "unscored", "n", "mass", "std_error", "distribution", "probability", "warnings", "by",
    }  # fmt: skip
    assert set(row["by"]) == {
        "judge", "model", "judge_version", "prompt_version", "formulas", "relevance_baseline",
        "splitter", "windows", "calibration",
    }  # fmt: skip


def test_records_are_frozen() -> None:
    """Assignment raises."""
    with pytest.raises(ValidationError, match="frozen"):
        Document(text="x").text = "y"


def test_a_document_may_be_a_plain_string() -> None:
    """Strings and objects are taken for documents; order is kept."""
    call = RagCall(question="q", documents=["a", {"text": "b", "id": "7"}], response=None)

    assert call.documents == (Document(text="a"), Document(text="b", id="7"))


def test_records_can_be_made_by_position() -> None:
    """`Document("text", "7")`, `RagCall(question, documents, response)`; mistakes are TypeErrors."""
    call = RagCall("q", ["d", Document("e", "7")], None, id="x")

    assert call == RagCall(
        question="q",
        documents=(Document(text="d"), Document(text="e", id="7")),
        response=None,
        id="x",
    )
    with pytest.raises(TypeError, match="'text' by position and by name"):
        Document("a", text="b")  # type: ignore[misc]
    with pytest.raises(TypeError, match="at most 5 values"):
        Document("a", "b", {}, 1.0, "h", 2)  # type: ignore[call-arg]


def test_metadata_is_a_copy() -> None:
    """What the app does to its dict later does not change the record."""
    source: dict[str, list[int]] = {"a": [1]}
    document = Document(text="x", metadata=source)  # type: ignore[arg-type]

    source["a"].append(2)

    assert document.metadata == {"a": [1]}


def test_the_row_key_is_what_is_judged_and_nothing_else() -> None:
    """Labels and circumstances leave it alone, content changes it."""
    call = RagCall(question="q", documents=(Document(text="d"),), response="r")
    same = RagCall(
        question="q",
        documents=(Document(text="d", id="1", score=0.5, metadata={"a": 1}),),
        response="r",
        id="x",
        metadata={"b": 2},
        capture=Capture(framework="plain", latency_s=1.0),
    )

    assert same.row_key == call.row_key
    for change in ({"question": "p"}, {"response": None}, {"reference": "x"}, {"documents": ()}):
        assert call.model_copy(update=change).row_key != call.row_key


def test_a_copy_forgets_what_was_computed() -> None:
    """`model_copy(update=…)` does not keep the old record's cached answers."""
    labels = Labels(
        all_relevant_sentence_keys=(),
        all_utilized_sentence_keys=(),
        sentence_support_information=(
            SentenceSupport(response_sentence_key="a", fully_supported=True),
        ),
    )
    assert labels.support("a") == "full"

    changed = labels.model_copy(update={"sentence_support_information": ()})

    assert changed.support("a") == "unlabelled"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON: Expecting property name enclosed in double quotes at column 2"),
        ("[1]", "not a JSON object, but [1]"),
        (b"\xff{}", "not UTF-8 at byte 0"),
        ('{"a": NaN}', "not JSON: NaN is not a number"),
        ('{"a": 1' + "0" * 5000 + "}", "not usable: "),
        ("[" * 100_000, "not usable: the JSON is nested too deeply"),
        ('{"schema": 2}', "field `schema`: this version reads schema 1, not 2"),
        (
            '{"question": 5, "documents": [], "response": null}',
            "field `question`: Input should be a valid string, not 5",
        ),
        (
            '{"question": "q", "documents": "x", "response": null}',
            "field `documents`: should be a list of documents, not 'x'",
        ),
        (
            '{"question": "q", "documents": ["a", {"id": "1"}], "response": null}',
            "field `documents[1].text`: is missing",
        ),
        (
            '{"question": "q", "documents": [3], "response": null}',
            "field `documents[0]`: should be a string, a Document, a LangChain document or a LlamaIndex node, "
            "not 3",
        ),
        ('{"question": "q", "documents": []}', "field `response`: is missing"),
        (
            '{"question": "q", "documents": [], "response": null, "metadata": {"a": 1e999}}',
            "field `metadata`: metadata.a is inf, which JSON cannot hold",
        ),
        (
            '{"question": "q", "documents": [], "response": null, "answer": "x"}',
            "field `answer`: is not a field of this record",
        ),
        (
            '{"question": "q", "documents": [{"text": "t", "score": 1e999}], "response": null}',
            "field `documents[0].score`: Input should be a finite number, not inf",
        ),
    ],
)  # fmt: skip
def test_a_bad_line_says_which_field_and_why(line: str | bytes, message: str) -> None:
    """Every refusal is an `InputError` that names the field and shows the value."""
    with pytest.raises(InputError) as caught:
        from_line(RagCall, line)

    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1: 2}, {"a": {1, 2}}])
def test_metadata_that_json_cannot_hold_is_refused_by_name(value: object) -> None:
    """NaN, infinities, objects and keys that are no strings."""
    with pytest.raises(InputError, match=r"metadata\.x"):
        RagCall(question="q", documents=(), response=None, metadata={"x": value})  # type: ignore[dict-item]


def test_metadata_nested_without_end_is_refused() -> None:
    """Depth is bounded, so no metadata can exhaust the stack."""
    deep: dict[str, object] = {}
    for _ in range(100):
        deep = {"a": deep}

    with pytest.raises(InputError, match="nested more than 64 deep"):
        RagCall(question="q", documents=(), response=None, metadata=deep)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "scored"},
        {"status": "unscored", "value": 0.5, "unscored": "refusal"},
        {"status": "unscored"},
        {"status": "error", "unscored": "refusal"},
        {"status": "scored", "value": 1.5},
        {"status": "scored", "value": float("nan")},
    ],
)
def test_a_score_is_in_exactly_one_of_three_states(fields: dict[str, object]) -> None:
    """A value, or unscored with a code, or an error: anything between is refused."""
    with pytest.raises(InputError):
        Score(name="x", **fields)  # type: ignore[arg-type]


def test_unknown_cost_stays_unknown_in_a_sum() -> None:
    """A price that is not known is never counted as 0."""
    known = Usage(requests=1, cost_usd=0.5)
    unknown = Usage(requests=1)

    assert (known + known).cost_usd == 1.0
    assert (known + unknown).cost_usd is None
    assert (Usage() + known).cost_usd == 0.5
    assert (known + unknown).requests == 2


def test_support_has_four_answers() -> None:
    """full, partial, none, unlabelled."""
    labels = Labels.model_validate(
        {
            "all_relevant_sentence_keys": None,
            "all_utilized_sentence_keys": "0a",
            "sentence_support_information": [
                {"response_sentence_key": "a", "fully_supported": True},
                {"response_sentence_key": "b", "fully_supported": False, "supporting_sentence_keys": ["0a"]},
                {"response_sentence_key": "c", "fully_supported": False, "explanation": None},
                {"response_sentence_key": "d", "note": "judges add fields"},
            ],
        }
    )  # fmt: skip

    assert [labels.support(key) for key in "abcde"] == [
        "full",
        "partial",
        "none",
        "unlabelled",
        "unlabelled",
    ]
    assert labels.all_relevant_sentence_keys == ()
    assert labels.all_utilized_sentence_keys == ("0a",)


def test_a_header_is_part_of_the_row_key() -> None:
    """A header changes what is judged; without one, the key is what it was before headers."""
    plain = RagCall("How fast?", ["Four minutes."], "Four.")
    headed = RagCall("How fast?", [Document("Four minutes.", header="page: 3")], "Four.")
    other = RagCall("How fast?", [Document("Four minutes.", header="page: 4")], "Four.")

    assert plain.row_key == "95edbba37a7479d3df9488e5fec2dbdd5e49dfee4964a2a9d1baab04d1663966"
    assert len({plain.row_key, headed.row_key, other.row_key}) == 3
    assert from_line(RagCall, to_line(headed)) == headed
    assert headed.documents[0].shown == "page: 3\n\nFour minutes."
    assert plain.documents[0].shown == "Four minutes."


def test_traces() -> None:
    """The shortcuts give the first trace in the order of the sources; only known sources pass."""
    capture = Capture(
        framework="langchain", traces={"langsmith": ("r", "s"), "mlflow": ("tr-1", "m")}
    )

    assert (capture.trace_id, capture.span_id) == ("tr-1", "m")
    assert Capture.model_validate_json(capture.model_dump_json()) == capture
    assert Capture(framework="plain").trace_id is Capture(framework="plain").span_id is None
    with pytest.raises(InputError, match=r"traces\.phoenix"):
        Capture(framework="plain", traces={"phoenix": ("t", "s")})  # type: ignore[dict-item]  # the point
