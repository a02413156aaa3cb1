"""The command `report`: the report in any form, its thresholds, and an earlier run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rag_eval_integrations.cli._options import Threshold
from rag_eval_integrations.cli._terminal import print_stderr, stdout, write_stdout
from rag_eval_integrations.cli.compare import regression_gates
from rag_eval_integrations.cli.prompt_tests._options import CompareSettings
from rag_eval_integrations.cli.prompt_tests._printing import print_comparison, print_report
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.prompt_tests.project import Project
from rag_eval_integrations.prompt_tests.records import Choice
from rag_eval_integrations.prompt_tests.report import Comparison, Report
from rag_eval_integrations.prompt_tests.report._compare import COMPLIANCE
from rag_eval_integrations.prompt_tests.report._html import report_pieces
from rag_eval_integrations.prompt_tests.report._write import to_csv, to_json, to_markdown

_FORMATS = ("md", "csv", "json", "html")
_FAILED = 1


@dataclass(frozen=True)
class Shown:
    """The results that a report shows, how they count, and its thresholds."""

    choice: Choice = field(default_factory=Choice)
    unknown_as_err: bool = False
    majority: bool = False
    fail_under: Sequence[str] = ()


def report(
    folder: Path,
    format_: str | None,
    which: Shown,
    comparison: CompareSettings = CompareSettings(),  # noqa: B008  # frozen
) -> int:
    """Print and write the report; return 1 when a threshold or a gate fails.

    Raises:
        RagEvalError: for a user's mistake.
        OSError: when a file cannot be read or written.
    """
    if format_ is not None and format_ not in _FORMATS:
        raise ConfigurationError("--format", format_, f"use {', '.join(_FORMATS)}")
    thresholds = thresholds_of(which.fail_under)
    gates = regression_gates(
        comparison.fail_on_regression or (), fail_on_unclear=comparison.fail_on_unclear
    )
    if gates and comparison.before is None:
        given = (comparison.fail_on_regression or [""])[0]
        why = "needs the earlier run's folder: --before DIR"
        raise ConfigurationError("--fail-on-regression", given, why)
    found = _report_of(folder, which)
    written = Project(folder, lambda _: None).write_report(found)
    if format_ is None:
        print_report(found)
        stdout().print(f"Wrote {', '.join(map(str, written))}", soft_wrap=True)
    else:
        formats: dict[str, Callable[[Report], str]] = {
            "md": to_markdown,
            "csv": lambda one: to_csv(one.overview()),
            "json": to_json,
            "html": lambda one: "".join(report_pieces(one)),
        }
        write_stdout(formats[format_](found))
    code = 0
    if comparison.before is not None:
        changes = found.compare(_report_of(comparison.before, which))
        for one in changes:
            print_comparison(one, to_stderr=format_ is not None)
        code = regressed(changes, gates, unclear=comparison.fail_on_unclear)
    return max(code, check_thresholds(found, thresholds))


def _report_of(folder: Path, which: Shown) -> Report:
    made = Project(folder, print_stderr).report(unknown_as="err" if which.unknown_as_err else None)
    chosen = made.chosen(which.choice)
    return chosen.majority() if which.majority else chosen


# --- Thresholds, and gates on what became worse


def regressed(
    comparisons: Sequence[Comparison], gates: Mapping[str, float], *, unclear: bool
) -> int:
    """Print each gate's outcome; return 1 if a score became worse, or may have with `unclear`.

    Args:
        comparisons: the changes, one per model.
        gates: the fall that does not matter by score: `compliance` or a metric.
        unclear: whether "cannot tell" fails as well.

    Raises:
        ConfigurationError: for a score that no model has in both runs.
    """
    known = list(dict.fromkeys(name for one in comparisons for name in one.scores))
    code = 0
    for name, delta in gates.items():
        if name not in known:
            why = f"no model has it in both runs; they have {', '.join(known) or 'none'}"
            raise ConfigurationError("--fail-on-regression", name, why)
        for one in comparisons:
            score = one.scores.get(name)
            if score is None:
                print_stderr(f"FAILED {name} ({one.model}): no output has it in both runs")
                code = _FAILED
                continue
            verdict = score.verdict(delta)
            failed = verdict.outcome == "worse" or (verdict.outcome == "cannot tell" and unclear)
            line = f"{verdict.outcome}: {name} ({one.model}) {verdict.reason}"
            print_stderr(f"FAILED {line}" if failed else line)
            code = _FAILED if failed else code
    return code


def thresholds_of(words: Sequence[str]) -> list[Threshold]:
    """Read every `--fail-under SHARE` or `NAME=VALUE`; without a name it is `compliance`.

    Raises:
        ConfigurationError: for another form, or a value out of range.
    """
    found = []
    for word in words:
        name, _, value = word.rpartition("=")
        name = name or COMPLIANCE
        most = 1 if name == COMPLIANCE else 100
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not 0 <= number <= most:
            why = f"use a number from 0 to {most}, or METRIC=VALUE with a VALUE from 0 to 100"
            raise ConfigurationError("--fail-under", word, why)
        found.append(Threshold(name, number))
    return found


def check_thresholds(report: Report, thresholds: Sequence[Threshold]) -> int:
    """Return 1, and print why, when a figure of any model is below its threshold.

    A report without results, and a model without a verdict or a score, fail as well.

    Raises:
        ConfigurationError: for a metric that no result has.
    """
    code = 0
    if thresholds and not report.models:
        print_stderr("FAILED: the report has no results")
        return _FAILED
    metrics = {name for one in report.results for key in one.metrics
               for name in (key.metric, key.key)}  # fmt: skip
    for one in thresholds:
        if one.name == COMPLIANCE:
            code = max(code, _check_compliance(report, one.value))
        elif one.name not in metrics:
            known = ", ".join(sorted(metrics)) or "none"
            why = f"no result has this metric; the metrics are: {known}"
            raise ConfigurationError("--fail-under", one.name, why)
        else:
            code = max(code, _check_metric(report, one))
    return code


def _check_metric(report: Report, threshold: Threshold) -> int:
    code = 0
    for model in report.models:
        mean, _ = report.means(threshold.name, model=model)
        if mean is None:
            print_stderr(f"FAILED {model}: no output has a score of {threshold.name}")
        elif mean < threshold.value:
            below = f"the mean of {threshold.name} is {mean:.4f}, below {threshold.value:g}"
            print_stderr(f"FAILED {model}: {below}")
        else:
            continue
        code = _FAILED
    return code


def _check_compliance(report: Report, threshold: float) -> int:
    code = 0
    for model in report.models:
        rate = report.tnc(model=model)
        share = rate.compliant
        without = rate.unknown + rate.errors
        if share is not None and without:
            print_stderr(
                f"{model}: {without} of {without + rate.ok + rate.err} outputs have no verdict "
                f"({rate.unknown} unknown, {rate.errors} errors) and are left out of the share"
            )
        if share is None:
            print_stderr(f"FAILED {model}: no output has a verdict")
        elif share < threshold:
            print_stderr(
                f"FAILED {model}: the share of compliant outputs is {share:.4f}, below "
                f"{threshold:g}"
            )
        else:
            continue
        code = _FAILED
    return code
