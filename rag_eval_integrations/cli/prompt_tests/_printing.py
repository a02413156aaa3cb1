"""What `rag-eval prompt-tests report` prints: the overview, comparisons, thresholds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rag_eval_integrations.cli._terminal import complain, stdout
from rag_eval_integrations.prompt_tests.records import Result
from rag_eval_integrations.prompt_tests.report import Comparison, Report
from rag_eval_integrations.prompt_tests.report._overview import Row
from rag_eval_integrations.report.console import plain_table

_FAILED = 1


def print_report(found: Report) -> None:
    """Print the overview, and each model's compliance with its interval."""
    rows = found.overview()
    names = [name for name in rows[0] if name not in ("model", "scenario")] if rows else []
    table = plain_table(f"Prompt tests of {found.name}", "", *[f"{n}>" for n in _labels(rows)])
    for name in names:
        table.add_row(name, *[_shown(row.get(name)) for row in rows])
    stdout().print(table)
    for model in found.models:
        rate = found.tnc(model=model)
        low, high = rate.interval or (0.0, 0.0)
        share = "–" if rate.compliant is None else f"{rate.compliant:.0%} [{low:.0%}, {high:.0%}]"
        stdout().print(
            f"{model}: {rate.ok} ok, {rate.err} err, {rate.unknown} unknown, {rate.errors} errors; "
            f"compliant {share}",
            soft_wrap=True,
        )


def _labels(rows: Sequence[Row]) -> list[str]:
    labels = []
    for row in rows:
        scenario = row.get("scenario")
        labels.append(f"{row['model']} / {scenario}" if scenario else str(row["model"]))
    return labels


def _shown(cell: object) -> str:
    return "" if cell is None else f"{cell:.1f}" if isinstance(cell, float) else str(cell)


def print_comparison(one: Comparison, *, aside: bool = False) -> None:
    """Print what changed for one model; what broke goes to stderr.

    Args:
        one: what changed.
        aside: all of it to stderr, where stdout is a file of another form.
    """
    line = (
        f"{one.model}: {one.compared} tests in both runs, {len(one.broken)} broken, "
        f"{len(one.fixed)} fixed, {len(one.other)} otherwise changed (sign test p = "
        f"{one.p_value:.3f}); {one.only_before} only before, {one.only_after} only now"
    )
    if aside:
        complain(line)
    else:
        stdout().print(line, soft_wrap=True)
    for change in one.broken:
        complain(f"  broken: {change.input[:100]!r}: {change.reason[:200]}")


def check(found: Report, least: float) -> int:
    """Return 1, and say why, when a model complies less than asked for."""
    code = 0
    if not found.models:
        complain("FAILED: there are no results")
        code = _FAILED
    for model in found.models:
        rate = found.tnc(model=model)
        share = rate.compliant
        without = rate.unknown + rate.errors
        if share is not None and without:
            complain(
                f"{model}: {without} of {without + rate.ok + rate.err} outputs have no verdict "
                f"({rate.unknown} unknown, {rate.errors} errors); the share is of the others"
            )
        if share is None:
            complain(f"FAILED {model}: no output has a verdict")
        elif share < least:
            complain(f"FAILED {model}: {share:.4f} of the outputs comply, less than {least:g}")
        else:
            continue
        code = _FAILED
    return code


def complain_about_judges(results: Sequence[Result]) -> bool:
    """Say which judges did not answer; whether none of them ever did."""
    failed: dict[str, list[str]] = {}
    answered = 0
    for result in results:
        verdicts = [one for one in (result.compliance, *result.others) if one is not None]
        said = [(one.judge, one.failed, one.reason) for one in verdicts]
        said += [(one.judge, one.failed, one.problem or "") for one in result.metrics]
        for judge, no_answer, why in said:
            if no_answer:
                failed.setdefault(judge or "?", []).append(why)
            elif judge is not None:
                answered += 1
    for judge, reasons in failed.items():
        complain(f"{judge}: {len(reasons)} questions failed, the first by {reasons[0]}")
    return bool(failed) and not answered


# --- A line on stderr now and then, so that a long stage is seen to go on


SECONDS_A_LINE = 10.0


class Counter:
    """Counts what is done, and says so every ten seconds; nothing of a stage that is quick.

    Args:
        what: is counted, such as `outputs`.
        total: how many there will be; None where nobody knows.
    """

    def __init__(self, what: str, total: Callable[[], int] | None = None) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._said = time.monotonic()

    def __call__(self, _: object = None) -> None:
        """Count one more."""
        self._done += 1
        now = time.monotonic()
        if now - self._said < SECONDS_A_LINE:
            return
        self._said = now
        of = "" if self._total is None else f" of {self._total():,}"
        complain(f"{self._done:,}{of} {self._what}")
