"""How a metric asks: the settings that its estimators share, checked when it is made."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Literal

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics.geval.paper import PAPER_PARSERS, PaperParser

Estimator = Literal["auto", "logprobs", "monte_carlo", "single"]
ESTIMATORS: tuple[Estimator, ...] = ("auto", "logprobs", "monte_carlo", "single")
Form = Literal["json", "paper"]

_MOST_SAMPLES = 1000
_SEED_SAMPLES = (5, 50)
_SEED_TEMPERATURE = (0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings of the estimators."""

    name: str
    scale: tuple[int, int]
    form: Form
    estimator: Estimator
    samples: int
    temperature: float
    top_logprobs: int
    max_tokens: int | None
    paper_parser: PaperParser | None


def checked_plan(plan: Plan, paper_parser: bool | str) -> Plan:
    """Check the settings; samples and temperature far from what is usual only warn.

    Raises:
        ConfigurationError: names the setting.
    """
    if plan.form not in ("json", "paper"):
        raise ConfigurationError("form", plan.form, "use 'json' or 'paper'")
    if plan.estimator not in ESTIMATORS:
        raise ConfigurationError("estimator", plan.estimator, f"use one of {', '.join(ESTIMATORS)}")
    _check_numbers(plan)
    if plan.estimator in ("auto", "monte_carlo"):
        _check_sampling(plan)
    if paper_parser is False:
        return plan
    if plan.estimator == "logprobs":
        raise ConfigurationError("paper_parser", paper_parser, "has no use for log-probabilities")
    parser = "g-eval" if paper_parser is True else paper_parser
    if parser not in PAPER_PARSERS:
        raise ConfigurationError(
            "paper_parser", paper_parser, f"use True or one of {', '.join(PAPER_PARSERS)}"
        )
    return Plan(
        plan.name, plan.scale, plan.form, plan.estimator, plan.samples, plan.temperature,
        plan.top_logprobs, plan.max_tokens, parser,
    )  # fmt: skip


def _check_numbers(plan: Plan) -> None:
    if type(plan.samples) is not int or not 1 <= plan.samples <= _MOST_SAMPLES:
        raise ConfigurationError("samples", plan.samples, f"use 1 to {_MOST_SAMPLES}")
    if type(plan.top_logprobs) is not int or not 1 <= plan.top_logprobs <= 20:
        raise ConfigurationError("top_logprobs", plan.top_logprobs, "use a number from 1 to 20")
    if plan.max_tokens is not None and (type(plan.max_tokens) is not int or plan.max_tokens < 1):
        raise ConfigurationError("max_tokens", plan.max_tokens, "use a number from 1, or None")
    number = type(plan.temperature) in (int, float) and math.isfinite(plan.temperature)
    if not number or plan.temperature < 0:
        raise ConfigurationError("temperature", plan.temperature, "use a number from 0")


def _check_sampling(plan: Plan) -> None:
    if plan.samples == 1:
        if plan.estimator == "auto":  # log-probabilities, else one answer: nothing is sampled
            return
    elif plan.temperature <= 0:
        raise ConfigurationError(
            "temperature", plan.temperature, "gives the same answer to every sample; use 0.5 to 1.0"
        )
    for field, value, (low, high), symbol in (
        ("samples", plan.samples, _SEED_SAMPLES, "N"),
        ("temperature", plan.temperature, _SEED_TEMPERATURE, "tau"),
    ):
        if not low <= value <= high:
            warnings.warn(
                f"`{field}` = {value!r} is outside of {low} to {high}, which seed 002 names for "
                f"Monte-Carlo averaging ({symbol} ~ {low}..{high})",
                stacklevel=5,
            )
