"""Metrics, thresholds and metric variables made from options, checked before the first row."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rag_eval_integrations import _target
from rag_eval_integrations.dataset import read_calls
from rag_eval_integrations.dataset._names import check_field_map
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.judges import Calibration
from rag_eval_integrations.metrics import CallMetric, Formulas, Metric, Trace

if TYPE_CHECKING:
    from rag_eval_integrations.metrics.prompty import PromptyMetric


_NUMBER = re.compile("[0-9]{1,9}")


@dataclass(frozen=True)
class Threshold:
    """The least mean that a score must have: one `--fail-under NAME=VALUE`."""

    name: str
    value: float
    """From 0 to 1."""


def metrics_from(
    words: str,
    formulas: str,
    relevance_baseline: int | None,
    geval: Mapping[str, object] | None = None,
    retrieval: Mapping[str, object] | None = None,
    calibration: Path | None = None,
) -> list[Metric]:
    """Make the metrics named in `--metrics`, which are separated by commas.

    Args:
        words: the option's value; METRICS lists the forms.
        formulas: the set of TRACe formulas.
        relevance_baseline: divisor of relevance; None for the number of sentences.
        geval: arguments that replace those of every G-Eval metric.
        retrieval: arguments of `Retrieval`, `k` as written; None for a default.
        calibration: a file of `rag-eval calibrate` for the TRACe scores; None for none.

    Raises:
        ConfigurationError: for an unknown metric, or options that contradict each other.
        InputError: for a file that is not a metric.
        OSError: when a file cannot be read.
    """
    metrics: list[Metric] = []
    changes = {key: value for key, value in (geval or {}).items() if value is not None}
    gold = {key: value for key, value in (retrieval or {}).items() if value is not None}
    for word in words.split(","):
        name = word.strip()
        if name == "trace":
            metrics.append(trace_from(formulas, relevance_baseline, calibration))
            continue
        if name in _RETRIEVAL:
            metrics.append(_retrieval_from(name, gold))
            continue
        make = next((make for is_one, make in _NAMED if is_one(name)), None)
        if make is None:
            raise ConfigurationError("--metrics", name, f"no such metric; use {METRICS}")
        metrics.append(make(name, changes))
    if changes and not any(name.startswith("geval:") for m in metrics for name in m.names):
        field, value = next(iter(changes.items()))
        raise ConfigurationError(f"--geval-{field}", value, "--metrics names no G-Eval metric")
    if gold and not any(isinstance(metric, CallMetric) for metric in metrics):
        field, value = next(iter(gold.items()))
        raise ConfigurationError(_OPTION[field], value, "--metrics does not name retrieval")
    if calibration is not None and not any(isinstance(metric, Trace) for metric in metrics):
        raise ConfigurationError("--calibration", str(calibration), "--metrics does not name trace")
    return metrics


METRICS = (
    "trace, retrieval, label_retrieval, context_recall, geval:NAME, FILE.geval.yaml or "
    "FILE.metric.prompty"
)
"""The forms that `--metrics` accepts."""


# Each metric's module is imported only if the option names such a metric.


_RETRIEVAL = ("retrieval", "label_retrieval", "context_recall")
_OPTION = {"k": "--k", "match": "--match", "id_key": "--id-key"}


def _retrieval_from(name: str, gold: Mapping[str, object]) -> Metric:
    from rag_eval_integrations.metrics import (  # noqa: PLC0415
        ContextRecall,
        LabelRetrieval,
        Retrieval,
    )

    if name != "retrieval":
        return LabelRetrieval() if name == "label_retrieval" else ContextRecall()
    settings: dict[str, Any] = dict(gold)
    if "k" in settings:
        words = str(settings["k"]).split(",")
        settings["k"] = [int(word) if _NUMBER.fullmatch(word.strip()) else 0 for word in words]
    try:
        return Retrieval(**settings)
    except ConfigurationError as error:
        raise ConfigurationError(_OPTION[error.field], gold[error.field], error.why) from error


def _geval_from(name: str, changes: Mapping[str, object]) -> Metric:
    from rag_eval_integrations.metrics.geval import named_geval  # noqa: PLC0415

    try:
        return named_geval(name.removeprefix("geval:"), **changes)
    except ConfigurationError as error:
        # Name the option, not the argument of the function that refused it.
        if error.field in changes:
            raise ConfigurationError(f"--geval-{error.field}", error.value, error.why) from error
        raise ConfigurationError("--metrics", name, error.why) from error


def _geval_from_file(name: str, changes: Mapping[str, object]) -> Metric:
    from rag_eval_integrations.metrics.geval import read_geval  # noqa: PLC0415

    return read_geval(name, **changes)


def _prompty_from_file(name: str, _: Mapping[str, object]) -> Metric:
    from rag_eval_integrations.metrics.prompty import PromptyMetric  # noqa: PLC0415

    return PromptyMetric(name)


_Make = Callable[[str, Mapping[str, object]], Metric]
_NAMED: tuple[tuple[Callable[[str], bool], _Make], ...] = (
    (lambda name: name.startswith("geval:"), _geval_from),
    (lambda name: name.endswith((".geval.yaml", ".geval.yml")), _geval_from_file),
    (lambda name: name.endswith(".metric.prompty"), _prompty_from_file),
)
"""Tests of a metric's name, each with the function that makes the metric."""


