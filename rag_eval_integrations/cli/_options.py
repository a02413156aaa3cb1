"""Metrics, thresholds and metric variables made from options, checked before the first row."""

from __future__ import annotations

import os
import re
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rag_eval_integrations import _target
from rag_eval_integrations.dataset import read_calls
from rag_eval_integrations.dataset._names import check_field_map
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.evaluator import metric_named
from rag_eval_integrations.judges import Calibration
from rag_eval_integrations.metrics import CallMetric, Formulas, Metric, Trace
from rag_eval_integrations.records import Run
from rag_eval_integrations.records.score import score_hint

if TYPE_CHECKING:
    from rag_eval_integrations.metrics.prompty import PromptyMetric


@dataclass(frozen=True)
class Threshold:
    """The least mean that a score must have: one `--fail-under NAME=VALUE`."""

    name: str
    value: float
    """From 0 to 1."""


_FORMS = ", geval:NAME, FILE.geval.yaml or FILE.metric.prompty"
"""What `--metrics` accepts besides the names of `metric_named`."""


_GRADED = {"estimator": "--geval-estimator", "samples": "--geval-samples"}
_RANKED = {"k": "--k", "match": "--match", "id_key": "--id-key"}
"""Arguments of G-Eval and of `retrieval`, and their options."""


def metrics_from(
    names: str,
    trace: Mapping[str, Any],
    settings: Mapping[str, Any],
    variables: Sequence[str] | None = None,
) -> list[Metric]:
    """Make the metrics named in `--metrics`, with the values of their options and variables.

    Args:
        names: the metrics, with commas between.
        trace: arguments of `trace_from`.
        settings: arguments of G-Eval and `retrieval`, without those that were not given.
        variables: the values of `--metric-var`.

    Raises:
        ConfigurationError: for an unknown metric, or options that contradict each other.
        InputError: for a file that is not a metric.
        OSError: when a file cannot be read.
    """
    options = _GRADED | _RANKED
    graded = {name: settings[name] for name in _GRADED if name in settings}
    ranked = {name: settings[name] for name in _RANKED if name in settings}
    if "k" in ranked:  # 0 is refused, and so is what is not a number
        ranks = map(str.strip, ranked["k"].split(","))
        ranked["k"] = [int(rank) if rank.isascii() and rank.isdigit() else 0 for rank in ranks]
    by_metric = {"geval": graded, "retrieval": ranked}
    try:
        metrics = [_metric(name.strip(), trace, by_metric) for name in names.split(",")]
    except ConfigurationError as error:
        if error.field not in options:
            raise
        field = error.field
        raise ConfigurationError(options[field], settings[field], error.why) from error
    geval = any(name.startswith("geval:") for metric in metrics for name in metric.names)
    for fields, used, words in (
        (graded, geval, "names no G-Eval metric"),
        (ranked, any(isinstance(m, CallMetric) for m in metrics), "does not name retrieval"),
    ):
        if fields and not used:
            first = next(iter(fields))
            raise ConfigurationError(options[first], settings[first], f"--metrics {words}")
    calibration = trace["calibration"]
    if calibration is not None and not any(isinstance(m, Trace) for m in metrics):
        why = "--metrics does not name trace"
        raise ConfigurationError("--calibration", str(calibration), why)
    _set_variables(metrics, variables or ())
    return metrics


def _metric(
    name: str, trace: Mapping[str, Any], settings: Mapping[str, Mapping[str, Any]]
) -> Metric:
    """Make the metric of a name or a file, and import its module only then."""
    if name == "trace":
        return trace_from(**trace)
    if name.endswith((".geval.yaml", ".geval.yml")):
        from rag_eval_integrations.metrics.geval import read_geval  # noqa: PLC0415

        return read_geval(name, **settings["geval"])
    if name.endswith(".metric.prompty"):
        from rag_eval_integrations.metrics.prompty import PromptyMetric  # noqa: PLC0415

        return PromptyMetric(name)
    return metric_named(name, settings, forms=_FORMS)


def trace_from(
    formulas: str | None, relevance_baseline: int | None, calibration: Path | None = None
) -> Trace:
    """Make the TRACe metric from `--formulas`, `--relevance-baseline` and `--calibration`.

    Raises:
        ConfigurationError: for unknown formulas, or options that contradict each other.
        InputError: for a file that is not a calibration.
        OSError: when it cannot be read.
    """
    maps = None
    if calibration is not None:
        try:
            maps = Calibration.read(calibration)
        except InputError as error:
            raise InputError(f"{calibration}: {error}") from error
    chosen = cast(Formulas, formulas or "gpt-labeling")
    return Trace(chosen, relevance_baseline, calibration=maps)


