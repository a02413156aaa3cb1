"""Records: frozen, closed, JSON round trip without loss, errors that name the field."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from any_records import records
from by_hand import labels_of
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from rag_eval_integrations import (
    Capture,
    Document,
    Evaluation,
    Labels,
    RagCall,
    RagEvaluator,
    Score,
)
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.metrics import Retrieval
from rag_eval_integrations.records import Usage, from_line, to_line
from rag_eval_integrations.records.score import EVALS_SCHEMA_FILE

GOLD = st.none() | st.lists(st.sampled_from(["a", "b", "1"]), max_size=2)
calls = records(RagCall, relevant_ids=GOLD, earlier=st.just(()))


@given(call=calls)
def test_a_call_survives_json_unchanged(call: RagCall) -> None:
    """Any call, made of lone surrogates and NUL too, is the same after a line of JSON.

    The line has every field, behind the schema.
    """
    line, content = to_line(call), {"schema": 1, **call.model_dump(mode="json")}

    assert from_line(RagCall, line) == call
    assert "\n" not in line
    assert line.isascii()
    assert list(json.loads(line).items()) == list(content.items())


def test_records_can_be_made_by_position() -> None:
    """`Document("text", "7")`, `RagCall(question, documents, response)`; mistakes are TypeErrors."""
    documents = (Document(text="d"), Document(text="e", id="7"))
    call = RagCall(question="q", documents=documents, response=None, id="x")

    assert RagCall("q", ["d", Document("e", "7")], None, id="x") == call
    with pytest.raises(TypeError, match="'text' by position and by name"):
        Document("a", text="b")  # type: ignore[misc]
    with pytest.raises(TypeError, match="at most 5 values"):
        Document("a", "b", {}, 1.0, "h", 2)  # type: ignore[call-arg]


def test_metadata_is_a_copy() -> None:
    """What the app does to its dict later does not change the record."""
    source: Any = {"a": [1]}
    document = Document(text="x", metadata=source)
    source["a"].append(2)

    assert document.metadata == {"a": [1]}


def test_the_row_key_is_what_is_judged_and_nothing_else() -> None:
    """Labels and circumstances leave it alone, content changes it."""
    call = RagCall("q", ["d"], "r")
    same = RagCall(
        "q", [Document("d", id="1", score=0.5, metadata={"a": 1})], "r", id="x",
        metadata={"b": 2}, capture=Capture(framework="plain", latency_s=1.0),
        relevant_ids=["1"],  # which no judge sees
    )  # fmt: skip

    assert same.row_key == call.row_key
    assert same != call
    for change in ({"question": "p"}, {"response": None}, {"reference": "x"}, {"documents": ()}):
        assert call.model_copy(update=change).row_key != call.row_key


def test_a_copy_forgets_what_was_computed() -> None:
    """`model_copy(update=…)` does not keep the old record's cached answers."""
    labels = labels_of([], [], {"a": ([], True)})
    assert labels.support("a") == "full"

    changed = labels.model_copy(update={"sentence_support_information": ()})

    assert changed.support("a") == "unlabelled"


def test_a_history_may_be_pairs() -> None:
    """Of role and content, in our words for roles or LangChain's."""
    pairs = [("user", "Hi"), ("assistant", "Yes?"), ("human", "Who?"), ("ai", "I.")]
    call = RagCall("Q?", ["D."], "A.", history=pairs)

    assert [turn.role for turn in call.history] == ["user", "assistant"] * 2
    assert [turn.content for turn in call.history] == [content for _, content in pairs]


def line(**fields: object) -> str:
    """A line of a call; "BIG" is a number that no float holds."""
    call = {"question": "q", "documents": [], "response": None, **fields}
    return json.dumps(call).replace('"BIG"', "1e999")


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
        (line(question=5), "field `question`: Input should be a valid string, not 5"),
        (line(documents="x"), "field `documents`: should be a list of documents, not 'x'"),
        (line(documents=["a", {"id": "1"}]), "field `documents[1].text`: is missing"),
        (line(documents=[3]),
         "field `documents[0]`: should be a string, a Document, a LangChain document or a "
         "LlamaIndex node, not 3"),
        ('{"question": "q", "documents": []}',
         "field `response`: is missing; write None (in JSON null) where there is no answer"),
        (line(history="hello"), "field `history`: should be a list of turns, not 'hello'"),
        (line(history=[["user"]]),
         "field `history[0]`: should be a Turn, a dict with `role` and `content`, or a pair of "
         "both, not ['user'"),
        (line(history=[["bot", "x"]]), "field `history[0].role`: Input should be 'user', "),
        (line(metadata={"a": "BIG"}),
         "field `metadata`: metadata.a is inf, which JSON cannot hold"),
        (line(answer="x"), "field `answer`: is not a field of this record"),
        (line(documents=[{"text": "t", "score": "BIG"}]),
         "field `documents[0].score`: Input should be a finite number, not inf"),
    ],
)  # fmt: skip
def test_a_bad_line_says_which_field_and_why(line: str | bytes, message: str) -> None:
    """Every refusal is an `InputError` that names the field and shows the value."""
    with pytest.raises(InputError) as caught:
        from_line(RagCall, line)

    assert str(caught.value).startswith(message)


