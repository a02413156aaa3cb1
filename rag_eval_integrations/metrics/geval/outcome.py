"""What an estimator found: a score with its uncertainty, or the reason why there is none."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Literal

from rag_eval_integrations.judges.completion import Choice
from rag_eval_integrations.metrics.geval.expectation import Expectation
from rag_eval_integrations.metrics.geval.numbers import Reading
from rag_eval_integrations.metrics.geval.paper import paper_score
from rag_eval_integrations.metrics.geval.plan import Plan
from rag_eval_integrations.metrics.geval.reply import read_reply
from rag_eval_integrations.records import UnscoredCode

Method = Literal["logprobs", "monte_carlo", "single"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A score on the metric's own scale."""

    raw: float
    method: Method
    distribution: Mapping[float, float]
    """Probability by score; of samples, their shares. Adds up to 1."""
    n: int
    """Answers that it rests on."""
    mass: float
    """Of log-probabilities: probability on the scale. Of samples: share that could be used."""
    reply: str
    """What the judge wrote, its reasoning in it; of samples, the one nearest to the mean."""
    reason: str
    std: float | None = None
    std_error: float | None = None
    """Of the mean over samples; None otherwise, and for one sample."""
    sampled: Mapping[str, int] = field(default_factory=dict)
    """Of samples: how many were asked for, given, used, and dropped for which reason."""

    @property
    def argmax(self) -> float:
        """The likeliest score, the lower one of two."""
        return max(self.distribution, key=lambda score: (self.distribution[score], -score))


@dataclass(frozen=True, slots=True)
class NoEstimate:
    """Why there is no score."""

    code: UnscoredCode
    why: str
    reply: str = ""


def read_choice(choice: Choice, plan: Plan) -> Reading | NoEstimate:
    """Read one answer: its score, or why it has none."""
    if choice.finish_reason == "refusal" or choice.refusal:
        words = " ".join((choice.refusal or choice.text).split())[:200]
        return NoEstimate("refusal", f"the judge refused: {words}", choice.text)
    if choice.finish_reason == "content_filter":
        return NoEstimate("content_filter", "the judge's content filter stopped the answer")
    if plan.paper_parser is not None:
        return Reading(paper_score(choice.text, plan.paper_parser), None, choice.text)
    reading = read_reply(choice.text, plan.name, plan.scale)
    cut = choice.finish_reason == "length"
    unfinished = cut and (not reading.sure or _may_go_on(reading, choice.text, plan))
    if reading.problem is None and not unfinished:
        return reading
    if cut:
        why = f"the judge's answer was cut off (max_tokens={plan.max_tokens})"
        return NoEstimate("truncated", why, choice.text)
    return NoEstimate(reading.problem or "judge_output_invalid", reading.reason, choice.text)


def _may_go_on(reading: Reading, text: str, plan: Plan) -> bool:
    """Whether a cut-off reply ends in the score's digits, so that more may have been coming."""
    at_the_end = reading.span is None or reading.span[1] == len(text.rstrip())
    return at_the_end and plan.scale[1] > 9


def of_logprobs(found: Expectation, reading: Reading, reply: str) -> Estimate:
    """Make an estimate of an expectation."""
    distribution = {float(k): p for k, p in found.distribution.items()}
    return Estimate(
        raw=found.value, method="logprobs", distribution=distribution, n=1, mass=found.mass,
        reply=reply, reason=reading.reason, std=found.std,
    )  # fmt: skip


def of_single(reading: Reading, reply: str) -> Estimate:
    """Make an estimate of one answer."""
    assert reading.score is not None
    return Estimate(
        raw=reading.score, method="single", distribution={reading.score: 1.0}, n=1, mass=1.0,
        reply=reply, reason=reading.reason,
    )  # fmt: skip


def of_samples(choices: Sequence[Choice], plan: Plan) -> Estimate | NoEstimate:
    """Average samples; those that cannot be used are dropped and counted."""
    used: list[tuple[float, str, str]] = []
    dropped: list[NoEstimate] = []
    for choice in choices:
        reading = read_choice(choice, plan)
        if isinstance(reading, NoEstimate):
            dropped.append(reading)
        elif reading.score is not None:
            used.append((reading.score, choice.text, reading.reason))
    reasons: Counter[UnscoredCode] = Counter(problem.code for problem in dropped)
    if not used:
        code, count = reasons.most_common(1)[0]
        first = next(problem for problem in dropped if problem.code == code)
        why = f"{count} of {len(choices)} samples: {first.why}"
        return NoEstimate(code, why, first.reply)
    scores = [score for score, _, _ in used]
    # The tables were added up one by one, and rounding decides there what is tied.
    total = math.fsum(scores) if plan.paper_parser is None else reduce(add, scores)
    mean = total / len(scores)
    squares = math.fsum((score - mean) ** 2 for score in scores)
    std = math.sqrt(squares / (len(scores) - 1)) if len(scores) > 1 else None
    _, reply, reason = min(used, key=lambda item: abs(item[0] - mean))
    counts = Counter(scores)
    sampled = {"asked": plan.samples, "given": len(choices), "used": len(used)}
    sampled |= {str(code): count for code, count in reasons.items()}
    return Estimate(
        raw=mean, method="monte_carlo", n=len(scores), mass=len(scores) / len(choices),
        distribution={score: counts[score] / len(scores) for score in sorted(counts)},
        reply=reply, reason=reason, std=std,
        std_error=None if std is None else std / math.sqrt(len(scores)),
        sampled=sampled,
    )  # fmt: skip
