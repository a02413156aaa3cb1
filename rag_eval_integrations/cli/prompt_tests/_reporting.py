"""The command `report`: the report in any form, its thresholds, and an earlier run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval_integrations.cli._options import Threshold
from rag_eval_integrations.cli._terminal import print_stderr, stdout, write_stdout
from rag_eval_integrations.cli.compare import regression_gates
from rag_eval_integrations.cli.prompt_tests._options import CompareSettings, ReportSettings
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations.comparison import decimal
from rag_eval_integrations.evaluations.console import add_row, plain_table
from rag_eval_integrations.prompt_tests._pages import report_pieces, to_csv, to_json, to_markdown
from rag_eval_integrations.prompt_tests.project import Project
from rag_eval_integrations.prompt_tests.rates import Row, UnknownAs, without_empty_columns
from rag_eval_integrations.prompt_tests.records import Choice
from rag_eval_integrations.prompt_tests.report import COMPLIANCE, Comparison, Report

if TYPE_CHECKING:
    from rich.table import Table

_FORMATS = ("md", "csv", "json", "html")
_FAILED = 1


def report(
    folder: Path,
    format_: str | None,
    settings: ReportSettings,
    choice: Choice = Choice(),  # noqa: B008  # frozen
    comparison: CompareSettings = CompareSettings(),  # noqa: B008  # frozen
) -> int:
    """Print and write the report; return 1 when a threshold or a gate fails.

    Raises:
        RagEvalError: for a user's mistake.
        OSError: when a file cannot be read or written.
    """
    if format_ is not None and format_ not in _FORMATS:
        raise ConfigurationError("--format", format_, f"use {', '.join(_FORMATS)}")
    thresholds = thresholds_of(settings.fail_under or ())
    gates = regression_gates(
        comparison.fail_on_regression or (), fail_on_unclear=comparison.fail_on_unclear
    )
    if gates and comparison.before is None:
        given = (comparison.fail_on_regression or [""])[0]
        why = "needs the earlier run's folder: --before DIR"
        raise ConfigurationError("--fail-on-regression", given, why)
    shown = _report_of(folder, settings, choice)
    written = Project(folder, lambda _: None).write_report(shown)
    if format_ is None:
        print_report(shown)
        stdout().print(f"Wrote {', '.join(map(str, written))}", soft_wrap=True)
    else:
        texts = {
            "md": lambda: to_markdown(shown),
            "csv": lambda: to_csv(shown.overview()),
            "json": lambda: to_json(shown),
            "html": lambda: "".join(report_pieces(shown)),
        }
        write_stdout(texts[format_]())
    code = 0
    if comparison.before is not None:
        changes = shown.compare(_report_of(comparison.before, settings, choice))
        for change in changes:
            print_comparison(change, to_stderr=format_ is not None)
        code = regressed(changes, gates, unclear=comparison.fail_on_unclear)
    return max(code, check_thresholds(shown, thresholds))


def _report_of(folder: Path, settings: ReportSettings, choice: Choice) -> Report:
    unknown_as: UnknownAs = "err" if settings.unknown_as_err else None
    chosen = Project(folder, print_stderr).report(unknown_as=unknown_as).chosen(choice)
    return chosen.majority() if settings.majority else chosen


# --- On the console


def print_report(report: Report) -> None:
    """Print the overview, and each model's compliance with its 95 % interval."""
    console = stdout()
    rows = without_empty_columns(report.overview())
    if not rows:
        console.print(f"Prompt tests of {report.name}: there are no results")
    for table in _overview_tables(f"Prompt tests of {report.name}", rows, console.width):
        console.print(table)
    for pair in report.agreement():
        kappa = "–" if pair.kappa is None else f"{pair.kappa:.2f}"
        agree = "–" if pair.agree is None else f"{pair.agree:.0%}"
        console.print(
            f"{' and '.join(pair.judges)}: same verdict on {agree} of {pair.n} outputs, "
            f"Cohen's kappa {kappa}",
            soft_wrap=True,
        )
    for model in report.models:
        rate = report.tnc(model=model)
        low, high = rate.interval or (0.0, 0.0)
        share = "–" if rate.compliant is None else f"{rate.compliant:.0%} [{low:.0%}, {high:.0%}]"
        console.print(
            f"{model}: {rate.ok} ok, {rate.err} err, {rate.unknown} unknown, {rate.errors} errors; "
            f"compliant {share}",
            soft_wrap=True,
        )


_LABELS, _COLUMN = 30, 16
"""Columns of the terminal for the names of figures, and at least for each model."""


