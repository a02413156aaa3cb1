"""ROC and reliability: worked by hand, equal to the AUROC that agreement prints, never NaN."""

from __future__ import annotations

import naive_agreement as naive
import pytest
from agreement_rows import curve_of
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.agreement import Pair, curves

from .conftest import make_evaluation, make_labels, make_sentences

ITEMS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60)


def test_a_curve_worked_by_hand() -> None:
    """Four items, one pair in the wrong order: three quarters of the area, and its points."""
    curve = curve_of([(0.9, True), (0.8, False), (0.6, True), (0.1, False)])

    assert curve.roc == ((0.0, 0.0), (0.0, 0.5), (0.5, 0.5), (0.5, 1.0), (1.0, 1.0))
    assert curve.auroc == 0.75
    assert [each.n for each in curve.bins] == [1, 1, 1, 1]
    assert curve.calibration_error == pytest.approx((0.1 + 0.8 + 0.4 + 0.1) / 4)


@given(ITEMS)
def test_the_area_is_the_auroc(items: list[tuple[float, bool]]) -> None:
    """Ties included, the drawn area is the statistic that the table prints."""
    curve = curve_of(items)
    expected = naive.auroc(
        [probability for probability, _ in items], [positive for _, positive in items]
    )
    assert (curve.auroc is None) == (expected is None)
    if expected is not None:
        assert curve.auroc == pytest.approx(expected)
    assert sum(each.n for each in curve.bins) == curve.n == len(items)
    assert 0 <= curve.calibration_error <= 1


def test_a_judge_without_probabilities_has_no_curves() -> None:
    """Labels alone rank nothing."""
    sentences = make_sentences("0a", "a")
    labels = make_labels("0a", "0a", {"a": ("0a", True)})
    row = make_evaluation(scores={"adherence": 1.0}, sentences=sentences, labels=labels)
    assert curves([Pair(row, row)]) == {}


def test_a_curve_is_of_the_class_to_be_found() -> None:
    """Doubt about adherence and support is 1 - probability; what gold leaves open is left out."""
    sentences = make_sentences("0a 0b", "a b c")
    predicted = make_evaluation(
        scores={"adherence": 1.0},
        probability=0.75,
        sentences=sentences,
        labels=make_labels(
            relevant_probabilities={"0a": 0.9, "0b": 0.2},
            utilized_probabilities={"0a": 0.3, "0b": 0.7},
            supported_probabilities={"a": 0.75, "b": 0.25, "c": 0.5},
        ),
    )
    gold = make_evaluation(
        scores={"adherence": 1.0},
        sentences=sentences,
        labels=make_labels("0a", "0b", {"a": ("0a", True), "b": ("", False), "c": ("", None)}),
    )

    drawn = curves([Pair(predicted, gold)])

    assert drawn["not adherent"].bins == ((1, 0.25, 0.0),)
    assert drawn["relevant"].bins == ((1, 0.2, 0.0), (1, 0.9, 1.0))
    assert drawn["utilized"].bins == ((1, 0.3, 0.0), (1, 0.7, 1.0))
    assert drawn["unsupported"].bins == ((1, 0.25, 0.0), (1, 0.75, 1.0))
