"""The settings of a G-Eval metric, checked at construction: rubric, scale, estimator and others."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics.geval._reply import PAPER_PARSERS, PaperParser

# --- Rubrics: descriptions of score levels, checked at construction and shown in the prompt


RubricLike = Mapping[int | str | tuple[int, int], str] | Sequence["Level | Mapping[str, object]"]
"""`{1: "…", "2-4": "…", (5, 6): "…"}`, or a list of `{"range": [lo, hi], "description": "…"}`."""


@dataclass(frozen=True, slots=True)
class Level:
    """The description of the scores from `low` to `high`."""

    low: int
    high: int
    text: str

    def __str__(self) -> str:
        numbers = f"{self.low}" if self.low == self.high else f"{self.low} to {self.high}"
        return f"{numbers}: {self.text}"


def checked_rubric(rubric: RubricLike | object, scale: tuple[int, int]) -> tuple[Level, ...]:
    """Read a rubric into levels, the lowest first; without a rubric there are none.

    Raises:
        ConfigurationError: levels overlap, lie outside of the scale or have no description, or
            together they describe a single score only, which leaves nothing to choose from.
    """
    if rubric is None:
        return ()
    if isinstance(rubric, Mapping):
        levels = [Level(*_range(points), _text(text)) for points, text in rubric.items()]
    elif isinstance(rubric, Sequence) and not isinstance(rubric, str):
        levels = [_level(item) for item in rubric]
    else:
        raise ConfigurationError("rubric", rubric, "use a mapping of scores to descriptions")
    levels.sort(key=lambda level: (level.low, level.high))
    for level in levels:
        if not scale[0] <= level.low <= level.high <= scale[1]:
            why = f"is outside of the scale {scale[0]} to {scale[1]}"
            raise ConfigurationError("rubric", str(level)[:60], why)
    for lower, upper in pairwise(levels):
        if lower.high >= upper.low:
            raise ConfigurationError("rubric", str(upper)[:60], f"overlaps {str(lower)[:60]!r}")
    if sum(level.high - level.low + 1 for level in levels) < 2:
        raise ConfigurationError("rubric", rubric, "describe at least two points of the scale")
    return tuple(levels)


def _level(item: object) -> Level:
    """Read a level of a rubric: ours, DeepEval's, or a mapping."""
    if isinstance(item, Level):
        return Level(item.low, item.high, _text(item.text))
    if hasattr(item, "score_range") and hasattr(item, "expected_outcome"):  # DeepEval's Rubric
        return Level(*_range(item.score_range), _text(item.expected_outcome))
    if not isinstance(item, Mapping):
        raise ConfigurationError("rubric", item, "use {'range': [lo, hi], 'description': '…'}")
    points = item.get("range", item.get("score_range", item.get("score")))
    text = item.get("description", item.get("expected_outcome"))
    return Level(*_range(points), _text(text))


def _range(points: object) -> tuple[int, int]:
    """Read the ratings of a level: a number, '2-4' or [2, 4]."""
    if isinstance(points, str):
        match = re.fullmatch(r"\s*(\d+)\s*(?:(?:-|–|to)\s*(\d+)\s*)?", points)
        if match is not None:
            return int(match[1]), int(match[2] or match[1])
    elif isinstance(points, int) and not isinstance(points, bool):
        return points, points
    elif isinstance(points, Sequence) and len(points) == 2:
        low, high = points
        if type(low) is int and type(high) is int and low <= high:
            return low, high
    raise ConfigurationError("rubric", points, "use a score, or a range such as '2-4' or [2, 4]")


def _text(text: object) -> str:
    """Return the description of a level; refuse an empty one."""
    if not isinstance(text, str) or not text.strip():
        raise ConfigurationError("rubric", text, "describe each level in words")
    return text.strip()


# --- Names of DeepEval's arguments


