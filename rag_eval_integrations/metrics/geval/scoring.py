"""An estimate becomes a `Score`: normalised, with a verdict, and with what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_eval_integrations.metrics.geval.outcome import Estimate, NoEstimate
from rag_eval_integrations.records import By, JsonObject, Score

if TYPE_CHECKING:
    from rag_eval_integrations.metrics.geval.metric import GEval

_MOST_REPLY = 8_000
"""Characters of a reply that are kept."""


def score_of(
    metric: GEval,
    found: Estimate | NoEstimate,
    by: By,
    steps: Sequence[str] = (),
    warnings: tuple[str, ...] = (),
) -> Score:
    """Write the score of what was found.

    `value` is (raw - lowest)/(highest - lowest); strict, 1.0 when the likeliest score is the
    highest, else 0.0.
    """
    low, high = metric.scale
    evidence: JsonObject = {"steps": list(steps)} if steps else {}
    if found.reply:
        evidence["reply"] = found.reply[:_MOST_REPLY]
    if isinstance(found, NoEstimate):
        return Score(
            name=metric.names[0], status="unscored", unscored=found.code, reason=found.why,
            scale=(low, high), threshold=metric.threshold, evidence=evidence or None,
            warnings=warnings, by=by,
        )  # fmt: skip
    evidence |= {"argmax": found.argmax, "std": found.std}
    if found.sampled:
        evidence["samples"] = dict(found.sampled)
    value = (found.raw - low) / (high - low)
    if metric.strict:
        value = float(found.argmax == high)
    return Score(
        name=metric.names[0],
        status="scored",
        # Outside of 0 to 1 only for the parsers of published tables, which believe any number.
        value=min(1.0, max(0.0, value)),
        raw=found.raw,
        scale=(low, high),
        threshold=metric.threshold,
        reason=_reason(found, high),
        evidence=evidence,
        method=found.method,
        n=found.n,
        mass=found.mass,
        std_error=found.std_error,
        distribution={f"{k:g}": min(1.0, p) for k, p in found.distribution.items()},
        probability=min(1.0, found.distribution.get(high, 0.0)) if metric.strict else None,
        warnings=warnings,
        by=by,
    )


def _reason(found: Estimate, high: int) -> str:
    words = " ".join(found.reason.split())[:_MOST_REPLY]
    if words:
        return words
    dropped = f", {found.sampled['given'] - found.n} dropped" if found.sampled else ""
    return f"{found.raw:.4g} of {high} by {found.method} (n {found.n}{dropped}), without a reason"
