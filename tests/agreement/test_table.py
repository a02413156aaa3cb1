"""Rows that are read one by one as numbers give what pairs in memory give."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_eval_integrations.agreement import Gold, agree, cascade_curve, curves, match
from rag_eval_integrations.agreement import _keys as keys
from rag_eval_integrations.agreement import _resampled as resampled
from rag_eval_integrations.agreement._cascades import Later, cascade_of, curve_json
from rag_eval_integrations.agreement._curves import curves_of
from rag_eval_integrations.agreement._marks import Items, marks_of
from rag_eval_integrations.agreement._side import Side
from rag_eval_integrations.agreement._table import Joining, Part
from rag_eval_integrations.agreement.compare import agreement_of
from rag_eval_integrations.records import Evaluation, Labels

from .conftest import make_evaluation, make_labels, make_sentences

KEYS = ("0a", "0b", "0c")


def _labels(generator: random.Random, *, probable: bool) -> Labels | None:
    if generator.random() < 0.1:
        return None
    relevant, utilized = (
        " ".join(key for key in KEYS if generator.random() < 0.5) for _ in range(2)
    )
    support = {
        key: (generator.choice(["", "0a", "0a 0c nonsense"]), generator.choice([True, False, None]))
        for key in ("a", "b")
    }
    if not probable:
        return make_labels(relevant, utilized, support)
    chances: Any = {
        f"{name}_probabilities": {key: round(generator.random(), digits) for key in of}
        for name, of, digits in (
            ("relevant", KEYS, 6), ("utilized", KEYS[:2], 17), ("supported", ("a", "b"), 1),
        )
    }  # fmt: skip
    return make_labels(relevant, utilized, support, **chances)


def _row(generator: random.Random, number: int, **more: Any) -> Evaluation:
    scores = {
        name: generator.choice([None, 0.0, 1.0, round(generator.random(), 2)])
        for name in ("adherence", "context_relevance", "completeness")
        if generator.random() < 0.9
    }
    if scores.get("adherence") is not None:
        scores["adherence"] = float(generator.random() < 0.5)
    return make_evaluation(
        f"id {number}",
        scores,
        row_key=f"key {number}",
        sentences=make_sentences(generator.choice(["0a 0b 0c", "0a 0b"]), "a b"),
        **more,
    )


def _sides(seed: int) -> tuple[list[Evaluation], list[Gold]]:
    """Rows in any order, some twice, some on one side, some that only ids join."""
    generator = random.Random(seed)
    numbers = [generator.randrange(40) for _ in range(45)]
    predicted = [
        _row(
            generator,
            number,
            probability=round(generator.random(), 3),
            labels=_labels(generator, probable=True),
        )
        for number in numbers
    ]
    gold = [
        Gold(
            _row(generator, number, labels=_labels(generator, probable=False)),
            dataset=generator.choice([None, "one", "two"]),
            baselines={"ragas_faithfulness": generator.choice([None, 0.25, 0.75])},
        )
        for number in (generator.randrange(40) for _ in range(45))
    ]
    gold[:5] = [
        Gold(one.evaluation.model_copy(update={"row_key": "another"}), one.dataset)
        for one in gold[:5]
    ]
    return predicted, gold


@pytest.mark.parametrize("seed", range(6))
def test_rows_read_one_by_one_give_the_figures_of_pairs(seed: int) -> None:
    """Figures, intervals, counts, curves and cascades, to the last digit."""
    predicted, gold = _sides(seed)
    matched = match(predicted, gold)

    joining = Joining()
    for row in predicted:
        joining.add_predicted(row)
    for one in gold:
        joining.add_gold(one)
    table, joined = joining.joined()

    assert joined == matched.joined
    assert joined.rows > 10
    found = agreement_of(table, joined, baselines=True, resamples=20)
    assert found.to_json() == agree(matched, baselines=True, resamples=20).to_json()
    assert curves_of(Part(table, table.appearance)) == curves(matched.pairs)
    later = Later(Side(), {})
    for row in predicted:
        later.add(row)
    point = cascade_of(table, joining.row_keys(), later, steps=2)
    assert curve_json(point) == curve_json(cascade_curve(matched.pairs, predicted, steps=2))


millionths = st.integers(0, 1_000_000).map(lambda one: one / 1_000_000)
rows = st.lists(st.lists(st.tuples(millionths, st.booleans()), max_size=4), min_size=1, max_size=8)


@settings(max_examples=6)  # each fills a table of a million levels
@given(rows=rows, swapped=st.booleans())
def test_items_counted_by_probability_are_ranked_as_if_sorted(
    rows: list[list[tuple[float, bool]]], swapped: bool
) -> None:
    """The table of levels gives the AUROC, and each row's contribution, of sorted items."""
    items = Items()
    for row in rows:
        bits = sum(positive << at for at, (_, positive) in enumerate(row))
        items.add(_packed([p for p, _ in row]), range(len(row)), bits)
    everything = [(p, positive, at) for at, row in enumerate(rows) for p, positive in row]
    if not everything:
        return
    scores, positive, owners = zip(*everything, strict=True)
    if swapped:
        scores = tuple(1 - score for score in scores)
        positive = tuple(not one for one in positive)

    found = keys._of_millionths(items, range(len(rows)), swapped=swapped)

    expected = resampled.clustered_auroc(scores, positive, owners, len(rows))
    assert (found.value, found.rows) == (expected.value, expected.rows)
    assert list(found.contributions) == list(expected.contributions) or found.value is None


def _packed(probabilities: list[float]) -> Any:
    sentences = {f"0{chr(97 + at)}": p for at, p in enumerate(probabilities)}
    labels = make_labels(relevant_probabilities=sentences)
    row = make_evaluation(labels=labels, sentences=make_sentences(" ".join(sentences)))
    marks = _probabilities_of(row)
    assert marks.typecode == "I"
    return marks


def _probabilities_of(row: Evaluation) -> Any:
    marks = marks_of(row)
    assert marks is not None
    return marks.probabilities[0]


def test_no_record_of_a_row_is_kept() -> None:
    """What is let go as it is read takes no memory: neither the evaluations nor their labels."""
    predicted, gold = _sides(1)
    held: list[Callable[[], object]] = [weakref.ref(row) for row in predicted]
    held += [weakref.ref(row.labels) for row in predicted if row.labels is not None]
    held += [weakref.ref(one.evaluation) for one in gold]
    joining = Joining()
    while predicted:
        joining.add_predicted(predicted.pop())
    while gold:
        joining.add_gold(gold.pop())
    table, _ = joining.joined()
    gc.collect()

    assert table.size
    assert not [one for one in held if one() is not None]
