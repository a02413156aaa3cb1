"""The command `report`: the report in any form, its thresholds, and an earlier run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval_integrations._visible import counted
from rag_eval_integrations.cli._console import stdout
from rag_eval_integrations.cli._options import Threshold, number_in
from rag_eval_integrations.cli._terminal import print_stderr, write_stdout
from rag_eval_integrations.cli.compare import regression_gates
from rag_eval_integrations.cli.prompt_tests._options import ReportOptions
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations._difference_words import decimal
from rag_eval_integrations.evaluations.console import add_row, plain_table
from rag_eval_integrations.prompt_tests._pages import FORMATS
from rag_eval_integrations.prompt_tests._rates import Row, without_empty_columns
from rag_eval_integrations.prompt_tests._settings import METRIC
from rag_eval_integrations.prompt_tests.project import Project
from rag_eval_integrations.prompt_tests.records import Choice, Judged, Result
from rag_eval_integrations.prompt_tests.report import COMPLIANCE, Comparison, Report

if TYPE_CHECKING:
    from rich.table import Table

_FAILED = 1


def report_command(options: ReportOptions) -> int:
    """Print and write the report, and what changed; return 1 when a threshold or a gate fails.

    What changed goes to stderr where the report itself is printed in a format.

    Raises:
        RagEvalError: for a user's mistake.
        OSError: when a file cannot be read or written.
    """
    if options.form is not None and options.form not in FORMATS:
        raise ConfigurationError("--format", options.form, f"use {', '.join(FORMATS)}")
    thresholds = thresholds_of(options.fail_under or ())
    regressions = options.fail_on_regression or []
    gates = regression_gates(regressions, fail_on_unclear=options.fail_on_unclear)
    if gates and options.before is None:
        why = "needs the earlier run's folder: --before DIR"
        raise ConfigurationError("--fail-on-regression", regressions[0], why)
    choice, code = options.choice(), 0
    verdicts = {"unknown_as_err": options.unknown_as_err, "majority": options.majority}
    report = report_of(options.folder, choice, **verdicts)
    write_and_print(options.folder, report, options.form)
    if options.before is not None:
        changes = report.compare(report_of(options.before, choice, **verdicts))
        for change in changes:
            _print_comparison(change, to_stderr=options.form is not None)
        if not changes:
            print_stderr(f"{options.before} has no model of this run: nothing is compared")
        code = _check_regressions(changes, gates, unclear=options.fail_on_unclear)
    return max(code, check_thresholds(report, thresholds))


def report_of(folder: Path, choice: Choice, *, unknown_as_err: bool, majority: bool) -> Report:
    """Read the report of a folder; rows that cannot be used are printed to stderr.

    Args:
        folder: the folder of a prompt's tests.
        choice: the tests that it is about.
        unknown_as_err: whether unknown verdicts count as not compliant, or not at all.
        majority: whether the verdict of most judges counts, or the first judge's.

    Raises:
        ConfigurationError: when there are no results, or the choice leaves none.
    """
    report = Project(folder, print_stderr).report(unknown_as="err" if unknown_as_err else None)
    report = report.chosen(choice)
    return report.majority() if majority else report


def write_and_print(folder: Path, report: Report, form: str | None = None) -> None:
    """Write a report into its folder, and print it in a format.

    Without a format, the overview and the names of the files are printed.

    Raises:
        ConfigurationError: when a file of the report's name is there and is not an earlier report.
    """
    paths = Project(folder, lambda _: None).write_report(report)
    if form is None:
        print_report(report)
        stdout().print(f"Wrote {', '.join(map(str, paths))}", soft_wrap=True)
    else:
        write_stdout(FORMATS[form](report))


# --- On the console


def print_report(report: Report) -> None:
    """Print the overview, how judges agree, and each model's compliance with its 95 % interval.

    Says so if there are no results.
    """
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
        console.print(f"{model}: {rate.words}; compliant {share}", soft_wrap=True)


_LABELS, _COLUMN = 30, 16
"""Columns of the terminal for the names of figures, and at least for each model."""
_NAMES = {
    "errors": "outputs that failed",
    "tests compliance unknown": "tests without a verdict",
    "tests judged": "tests with a verdict",
    "compliant from": "compliant, 95 % from",
    "compliant to": "compliant, 95 % to",
}
"""Columns of `overview.csv` whose names say little without its documentation."""


def _overview_tables(title: str, rows: Sequence[Row], width: int) -> Iterator[Table]:
    """Yield tables with one column per model, as many as fit beside each other.

    A model has a column per scenario. Each table has at least one such column.
    """
    most = max(1, (width - _LABELS) // _COLUMN)
    for start in range(0, len(rows), most):
        beside = rows[start : start + most]
        table = plain_table(title, "", *(f"{_column_heading(row)}>" for row in beside))
        for column in table.columns[1:]:
            column.no_wrap, column.overflow = False, "fold"
        for name in rows[0]:
            if name not in ("model", "scenario"):
                add_row(table, _NAMES.get(name, name), *(_cell(row.get(name)) for row in beside))
        yield table


def _column_heading(row: Row) -> str:
    """Return the heading of a row's column: its model, and its scenario if it has one."""
    return " / ".join(str(row[name]) for name in ("model", "scenario") if row.get(name))