def test_a_wrong_value_is_named_in_our_words() -> None:
    """Without the validating library's text and addresses."""
    with pytest.raises(InputError, match=r"field `documents\[1\].text`: is missing") as caught:
        RagCall("q", ["x", {"txt": 1}], "r")

    assert "pydantic" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


DEEP = json.loads('{"a":' * 100 + "1" + "}" * 100)


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), object(), {1: 2}, {"a": {1, 2}}, DEEP]
)
def test_metadata_that_json_cannot_hold_is_refused_by_name(value: object) -> None:
    """NaN, infinities, objects, keys that are no strings, and what would exhaust the stack."""
    with pytest.raises(InputError, match=r"metadata\.x"):
        RagCall(question="q", documents=(), response=None, metadata={"x": value})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "unscored", "value": 0.5, "unscored": "refusal"}, {"status": "unscored"},
        {"status": "error", "unscored": "refusal"}, {"status": "scored", "value": 1.5},
        {"status": "scored"}, {"status": "scored", "value": float("nan")},
    ],
)  # fmt: skip
def test_a_score_is_in_exactly_one_of_three_states(fields: dict[str, object]) -> None:
    """A value, or unscored with a code, or an error: anything between is refused."""
    with pytest.raises(InputError):
        Score(name="x", **fields)  # type: ignore[arg-type]


def test_unknown_cost_stays_unknown_in_a_sum() -> None:
    """A price that is not known is never counted as 0."""
    known, unknown, free = Usage(requests=1, cost_usd=0.5), Usage(requests=1), Usage(cost_usd=0)
    sums = [known + known, known + unknown, Usage() + known, free + unknown, unknown + free]

    assert [each.cost_usd for each in sums] == [1.0, None, 0.5, None, None]
    assert sums[1].requests == 2


def test_support_has_four_answers() -> None:
    """full, partial, none, unlabelled."""
    support = [
        {"response_sentence_key": "a", "fully_supported": True},
        {"response_sentence_key": "b", "fully_supported": False, "supporting_sentence_keys": ["0a"]},
        {"response_sentence_key": "c", "fully_supported": False, "explanation": None},
        {"response_sentence_key": "d", "note": "judges add fields"},
    ]  # fmt: skip
    labels = Labels.model_validate(
        {"all_relevant_sentence_keys": None, "all_utilized_sentence_keys": "0a",
         "sentence_support_information": support}
    )  # fmt: skip

    answers = ["full", "partial", "none", "unlabelled", "unlabelled"]
    assert [labels.support(key) for key in "abcde"] == answers
    assert labels.all_relevant_sentence_keys == ()
    assert labels.all_utilized_sentence_keys == ("0a",)


def test_a_header_is_shown_above_its_document() -> None:
    """Without one, the text alone."""
    assert Document("Four minutes.", header="page: 3").shown == "page: 3\n\nFour minutes."
    assert Document("Four minutes.").shown == "Four minutes."


def test_traces() -> None:
    """The shortcuts give the first trace in the order of the sources; only known sources pass."""
    traces = {"langsmith": ("r", "s"), "mlflow": ("tr-1", "m")}
    capture = Capture.model_validate({"framework": "langchain", "traces": traces})

    assert (capture.trace_id, capture.span_id) == ("tr-1", "m")
    assert Capture.model_validate_json(capture.model_dump_json()) == capture
    assert Capture(framework="plain").trace_id is Capture(framework="plain").span_id is None
    with pytest.raises(InputError, match=r"traces\.phoenix"):
        Capture(framework="plain", traces={"phoenix": ("t", "s")})  # type: ignore[dict-item]  # the point


# --- The default id


def unlabelled() -> RagCall:
    """A call without an id of the user's own."""
    return RagCall("How fast?", ["Four minutes."], "Four.")


WANTED = unlabelled().row_key[:16]


def unset(call: RagCall) -> dict[str, Any]:
    """The fields that were given; the default id is not among them."""
    return {name: getattr(call, name) for name in call.model_fields_set}


