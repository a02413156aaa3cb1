"""The arguments of a metric, checked where it is made."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rag_eval_integrations.errors import ConfigurationError

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
