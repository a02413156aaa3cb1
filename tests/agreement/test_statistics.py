"""Statistics and intervals at the public doors: definitions pair by pair, theory, empty cases."""

from __future__ import annotations

import random
import statistics as moments
from collections.abc import Sequence
from typing import Any

import naive_agreement as naive
import pytest
from agreement_rows import curve_of
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_eval_integrations.agreement import Figure, Pair, agree, curves
from rag_eval_integrations.agreement.levels import agree_with_numbers

from .conftest import make_evaluation, make_labels, make_sentences

quarters = st.integers(0, 4).map(lambda value: value / 4)  # ties are common, arithmetic is exact
hundreds = st.integers(0, 300).map(lambda value: value / 300)
Rows = list[tuple[float, float]]


def values(rows: Sequence[tuple[float, float]]) -> dict[str, float | None]:
    xs, ys = [x for x, _ in rows], [y for _, y in rows]
    figures = agree_with_numbers({"s": xs}, ys, resamples=0)["s"].figures
    return {name: figure.value for name, figure in figures.items()}


def same(expected: float | None) -> Any:
    return None if expected is None else pytest.approx(expected, abs=1e-9)


@given(st.lists(st.tuples(quarters, quarters) | st.tuples(hundreds, hundreds), max_size=40))
def test_correlations_and_rmse_equal_their_definitions(rows: Rows) -> None:
    """With ties in either column and in both, for constants, one row and none."""
    xs, ys = [x for x, _ in rows], [y for _, y in rows]
    expected = {**naive.correlations(xs, ys), "rmse": naive.rmse(xs, ys)}

    assert values(rows) == {name: same(value) for name, value in expected.items()}


@pytest.mark.parametrize("constant", [0.1, 1e9 / 3])
def test_a_constant_correlates_with_nothing(constant: float) -> None:
    """Whatever rounding its mean leaves, and however little a column differs: None, not NaN."""
    nothing = dict.fromkeys(("pearson", "spearman", "kendall"))

    assert values([(constant, n) for n in range(3)]) == nothing
    assert values([(n, constant) for n in range(2, 5)]).items() >= nothing.items()
    assert values([(0, 0), (1e-300, 1e-300)])["pearson"] is None


@given(st.lists(st.tuples(hundreds, hundreds), min_size=12, max_size=30), st.integers(0, 9))
@settings(max_examples=20)
def test_intervals_stay_in_range(rows: Rows, seed: int) -> None:
    """However few the rows, a correlation lies in [-1, 1], and an error is not negative."""
    xs, ys = [x for x, _ in rows], [y for _, y in rows]
    figures = agree_with_numbers({"s": xs}, ys, resamples=60, seed=seed)["s"].figures

    for name, figure in figures.items():
        if figure.interval is not None:
            low, high = figure.interval
            assert (0 if name == "rmse" else -1) <= low <= high <= 1


def correlated(n: int, seed: int) -> tuple[list[float], list[float]]:
    source = random.Random(seed)
    xs = [source.random() for _ in range(n)]
    return xs, [min(1.0, max(0.0, x + source.gauss(0, 0.3))) for x in xs]


def test_intervals_are_as_wide_as_the_spread_of_fresh_samples() -> None:
    """Over 120 samples of 150 rows each statistic spreads as the resamples of one say."""
    fresh = [
        agree_with_numbers({"s": xs}, ys, resamples=0)["s"].figures
        for xs, ys in (correlated(150, seed) for seed in range(120))
    ]
    xs, ys = correlated(150, 1000)

    for name, figure in agree_with_numbers({"s": xs}, ys)["s"].figures.items():
        known = [of[name].value for of in fresh]
        spread = moments.stdev(value for value in known if value is not None)
        assert moments.stdev(figure.replicates) == pytest.approx(spread, rel=0.3), name
        assert len(figure.replicates) == 400


def pair(
    place: int, chances: Sequence[float], positive: Sequence[bool], dataset: str | None = None
) -> Pair:
    """A row with one document sentence per probability of being relevant."""
    keys = [f"0{letter}" for letter, _ in zip("abcdefgh", chances, strict=False)]
    sentences = make_sentences(" ".join(keys))
    chosen = " ".join(key for key, yes in zip(keys, positive, strict=True) if yes)
    likely = " ".join(key for key, p in zip(keys, chances, strict=True) if p > 0.5)
    judged = make_labels(likely, relevant_probabilities=dict(zip(keys, chances, strict=True)))
    row: dict[str, Any] = {"identity": str(place), "sentences": sentences}
    gold = make_evaluation(**row, labels=make_labels(chosen))
    return Pair(make_evaluation(**row, labels=judged), gold, dataset=dataset)