@pytest.mark.parametrize(
    "look",
    [
        lambda call: call.id,
        lambda call: RagCall("How fast?", ["Four minutes."], "Four.", id="").id,
        lambda call: RagCall.model_validate_json(call.model_dump_json()).__dict__["id"],
        lambda call: RagCall.model_construct(**unset(call)).id,
        lambda call: from_line(RagCall, to_line(call)).__dict__["id"],
        lambda call: pickle.loads(pickle.dumps(call)).__dict__["id"],
        lambda call: call.model_copy(update={"response": "Five."}).id,
        lambda call: repr(call).split(", id=")[1].split("'")[1],
    ],
)
def test_is_the_same_however_asked(look: Callable[[RagCall], Any]) -> None:
    """Every way to look at a record's fields finds the id, even the first."""
    assert look(unlabelled()) == WANTED


@given(call=calls)
def test_the_key_is_the_hash_of_the_content_as_json(call: RagCall) -> None:
    """Of the bytes that `json.dumps` writes, in ASCII and without spaces: files hold such keys."""
    content = [
        call.question,
        [[each.header, each.text] if each.header else each.text for each in call.documents],
        call.response,
        [call.reference, *call.alternatives] if call.alternatives else call.reference,
        [[turn.role, turn.content] for turn in call.history],
    ]
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))

    assert call.row_key == hashlib.sha256(text.encode("ascii")).hexdigest()
    assert call.id == call.row_key[:16] or "id" in call.model_fields_set


def test_calls_without_a_label_are_equal_by_content() -> None:
    """Whether the key was read or not, which sets no field; another response is another call."""
    read = unlabelled()
    assert read.id == WANTED

    for call in (read, unlabelled()):
        assert call == unlabelled()
        assert hash(call) == hash(unlabelled())
        assert call.model_fields_set == {"question", "documents", "response"}
        assert "id" not in call.model_dump(exclude_unset=True)
    assert read != RagCall("How fast?", ["Four minutes."], "Five.")


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("label", ["", "mine"])
def test_a_changed_copy_has_the_key_of_its_own_content(label: str, deep: bool) -> None:
    """The id is the user's label and stays; the row's identity is never that of the original."""
    call = RagCall("How fast?", ["Four minutes."], "Four.", id=label)
    assert call.row_key.startswith(WANTED)

    changed = call.model_copy(update={"response": "Five."}, deep=deep)

    assert changed.id == call.id
    assert changed.row_key == RagCall("How fast?", ["Four minutes."], "Five.").row_key
    assert changed.row_key != call.row_key


def test_a_given_id_stays() -> None:
    """A label of the user's own is kept, and read without a hash."""
    call = RagCall("How fast?", [], None, id="mine")

    assert call.id == "mine"
    assert from_line(RagCall, '{"question":"q","documents":[],"response":"r","id":7}').id == "7"
    assert "row_key" not in call.__dict__
    assert call != RagCall("How fast?", [], None)


# --- Ids of relevant documents

SCHEMA = Draft202012Validator(json.loads(EVALS_SCHEMA_FILE.read_text("ascii")))


def with_gold(gold: Any) -> RagCall:
    return RagCall("q", ["text"], "r", relevant_ids=gold)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (None, None), ([], ()), (["b", "a", "b"], ("b", "a", "b")), (["\ud800"], ("\ufffd",)),
        ({"b", "a", "c"}, ("a", "b", "c")), (iter(["x"]), ("x",)), ([1, "a"], ("1", "a")),
        ({"a", 1}, ("1", "a")), (np.array([3, 1]), ("3", "1")),
    ],
)  # fmt: skip
def test_a_list_of_ids_is_kept(given: Any, kept: Any) -> None:
    """In its order; a set, which has none, in the same one everywhere. Numbers become text."""
    assert with_gold(given).relevant_ids == kept


@pytest.mark.parametrize("given", ["a", b"a", {"a": 1}, 3, [True], [1.0], [None], [""]])
def test_anything_else_is_refused(given: Any) -> None:
    """With the field's name: a string is not a list of letters."""
    with pytest.raises(InputError, match="field `relevant_ids"):
        with_gold(given)


@pytest.mark.parametrize("gold", [None, (), ("a", "b")])
def test_it_survives_files(gold: tuple[str, ...] | None) -> None:
    """Of calls and of evaluations; none differs from an empty list. Others are not valid."""
    assert from_line(RagCall, to_line(with_gold(gold))).relevant_ids == gold

    evaluation = RagEvaluator(metrics=[Retrieval(k=1)]).evaluate_sync(with_gold(gold))
    line = evaluation.model_dump_json()

    assert Evaluation.model_validate_json(line).relevant_ids == gold
    assert ('"relevant_ids"' in line) == (gold is not None)
    SCHEMA.validate(json.loads(line))
    for wrong in ("a", [1], {"a": 1}):
        assert not SCHEMA.is_valid({**json.loads(line), "relevant_ids": wrong})