_RENAMED = {"evaluation_steps": "steps", "evaluation_params": "params"}
_WRITE_INSTEAD = {
    "model": "is called `judge` here; write judge=OpenAIModel('gpt-4o-mini')",
    "strict_mode": "is called `strict` here",
    "async_mode": "is not needed: await `score`, or call `score_sync`",
    "verbose_mode": "is not needed: `messages(call)` shows the request, `score.evidence` the reply",
    "_include_g_eval_suffix": "is not needed: scores are called `geval:NAME`",
    "evaluation_template": "has no counterpart: `criteria`, `steps` and `rubric` fill the prompt",
}


def from_deepeval(given: Mapping[str, object], own: Mapping[str, object]) -> dict[str, object]:
    """Translate the names of DeepEval's arguments.

    Args:
        given: arguments that `GEval` does not know.
        own: the arguments of the same meaning that were given, or None.

    Raises:
        ConfigurationError: an argument is unknown, has another name or no counterpart here, or is
            given under both names.
    """
    renamed: dict[str, object] = {}
    for name, value in given.items():
        if name not in _RENAMED:
            raise ConfigurationError(name, value, _WRITE_INSTEAD.get(name, "is not an argument"))
        if own[_RENAMED[name]] is not None:
            raise ConfigurationError(name, value, f"is the same as `{_RENAMED[name]}`: give one")
        renamed[_RENAMED[name]] = value
    return renamed


# --- The other arguments


_LONGEST_NAME = 100
_HIGHEST = 1000


def checked_name(name: object) -> str:
    """Check a metric's name; `,`, `=` and `:` have a meaning on the command line.

    Raises:
        ConfigurationError: the name is empty, too long, or holds a forbidden character.
    """
    if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST_NAME:
        raise ConfigurationError("name", name, f"use a name of 1 to {_LONGEST_NAME} characters")
    if not name.isprintable() or any(character in name for character in ",=:"):
        raise ConfigurationError("name", name, "use printable characters without ',', '=' and ':'")
    return name.strip()


def checked_instructions(
    criteria: object, steps: object
) -> tuple[str | None, tuple[str, ...] | None]:
    """Check that either criteria or steps are given, and return (criteria, steps).

    Raises:
        ConfigurationError: neither or both are given, or the one given is empty.
    """
    if criteria is not None and steps is not None:
        raise ConfigurationError("steps", steps, "give criteria or steps, not both")
    if criteria is not None:
        if not isinstance(criteria, str) or not criteria.strip():
            raise ConfigurationError("criteria", criteria, "describe the criteria in words")
        return criteria.strip(), None
    if steps is None:
        raise ConfigurationError("criteria", None, "give criteria, or steps")
    listed = list(steps) if isinstance(steps, Sequence) and not isinstance(steps, str) else []
    if not listed or not all(isinstance(step, str) and step.strip() for step in listed):
        raise ConfigurationError("steps", steps, "use a list of steps, none of them empty")
    return None, tuple(step.strip() for step in listed)


def checked_scale(scale: object) -> tuple[int, int]:
    """Check the lowest and the highest score.

    Raises:
        ConfigurationError: they are not two integers, or the lowest is not below the highest.
    """
    numbers = list(scale) if isinstance(scale, Sequence) and not isinstance(scale, str) else []
    if len(numbers) != 2 or not all(is_number(number) for number in numbers):
        raise ConfigurationError("scale", scale, "use two integers, as in (1, 5)")
    low, high = (int(number) for number in numbers)
    if [low, high] != numbers or not 0 <= low < high <= _HIGHEST:
        why = f"use integers with 0 <= lowest < highest <= {_HIGHEST}"
        raise ConfigurationError("scale", scale, why)
    return low, high


def checked_threshold(threshold: object) -> float | None:
    """Check a threshold on `value`.

    Raises:
        ConfigurationError: it is not a number from 0 to 1, or None.
    """
    if threshold is None:
        return None
    if not is_number(threshold) or not 0 <= threshold <= 1:  # type: ignore[operator]
        raise ConfigurationError("threshold", threshold, "use a number from 0 to 1, or None")
    return float(threshold)  # type: ignore[arg-type]  # `is_number` said so


