"""The end of `run` and `score`: the summary that they print, and what makes them fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_eval_integrations._counted import counted
from rag_eval_integrations.cli._options import Threshold
from rag_eval_integrations.cli._terminal import print_stderr, safe
from rag_eval_integrations.evaluations.console import KEYS, summary_tables
from rag_eval_integrations.evaluations.summary import Summary

if TYPE_CHECKING:
    from rich.console import Console


def print_summary(console: Console, summary: Summary, seconds: float, reused: int = 0) -> None:
    """Print means with their counts, reasons for missing scores, warnings, errors and diagnoses.

    Args:
        console: where to print.
        summary: of all evaluations.
        seconds: duration of the run.
        reused: evaluations taken from an earlier run.
    """
    if not summary.calls:
        console.print("There are no rows, and so no scores.")
    for table in summary_tables(summary):
        console.print(table)
    for warning, count in summary.warnings.most_common():
        console.print(safe(f"NOTE ({counted(count, 'call')}): {warning}"), soft_wrap=True)
    for failure, count in summary.errors.most_common():
        reason = f"{failure}: {summary.reasons[failure]}"
        console.print(safe(f"ERROR ({counted(count, 'call')}): {reason}"), soft_wrap=True)
    if summary.diagnoses:
        console.print("Diagnoses:")
        labelled = counted(summary.labelled, "labelled call")
        for diagnosis, count in summary.advice():
            console.print(
                f"  {diagnosis.pattern} ({count:,} of {labelled}): "
                f"{diagnosis.problem} {diagnosis.fix}",
                soft_wrap=True,
            )
    if summary.calls:
        console.print(KEYS, soft_wrap=True)
    made = summary.calls - reused
    rate = f", {made / seconds:.0f} per second" if made and seconds > 0 else ""
    earlier = f", {reused:,} reused from an earlier run" if reused else ""
    console.print(
        f"{counted(summary.calls, 'call')} in {seconds:.1f} s{rate}{earlier}; {summary.cost()}",
        soft_wrap=True,
    )


def nothing_scored(summary: Summary) -> str | None:
    """Say that a run has no score at all; None when a call was scored."""
    if summary.scored:
        return None
    if summary.calls == 1:
        return "the call was not scored"
    return f"none of the {summary.calls:,} calls was scored"


def check_errors(summary: Summary, max_error_rate: float) -> int:
    """Return 1, and say why, if too many calls ended in an error or none was scored; else 0."""
    errors = summary.errors.total()
    why = nothing_scored(summary)
    if why is None and errors > max_error_rate * summary.calls:
        why = (
            f"{errors:,} of {counted(summary.calls, 'call')} ({errors / summary.calls:.1%}) ended "
            f"in an error; --max-error-rate is {max_error_rate:g}"
        )
    if why is None:
        return 0
    print_stderr(f"FAILED: {why}")
    return 1


def check_thresholds(thresholds: Sequence[Threshold], summary: Summary) -> int:
    """Return 1, and say why, if the mean of a score is below its threshold; else 0."""
    code = 0
    for threshold in thresholds:
        try:
            score = summary.means.mean(threshold.name)
        except ValueError as mixed:  # the scores come from different estimators, for example
            print_stderr(f"FAILED {threshold.name}: no single mean: {mixed}")
            code = 1
            continue
        mean = None if score is None else score.mean
        if mean is None:
            print_stderr(f"FAILED {threshold.name}: no call has this score")
        elif mean < threshold.value:
            print_stderr(f"FAILED {threshold.name}: mean {mean:.4f} is below {threshold.value:g}")
        else:
            continue
        code = 1
    return code
