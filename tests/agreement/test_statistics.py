"""Statistics and intervals at the public doors: definitions pair by pair, theory, empty cases."""

from __future__ import annotations

import random
import statistics as moments
from collections.abc import Sequence
from typing import Any

import naive_agreement as naive
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_eval_integrations.agreement import Figure, Pair, agree, agree_with_numbers

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
    return Pair(
        make_evaluation(str(place), sentences=sentences, labels=judged),
        make_evaluation(str(place), sentences=sentences, labels=make_labels(chosen)),
        dataset=dataset,
    )


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
