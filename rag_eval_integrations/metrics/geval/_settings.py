"""How a metric asks: the settings that its estimators share, checked when it is made."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics.geval._paper import PAPER_PARSERS, PaperParser
from rag_eval_integrations.records import RagCall, Turn, UnscoredCode, from_object

# --- What of a call a metric shows to the judge: its parameters, by name


PARAMS = ("question", "response", "reference", "documents", "history", "conversation")
"""Names, beside `metadata.FIELD` for what the app has put there."""

_OTHER_NAMES = {
    "input": "question",
    "actual_output": "response",
    "expected_output": "reference",
    "context": "documents",
    "retrieval_context": "documents",
    "turns": "conversation",
}
_TITLES = {
    "question": "Question",
    "response": "Response",
    "reference": "Expected Response",
    "documents": "Documents",
    "history": "Earlier Turns",
    "conversation": "Conversation",
}
_MISSING: dict[str, tuple[UnscoredCode, str]] = {
    "question": ("no_question", "the call has no question"),
    "response": ("empty_response", "the call has no response"),
    "documents": ("no_context", "the call has no documents with text"),
}


@dataclass(frozen=True, slots=True)
class Section:
    """A parameter of one call, or one document or turn of it, which is fenced off by itself."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class MissingParam:
    """A parameter that the call does not have."""

    code: UnscoredCode
    why: str


def checked_params(params: object) -> tuple[str, ...]:
    """Check names of parameters and take deepeval's for ours.

    Raises:
        ConfigurationError: for none, an unknown one, or one that is named twice.
    """
    if isinstance(params, str) or not isinstance(params, Sequence):
        raise ConfigurationError("params", params, "use a tuple of names, as in ('response',)")
    if not params:
        raise ConfigurationError("params", params, "name at least one parameter")
    checked = []
    for name in params:
        known = _OTHER_NAMES.get(name, name) if isinstance(name, str) else ""
        if known not in PARAMS and not re.fullmatch(r"metadata\.[^\s.].{0,99}", known):
            names = ", ".join(PARAMS)
            raise ConfigurationError(
                "params", name, f"no such parameter; there are {names} and metadata.FIELD"
            )
        if known in checked:
            raise ConfigurationError("params", name, "is named twice")
        checked.append(known)
    return tuple(checked)


def title(param: str) -> str:
    """Name of a parameter in a prompt."""
    return _TITLES.get(param) or param.removeprefix("metadata.").replace("_", " ").title()


def titles(params: Sequence[str]) -> str:
    """List the names: `Question, Documents and Response`."""
    *first, last = [title(param) for param in params]
    return f"{', '.join(first)} and {last}" if first else last


def sections_of(call: RagCall, params: Sequence[str]) -> tuple[Section, ...] | MissingParam:
    """Take the parameters from a call; the first that is missing where one is."""
    sections: list[Section] = []
    for param in params:
        found = [section for section in _sections(call, param) if section.text.strip()]
        if not found:
            code, why = _MISSING.get(param, ("missing_param", f"the call has no {param}"))
            return MissingParam(code, f"{why}, which this metric needs (params: {param})")
        sections += found
    return tuple(sections)


def _sections(call: RagCall, param: str) -> list[Section]:
    name = title(param)
    if param == "documents":
        # Numbered as everywhere else: an empty document keeps its number.
        return [
            Section(f"Document {i}", document.text) for i, document in enumerate(call.documents)
        ]
    if param in ("history", "conversation"):
        turns = turns_of(call) if param == "conversation" else call.history
        return [Section(f"Turn {i}, {turn.role}", turn.content) for i, turn in enumerate(turns)]
    if param.startswith("metadata."):
        value = call.metadata.get(param.removeprefix("metadata."))
        known = value is None or isinstance(value, str)
        return [Section(name, str(value or "") if known else json.dumps(value, ensure_ascii=False))]
    return [Section(name, getattr(call, param) or "")]


# --- Descriptions of score levels: checked when a metric is made, shown in the prompt