def _overview_tables(title: str, rows: Sequence[Row], width: int) -> Iterator[Table]:
    """Yield tables with one column per model, as many as fit beside each other."""
    most = max(1, (width - _LABELS) // _COLUMN)
    for some in (rows[start : start + most] for start in range(0, len(rows), most)):
        labels = (" / ".join(str(row[name]) for name in ("model", "scenario") if row.get(name))
                  for row in some)  # fmt: skip
        table = plain_table(title, "", *(f"{label}>" for label in labels))
        for column in table.columns[1:]:
            column.no_wrap, column.overflow = False, "fold"
        for name in rows[0]:
            if name not in ("model", "scenario"):
                add_row(table, name, *(_cell(row.get(name)) for row in some))
        yield table


def _cell(cell: object) -> str:
    return "" if cell is None else f"{cell:.1f}" if isinstance(cell, float) else str(cell)


def print_comparison(comparison: Comparison, *, to_stderr: bool = False) -> None:
    """Print what changed for one model; tests that broke are listed on stderr.

    Args:
        comparison: the changes.
        to_stderr: print everything to stderr, because stdout holds a report in a file format.
    """
    changed = {"broken": comparison.broken, "fixed": comparison.fixed,
               "otherwise changed": comparison.other}  # fmt: skip
    first = (
        f"{comparison.model}: {comparison.compared} tests in both runs, "
        f"{', '.join(f'{len(tests)} {how}' for how, tests in changed.items())}; "
        f"{comparison.only_before} only in the earlier run, "
        f"{comparison.only_after} only in this one"
    )
    lines = [
        f"  {score.name}: {decimal(score.mean_a)} before, {decimal(score.mean_b)} now; "
        f"{score.verdict()}"
        for score in comparison.scores.values()
    ]
    for line in (first, *lines):
        if to_stderr:
            print_stderr(line)
        else:
            stdout().print(line, soft_wrap=True)
    for change in comparison.broken:
        print_stderr(f"  broken: {change.input[:100]!r}: {change.reason[:200]}")


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
    known = list(dict.fromkeys(name for comparison in comparisons for name in comparison.scores))
    code = 0
    for name, delta in gates.items():
        if name not in known:
            why = f"no model has it in both runs; they have {', '.join(known) or 'none'}"
            raise ConfigurationError("--fail-on-regression", name, why)
        for comparison in comparisons:
            if name not in comparison.scores:
                print_stderr(f"FAILED {name} ({comparison.model}): no output has it in both runs")
                code = _FAILED
                continue
            verdict = comparison.scores[name].verdict(delta)
            failed = verdict.outcome == "worse" or (verdict.outcome == "cannot tell" and unclear)
            line = f"{verdict.outcome}: {name} ({comparison.model}) {verdict.reason}"
            print_stderr(f"FAILED {line}" if failed else line)
            code = _FAILED if failed else code
    return code


def thresholds_of(words: Sequence[str]) -> list[Threshold]:
    """Read every `--fail-under SHARE` or `NAME=VALUE`; without a name it is `compliance`.

    Raises:
        ConfigurationError: for another form, or a value out of range.
    """
    thresholds = []
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
        thresholds.append(Threshold(name, number))
    return thresholds


def check_thresholds(report: Report, thresholds: Sequence[Threshold]) -> int:
    """Return 1, and print why, when a figure of any model is below its threshold.

    A report without results, and a model without a verdict or a score, fail as well.

    Raises:
        ConfigurationError: for a metric that no result has.
    """
    if thresholds and not report.models:
        print_stderr("FAILED: the report has no results")
        return _FAILED
    metrics = {name for result in report.results for key in result.metrics
               for name in (key.metric, key.key)}  # fmt: skip
    complaints = []
    for threshold in thresholds:
        if threshold.name not in {COMPLIANCE, *metrics}:
            known = ", ".join(sorted(metrics)) or "none"
            why = f"no result has this metric; the metrics are: {known}"
            raise ConfigurationError("--fail-under", threshold.name, why)
        for model in report.models:
            if complaint := _complaint(report, model, threshold):
                complaints.append(complaint)
                print_stderr(f"FAILED {model}: {complaint}")
    return _FAILED if complaints else 0


def _complaint(report: Report, model: str, threshold: Threshold) -> str:
    """Say what of a model is below a threshold; empty if nothing is."""
    if threshold.name != COMPLIANCE:
        value, _ = report.means(threshold.name, model=model)
        name, lack = f"mean of {threshold.name}", f"no output has a score of {threshold.name}"
    else:
        rate = report.tnc(model=model)
        value, name, lack = rate.compliant, "share of compliant outputs", "no output has a verdict"
        without = rate.unknown + rate.errors
        if value is not None and without:
            print_stderr(
                f"{model}: {without} of {rate.outputs} outputs have no verdict "
                f"({rate.unknown} unknown, {rate.errors} errors) and are left out of the share"
            )
    if value is None:
        return lack
    below = value < threshold.value
    return f"the {name} is {value:.4f}, below {threshold.value:g}" if below else ""