def _cell(cell: object) -> str:
    """Return the text of a table's cell: a fraction with one decimal, None as empty."""
    return "" if cell is None else f"{cell:.1f}" if isinstance(cell, float) else str(cell)


def _print_comparison(comparison: Comparison, *, to_stderr: bool) -> None:
    """Print what changed for one model; tests that broke are listed on stderr.

    Args:
        comparison: the changes.
        to_stderr: print everything to stderr, because stdout holds a report in a file format.
    """
    changed = {
        "broken": comparison.broken,
        "fixed": comparison.fixed,
        "otherwise changed": comparison.other,
    }
    lines = [
        f"{comparison.model}: {counted(comparison.compared, 'test')} in both runs, "
        f"{', '.join(f'{len(tests)} {how}' for how, tests in changed.items())}; "
        f"{comparison.only_before} only in the earlier run, "
        f"{comparison.only_after} only in this one"
    ]
    lines += [
        f"  {score.name}: {decimal(score.mean_a)} before, {decimal(score.mean_b)} now; "
        f"{score.verdict()}"
        for score in comparison.scores.values()
    ]
    for line in lines:
        stdout(to_stderr=to_stderr).print(line, soft_wrap=True)
    for change in comparison.broken:
        print_stderr(f"  broken: {change.input[:100]!r}: {change.reason[:200]}")


# --- Failures of a run


def print_failed_judges(results: Sequence[Result], others: Sequence[Judged]) -> bool:
    """Print the judges that failed; return True when some failed and none answered."""
    verdicts = [verdict for result in results for verdict in result.verdicts]
    replies = [
        (verdict.judge, verdict.failed, verdict.reason) for verdict in (*verdicts, *others)
    ] + [
        (metric.judge, metric.failed, metric.problem or "")
        for result in results
        for metric in result.metrics
        if metric.metric != METRIC
    ]
    print_failures([(judge, why) for judge, failed, why in replies if failed], "judgement")
    unanswered = [failed for judge, failed, _ in replies if judge is not None]
    return any(unanswered) and all(unanswered)


def print_failures(failures: Sequence[tuple[str | None, str]], what: str) -> None:
    """Print to stderr how many of what each model failed to give, and its first error."""
    for name, count in Counter(name for name, _ in failures).items():
        first = next(why for model, why in failures if model == name)
        print_stderr(f"{name}: {counted(count, what)} failed; the first error: {first}")


# --- Gates on what became worse, and thresholds


def _check_regressions(
    comparisons: Sequence[Comparison], gates: Mapping[str, float], *, unclear: bool
) -> int:
    """Print each gate's outcome; return 1 if a score became worse, or may have with `unclear`.

    A model whose outputs do not have the score in both runs fails.

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
            line, failed = f"{name} ({comparison.model}): no output has it in both runs", True
            if name in comparison.scores:
                verdict = comparison.scores[name].verdict(delta)
                line = f"{verdict.outcome}: {name} ({comparison.model}) {verdict.reason}"
                failed = verdict.outcome in ("worse", "cannot tell" if unclear else "worse")
            print_stderr(f"FAILED {line}" if failed else line)
            code = max(code, _FAILED * failed)
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
        number = number_in(value, most)
        if number is None:
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
    metrics = {
        name
        for result in report.results
        for key in result.metrics
        for name in (key.metric, key.key)
    }
    code = 0
    for threshold in thresholds:
        if threshold.name not in {COMPLIANCE, *metrics}:
            known = ", ".join(sorted(metrics)) or "none"
            why = f"no result has this metric; the metrics are: {known}"
            raise ConfigurationError("--fail-under", threshold.name, why)
        for model in report.models:
            if complaint := _complaint(report, model, threshold):
                print_stderr(f"FAILED {model}: {complaint}")
                code = _FAILED
    return code


def _complaint(report: Report, model: str, threshold: Threshold) -> str:
    """Return what of a model is below a threshold, in words; empty if nothing is.

    A model without any value is below it. Outputs without a verdict are printed.
    """
    if threshold.name != COMPLIANCE:
        value, _ = report.means(threshold.name, model=model)
        name, lack = f"mean of {threshold.name}", f"no output has a score of {threshold.name}"
    else:
        rate = report.tnc(model=model)
        value, name, lack = rate.compliant, "share of compliant outputs", "no output has a verdict"
        without = rate.unknown + rate.errors
        if value is not None and without:
            print_stderr(
                f"{model}: {without} of {counted(rate.outputs, 'output')} without a verdict "
                f"({rate.unknown} unknown, {rate.errors} failed) "
                f"{'is' if without == 1 else 'are'} left out of the share"
            )
    if value is None:
        return lack
    below = value < threshold.value
    return f"the {name} is {value:.4f}, below {threshold.value:g}" if below else ""
