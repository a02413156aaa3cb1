"""How much is generated: presets of effort; what the user says explicitly always wins."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal, get_args

from rag_eval_integrations.errors import ConfigurationError

Effort = Literal["min", "low", "medium", "high"]


@dataclass(frozen=True)
class GenerateOptions:
    """What the generation stages do.

    Make one with `GenerateOptions.of(effort, …)`: what is given there beats the preset.

    Raises:
        ConfigurationError: a number out of its range.
    """

    rules: int = 0
    """Output rules asked for; 0 for all that there are."""
    max_rules: int | None = None
    """Tests are made for so many rules at most, and as many inverse ones."""
    tests_per_rule: int = 3
    split_rules: bool = True
    """Ask for tests of rules and of inverse rules in requests of their own."""
    rules_per_group: int = 3
    """Rules a request."""
    generations: int = 1
    """How often each group is asked for more tests."""
    expansions: int = 0
    """How often each test is made longer."""
    baseline: bool = True
    """Make as many tests without rules."""
    keep: int | None = None
    """Have the tests reviewed, and keep so many of them."""

    def __post_init__(self) -> None:
        ranges = {
            "rules": (0, 100), "max_rules": (1, 1000), "tests_per_rule": (1, 100),
            "rules_per_group": (1, 1000), "generations": (1, 20), "expansions": (0, 5),
            "keep": (1, 10_000),
        }  # fmt: skip
        for field, (low, high) in ranges.items():
            value = getattr(self, field)
            if value is not None and not low <= value <= high:
                raise ConfigurationError(field, value, f"use a number from {low} to {high}")

    @staticmethod
    def of(effort: str | None = None, **explicit: int | bool | None) -> GenerateOptions:
        """Make options from a preset and what is given explicitly; None is not given.

        Raises:
            ConfigurationError: no such preset or option, or a number out of its range.
        """
        if effort is not None and effort not in PRESETS:
            raise ConfigurationError("effort", effort, f"use {', '.join(get_args(Effort))}")
        preset = PRESETS[effort] if effort is not None else GenerateOptions()
        known = {field.name for field in fields(GenerateOptions)}
        for name in explicit:
            if name not in known:
                raise ConfigurationError(name, explicit[name], "there is no such option")
        given = {name: value for name, value in explicit.items() if value is not None}
        return replace(preset, **given)  # type: ignore[arg-type]


PRESETS: dict[str, GenerateOptions] = {
    "min": GenerateOptions(
        max_rules=6, tests_per_rule=1, rules_per_group=100, split_rules=False, baseline=False
    ),
    "low": GenerateOptions(max_rules=3, rules_per_group=100, tests_per_rule=2),
    "medium": GenerateOptions(max_rules=20, tests_per_rule=3, rules_per_group=5),
    "high": GenerateOptions(
        max_rules=50, tests_per_rule=3, rules_per_group=2, generations=2, expansions=1
    ),
}
"""By effort."""
