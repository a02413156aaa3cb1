"""A line of EVALS: survives, says once what all scores share, and keeps to its JSON Schema."""

from __future__ import annotations

import functools
import json
import re
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from any_records import evaluations
from hypothesis import given
from pages import run_python, text_of
from pydantic import TypeAdapter, ValidationError

from rag_eval_integrations import Document, Evaluation, RagCall, RagEvaluator, Score
from rag_eval_integrations.errors import SchemaError
from rag_eval_integrations.records import By, Sentence, Sentences, from_line, to_line
from rag_eval_integrations.records.score import evals_schema

LISTED = TypeAdapter(list[Evaluation])
VALIDATOR = jsonschema.Draft202012Validator(
    json.loads(files("rag_eval_integrations.records").joinpath("evals.schema.json").read_bytes())
)
CALL = RagCall(
    "When does the ferry leave?",
    ["The ferry leaves at nine. It is white.", Document("Bread is sold at ten.", id="b")],
    "It leaves at nine.",
    metadata={"topic": "ferries"},
)


def made(call: RagCall = CALL) -> Evaluation:
    return RagEvaluator().evaluate_sync(call)


# --- Survival


@given(evaluation=evaluations())
def test_any_evaluation_survives_its_line(evaluation: Evaluation) -> None:
    """Pydantic reads back what was written, to the last bit; one line, ASCII only, valid.

    Other forms survive, too: with defaults, as pydantic's JSON values, inside another value, and as
    Python's dump.
    """
    line, whole = to_line(evaluation), evaluation.model_dump_json(exclude_defaults=False)

    assert line == evaluation.model_dump_json() == evaluation.model_dump_json(exclude={"nothing"})
    for read in (Evaluation.model_validate_json(line), from_line(Evaluation, line)):
        assert read == evaluation
        assert repr(read) == repr(evaluation)
    assert line.isascii()
    assert line.splitlines() == [line]
    assert Evaluation.model_validate_json(whole) == evaluation
    for content in (evaluation.model_dump(mode="json"), evaluation.model_dump()):
        assert Evaluation.model_validate(content) == evaluation
    assert LISTED.validate_json(LISTED.dump_json([evaluation])) == [evaluation]
    for text in (line, whole):
        VALIDATOR.validate(json.loads(text))
    assert "scores" not in json.loads(evaluation.model_dump_json(exclude={"scores"}))
    assert set(json.loads(evaluation.model_dump_json(include={"id"}))) == {"schema", "id"}


# --- Layout


def test_what_all_scores_share_stands_once() -> None:
    """Fields of `by` on which all agree and warnings that all begin with; the rest with its score."""
    shared: dict[str, Any] = {"judge": "m", "judge_version": "1", "splitter": "punkt"}
    first = Score(
        name="a", status="scored", value=1, by=By(**shared, formulas="ragbench"),
        warnings=("w", "x"), threshold=0.5,
    )  # fmt: skip
    second = Score(name="b", status="scored", value=0, by=By(**shared), warnings=("w",))
    evaluation = made().model_copy(update={"scores": {"a": first, "b": second}})

    row = json.loads(to_line(evaluation))

    assert row["by"] == shared
    assert row["warnings"] == ["w"]
    assert row["scores"] == {
        "a": {
            "status": "scored", "value": 1.0, "threshold": 0.5, "by": {"formulas": "ragbench"},
            "warnings": ["x"], "passed": True, "raw": None,
        },
        "b": {"status": "scored", "value": 0.0, "raw": None},
    }  # fmt: skip
    assert from_line(Evaluation, to_line(evaluation)).scores["a"].warnings == ("w", "x")


@pytest.mark.parametrize(
    ("raw", "scale", "written"),
    [
        (0.5, (0, 1), {}), (0.5, None, {"raw": 0.5}), (None, None, {"raw": None}),
        (3.0, (1, 5), {"raw": 3.0, "scale": [1.0, 5.0]}), (None, (0, 1), {"scale": [0.0, 1.0]}),
        (0.25, (0, 1), {"raw": 0.25, "scale": [0.0, 1.0]}),
    ],
)  # fmt: skip
def test_a_raw_value_that_is_the_value_is_left_out(
    raw: float | None, scale: tuple[float, float] | None, written: dict[str, object]
) -> None:
    """On the scale [0, 1] it says no more; every other combination is read back as it was."""
    score = Score(name="a", status="scored", value=0.5, raw=raw, scale=scale)
    evaluation = made().model_copy(update={"scores": {"a": score}})

    line = to_line(evaluation)

    assert json.loads(line)["scores"]["a"] == {"status": "scored", "value": 0.5, **written}
    assert Evaluation.model_validate_json(line) == evaluation


def test_pythons_dump_is_whole() -> None:
    """`model_dump()` has every field of every score, and no schema."""
    content = made().model_dump()

    assert set(content) == set(Evaluation.model_fields)
    assert {"by", "warnings", "mass"} <= set(content["scores"]["adherence"])


