"""Student's t: the 97.5 % point, which the intervals of small samples are made with."""

from __future__ import annotations

import math

Z_975 = 1.959963984540054
"""The 97.5 % point of the normal distribution, which is that of infinite freedom."""


def t_975(freedom: float) -> float:
    """Return the 97.5 % point of Student's t distribution.

    The tail is taken from the incomplete beta function (continued fraction) and inverted by
    Newton's method, to about 1e-12; a table would end somewhere, and the effective size of a
    weighted sample is no whole number.

    Args:
        freedom: degrees of freedom, above 0.

    Raises:
        ValueError: `freedom` is not above 0.
    """
    if not freedom > 0:
        raise ValueError(f"degrees of freedom = {freedom!r}: use a number above 0")
    if freedom > 1e7:
        return Z_975
    log_scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    log_scale -= 0.5 * math.log(freedom * math.pi)
    # The tail falls ever slower in t, so it is solved for in its logarithm.
    x = math.log(Z_975 + 2.4 / freedom + (8 / freedom**2 if freedom < 2 else 0))
    for _ in range(100):
        t = math.exp(x)
        tail = _tail(t, freedom)
        density = math.exp(log_scale - (freedom + 1) / 2 * math.log1p(t * t / freedom))
        step = math.log(tail / 0.025) * tail / (density * t)
        x += max(-1.0, min(1.0, step))
        if abs(step) < 1e-13:
            break
    return math.exp(x)


def _tail(t: float, freedom: float) -> float:
    """Return P(T > t) for t > 0: half the incomplete beta function I_x(freedom/2, 1/2)."""
    a, b = freedom / 2, 0.5
    x = freedom / (freedom + t * t)
    swapped = x > (a + 1) / (a + b + 2)  # where the fraction converges slowly, the other end's
    if swapped:
        a, b, x = b, a, t * t / (freedom + t * t)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(log_front + a * math.log(x) + b * math.log1p(-x)) / a
    share = front * _fraction(a, b, x)
    return (1 - share if swapped else share) / 2


def _fraction(a: float, b: float, x: float) -> float:
    """Evaluate the continued fraction of the incomplete beta function by Lentz's method."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 500):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + term * d)
            c = 1 + term / c
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value
