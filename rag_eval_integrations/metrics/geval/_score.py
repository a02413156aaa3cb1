"""From an estimate to a `Score`: normalised, with a threshold and evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_eval_integrations.metrics.geval._estimators import NoEstimate, ScoreEstimate
from rag_eval_integrations.records import By, JsonObject, Score

_MOST_REPLY = 8_000
"""Characters of a reply that the evidence keeps."""


@dataclass(frozen=True, slots=True)
class Grading:
    """What a metric makes of an estimate: the score's name, its scale and when it passes."""

    name: str
    scale: tuple[int, int]
    threshold: float | None
    strict: bool


def score_of(
    grading: Grading,
    found: ScoreEstimate | NoEstimate,
    by: By,
    steps: Sequence[str] = (),
    warnings: tuple[str, ...] = (),
) -> Score:
    """Make the `Score` of an estimate.

    `value` is (raw - lowest) / (highest - lowest), in [0, 1]; for a strict metric, 1.0 when the
    likeliest score is the highest of the scale, else 0.0.
    """
    low, high = grading.scale
    evidence: JsonObject = {"steps": list(steps)} if steps else {}
    if found.reply:
        evidence["reply"] = found.reply[:_MOST_REPLY]
    if isinstance(found, NoEstimate):
        return Score(
            name=grading.name, status="unscored", unscored=found.code, reason=found.why,
            scale=(low, high), threshold=grading.threshold, evidence=evidence or None,
            warnings=warnings, by=by,
        )  # fmt: skip
    evidence |= {"argmax": found.argmax, "std": found.std}
    if found.sampled:
        evidence["samples"] = dict(found.sampled)
    if found.shift:
        evidence["shift"] = found.shift
    value = (found.raw - low) / (high - low)
    if grading.strict:
        value = float(found.argmax == high)
    return Score(
        name=grading.name,
        status="scored",
        # Outside of 0 to 1 only with the parsers of published tables, which accept any number.
        value=min(1.0, max(0.0, value)),
        raw=found.raw,
        scale=(low, high),
        threshold=grading.threshold,
        reason=_reason(found, high),
        evidence=evidence,
        method=found.method,
        n=found.n,
        mass=found.mass,
        std_error=found.std_error,
        distribution={f"{k:g}": min(1.0, p) for k, p in found.distribution.items()},
        probability=min(1.0, found.distribution.get(high, 0.0)) if grading.strict else None,
        warnings=warnings,
        by=by,
    )


def _reason(found: ScoreEstimate, high: int) -> str:
    words = " ".join(found.reason.split())[:_MOST_REPLY]
    if words:
        return words
    dropped = f", {found.sampled['given'] - found.n} dropped" if found.sampled else ""
    return (
        f"{found.raw:.4g} of {high} by {found.method} (n {found.n}{dropped}); "
        "the judge gave no reason"
    )
