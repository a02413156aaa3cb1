"""Non-compliance over several prompts: the plain mean of the prompts' rates, as in the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from rag_eval_integrations.prompt_tests.report.rates import Rate
from rag_eval_integrations.prompt_tests.report.report import Report


@dataclass(frozen=True, slots=True)
class Average:
    """Mean Test Non-Compliance of one model, 0 to 1; None where no prompt has such tests."""

    model: str
    tests: float | None
    """Of the tests of rules; of each prompt the rate in whole percent, as the paper has it."""
    baseline: float | None
    """Of the baseline tests, the same."""
    rule: float | None
    """Of the tests of rules that are no inverse ones; not rounded, as the paper has it."""
    inverse: float | None
    """Of the tests of inverse rules. Both only over prompts that have tests of either kind, so
    that they can be compared: two of the paper's 22 have no inverse ones."""
    prompts: int


def average(reports: Sequence[Report]) -> list[Average]:
    """Average reports of several prompts, one row a model, in the first report's order."""
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