def relevant(pairs: Sequence[Pair]) -> dict[str, Figure]:
    return dict(agree(pairs).pooled.blocks["keys", "relevant"].figures)


def test_sentences_of_one_row_are_drawn_together() -> None:
    """Copying every sentence five times within its row adds no certainty."""
    source = random.Random(3)
    rows = [(source.random(), source.random() < 0.4) for _ in range(100)]
    rows = [(0.7 * chance + 0.3 * yes, yes) for chance, yes in rows]

    single, five = (
        relevant([pair(place, [p] * copies, [yes] * copies) for place, (p, yes) in enumerate(rows)])
        for copies in (1, 5)
    )

    for name in ("auroc", "f1", "kappa"):
        assert five[name].interval == pytest.approx(single[name].interval)


def test_no_interval_where_it_would_mislead() -> None:
    """Fewer than ten rows; an undefined figure; a class that many draws lose; none asked for."""
    xs, ys = correlated(20, 1)

    for n, options in ((9, {}), (20, {"resamples": 0})):
        figures = agree_with_numbers({"s": xs[:n]}, ys[:n], **options)["s"].figures
        assert {figure.interval for figure in figures.values()} == {None}
        assert None not in {figure.value for figure in figures.values()}
    constant = agree_with_numbers({"s": [0.5] * 20}, ys)["s"].figures
    assert constant["spearman"] == constant["pearson"] == Figure(None)
    rare = relevant([pair(place, [place / 20], [place == 12]) for place in range(20)])
    assert rare["recall"].interval is None
    assert rare["auroc"].value == pytest.approx(12 / 19)


def test_a_mean_over_data_sets_claims_no_more_than_its_sets() -> None:
    """Of the defined figures; no interval if a set is too small; narrower than a single set."""

    def of(name: str, n: int, hits: int) -> list[Pair]:
        return [pair(place, [float(place < hits)], [True], name) for place in range(n)]

    both, small = (agree(of("a", 40, 20) + of("b", n, n // 4), resamples=200) for n in (40, 4))
    nothing = agree(of("a", 40, 20) + [pair(place, [0.1], [False], "b") for place in range(20)])

    path, name = ("keys", "relevant"), "recall"
    mean = both.mean_over_datasets.blocks[path].figures[name]
    (low, high), (alone_low, alone_high) = (
        each.interval or (0, 0) for each in (mean, both.by_dataset["a"].blocks[path].figures[name])
    )
    assert mean.value == 0.375
    assert low < 0.375 < high
    assert high - low < alone_high - alone_low
    assert small.mean_over_datasets.blocks[path].figures[name] == Figure(0.375)
    of_one = nothing.mean_over_datasets.blocks[path]
    assert (of_one.figures[name].value, (of_one.sets or {})[name]) == (0.5, 1)


# --- ROC and reliability


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

    chances, positives = map(list, zip(*items, strict=True))
    assert curve.auroc == same(naive.auroc(chances, positives))
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
    guessed = make_labels(
        relevant_probabilities={"0a": 0.9, "0b": 0.2},
        utilized_probabilities={"0a": 0.3, "0b": 0.7},
        supported_probabilities={"a": 0.75, "b": 0.25, "c": 0.5},
    )
    known = make_labels("0a", "0b", {"a": ("0a", True), "b": ("", False), "c": ("", None)})
    rows: dict[str, Any] = {"scores": {"adherence": 1.0}, "sentences": sentences}
    predicted = make_evaluation(**rows, labels=guessed, probability=0.75)

    drawn = curves([Pair(predicted, make_evaluation(**rows, labels=known))])

    assert drawn["not adherent"].bins == ((1, 0.25, 0.0),)
    assert drawn["relevant"].bins == ((1, 0.2, 0.0), (1, 0.9, 1.0))
    assert drawn["utilized"].bins == ((1, 0.3, 0.0), (1, 0.7, 1.0))
    assert drawn["unsupported"].bins == ((1, 0.25, 0.0), (1, 0.75, 1.0))
