"""What `run` and `score` say at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_eval_integrations.cli.terminal import safe
from rag_eval_integrations.report.summary import Summary, summary_tables

if TYPE_CHECKING:
    from rich.console import Console


def print_summary(console: Console, summary: Summary, seconds: float, taken_over: int = 0) -> None:
    """Print means with their counts, what is unscored and why, warnings and diagnoses."""
    for table in summary_tables(summary):
        console.print(table)
    for warning, count in summary.warnings.most_common():
        console.print(safe(f"NOTE ({count} calls): {warning}"), soft_wrap=True)
    for failure, count in summary.errors.most_common():
        console.print(safe(f"ERROR ({count} calls): {failure}"), soft_wrap=True)
    if summary.diagnoses:
        console.print("What the scores point at:")
        for diagnosis, count in summary.advice():
            console.print(
                f"  {diagnosis.pattern} ({count} of {summary.calls} calls): "
                f"{diagnosis.problem} {diagnosis.fix}",
                soft_wrap=True,
            )
    made = summary.calls - taken_over
    rate = f", {made / seconds:.0f} a second" if made and seconds > 0 else ""
    over = f", {taken_over} taken over from an earlier run" if taken_over else ""
    usage = summary.usage
    cost = "unknown" if usage.requests and usage.cost_usd is None else f"${usage.cost_usd or 0:.4f}"
    console.print(
        f"{summary.calls} calls in {seconds:.1f} s{rate}{over}; {usage.requests} judge requests, "
        f"{usage.prompt_tokens} + {usage.completion_tokens} tokens, cost {cost}",
        soft_wrap=True,
    )
