"""Student's t against published tables."""

from __future__ import annotations

import pytest

from rag_eval_integrations.records.mean import t_975


@pytest.mark.parametrize(
    ("freedom", "point"),
    [
        (1, 12.7062047362), (2, 4.3026527297), (3, 3.1824463053), (4, 2.7764451052),
        (5, 2.5705818356), (9, 2.2621571628), (10, 2.2281388520), (30, 2.0422724563),
        (100, 1.9839715185), (1000, 1.9623390808), (1e9, 1.9599639845),
    ],
)  # fmt: skip
def test_published_points(freedom: float, point: float) -> None:
    """To ten digits, of few and of many degrees of freedom."""
    assert t_975(freedom) == pytest.approx(point, abs=6e-10)


def test_it_falls_steadily() -> None:
    """Also between whole numbers, which effective sizes are."""
    points = [t_975(number / 7) for number in range(2, 3000)]
    assert points == sorted(points, reverse=True)


def test_a_sample_of_one_has_none() -> None:
    """It has no freedom left."""
    with pytest.raises(ValueError, match="= 0: use a number above 0"):
        t_975(0)