RubricLike = Mapping[int | str | tuple[int, int], str] | Sequence["Level | Mapping[str, object]"]
"""`{1: "…", "2-4": "…", (5, 6): "…"}`, or a list of `{"range": [lo, hi], "description": "…"}`."""


@dataclass(frozen=True, slots=True)
class Level:
    """What scores from `low` to `high` mean."""

    low: int
    high: int
    text: str

    def __str__(self) -> str:
        numbers = f"{self.low}" if self.low == self.high else f"{self.low} to {self.high}"
        return f"{numbers}: {self.text}"


def checked_rubric(rubric: RubricLike | object, scale: tuple[int, int]) -> tuple[Level, ...]:
    """Read a rubric, lowest level first.

    Raises:
        ConfigurationError: for levels that overlap, lie outside of the scale or describe nothing,
            and for a rubric of one point, which leaves nothing to choose.
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
            raise ConfigurationError(
                "rubric", str(level)[:60], f"is outside of the scale {scale[0]} to {scale[1]}"
            )
    for lower, upper in pairwise(levels):
        if lower.high >= upper.low:
            raise ConfigurationError("rubric", str(upper)[:60], f"overlaps {str(lower)[:60]!r}")
    if sum(level.high - level.low + 1 for level in levels) < 2:
        raise ConfigurationError("rubric", rubric, "describe at least two points of the scale")
    return tuple(levels)


def _level(item: object) -> Level:
    if isinstance(item, Level):
        return Level(item.low, item.high, _text(item.text))
    if not isinstance(item, Mapping):
        raise ConfigurationError("rubric", item, "use {'range': [lo, hi], 'description': '…'}")
    points = item.get("range", item.get("score_range", item.get("score")))
    text = item.get("description", item.get("expected_outcome"))
    return Level(*_range(points), _text(text))


def _range(points: object) -> tuple[int, int]:
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
    raise ConfigurationError("rubric", points, "use a score, or two as in '2-4' or [2, 4]")


def _text(text: object) -> str:
    if not isinstance(text, str) or not text.strip():
        raise ConfigurationError("rubric", text, "describe the level in words")
    return text.strip()


# --- A list of turns as a call, and a call as a list of turns: what multi-turn metrics judge


Conversation = Sequence[Turn | Mapping[str, str]]


def call_of_turns(turns: Conversation) -> RagCall:
    """Make a call of a conversation: its last question and answer, the rest as history.

    Args:
        turns: oldest first; turns or `{"role": …, "content": …}`.

    Raises:
        ConfigurationError: for no turns, or something that is no list of turns.
        InputError: for a turn that is none.
    """
    given: object = turns
    is_list = isinstance(given, Sequence) and not isinstance(given, str | bytes)
    if not is_list or not all(isinstance(turn, Turn | Mapping) for turn in turns):
        raise ConfigurationError(
            "call", turns, "use a RagCall, or a list of turns {'role': …, 'content': …}"
        )
    listed = [turn if isinstance(turn, Turn) else from_object(Turn, dict(turn)) for turn in turns]
    if not listed:
        raise ConfigurationError("turns", list(turns), "give at least one turn")
    response = listed.pop().content if listed[-1].role == "assistant" else None
    question = listed.pop().content if listed and listed[-1].role == "user" else ""
    return RagCall(question=question, documents=(), response=response, history=listed)


def turns_of(call: RagCall) -> tuple[Turn, ...]:
    """Give all turns of a call: its history, its question and its response."""
    last = (("user", call.question), ("assistant", call.response or ""))
    said = [from_object(Turn, {"role": role, "content": text}) for role, text in last if text]
    return (*call.history, *said)


# --- The arguments of a metric, checked where it is made


_LONGEST_NAME = 100
_HIGHEST = 1000


def checked_name(name: object) -> str:
    """Check a metric's name, which `,`, `=` and `:` would break on the command line.

    Raises:
        ConfigurationError: naming the value.
    """
    if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST_NAME:
        raise ConfigurationError("name", name, f"use a name of 1 to {_LONGEST_NAME} characters")
    if not name.isprintable() or any(character in name for character in ",=:"):
        raise ConfigurationError("name", name, "should be printable and hold no ',', '=' or ':'")
    return name.strip()


def checked_instructions(
    criteria: object, steps: object
) -> tuple[str | None, tuple[str, ...] | None]:
    """Check that there is one of both: criteria to derive steps from, or steps.

    Raises:
        ConfigurationError: neither, both, or nothing in them.
    """
    if criteria is not None and steps is not None:
        raise ConfigurationError("steps", steps, "give criteria or steps, not both")
    if criteria is not None:
        if not isinstance(criteria, str) or not criteria.strip():
            raise ConfigurationError("criteria", criteria, "say in words what is asked for")
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
        ConfigurationError: no two integers, or the lowest is not below the highest.
    """
    numbers = list(scale) if isinstance(scale, Sequence) and not isinstance(scale, str) else []
    if len(numbers) != 2 or not all(is_number(number) for number in numbers):
        raise ConfigurationError("scale", scale, "use two integers, as in (1, 5)")
    low, high = (int(number) for number in numbers)
    if [low, high] != numbers or not 0 <= low < high <= _HIGHEST:
        raise ConfigurationError(
            "scale", scale, f"use integers with 0 <= lowest < highest <= {_HIGHEST}"
        )
    return low, high


