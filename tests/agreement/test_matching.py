"""Joining predicted with gold rows."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_eval_integrations.agreement import Gold, Matched, dataset_of, match
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.records import Evaluation

from .conftest import Make


def _ids(matched: Matched) -> list[tuple[str, str]]:
    return [(pair.predicted.question, pair.gold.question) for pair in matched.pairs]


@pytest.fixture
def named(evaluation: Make) -> Make:
    """An evaluation whose question tells it apart, whatever its id and key."""

    def make(name: str, identity: str, row_key: str) -> Evaluation:
        return evaluation(identity, row_key=row_key).model_copy(update={"question": name})

    return make


def test_rows_join_by_content_whatever_their_id(named: Make) -> None:
    """The same call under another id is the same row; file order is the predicted one."""
    predicted = [named("p1", "a", "K1"), named("p2", "b", "K2")]
    gold = [Gold(named("g2", "z", "K2")), Gold(named("g1", "a", "K1"))]

    matched = match(predicted, gold)

    assert _ids(matched) == [("p1", "g1"), ("p2", "g2")]
    assert (matched.unmatched, matched.joined_by_id, matched.ambiguous) == (0, 0, 0)


def test_content_goes_before_id(named: Make) -> None:
    """A row with the id of another joins the one that has its content (RAGBench repeats ids)."""
    predicted = [named("p1", "same", "K1"), named("p2", "same", "K2")]
    gold = [Gold(named("g2", "same", "K2")), Gold(named("g1", "same", "K1"))]

    assert _ids(match(predicted, gold)) == [("p1", "g1"), ("p2", "g2")]
    assert match(predicted, gold).ambiguous == 0


def test_repeats_join_in_order_and_are_counted(named: Make) -> None:
    """The k-th of a repeated key joins the k-th; a surplus falls through to its id."""
    predicted = [named("p1", "a", "K"), named("p2", "a", "K"), named("p3", "a", "K")]
    gold = [Gold(named("g1", "b", "K")), Gold(named("g2", "c", "K")), Gold(named("g3", "a", "L"))]

    matched = match(predicted, gold)

    assert _ids(matched) == [("p1", "g1"), ("p2", "g2"), ("p3", "g3")]
    assert (matched.ambiguous, matched.joined_by_id) == (2, 1)


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_row_is_joined_once_or_counted(evaluation: Make, data: st.DataObject) -> None:
    """Pairs and unmatched rows add up to each side, and a pair shares its key or its id."""
    rows = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("KLMN")), max_size=8)
    left, right = data.draw(rows), data.draw(rows)
    predicted = [evaluation(i, row_key=k) for i, k in left]
    gold = [Gold(evaluation(i, row_key=k)) for i, k in right]

    matched = match(predicted, gold)

    assert len(matched.pairs) + matched.unmatched_predicted == len(left)
    assert len(matched.pairs) + matched.unmatched_gold == len(right)
    assert len({id(pair.gold) for pair in matched.pairs}) == len(matched.pairs)
    for pair in matched.pairs:
        assert pair.predicted.row_key == pair.gold.row_key or pair.predicted.id == pair.gold.id


def test_a_gold_row_brings_its_columns(evaluation: Make) -> None:
    """Data set without its split, published columns (null stays None) and the human's number."""
    row = {
        "dataset_name": "hagrid_validation",
        "gpt3_adherence": True,
        "gpt35_utilization": 2.5,
        "ragas_faithfulness": None,
        "rating": 4,
        "other": "text",
    }

    gold = Gold.from_row(evaluation(), row, human="rating")

    assert gold.dataset == "hagrid"
    assert gold.baselines == {
        "gpt3_adherence": 1.0,
        "gpt35_utilization": 2.5,
        "ragas_faithfulness": None,
    }
    assert gold.human == 4.0
    assert Gold.from_row(evaluation(), row).human is None


@pytest.mark.parametrize("value", ["4", float("nan"), 10**400, 1e308])
def test_a_human_field_that_is_no_number_is_refused(evaluation: Make, value: object) -> None:
    """The message names the field and the value."""
    with pytest.raises(InputError, match=r"`rating`: should be a (finite number|rating)"):
        Gold.from_row(evaluation(), {"rating": value}, human="rating")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"dataset": "mine_test", "dataset_name": "x"}, "mine_test"),
        ({"dataset_name": "covidqa_test"}, "covidqa"),
        ({"dataset_name": "train"}, "train"),
        ({"dataset_name": ""}, None),
        ({}, None),
    ],
)
def test_the_data_set_is_named_by_the_row(row: dict[str, object], expected: str | None) -> None:
    """`dataset` is taken as it is, RAGBench's `dataset_name` without its split."""
    assert dataset_of(row) == expected


def test_repeated_ids_are_counted_beside_repeated_content(named: Make) -> None:
    """Both are joined by their order, which may be wrong: the two add up."""
    predicted = [named(f"p{n}", "a", key) for n, key in enumerate(("K", "K", "P", "Q"))]
    gold = [Gold(named(f"g{n}", "a", key)) for n, key in enumerate(("K", "K", "R", "S"))]

    matched = match(predicted, gold)

    assert _ids(matched) == [(f"p{n}", f"g{n}") for n in range(4)]
    assert (matched.joined_by_id, matched.ambiguous) == (2, 4)
