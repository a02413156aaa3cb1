"""From the words of the command line to objects; every mistake is found before the first row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics import Formulas, Metric, Trace


@dataclass(frozen=True)
class Threshold:
    """A `--fail-under NAME=VALUE`."""

    name: str
    value: float


def metrics_from(words: str, formulas: str, relevance_baseline: int | None) -> list[Metric]:
    """Make the metrics named in `--metrics`: `trace`, `geval:NAME`, `FILE.geval.yaml`.

    Raises:
        ConfigurationError: for a name that is no metric, or options that contradict each other.
        InputError: for a file that holds no metric.
        OSError: for a file that cannot be read.
    """
    metrics: list[Metric] = []
    for word in words.split(","):
        name = word.strip()
        if name == "trace":
            metrics.append(trace_from(formulas, relevance_baseline))
            continue
        make = next((make for is_one, make in _NAMED if is_one(name)), None)
        if make is None:
            raise ConfigurationError("metrics", name, f"no such metric; use {METRICS}")
        metrics.append(make(name))
    return metrics


METRICS = "trace, geval:NAME, FILE.geval.yaml or FILE.metric.prompty"
"""What `--metrics` takes."""


def _geval_from(name: str) -> Metric:
    from rag_eval_integrations.metrics.geval import named_geval  # noqa: PLC0415  # where asked for

    return named_geval(name.removeprefix("geval:"))


def _geval_from_file(name: str) -> Metric:
    from rag_eval_integrations.metrics.geval import read_geval  # noqa: PLC0415  # where asked for

    return read_geval(name)


def _prompty_from_file(name: str) -> Metric:
    from rag_eval_integrations.metrics.prompty import PromptyMetric  # noqa: PLC0415  # where asked

    return PromptyMetric(name)


_NAMED: tuple[tuple[Callable[[str], bool], Callable[[str], Metric]], ...] = (
    (lambda name: name.startswith("geval:"), _geval_from),
    (lambda name: name.endswith((".geval.yaml", ".geval.yml")), _geval_from_file),
    (lambda name: name.endswith(".metric.prompty"), _prompty_from_file),
)
"""Which words name a metric of which kind, and what makes it."""


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