def checked_threshold(threshold: object) -> float | None:
    """Check a threshold on `value`.

    Raises:
        ConfigurationError: outside of 0 to 1.
    """
    if threshold is None:
        return None
    if not is_number(threshold) or not 0 <= threshold <= 1:  # type: ignore[operator]
        raise ConfigurationError("threshold", threshold, "use a number from 0 to 1, or None")
    return float(threshold)  # type: ignore[arg-type]  # `is_number` said so


def checked_switch(field: str, value: object) -> bool:
    """Check a yes or no; the word "no" of a file would count as yes.

    Raises:
        ConfigurationError: neither True nor False.
    """
    if not isinstance(value, bool):
        raise ConfigurationError(field, value, "use true or false")
    return value


def is_number(value: object) -> bool:
    """Whether a value is a finite number and no bool."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


Estimator = Literal["auto", "logprobs", "monte_carlo", "single"]
ESTIMATORS: tuple[Estimator, ...] = ("auto", "logprobs", "monte_carlo", "single")
Form = Literal["json", "paper"]

_MOST_SAMPLES = 1000
_USUAL_SAMPLES = (5, 50)
_USUAL_TEMPERATURE = (0.5, 1.0)


@dataclass(frozen=True, slots=True)
class EstimatorSettings:
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


def checked_plan(plan: EstimatorSettings, paper_parser: bool | str) -> EstimatorSettings:
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
    return EstimatorSettings(
        plan.name, plan.scale, plan.form, plan.estimator, plan.samples, plan.temperature,
        plan.top_logprobs, plan.max_tokens, parser,
    )  # fmt: skip


def _check_numbers(plan: EstimatorSettings) -> None:
    if type(plan.samples) is not int or not 1 <= plan.samples <= _MOST_SAMPLES:
        raise ConfigurationError("samples", plan.samples, f"use 1 to {_MOST_SAMPLES}")
    if type(plan.top_logprobs) is not int or not 1 <= plan.top_logprobs <= 20:
        raise ConfigurationError("top_logprobs", plan.top_logprobs, "use a number from 1 to 20")
    if plan.max_tokens is not None and (type(plan.max_tokens) is not int or plan.max_tokens < 1):
        raise ConfigurationError("max_tokens", plan.max_tokens, "use a number from 1, or None")
    number = type(plan.temperature) in (int, float) and math.isfinite(plan.temperature)
    if not number or plan.temperature < 0:
        raise ConfigurationError("temperature", plan.temperature, "use a number from 0")


def _check_sampling(plan: EstimatorSettings) -> None:
    if plan.samples == 1:
        if plan.estimator == "auto":  # log-probabilities, else one answer: nothing is sampled
            return
    elif plan.temperature <= 0:
        raise ConfigurationError(
            "temperature", plan.temperature, "gives the same answer to every sample; use 0.5 to 1.0"
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