def trace_from(
    formulas: str, relevance_baseline: int | None, calibration: Path | None = None
) -> Trace:
    """Make the TRACe metric from `--formulas`, `--relevance-baseline` and `--calibration`.

    Raises:
        ConfigurationError: for unknown formulas, or options that contradict each other.
        InputError: for a file that is not a calibration.
        OSError: when it cannot be read.
    """
    found = None
    if calibration is not None:
        try:
            found = Calibration.read(calibration)
        except InputError as error:
            raise InputError(f"{calibration}: {error}") from error
    return Trace(cast(Formulas, formulas), relevance_baseline, calibration=found)


def thresholds_from(words: Sequence[str], names: Sequence[str]) -> list[Threshold]:
    """Read every `--fail-under NAME=VALUE`.

    Args:
        words: the options' values.
        names: the scores that the metrics give.

    Raises:
        ConfigurationError: for another form, an unknown name, or a value outside 0 to 1.
    """
    thresholds = []
    for word in words:
        name, separator, value = word.partition("=")
        if not separator:
            raise ConfigurationError("--fail-under", word, "use NAME=VALUE")
        if name not in names:
            raise ConfigurationError(
                "--fail-under", word, f"no score {name!r}; the scores are {', '.join(names)}"
            )
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not 0 <= number <= 1:
            raise ConfigurationError("--fail-under", word, "VALUE should be a number from 0 to 1")
        thresholds.append(Threshold(name, number))
    return thresholds


# --- Variables of metric files: reading `--metric-var`, and finding missing values early


_FROM_THE_CALL = ("input", "output", "contexts")


def metric_variables(words: Sequence[str]) -> dict[str, object]:
    """Read every `--metric-var NAME=VALUE` or `NAME=@FILE` into a dictionary by name.

    Raises:
        ConfigurationError: for another form, a name whose value comes from each call, or a file
            that is not UTF-8 text.
        OSError: when a file cannot be read.
    """
    variables: dict[str, object] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise ConfigurationError("--metric-var", word, "use NAME=VALUE or NAME=@FILE")
        if name in _FROM_THE_CALL:
            raise ConfigurationError(
                "--metric-var", word, f"the value of `{name}` comes from each call"
            )
        variables[name] = text_of(value, "--metric-var")
    return variables


def text_of(value: str, option: str) -> str:
    """Return a text that is given as it is, or as `@FILE`.

    Raises:
        ConfigurationError: for a file that is not UTF-8 text.
        OSError: when the file cannot be read.
    """
    if not value.startswith("@"):
        return value
    try:
        return _target.read_whole(Path(value[1:]), option).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(option, value, "is not UTF-8") from error


def set_variables(metrics: Sequence[Metric], words: Sequence[str]) -> None:
    """Set the `--metric-var` values in the metric files that use them.

    Raises:
        ConfigurationError: for another form, or a name that no metric file uses.
        OSError: when a file cannot be read.
    """
    for name, value in metric_variables(words).items():
        users = [metric for metric in _files(metrics) if name in metric.prompt.variables]
        if not users:
            raise ConfigurationError("--metric-var", name, "no metric file has this variable")
        for metric in users:
            metric.variables[name] = value


def field_map_from(given: Sequence[str]) -> dict[str, str]:
    """Read the values of `--map`.

    Raises:
        ConfigurationError: one is not `FIELD=NAME`, names no field of a call, or comes twice.
    """
    found: dict[str, str] = {}
    for one in given:
        ours, equals, theirs = one.partition("=")
        if not (ours and equals and theirs):
            raise ConfigurationError("--map", one, "use FIELD=NAME, such as documents=passages")
        if ours in found:
            raise ConfigurationError("--map", one, f"is a second name for `{ours}`")
        found[ours] = theirs
    return check_field_map(found, "--map")


def check_rows(calls: str | os.PathLike[str], limit: int | None, metrics: Sequence[Metric]) -> None:
    """Check that every call has the values that the metric files need.

    Lines that are not calls are skipped here and reported when the run reaches them.

    Args:
        calls: the file of calls.
        limit: number of lines to check; None for all.
        metrics: the metrics; only metric files are checked.

    Raises:
        ConfigurationError: for a missing value; names the metric, the variable and the line.
        OSError: when the file cannot be read.
    """
    files = _files(metrics)
    if not files:
        return
    for line in islice(read_calls(calls), limit):
        if line.value is None:
            continue
        for metric in files:
            missing = metric.missing(line.value)
            if missing:
                raise ConfigurationError(
                    "--metrics",
                    metric.prompt.source,
                    f"needs {', '.join(missing)}, which line {line.number} of {calls} does not "
                    f"provide; add it to the call's metadata, or pass --metric-var {missing[0]}=…",
                )


def _files(metrics: Sequence[Metric]) -> list[PromptyMetric]:
    from rag_eval_integrations.metrics.prompty import PromptyMetric  # noqa: PLC0415

    return [metric for metric in metrics if isinstance(metric, PromptyMetric)]
