"""From the words of the command line to objects; every mistake is found before the first row."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rag_eval_integrations.dataset import read_calls
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics import Formulas, Metric, Trace

if TYPE_CHECKING:
    from rag_eval_integrations.metrics.prompty import PromptyMetric


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


# --- `--metric-var`: values of metric files' variables, and what is missing before the first row


_OF_THE_CALL = ("input", "output", "contexts")


def metric_variables(words: Sequence[str]) -> dict[str, object]:
    """Read every `--metric-var NAME=VALUE` or `NAME=@FILE`.

    Raises:
        ConfigurationError: words of another form, a name whose value is the call's own, or a file
            that is no text.
        OSError: a file that cannot be read.
    """
    variables: dict[str, object] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise ConfigurationError("metric-var", word, "write NAME=VALUE or NAME=@FILE")
        if name in _OF_THE_CALL:
            raise ConfigurationError("metric-var", word, f"`{name}` is what each call holds itself")
        variables[name] = _text_of(Path(value[1:])) if value.startswith("@") else value
    return variables


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError("metric-var", f"@{path}", "not UTF-8") from error


def give_variables(metrics: Sequence[Metric], words: Sequence[str]) -> None:
    """Give `--metric-var` values to the metric files that insert them.

    Raises:
        ConfigurationError: words of another form, or a name that no metric file inserts.
        OSError: a file that cannot be read.
    """
    for name, value in metric_variables(words).items():
        takers = [metric for metric in _files(metrics) if name in metric.prompt.variables]
        if not takers:
            raise ConfigurationError("metric-var", name, "no metric file inserts it")
        for metric in takers:
            metric.variables[name] = value


def check_rows(calls: Path, limit: int | None, metrics: Sequence[Metric]) -> None:
    """Say before the first row that one lacks what a metric file inserts.

    Lines that are no calls are passed over: they are reported when their turn comes.

    Raises:
        ConfigurationError: names the metric, the variable and the line.
    """
    files = _files(metrics)
    if not files:
        return
    for line in itertools.islice(read_calls(calls), limit):
        if line.value is None:
            continue
        for metric in files:
            missing = metric.missing(line.value)
            if missing:
                raise ConfigurationError(
                    "metrics",
                    metric.prompt.source,
                    f"inserts {', '.join(missing)}, which {calls} line {line.number} does not "
                    f"give; put it into the call's metadata, or pass --metric-var {missing[0]}=…",
                )


def _files(metrics: Sequence[Metric]) -> list[PromptyMetric]:
    from rag_eval_integrations.metrics.prompty import PromptyMetric  # noqa: PLC0415  # where used

    return [metric for metric in metrics if isinstance(metric, PromptyMetric)]
