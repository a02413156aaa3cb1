"""The settings of a G-Eval metric, checked at construction: sections, rubric, scale and others."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from typing import Literal

from rag_eval_integrations.errors import ConfigurationError, whole_number
from rag_eval_integrations.metrics.geval._reply import PAPER_PARSERS, PaperParser
from rag_eval_integrations.records import RagCall, Turn
from rag_eval_integrations.records._json import from_object
from rag_eval_integrations.records.labels import UnscoredCode

PARAMS = ("question", "response", "reference", "documents", "history", "conversation")
"""Names of parameters; `metadata.FIELD` names a field of the call's metadata."""

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
    """One fenced part of the prompt's material: a parameter of a call, one document or one turn."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class MissingParam:
    """The first parameter that a call lacks, and the reason code of its score."""

    code: UnscoredCode
    why: str


def checked_params(params: object) -> tuple[str, ...]:
    """Check the names of parameters, and translate DeepEval's names to ours.

    Raises:
        ConfigurationError: no parameter is named, or one is unknown or named twice.
    """
    if isinstance(params, str) or not isinstance(params, Sequence):
        raise ConfigurationError("params", params, "use a tuple of names, as in ('response',)")
    if not params:
        raise ConfigurationError("params", params, "name at least one parameter")
    checked = []
    for given in params:
        name = given.value if isinstance(given, Enum) else given  # DeepEval's are members
        known = _OTHER_NAMES.get(name, name) if isinstance(name, str) else ""
        if known not in PARAMS and not re.fullmatch(r"metadata\.[^\s.].{0,99}", known):
            names = ", ".join(PARAMS)
            why = f"is not a parameter; use {names} or metadata.FIELD"
            raise ConfigurationError("params", name, why)
        if known in checked:
            raise ConfigurationError("params", name, "is named twice")
        checked.append(known)
    return tuple(checked)


def title(param: str) -> str:
    """Return the title of a parameter in a prompt."""
    return _TITLES.get(param) or param.removeprefix("metadata.").replace("_", " ").title()


def titles(params: Sequence[str]) -> str:
    """List the titles of parameters: `Question, Documents and Response`."""
    *first, last = [title(param) for param in params]
    return f"{', '.join(first)} and {last}" if first else last


def sections_of(call: RagCall, params: Sequence[str]) -> tuple[Section, ...] | MissingParam:
    """Return the sections of a call that the parameters select, or the first missing parameter."""
    sections: list[Section] = []
    for param in params:
        filled = [section for section in _sections(call, param) if section.text.strip()]
        if not filled:
            code, why = _MISSING.get(param, ("missing_param", f"the call has no {param}"))
            return MissingParam(code, f"{why}, which this metric needs (params: {param})")
        sections += filled
    return tuple(sections)


def _sections(call: RagCall, param: str) -> list[Section]:
    """Return the sections of a parameter in the prompt: one, or one per document or turn."""
    name = title(param)
    if param == "documents":
        # Numbered like sentence keys: an empty document keeps its number.
        return [
            Section(f"Document {i}", document.shown) for i, document in enumerate(call.documents)
        ]
    if param in ("history", "conversation"):
        turns = turns_of(call) if param == "conversation" else call.history
        return [Section(f"Turn {i}, {turn.role}", turn.content) for i, turn in enumerate(turns)]
    if param.startswith("metadata."):
        value = call.metadata.get(param.removeprefix("metadata."))
        known = value is None or isinstance(value, str)
        return [Section(name, str(value or "") if known else json.dumps(value, ensure_ascii=False))]
    return [Section(name, getattr(call, param) or "")]


# --- Conversations: a list of turns as a call, and a call as a list of turns


Conversation = Sequence[Turn | Mapping[str, str]]


def call_of_turns(turns: Conversation) -> RagCall:
    """Make a call of a conversation: its last question and answer, with the rest as history.

    Args:
        turns: the turns, oldest first, each a `Turn` or `{"role": …, "content": …}`.

    Raises:
        ConfigurationError: the argument is not a list of turns, or is empty.
        InputError: an item is not a valid turn.
    """
    given: object = turns
    is_list = isinstance(given, Sequence) and not isinstance(given, str | bytes)
    if not is_list or not all(isinstance(turn, Turn | Mapping) for turn in turns):
        why = "use a RagCall, or a list of turns {'role': …, 'content': …}"
        raise ConfigurationError("call", turns, why)
    listed = [turn if isinstance(turn, Turn) else from_object(Turn, dict(turn)) for turn in turns]
    if not listed:
        raise ConfigurationError("turns", list(turns), "give at least one turn")
    response = listed.pop().content if listed[-1].role == "assistant" else None
    question = listed.pop().content if listed and listed[-1].role == "user" else ""
    return RagCall(question=question, documents=(), response=response, history=listed)


def turns_of(call: RagCall) -> tuple[Turn, ...]:
    """Return all turns of a call: its history, its question and its response.

    An empty question, or a response that is missing or empty, gives no turn.
    """
    last = (("user", call.question), ("assistant", call.response or ""))
    turns = [from_object(Turn, {"role": role, "content": text}) for role, text in last if text]
    return (*call.history, *turns)


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
    whole_number("samples", plan.samples, 1, _MOST_SAMPLES)
    whole_number("top_logprobs", plan.top_logprobs, 1, 20)
    if plan.max_tokens is not None:
        whole_number("max_tokens", plan.max_tokens)
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
