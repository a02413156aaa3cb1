"""From the words of the command line to objects; every mistake is found before the first row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics import Formulas, Metric, Trace


@dataclass(frozen=True)
class Threshold:
    """A `--fail-under NAME=VALUE`."""

    name: str
    value: float


def metrics_from(names: str, formulas: str, relevance_baseline: int | None) -> list[Metric]:
    """Make the metrics named in `--metrics`.

    Raises:
        ConfigurationError: for a name that is no metric, or options that contradict each other.
    """
    metrics: list[Metric] = []
    for name in names.split(","):
        if name.strip() != "trace":
            raise ConfigurationError("metrics", name, "no such metric; use trace")
        metrics.append(trace_from(formulas, relevance_baseline))
    return metrics


def trace_from(formulas: str, relevance_baseline: int | None) -> Trace:
    """Make TRACe with the formulas of `--formulas` and `--relevance-baseline`.

    Raises:
        ConfigurationError: for unknown formulas, or options that contradict each other.
    """
    return Trace(cast(Formulas, formulas), relevance_baseline)


def thresholds_from(words: Sequence[str], names: Sequence[str]) -> list[Threshold]:
    """Read every `--fail-under`.

    Raises:
        ConfigurationError: for words that are not NAME=VALUE, unknown names, values outside 0 to 1.
    """
    thresholds = []
    for word in words:
        name, separator, value = word.partition("=")
        if not separator:
            raise ConfigurationError("fail-under", word, "write NAME=VALUE")
        if name not in names:
            raise ConfigurationError(
                "fail-under", word, f"no score {name!r}; there are {', '.join(names)}"
            )
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not 0 <= number <= 1:
            raise ConfigurationError("fail-under", word, "the value should be a number from 0 to 1")
        thresholds.append(Threshold(name, number))
    return thresholds
