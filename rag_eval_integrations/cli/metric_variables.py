"""`--metric-var`: values of metric files' variables, and what is missing before the first row."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval_integrations.dataset import read_calls
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics import Metric

if TYPE_CHECKING:
    from rag_eval_integrations.metrics.prompty import PromptyMetric


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
