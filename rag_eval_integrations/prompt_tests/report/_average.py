"""`average`: the mean of the non-compliance rates of several prompts, as in PromptPex's paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from rag_eval_integrations.prompt_tests.report.rates import Rate
from rag_eval_integrations.prompt_tests.report.report import Report


@dataclass(frozen=True, slots=True)
class Average:
    """Mean Test Non-Compliance of one model, 0 to 1; a rate is None if no prompt has such tests."""

    model: str
    tests: float | None
    """For all rule tests. Each prompt's rate is rounded to whole percent, as in the paper."""
    baseline: float | None
    """For baseline tests, rounded in the same way."""
    rule: float | None
    """For tests of rules that are not inverse; rates are not rounded, as in the paper."""
    inverse: float | None
    """For tests of inverse rules, not rounded. `rule` and `inverse` include only prompts with
    tests of both kinds, so that they can be compared: two of the paper's 22 prompts have no inverse
    rules."""
    prompts: int
    """Number of prompts with results of the model."""


def average(reports: Sequence[Report]) -> list[Average]:
    """Average reports of several prompts: one row per model, in the order of the reports."""
    models = list(dict.fromkeys(model for report in reports for model in report.models))
    return [_average(model, [one for one in reports if model in one.models]) for model in models]


def _average(model: str, reports: Sequence[Report]) -> Average:
    split = [
        (rule.non_compliant, inverse.non_compliant)
        for rule, inverse in (
            (one.tnc(model=model, by="rule"), one.tnc(model=model, by="inverse")) for one in reports
        )
        if rule.n and inverse.n
    ]
    return Average(
        model=model,
        tests=_mean([_rounded(report.tnc(model=model)) for report in reports]),
        baseline=_mean([_rounded(report.tnc(model=model, by="baseline")) for report in reports]),
        rule=_mean([rule for rule, _ in split]),
        inverse=_mean([inverse for _, inverse in split]),
        prompts=len(reports),
    )


def _rounded(rate: Rate) -> float | None:
    return None if rate.percent is None else 1 - rate.percent / 100


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