def test_a_score_may_say_all_of_it_itself() -> None:
    """A hand-written row with `by` in every score is read; its own word counts."""
    row = json.loads(to_line(made()))
    row["scores"]["adherence"]["by"] = {"judge": "other"}

    read = from_line(Evaluation, json.dumps(row))

    assert read.scores["adherence"].by.judge == "other"
    assert read.scores["adherence"].by.formulas == "gpt-labeling"
    assert read.scores["completeness"].by.judge == "embedded"


def test_when_the_call_began_is_kept() -> None:
    """In the zone that it was given with; `model_dump` stays what `json.dumps` takes."""
    began = datetime(2026, 11, 25, 23, 59, 58, tzinfo=UTC)
    row = made().model_copy(update={"started_at": began})

    assert json.loads(to_line(row))["started_at"] == "2026-11-25T23:59:58+00:00"
    assert from_line(Evaluation, to_line(row)).started_at == began
    assert Evaluation.model_validate(json.loads(json.dumps(row.model_dump()))).started_at == began
    call = RagCall("Question?", ["It is so."], "It is so.", started_at=began)
    assert RagEvaluator().evaluate_sync(call).started_at == began


# --- Lone surrogates


def test_lone_surrogates_become_replacement_characters_where_text_enters() -> None:
    """In every text, key and value; offsets stay, other characters too."""
    bad, good = "a\ud800b \U0001f600 \udfff", "a\ufffdb \U0001f600 \ufffd"

    document = Document(bad, id=bad, metadata={bad: [{bad: bad}]})
    call = RagCall(bad, [document], bad, metadata={"x": bad}, reference=bad, app=bad)

    assert document == Document(good, id=good, metadata={good: [{good: good}]})
    assert call == RagCall(good, [document], good, metadata={"x": good}, reference=good, app=good)
    assert Score(name=bad, status="error", reason=bad, warnings=(bad,)).reason == good
    assert made(call).response == made(call).model_copy(update={"response": bad}).response == good
    (sentence,) = Sentences(response=(Sentence("a", bad, 0, len(bad)),)).response
    assert sentence == ("a", good, 0, len(good))


# --- Other versions


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (1, r"has schema 1, this version reads 2: make it anew with `rag-eval run CALLS -o FILE`"),
        (3, "has schema 3, this version reads 2: read it with the newer version"),
        ("2", "has schema '2', this version reads 2: make it anew"),
    ],
)
def test_a_line_of_another_version_says_what_to_do(schema: object, message: str) -> None:
    """Both ways to read it."""
    line = json.dumps({**json.loads(to_line(made())), "schema": schema})

    with pytest.raises(SchemaError, match=message) as caught:
        from_line(Evaluation, line)
    assert caught.value.field == "schema"
    with pytest.raises(ValidationError, match=message):
        Evaluation.model_validate_json(line)


# --- JSON Schema


def test_the_shipped_schema_is_what_the_records_give() -> None:
    """After a change of the records, `json.dumps(evals_schema(), indent=1)` and a line end."""
    assert evals_schema() == VALIDATOR.schema
    VALIDATOR.check_schema(VALIDATOR.schema)
    for call in (CALL, RagCall("q", [], "r"), RagCall("q", ["d"], None)):
        VALIDATOR.validate(json.loads(to_line(made(call))))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("schema", 1), ("note", "x"), ("scores.adherence.note", "x"), ("labels.note", "x"),
        ("by.note", "x"), ("scores.adherence.value", 2.0), ("scores.adherence.value", None),
        ("scores.adherence.unscored", "refusal"), ("scores.adherence.status", "unscored"),
        ("sentences.response", [["a", "x"]]), ("judge", None), ("warnings", "w"),
    ],
)  # fmt: skip
def test_a_wrong_row_is_not_valid(path: str, value: object) -> None:
    """Unknown fields, values out of range, states that contradict each other, other versions.

    And a field that is missing, for which None stands here.
    """
    row: dict[str, Any] = json.loads(to_line(made()))
    *above, name = path.split(".")
    part = functools.reduce(dict.__getitem__, above, row)
    part.pop(name, None)
    if value is not None:
        part[name] = value
    assert not VALIDATOR.is_valid(row)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "2.0", "1e999"])
def test_a_value_that_is_not_a_share_is_not_read(value: str) -> None:
    """NaN is not JSON; pydantic, which would read it, refuses it as a value."""
    line = re.sub(r'"value":[\d.]+', f'"value":{value}', to_line(made()), count=1)

    with pytest.raises(ValidationError):
        Evaluation.model_validate_json(line)


def test_the_code_of_the_page_runs() -> None:
    """The schema is found where the page says, and the line reads back."""
    names = run_python("docs/evals.md")

    assert json.loads(str(names["schema"])) == VALIDATOR.schema
    assert str(names["line"]).startswith('{"schema":2,')


def test_the_page_describes_every_field() -> None:
    """`docs/evals.md` has a row for each, of the line and of all that stands in it."""
    described = set(re.findall(r"^\| `([\w.]+)`", text_of("docs/evals.md"), re.M))
    kinds = {"Score": "scores", "By": "by", "Labels": "labels", "Capture": "capture"}

    fields = set(VALIDATOR.schema["properties"])
    for kind, prefix in kinds.items():
        fields |= {f"{prefix}.{name}" for name in VALIDATOR.schema["$defs"][kind]["properties"]}

    assert described == fields