def thresholds_from(words: Sequence[str] | None, names: Sequence[str] = ()) -> list[Threshold]:
    """Read every `--fail-under NAME=VALUE`.

    Args:
        words: the options' values.
        names: the scores that the metrics give; empty where only the rows tell.

    Raises:
        ConfigurationError: for another form, an unknown name, or a value outside 0 to 1.
    """
    option, thresholds = "--fail-under", []
    for word in words or ():
        name, value = named_share(option, word, "VALUE", "should be a number from 0 to 1")
        if names and name not in names:
            why = f"no score {name!r}; {score_hint(name, names)}"
            raise ConfigurationError(option, word, why)
        thresholds.append(Threshold(name, value))
    return thresholds


def named_share(option: str, word: str, value: str, why: str) -> tuple[str, float]:
    """Read NAME=VALUE with a value from 0 to 1.

    Args:
        option: the option.
        word: what was given.
        value: what the option calls the value.
        why: end of the message if the value is not such a number.

    Raises:
        ConfigurationError: for another form or value.
    """
    name, _, text = word.rpartition("=")
    if not name:
        raise ConfigurationError(option, word, f"use NAME={value}")
    number = number_in(text, 1)
    if number is None:
        raise ConfigurationError(option, word, f"{value} {why}")
    return name, number


def number_in(text: str, most: float) -> float | None:
    """Read a number from 0 to `most`; None for anything else."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number <= most else None


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
    """Return the text of an option: the value itself, or the content of its `@FILE`.

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


def _set_variables(metrics: Sequence[Metric], words: Sequence[str]) -> None:
    """Set the `--metric-var` values in the metric files that use them.

    Raises:
        ConfigurationError: for another form, or a name that no metric file uses.
        OSError: when a file cannot be read.
    """
    for name, value in metric_variables(words).items():
        users = [metric for metric in _prompty_metrics(metrics) if name in metric.prompt.variables]
        if not users:
            raise ConfigurationError("--metric-var", name, "no metric file has this variable")
        for metric in users:
            metric.variables[name] = value


def field_map_from(words: Sequence[str] | None) -> dict[str, tuple[str, ...]]:
    """Read the values of `--map`.

    Raises:
        ConfigurationError: one is not `FIELD=NAME`, names no field of a call, or is a second name
            for another field than `documents`.
    """
    names: dict[str, list[str]] = {}
    for word in words or ():
        ours, equals, theirs = word.partition("=")
        if not (ours and equals and theirs):
            raise ConfigurationError("--map", word, "use FIELD=NAME, such as documents=passages")
        names.setdefault(ours, []).append(theirs)
    return check_field_map(names, "--map")


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
    files = _prompty_metrics(metrics)
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


def _prompty_metrics(metrics: Sequence[Metric]) -> list[PromptyMetric]:
    """Return the metrics that are `.prompty` files."""
    from rag_eval_integrations.metrics.prompty import PromptyMetric  # noqa: PLC0415

    return [metric for metric in metrics if isinstance(metric, PromptyMetric)]


# --- The run that the rows of `run` and `score` name


_GIT_S = 2.0
"""Seconds that git may take: a file system may be slow, and the revision is not worth a wait."""


def run_from(name: str | None, words: Sequence[str] | None, *, revision: bool) -> Run:
    """Make the record of a run from `--name`, `--tag` and `--no-revision`.

    Args:
        name: the name.
        words: the values of `--tag`.
        revision: whether git is asked for the revision.

    Raises:
        ConfigurationError: a tag has no key.
        InputError: name and tags are too long.
    """
    tags = {}
    for word in words or ():
        key, equals, value = word.partition("=")
        if not (key and equals):
            raise ConfigurationError("--tag", word, "use KEY=VALUE, such as model=gpt-4o")
        tags[key] = value
    return Run(
        id=uuid.uuid4().hex,
        name=name,
        start=datetime.now(UTC),
        revision=_revision() if revision else None,
        tags=tags,
    )


def _revision() -> str | None:
    """Ask git for the commit of the working folder; None without git, a repository or a commit."""
    command = (
        "git",
        "--no-optional-locks",
        "describe",
        "--always",
        "--exclude=*",
        "--abbrev=40",
        "--dirty",
    )
    try:
        git = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_GIT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return git.stdout.decode().strip() or None


_AGO = re.compile(r"(\d{1,6})([smhdw])")
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def moment(text: str | None, option: str, now: float) -> float:
    """Read a time as seconds since 1970; 0 without one.

    Args:
        text: 60s, 90m, 24h, 7d or 2w ago, or a date or time of ISO 8601, in UTC unless it names
            a zone.
        option: name of the option, for errors.
        now: the present, in seconds since 1970.

    Raises:
        ConfigurationError: it is neither.
    """
    if text is None:
        return 0.0
    if (ago := _AGO.fullmatch(text)) is not None:
        return now - int(ago[1]) * _UNITS[ago[2]]
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        why = "use a time ago, such as 90m, 24h, 7d or 2w, or a date such as 2026-11-25"
        raise ConfigurationError(option, text, why) from None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
