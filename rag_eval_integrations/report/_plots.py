"""Plots as what a template draws: a path, points with their words, and the axes' ends.

Every plot stands on one square or rectangle with its axes outside of it, says its figures in its
title, and has them in a table beside it; a colour never tells anything alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rag_eval_integrations.agreement import Curves

SIDE = 260
EDGE = 34
"""Pixels around a plot, which hold the axes' numbers and words."""
_MOST_POINTS = 400
"""Limit on the points drawn per curve; more cannot be told apart on 260 pixels."""
_LISTED = 10
"""Steps of a ROC curve in its table."""

Plot = dict[str, Any]


def roc(curves: Curves, title: str) -> Plot:
    """Draw a ROC curve, with chance as a dashed line; empty when gold has one class only."""
    area = "undefined: gold has one class only" if curves.auroc is None else f"{curves.auroc:.3f}"
    points = curves.roc
    drawn: Sequence[tuple[float, float]] = ()
    if points:
        step = -(-len(points) // _MOST_POINTS)
        drawn = [*points[:-1:step], points[-1]]
    return _plot(
        title, f"ROC; area {area}", "false positives", "true positives", drawn, [], diagonal=True
    ) | {"table": [(f"{x:.3f}", f"{y:.3f}") for x, y in _thinned(points)]}


def reliability(curves: Curves, title: str) -> Plot:
    """Draw the share in gold by probability, in ten bins; a point's area is its share of items."""
    dots = []
    for group in curves.bins:
        x, y = _point(group.mean, group.share)
        words = (
            f"{group.n:,} items: mean probability {group.mean:.3f}, share in gold {group.share:.3f}"
        )
        radius = 2 + 14 * (group.n / curves.n) ** 0.5
        dots.append({"x": x, "y": y, "r": f"{radius:.1f}", "title": words})
    return _plot(
        title,
        f"reliability; expected calibration error {curves.calibration_error:.3f}",
        "probability",
        "share in gold",
        (),
        dots,
        diagonal=True,
    ) | {
        "table": [
            (f"{group.n:,}", f"{group.mean:.3f}", f"{group.share:.3f}") for group in curves.bins
        ]
    }  # fmt: skip


def course(
    values: Sequence[tuple[float, float | None]], title: str, across: str, up: str
) -> Plot | None:
    """Draw values in [0, 1] by a share, on an axis that ends at the tenths around them.

    Args:
        values: (share, value); a value that is undefined is left out.
        title: name of the plot.
        across: words at the horizontal axis.
        up: words at the vertical axis.

    Returns:
        The plot; None without a value.
    """
    known = [(share, value) for share, value in values if value is not None]
    if not known:
        return None
    low = math.floor(min(value for _, value in known) * 10) / 10
    high = math.ceil(max(value for _, value in known) * 10) / 10
    if high - low < 0.05:
        low, high = (low, low + 0.1) if low < 0.95 else (low - 0.1, low)
    scaled = [(share, (value - low) / (high - low)) for share, value in known]
    dots = [
        {
            "x": _point(*place)[0],
            "y": _point(*place)[1],
            "r": "3.5",
            "title": f"{share:.0%}: {value:.3f}",
        }
        for place, (share, value) in zip(scaled, known, strict=True)
    ]
    return _plot(title, title, across, up, scaled, dots, ends=(f"{low:.1f}", f"{high:.1f}"))


def _plot(
    title: str,
    caption: str,
    across: str,
    up: str,
    line: Sequence[tuple[float, float]],
    dots: list[dict[str, str]],
    *,
    diagonal: bool = False,
    ends: tuple[str, str] = ("0", "1"),
) -> Plot:
    return {
        "title": title,
        "caption": caption,
        "across": across,
        "up": up,
        "path": f"M{'L'.join(' '.join(_point(x, y)) for x, y in line)}" if line else "",
        "dots": dots,
        "diagonal": diagonal,
        "low": ends[0],
        "high": ends[1],
    }


def _point(x: float, y: float) -> tuple[str, str]:
    return f"{EDGE + x * SIDE:.1f}", f"{EDGE + (1 - y) * SIDE:.1f}"


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Choose points of a ROC curve at steps of its false positives, with both ends."""
    kept: list[tuple[float, float]] = []
    for step in range(_LISTED + 1):
        upto = [point for point in points if point[0] <= step / _LISTED]
        if upto and upto[-1] not in kept:
            kept.append(upto[-1])
    return kept