def checked_switch(field: str, value: object) -> bool:
    """Check a boolean, since a string such as "no" from a file would count as true.

    Raises:
        ConfigurationError: the value is neither True nor False.
    """
    if not isinstance(value, bool):
        raise ConfigurationError(field, value, "use true or false")
    return value


def is_number(value: object) -> bool:
    """Tell whether a value is a finite number and not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


Estimator = Literal["auto", "logprobs", "monte_carlo", "single"]
ESTIMATORS: tuple[Estimator, ...] = ("auto", "logprobs", "monte_carlo", "single")
Form = Literal["json", "paper"]

_MOST_SAMPLES = 1000
_USUAL_SAMPLES = (5, 50)
_USUAL_TEMPERATURE = (0.5, 1.0)


@dataclass(frozen=True, slots=True)
class EstimatorSettings:
    """The settings that the estimators share."""

    name: str
    scale: tuple[int, int]
    form: Form
    estimator: Estimator
    samples: int
    temperature: float
    top_logprobs: int
    max_tokens: int | None
    paper_parser: PaperParser | None

    @property
    def most_requests(self) -> int:
        """Requests for one score at most, where each answers at least one sample."""
        if self.estimator in ("single", "logprobs"):
            return 1
        first = int(self.estimator == "auto" and self.samples > 1)  # for log-probabilities
        return first + self.samples


def checked_plan(plan: EstimatorSettings, paper_parser: bool | str) -> EstimatorSettings:
    """Check the settings; unusual numbers of samples and temperatures only warn.

    Raises:
        ConfigurationError: a setting has a wrong value; `field` names it.
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
        why = "cannot be combined with estimator='logprobs'"
        raise ConfigurationError("paper_parser", paper_parser, why)
    parser = "g-eval" if paper_parser is True else paper_parser
    if parser not in PAPER_PARSERS:
        why = f"use True or one of {', '.join(PAPER_PARSERS)}"
        raise ConfigurationError("paper_parser", paper_parser, why)
    return replace(plan, paper_parser=parser)


def _check_numbers(plan: EstimatorSettings) -> None:
    """Refuse settings of an estimator out of range."""
    for field, count, most, more in (
        ("samples", plan.samples, _MOST_SAMPLES, f" to {_MOST_SAMPLES}"),
        ("top_logprobs", plan.top_logprobs, 20, " to 20"),
        ("max_tokens", 1 if plan.max_tokens is None else plan.max_tokens, math.inf, ", or None"),
    ):
        if type(count) is not int or not 1 <= count <= most:
            raise ConfigurationError(field, count, f"use a whole number from 1{more}")
    number = type(plan.temperature) in (int, float) and math.isfinite(plan.temperature)
    if not number or plan.temperature < 0:
        raise ConfigurationError("temperature", plan.temperature, "use a number of at least 0")


def _check_sampling(plan: EstimatorSettings) -> None:
    """Refuse samples that would all be alike; warn of unusual settings."""
    if plan.samples == 1:
        if plan.estimator == "auto":  # log-probabilities or one answer: nothing is sampled
            return
    elif plan.temperature <= 0:
        raise ConfigurationError(
            "temperature", plan.temperature, "makes all samples alike; use 0.5 to 1.0"
        )
    for field, value, (low, high), symbol in (
        ("samples", plan.samples, _USUAL_SAMPLES, "N"),
        ("temperature", plan.temperature, _USUAL_TEMPERATURE, "tau"),
    ):
        if not low <= value <= high:
            warnings.warn(
                f"`{field}` = {value!r} is outside of {low} to {high}, the usual range for "
                f"Monte-Carlo averaging ({symbol})",
                stacklevel=5,
            )
