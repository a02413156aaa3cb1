"""`RagCall.earlier` and `Evaluation.earlier`: numbers of the documents of earlier turns."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from rag_eval_integrations import RagCall, RagEvaluator
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.records import Evaluation, from_line, to_line
from rag_eval_integrations.records.score import evals_schema

TEXTS = ["One.", "Two.", "Three."]


def call_with(earlier: Any = ()) -> RagCall:
    return RagCall("q", TEXTS, "r", earlier=earlier)


@pytest.mark.parametrize(
    ("given", "kept"),
    [([2, 1, 2], (1, 2)), ({2}, (2,)), (iter([0]), (0,)), (np.array([1, 2]), (1, 2)), ([], ())],
)
def test_numbers_are_kept_in_order(given: Any, kept: tuple[int, ...]) -> None:
    """Of any iterable of whole numbers, each once."""
    assert call_with(given).earlier == kept


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([3], "should be numbers of the 3 documents, counted from 0, not [3]"),
        ([-1], "greater than or equal to 0"),
        ([0.5], "valid integer"),
        ("2", "should be a list of numbers of documents, not '2'"),
        ({"a": 1}, "should be a list of numbers of documents"),
    ],
)
def test_others_are_refused(given: Any, why: str) -> None:
    """At construction, with the field, the value and what it should be."""
    with pytest.raises(InputError, match="field `earlier") as refused:
        call_with(given)
    assert why in str(refused.value)


def test_part_of_the_key() -> None:
    """Where not empty: then another part of the documents is scored. Else the key is what it was."""
    keys = [call_with(earlier).row_key for earlier in ((), [2], [1, 2])]

    assert len(set(keys)) == 3
    assert keys[0] == "e5d618911c37e123630192ab6bc88454aab0ebba4bc54b3b17cd505f22291b97"


@pytest.mark.parametrize("earlier", [(), (1, 2)])
def test_in_files(earlier: tuple[int, ...]) -> None:
    """Written only where there are any, for calls and evaluations, and read back."""
    call = call_with(earlier)
    evaluation = RagEvaluator().evaluate_sync(call)
    lines = [to_line(call), evaluation.model_dump_json()]

    assert ["earlier" in json.loads(line) for line in lines] == [bool(earlier)] * 2
    assert from_line(RagCall, lines[0]) == call
    assert Evaluation.model_validate_json(lines[1]).earlier == evaluation.earlier == earlier


def test_in_the_schema() -> None:
    """A list of whole numbers from 0."""
    field = evals_schema()["properties"]["earlier"]
    assert (field["type"], field["items"]["type"], field["items"]["minimum"]) == (
        "array", "integer", 0,
    )  # fmt: skip
