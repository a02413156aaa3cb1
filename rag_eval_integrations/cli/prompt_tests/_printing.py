"""Console output of `rag-eval prompt-tests`: reports, thresholds, failed judges, progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from rag_eval_integrations.cli._terminal import print_stderr, stdout
from rag_eval_integrations.evaluations import ScoreDifference
from rag_eval_integrations.evaluations.comparison import decimal
from rag_eval_integrations.evaluations.console import add_row, plain, plain_table
from rag_eval_integrations.prompt_tests._schema import METRIC
from rag_eval_integrations.prompt_tests.records import Result
from rag_eval_integrations.prompt_tests.report import Comparison, Report
from rag_eval_integrations.prompt_tests.report._overview import Row, without_empty_columns

if TYPE_CHECKING:
    from rich.table import Table

_FAILED = 1


def print_report(report: Report) -> None:
    """Print the overview, and each model's compliance with its 95 % interval."""
    console = stdout()
    rows = without_empty_columns(report.overview())
    if not rows:
        console.print(f"Prompt tests of {report.name}: there are no results")
    for table in _overview_tables(f"Prompt tests of {report.name}", rows, console.width):
        console.print(table)
    for found in report.agreement():
        who = " and ".join(found.judges) if len(found.judges) == 2 else "all judges"
        kappa = "–" if found.kappa is None else f"{found.kappa:.2f}"
        agree = "–" if found.agree is None else f"{found.agree:.0%}"
        console.print(
            f"{who}: same verdict on {agree} of {found.n} outputs, {found.method}'s kappa {kappa}",
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


_WIDEST = 24
"""Columns of a name from which on it is folded before a table becomes wider."""


def _overview_tables(title: str, rows: Sequence[Row], width: int) -> Iterator[Table]:
    """Yield tables with one column per model, as many as fit beside each other."""
    from rich.cells import cell_len  # noqa: PLC0415  # costs 0.1 s

    names = [name for name in rows[0] if name not in ("model", "scenario")] if rows else []
    labels = [plain(label) for label in _labels(rows)]
    columns = [[_shown(row.get(name)) for name in names] for row in rows]
    least = [max(map(cell_len, cells), default=0) for cells in columns]
    needed = [max(n, min(cell_len(label), _WIDEST)) for n, label in zip(least, labels, strict=True)]
    room = width - min(max(map(cell_len, names), default=0), _WIDEST)
    start = 0
    while start < len(rows):
        end = start + 1
        while end < len(rows) and sum(needed[start : end + 1]) + 2 * (end + 1 - start) <= room:
            end += 1
        table = plain_table(title, "", *(f"{label}>" for label in labels[start:end]))
        for column, n in zip(table.columns[1:], least[start:end], strict=True):
            column.no_wrap, column.overflow, column.min_width = False, "fold", n
        for name, *cells in zip(names, *columns[start:end], strict=True):
            add_row(table, name, *cells)
        yield table
        start = end


def _labels(rows: Sequence[Row]) -> list[str]:
    labels = []
    for row in rows:
        scenario = row.get("scenario")
        labels.append(f"{row['model']} / {scenario}" if scenario else str(row["model"]))
    return labels


def _shown(cell: object) -> str:
    return "" if cell is None else f"{cell:.1f}" if isinstance(cell, float) else str(cell)


def print_comparison(comparison: Comparison, *, to_stderr: bool = False) -> None:
    """Print what changed for one model; tests that broke are listed on stderr.

    Args:
        comparison: the changes.
        to_stderr: print everything to stderr, because stdout holds a report in a file format.
    """
    line = (
        f"{comparison.model}: {comparison.compared} tests in both runs, {len(comparison.broken)} "
        f"broken, {len(comparison.fixed)} fixed, {len(comparison.other)} otherwise changed (sign "
        f"test p = {comparison.p_value:.3f}); {comparison.only_before} only in the earlier run, "
        f"{comparison.only_after} only in this one"
    )
    lines = [line, *(f"  {_difference(one)}" for one in comparison.scores.values())]
    for line in lines:
        if to_stderr:
            print_stderr(line)
        else:
            stdout().print(line, soft_wrap=True)
    for change in comparison.broken:
        print_stderr(f"  broken: {change.input[:100]!r}: {change.reason[:200]}")


def _difference(score: ScoreDifference) -> str:
    means = f"{decimal(score.mean_a)} before, {decimal(score.mean_b)} now"
    return f"{score.name}: {means}; {score.verdict()}"


def print_failed_judges(results: Sequence[Result]) -> bool:
    """Print the judges that failed; return True when some failed and none answered."""
    failed: dict[str, list[str]] = {}
    answered = 0
    for result in results:
        verdicts = [one for one in (result.compliance, *result.others) if one is not None]
        replies = [(one.judge, one.failed, one.reason) for one in verdicts]
        replies += [
            (one.judge, one.failed, one.problem or "")
            for one in result.metrics
            if one.metric != METRIC
        ]
        for judge, has_failed, reason in replies:
            if has_failed:
                failed.setdefault(judge or "?", []).append(reason)
            elif judge is not None:
                answered += 1
    for judge, reasons in failed.items():
        print_stderr(f"{judge}: {len(reasons)} judgements failed; the first error: {reasons[0]}")
    return bool(failed) and not answered


# --- Progress of long stages, on stderr


SECONDS_PER_LINE = 10.0


class ProgressCounter:
    """Counts finished items and prints the count every ten seconds; quick stages print nothing.

    Args:
        what: the items, in the plural, such as `outputs`.
        total: returns the expected number; None when it is not known.
        spent: returns what was spent so far; empty to say nothing.
    """

    def __init__(
        self,
        what: str,
        total: Callable[[], int] | None = None,
        spent: Callable[[], str] = lambda: "",
    ) -> None:
        self._what = what
        self._spent = spent
        self._total = total
        self._done = 0
        self._printed_at = time.monotonic()

    def __call__(self, _: object = None) -> None:
        """Count one item."""
        self._done += 1
        now = time.monotonic()
        if now - self._printed_at < SECONDS_PER_LINE:
            return
        self._printed_at = now
        of = "" if self._total is None else f" of {self._total():,}"
        spent = self._spent()
        print_stderr(f"{self._done:,}{of} {self._what}{f'; spent {spent}' if spent else ''}")
