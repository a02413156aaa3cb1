"""Statistics of pairs: by hand, by definition, and where they could lie."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.evaluations._paired import (
    MIN_PAIRS,
    POWER,
    ScoreDifference,
    Values,
    paired,
)
from rag_eval_integrations.records.mean import t_975

Pairs = Sequence[Values | None]


def figures_of(pairs: Pairs, groups: list[str] | None = None) -> ScoreDifference:
    """The figures of one score."""
    return paired({"score": pairs}, groups)["score"]


def ends(result: ScoreDifference, method: str | None = None) -> tuple[float, float]:
    """The ends of an interval that is there, by a method."""
    assert result.interval is not None
    assert method in (None, result.interval.method)
    return result.interval.low, result.interval.high


def error_of(result: ScoreDifference) -> float:
    """The standard error behind the smallest difference that can be seen."""
    assert result.smallest_visible is not None
    return result.smallest_visible / POWER


def random_pairs(n: int, seed: int, shift: float = 0.0) -> list[Values]:
    """Continuous pairs, reproducible."""
    uniform = random.Random(seed).uniform
    return [
        (before, before + shift + uniform(-0.2, 0.2))
        for before in (uniform(0.2, 0.6) for _ in range(n))
    ]


millionths = st.integers(0, 10**6).map(lambda value: value / 10**6)


@given(st.lists(st.none() | st.tuples(millionths, millionths), max_size=40))
def test_the_difference_is_that_of_the_means_of_the_pairs(pairs: Pairs) -> None:
    """Whatever is missing; wins, losses and ties are all pairs; p is a probability."""
    figures = figures_of(pairs)

    known = [pair for pair in pairs if pair is not None]
    assert figures.n == len(known) == figures.wins + figures.losses + figures.ties
    if not known:
        assert (figures.difference, figures.mean_a, figures.p, figures.interval) == (None,) * 4
        return
    assert figures.difference == pytest.approx(statistics.fmean(b - a for a, b in known), abs=1e-9)
    assert figures.mean_a == pytest.approx(statistics.fmean(a for a, _ in known))
    assert figures.p is not None
    assert 0 < figures.p <= 1
    assert (figures.interval is None) == (len(known) < MIN_PAIRS)
    if figures.interval is not None:
        assert -1 <= figures.interval.low <= figures.interval.high <= 1
        assert figures.interval.low < figures.interval.high, "width 0 claims to be certain"


@given(st.lists(st.tuples(millionths, millionths), min_size=2, max_size=9))
def test_p_is_the_share_of_all_sign_flips(pairs: list[Values]) -> None:
    """Counted by definition, zeros included: they change nothing."""
    changes = [round(b * 10**6) - round(a * 10**6) for a, b in pairs]
    flips = [
        abs(sum(sign * change for sign, change in zip(signs, changes, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(changes))
    ]

    figures = figures_of(list(pairs))

    assert figures.p == sum(flip >= abs(sum(changes)) for flip in flips) / len(flips)


def test_all_flips_are_counted_where_few_sums_differ() -> None:
    """As of thirty changes in hundredths; counted here in whole numbers."""
    pairs = [(round(a, 2), round(b, 2)) for a, b in random_pairs(30, 3, shift=0.05)]
    changes = [round(100 * b) - round(100 * a) for a, b in pairs]
    assert sum(map(bool, changes)) > 20
    totals = Counter([0])
    for change in changes:
        flipped: Counter[int] = Counter()
        for total, ways in totals.items():
            flipped.update({total + change: ways})
            flipped.update({total - change: ways})
        totals = flipped

    exact = sum(n for total, n in totals.items() if abs(total) >= abs(sum(changes)))
    assert figures_of(pairs).p == pytest.approx(exact / totals.total(), rel=1e-9)


@pytest.mark.parametrize(("n", "shift"), [(30, 0.05), (100, 0.03), (1_000, 0.005)])
def test_of_many_flips_the_normal_limit_is_taken(n: int, shift: float) -> None:
    """Beside flips that are drawn."""
    pairs = random_pairs(n, 4, shift)
    changes = [b - a for a, b in pairs]
    generator, observed = random.Random(1), abs(sum(changes))
    draws = [[change * generator.choice((1, -1)) for change in changes] for _ in range(2_000)]

    drawn = statistics.fmean(abs(sum(draw)) >= observed for draw in draws)
    assert 0.001 < drawn < 0.8
    assert figures_of(pairs).p == pytest.approx(drawn, abs=0.03)


def test_no_p_is_zero() -> None:
    """However many calls fell: not below the share of one flip of all."""
    fell = [(0.9 - place / 10**5, 0.0) for place in range(5_000)]

    p = figures_of(fell).p
    assert p is not None
    assert 0 < p < 1e-100


def test_binary_scores_have_mcnemars_exact_p() -> None:
    """2 · P(X ≤ 3), X binomial with 15 and ½; at any number of pairs."""
    pairs: Pairs = [(0.0, 1.0)] * 3 + [(1.0, 0.0)] * 12 + [(1.0, 1.0)] * 85

    expected = 2 * sum(math.comb(15, k) for k in range(4)) / 2**15
    assert figures_of(pairs).p == pytest.approx(expected)
    wide: Pairs = [(0.0, 1.0)] * 1_500 + [(1.0, 0.0)] * 1_500
    assert figures_of(wide).p == 1.0
    # Above some 360 changes its normal limit, corrected for continuity, is as good.
    more: Pairs = [(0.0, 1.0)] * 700 + [(1.0, 0.0)] * 620
    tail = sum(math.comb(1_320, k) for k in range(621))
    assert figures_of(more).p == pytest.approx(2 * tail / 2**1_320, rel=0.02)


@pytest.mark.parametrize("n", [10, 30, 100, 1_500])
def test_students_t_of_the_mean_difference(n: int) -> None:
    """Mean ± t · s / √n, for scores that are not 0 or 1."""
    pairs = random_pairs(n, 1)
    changes = [b - a for a, b in pairs]

    figures = figures_of(pairs)

    error, mean = statistics.stdev(changes) / math.sqrt(n), statistics.fmean(changes)
    half = t_975(n - 1) * error
    assert ends(figures, "Student's t") == pytest.approx((mean - half, mean + half), abs=2e-6)
    assert error_of(figures) == pytest.approx(error, abs=1e-6)


@pytest.mark.parametrize(("up", "down", "n"), [(2, 6, 40), (30, 70, 200), (900, 600, 5_000)])
def test_binary_pairs_have_bonetts_and_prices_interval(up: int, down: int, n: int) -> None:
    """By its published formula, whatever their number."""
    pairs: Pairs = [(0.0, 1.0)] * up + [(1.0, 0.0)] * down + [(1.0, 1.0)] * (n - up - down)

    figures = figures_of(pairs)

    p12, p21 = (up + 1) / (n + 2), (down + 1) / (n + 2)
    half = 1.959963984540054 * math.sqrt((p12 + p21 - (p12 - p21) ** 2) / (n + 2))
    expected = p12 - p21 - half, p12 - p21 + half
    assert ends(figures, "Bonett-Price") == pytest.approx(expected)


EQUAL: list[Values] = [(0.7, 0.7)] * 1_000


@pytest.mark.parametrize(
    ("pairs", "groups"),
    [
        *((EQUAL[:n], None) for n in (10, 60, 1_000)),
        # Two changes in 100 could as well have been none or five.
        (EQUAL[:98] + [(0.5, 0.1)] * 2, None),
        *((EQUAL[: 5 * n], [str(place * 2 // 5 % n) for place in range(5 * n)]) for n in (10, 60)),
        *((EQUAL[: 30 * n], [str(place // 30) for place in range(30 * n)]) for n in (10, 33)),
    ],
)
def test_runs_that_hardly_differ_are_not_certain(pairs: Pairs, groups: list[str] | None) -> None:
    """Their interval is as wide as few units make it, and narrows as 1 / n; not of width 0."""
    low, high = ends(figures_of(pairs, groups), "Bonett-Price")

    assert low < 0 < high
    units = len(pairs if groups is None else set(groups))
    if {*pairs} == {*EQUAL}:
        assert low == pytest.approx(-high)
        assert high == pytest.approx(1.959963984540054 * math.sqrt(2) / (units + 2), rel=0.2)


def test_students_t_agrees_with_resampled_means() -> None:
    """Beside the percentiles of a plain bootstrap of the same pairs."""
    pairs = random_pairs(300, 2, shift=0.03)
    changes = [b - a for a, b in pairs]
    generator = random.Random(9)
    means = sorted(statistics.fmean(generator.choices(changes, k=300)) for _ in range(4_000))

    figures = figures_of(pairs)

    expected = means[100], means[3_899]
    assert ends(figures, "Student's t") == pytest.approx(expected, abs=0.15 * error_of(figures))


@given(st.permutations(range(60)), st.booleans())
def test_figures_are_the_same_in_any_order_and_beside_any_score(
    order: list[int], grouped: bool
) -> None:
    """Also with calls that lack the score; only Holm's p depends on the number of scores."""
    pairs = random_pairs(60, 5, shift=0.03)
    groups = [str(place // 3) for place in range(60)] if grouped else None
    figures = figures_of(pairs, groups)

    gaps: Pairs = [pair for place in order for pair in (None, pairs[place])]
    names = None if groups is None else [name for at in order for name in ("gap", groups[at])]
    beside = paired({"other": gaps[::-1], "score": gaps, "few": [None] * 120}, names)

    assert replace(beside["score"], p_holm=figures.p_holm) == figures
    assert beside["few"].n == 0


def test_holm_adjusts_by_the_number_of_scores() -> None:
    """The smallest p times the number of scores, the next by one less, never falling."""
    down: Pairs = [(1.0, 0.0)] * 8 + [(1.0, 1.0)] * 32
    less: Pairs = [(1.0, 0.0)] * 6 + [(1.0, 1.0)] * 34
    same: Pairs = [(1.0, 1.0)] * 40

    figures = paired({"same": same, "less": less, "down": down, "absent": [None] * 40})

    assert figures["down"].p_holm == pytest.approx(3 * 2 / 2**8)
    assert figures["less"].p_holm == pytest.approx(2 * 2 / 2**6)
    assert figures["same"].p_holm == 1.0
    assert figures["absent"].p_holm is None


def test_calls_of_a_conversation_count_as_one() -> None:
    """Calls that repeat each other are no more information than one of them."""
    single = random_pairs(60, 11, shift=0.05)
    thrice = [pair for pair in single for _ in range(3)]
    groups = [str(place) for place in range(60) for _ in range(3)]

    alone, together, pretended = figures_of(single), figures_of(thrice, groups), figures_of(thrice)

    assert (together.n, together.conversations) == (180, 60)
    assert ends(together) == pytest.approx(ends(alone), abs=1e-6)
    assert together.p == pytest.approx(alone.p, rel=1e-4)
    assert error_of(together) == pytest.approx(error_of(alone), rel=1e-6)
    assert error_of(pretended) < 0.6 * error_of(alone)


def test_conversations_of_unequal_length_have_the_jackknifes_error() -> None:
    """Each left out in turn, with as many degrees of freedom as equal ones would have: Kish's."""
    generator = random.Random(12)
    sizes = [generator.randint(1, 6) for _ in range(20)]
    groups = [str(place) for place, size in enumerate(sizes) for _ in range(size)]
    pairs = random_pairs(len(groups), 13)
    changes = [b - a for a, b in pairs]
    named = list(zip(changes, groups, strict=True))
    without = [
        statistics.fmean(change for change, group in named if group != name) for name in {*groups}
    ]

    figures = figures_of(pairs, groups)

    mean = statistics.fmean(changes)
    expected = math.sqrt(19 / 20 * sum((other - mean) ** 2 for other in without))
    assert error_of(figures) == pytest.approx(expected, rel=1e-5)
    freedom = sum(sizes) ** 2 / sum(size**2 for size in sizes) - 1
    half = t_975(freedom) * expected
    assert ends(figures, "Student's t") == pytest.approx((mean - half, mean + half), abs=1e-5)


def test_nearly_all_calls_in_one_conversation_tell_nothing() -> None:
    """However many calls it has."""
    groups = ["long"] * 20_000 + [f"short {place}" for place in range(12)]
    pairs: Pairs = [(0.9, 0.5), (0.9, 0.6)] * (len(groups) // 2)

    low, high = ends(figures_of(pairs, groups))

    assert -1 <= low < -0.2
    assert low < high <= 1
