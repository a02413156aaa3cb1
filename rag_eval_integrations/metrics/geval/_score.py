"""From an estimate to a `Score`: normalised, with a threshold and evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag_eval_integrations.metrics.geval._estimators import NoEstimate, RatingEstimate
from rag_eval_integrations.records import JsonObject, Score

_MOST_REPLY = 8_000
"""Characters of a reply that the evidence keeps."""


def score_of(
    estimate: RatingEstimate | NoEstimate,
    scale: tuple[int, int],
    *,
    strict: bool,
    steps: Sequence[str],
    **fields: Any,
) -> Score:
    """Make the `Score` of an estimate.

    `value` is (raw - lowest) / (highest - lowest), in [0, 1]; for a strict metric, 1.0 when the
    likeliest score is the highest of the scale, else 0.0.

    Args:
        estimate: the estimate, or the reason why there is none.
        scale: lowest and highest score.
        strict: whether the metric is.
        steps: the evaluation steps, for the evidence.
        fields: the other fields of the `Score`.
    """
    low, high = scale
    evidence: JsonObject = {"steps": list(steps)} if steps else {}
    if estimate.reply:
        evidence["reply"] = estimate.reply[:_MOST_REPLY]
    if isinstance(estimate, NoEstimate):
        return Score(
            status="unscored", unscored=estimate.code, reason=estimate.why, scale=scale,
            evidence=evidence or None, **fields,
        )  # fmt: skip
    evidence |= {"argmax": estimate.argmax, "std": estimate.std}
    if estimate.sampled:
        evidence["samples"] = dict(estimate.sampled)
    if estimate.shift:
        evidence["shift"] = estimate.shift
    value = (estimate.raw - low) / (high - low)
    if strict:
        value = float(estimate.argmax == high)
    return Score(
        status="scored",
        # Outside of 0 to 1 only with the parsers of published tables, which accept any number.
        value=min(1.0, max(0.0, value)),
        raw=estimate.raw,
        scale=scale,
        reason=_reason(estimate, high),
        evidence=evidence,
        method=estimate.method,
        n=estimate.n,
        mass=estimate.mass,
        std_error=estimate.std_error,
        distribution={f"{k:g}": min(1.0, p) for k, p in estimate.distribution.items()},
        probability=min(1.0, estimate.distribution.get(high, 0.0)) if strict else None,
        **fields,
    )


def _reason(estimate: RatingEstimate, high: int) -> str:
    words = " ".join(estimate.reason.split())[:_MOST_REPLY]
    if words:
        return words
    dropped = f", {estimate.sampled['given'] - estimate.n} dropped" if estimate.sampled else ""
    return (
        f"{estimate.raw:.4g} of {high} by {estimate.method} (n {estimate.n}{dropped}); "
        "the judge gave no reason"
    )
