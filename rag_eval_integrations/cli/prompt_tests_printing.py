"""What `rag-eval prompt-tests report` prints: the overview, comparisons, thresholds."""

from __future__ import annotations

from collections.abc import Sequence

from rag_eval_integrations.cli.terminal import complain, stdout
from rag_eval_integrations.prompt_tests.report import Comparison, Report
from rag_eval_integrations.prompt_tests.report.overview import Row
from rag_eval_integrations.report.tables import plain_table

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


def print_comparison(one: Comparison) -> None:
    """Print what changed for one model; what broke goes to stderr."""
    console = stdout()
    console.print(
        f"{one.model}: {one.compared} tests in both runs, {len(one.broken)} broken, "
        f"{len(one.fixed)} fixed, {len(one.other)} otherwise changed (sign test p = "
        f"{one.p_value:.3f}); {one.only_before} only before, {one.only_after} only now",
        soft_wrap=True,
    )
    for change in one.broken:
        complain(f"  broken: {change.input[:100]!r}: {change.reason[:200]}")


def check(found: Report, least: float) -> int:
    """Return 1, and say why, when a model complies less than asked for."""
    code = 0
    for model in found.models:
        share = found.tnc(model=model).compliant
        if share is None:
            complain(f"FAILED {model}: no output has a verdict")
        elif share < least:
            complain(f"FAILED {model}: {share:.4f} of the outputs comply, less than {least:g}")
        else:
            continue
        code = _FAILED
    return code
