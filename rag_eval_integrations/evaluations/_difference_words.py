"""The difference of one score as a person reads it: its outcome, and its row in tables."""

from __future__ import annotations

from rag_eval_integrations._visible import counted
from rag_eval_integrations.evaluations._paired import ScoreDifference


def calls(count: int) -> str:
    """Write a number of calls."""
    return counted(count, "call")


def decimal(value: float | None, places: int = 3, *, sign: bool = False) -> str:
    """Write a figure; a dash for none."""
    return "–" if value is None else f"{value:{'+' if sign else ''}.{places}f}"


def probability(value: float | None) -> str:
    """Write a p-value; a dash for none."""
    return "–" if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"


OUTCOMES = ("worse", "better", "cannot tell", "same documents")


def outcome(score: ScoreDifference) -> str:
    """Say what the interval tells of a score, in one of `OUTCOMES`."""
    if score.same_documents:
        return "same documents"
    if score.interval is None or score.interval.low <= 0 <= score.interval.high:
        return "cannot tell"
    return "worse" if score.interval.high < 0 else "better"


HEADINGS = (
    "score",
    "A",
    "B",
    "B - A",
    "95 % interval",
    "p",
    "adjusted p",
    "smallest detectable difference",
)


def cells(score: ScoreDifference, places: int = 3) -> list[str]:
    """Write one score's row under `HEADINGS`."""
    interval = score.interval
    ends = "–" if interval is None else f"[{interval.low:+.3f}, {interval.high:+.3f}]"
    return [
        score.name,
        decimal(score.mean_a, places),
        decimal(score.mean_b, places),
        decimal(score.difference, places, sign=True),
        ends,
        probability(score.p),
        probability(score.p_holm),
        decimal(score.smallest_visible),
    ]
