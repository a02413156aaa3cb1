"""Joining predicted with gold rows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.agreement import Gold, match
from rag_eval_integrations.agreement.matching import dataset_of
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.records import Evaluation

from .conftest import make_evaluation

Rows = list[tuple[str, str]]


def rows_of(rows: Rows) -> list[Evaluation]:
    """Evaluations with an id and a key each, whose question is their place."""
    return [
        make_evaluation(identity, row_key=key).model_copy(update={"question": str(place)})
        for place, (identity, key) in enumerate(rows)
    ]


@pytest.mark.parametrize(
    ("predicted", "gold", "partners", "by_id", "ambiguous"),
    [
        # The same call under another id is the same row.
        ([("a", "K1"), ("b", "K2")], [("z", "K2"), ("a", "K1")], "10", 0, 0),
        # Content goes before an id, which repeats in RAGBench.
        ([("same", "K1"), ("same", "K2")], [("same", "K2"), ("same", "K1")], "10", 0, 0),
        # The k-th of a repeated key joins the k-th; a surplus falls through to its id.
        ([("a", "K")] * 3, [("b", "K"), ("c", "K"), ("a", "L")], "012", 1, 2),
        # Repeated ids are counted beside repeated content: their order may be wrong.
        ([("a", key) for key in "KKPQ"], [("a", key) for key in "KKRS"], "0123", 2, 4),
    ],
)
def test_rows_join_by_content_and_then_by_id(
    predicted: Rows, gold: Rows, partners: str, by_id: int, ambiguous: int
) -> None:
    """In the order of the predicted rows; what may be wrong is counted."""
    matched = match(rows_of(predicted), [Gold(row) for row in rows_of(gold)])

    assert "".join(pair.gold.question for pair in matched.pairs) == partners
    assert [int(pair.predicted.question) for pair in matched.pairs] == [*range(len(predicted))]
    assert (matched.unmatched, matched.joined_by_id, matched.ambiguous) == (0, by_id, ambiguous)


@given(data=st.data())
def test_every_row_is_joined_once_or_counted(data: st.DataObject) -> None:
    """Pairs and unmatched rows add up to each side, and a pair shares its key or its id."""
    rows = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("KLMN")), max_size=8)
    left, right = data.draw(rows), data.draw(rows)

    matched = match(rows_of(left), [Gold(row) for row in rows_of(right)])

    assert len(matched.pairs) + matched.unmatched_predicted == len(left)
    assert len(matched.pairs) + matched.unmatched_gold == len(right)
    assert len({id(pair.gold) for pair in matched.pairs}) == len(matched.pairs)
    for pair in matched.pairs:
        assert pair.predicted.row_key == pair.gold.row_key or pair.predicted.id == pair.gold.id


@pytest.mark.parametrize(
    ("row", "fields"),
    [
        ({"dataset": "mine_test", "dataset_name": "x"}, {"dataset": "mine_test"}),
        ({"dataset_name": "covidqa_test"}, {"dataset": "covidqa"}),
        ({"dataset_name": "train"}, {"dataset": "train"}),
        ({"dataset_name": ""}, {"dataset": None}),
        ({"gpt3_adherence": True, "ragas_faithfulness": None, "x": "y"},
         {"baselines": {"gpt3_adherence": 1.0, "ragas_faithfulness": None}}),
        ({"rating.x": 3, "rating": {"x": 2}, "doc_id": "d"}, {"human": 3.0, "document": "d"}),
        ({"rating": {"x": 2}, "doc_id": 7}, {"human": 2.0, "document": "7"}),
        ({"rating": 4, "doc_id": True}, {"human": None, "document": None}),
        ({"system_id": "s", "doc_id": ""}, {"system": "s", "document": None}),
    ],
)  # fmt: skip
def test_a_gold_row_brings_its_columns(row: dict[str, object], fields: dict[str, Any]) -> None:
    """RAGBench's data set without its split; a dot leads into an object, or a field is called so."""
    gold = Gold.from_row(make_evaluation(), row, human="rating.x")

    assert {name: getattr(gold, name) for name in fields} == fields
    assert dataset_of(row) == gold.dataset
    assert Gold.from_row(make_evaluation(), row).human is None


@pytest.mark.parametrize("value", ["good", "nan", float("nan"), 10**400, 1e308])
def test_a_human_field_that_is_no_number_is_refused(value: object) -> None:
    """The message names the field and the value."""
    with pytest.raises(InputError, match=r"`rating`: should be a (finite number|rating)"):
        Gold.from_row(make_evaluation(), {"rating": value}, human="rating")


@pytest.mark.parametrize(("text", "rating"), [("4", 4.0), (" 0.5 ", 0.5), ("", None)])
def test_a_rating_may_be_the_text_of_a_number(text: str, rating: float | None) -> None:
    """As in a table, where an empty cell is none."""
    assert Gold.from_row(make_evaluation(), {"rating": text}, human="rating").human == rating
