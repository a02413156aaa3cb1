"""`RagCall.relevant_ids`: what is taken, what it leaves alone, and that it survives a file."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from rag_eval_integrations import Evaluation, RagCall, RagEvaluator
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.metrics import Retrieval
from rag_eval_integrations.records import from_line, from_object, to_line
from rag_eval_integrations.records.score import EVALS_SCHEMA_FILE

SCHEMA = Draft202012Validator(json.loads(EVALS_SCHEMA_FILE.read_text("ascii")))


def call(gold: Any) -> RagCall:
    return RagCall("q", ["text"], "r", relevant_ids=gold)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (None, None),
        ([], ()),
        (["b", "a", "b"], ("b", "a", "b")),
        ({"b", "a", "c"}, ("a", "b", "c")),
        (iter(["x"]), ("x",)),
        ([1, "a"], ("1", "a")),
        ({"a", 1}, ("1", "a")),
        (["\ud800"], ("\ufffd",)),
    ],
)
def test_a_list_of_ids_is_kept(given: Any, kept: Any) -> None:
    """In its order; a set, which has none, in the same one everywhere. Numbers become text."""
    assert call(given).relevant_ids == kept


def test_numbers_are_ids_on_both_sides() -> None:
    """Data sets number their documents; a number that matched no text would be a silent 0."""
    row = {"question": "q", "documents": [{"text": "d", "id": 1}], "response": "r"}

    assert from_object(RagCall, row).documents[0].id == "1"
    assert call([1]).relevant_ids == ("1",)


@pytest.mark.parametrize("given", ["a", b"a", {"a": 1}, 3, [True], [1.0], [None], [""]])
def test_anything_else_is_refused(given: Any) -> None:
    """With the field's name: a string is not a list of letters."""
    with pytest.raises(InputError, match="field `relevant_ids"):
        call(given)


def test_the_key_of_a_row_is_what_is_judged() -> None:
    """No judge sees gold ids, so labels are shared by calls that differ in nothing else."""
    assert call(None).row_key == call(["a"]).row_key
    assert call(None).id == call(["a"]).id
    assert call(None) != call(["a"])


@pytest.mark.parametrize("gold", [None, (), ("a", "b")])
def test_it_survives_files(gold: tuple[str, ...] | None) -> None:
    """Of calls and of evaluations; none differs from an empty list. Others are not valid."""
    assert from_line(RagCall, to_line(call(gold))).relevant_ids == gold

    evaluation = RagEvaluator(metrics=[Retrieval(k=1)]).evaluate_sync(call(gold))
    line = evaluation.model_dump_json()

    assert Evaluation.model_validate_json(line).relevant_ids == gold
    assert ('"relevant_ids"' in line) == (gold is not None)
    SCHEMA.validate(json.loads(line))
    for wrong in ("a", [1], {"a": 1}):
        assert not SCHEMA.is_valid({**json.loads(line), "relevant_ids": wrong})
