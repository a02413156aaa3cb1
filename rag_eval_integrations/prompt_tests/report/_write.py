"""Reports as CSV, JSON, Markdown or HTML, in which texts under test stay text."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rag_eval_integrations._visible import visible, visible_json
from rag_eval_integrations.prompt_tests.report._markdown import inline
from rag_eval_integrations.prompt_tests.report._overview import Cell, Row
from rag_eval_integrations.prompt_tests.report.rates import Rate
from rag_eval_integrations.prompt_tests.report.report import KINDS, Report
from rag_eval_integrations.records import SCHEMA

_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Signs that begin a formula, also in full width; white space in front of them does not count."""
_SHOWN = 50
"""Maximum number of failures on a page; the JSON has all of them."""


def to_csv(rows: Sequence[Row]) -> str:
    """Write rows as CSV, formatted like PromptPex's; no cell or heading is read as a formula."""
    out = io.StringIO(newline="")
    names = list(rows[0]) if rows else []
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(_csv_cell, names))
    for row in rows:
        writer.writerow([_csv_cell(row.get(name)) for name in names])
    return out.getvalue()


def to_json(report: Report) -> str:
    """Write a report as one JSON object: overview, rates with intervals, rules, failures."""
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "name": report.name,
        "intent": report.spec.intent,
        "overview": report.overview(),
        "compliance": {
            model: {
                kind: _rate(report.tnc(model=model, by=by))
                for kind, by in KINDS.items()
            }
            for model in report.models
        },
        "rules": report.by_rule(),
        "grounded": [
            {"ruleid": one.rule.id, "rule": one.rule.text, "grounded": one.grounded.outcome,
             "reason": one.grounded.reason}
            for one in report.rule_checks
        ],
        "failures": [asdict(failure) for failure in report.failures()],
    }  # fmt: skip
    return visible_json(content) + "\n"


def to_markdown(report: Report) -> str:
    """Write a report as a Markdown page: overview, compliance with intervals, rules, failures."""
    lines = [f"# Prompt tests of {inline(report.name)}", ""]
    if report.spec.intent:
        lines += [inline(report.spec.intent), ""]
    lines += [
        "Compliance is the share of outputs that keep to the prompt; it does not say whether they "
        "are right. Outputs without a verdict are listed as `unknown` and "
        + ("count as not compliant." if report.unknown_as == "err" else "left out of the share."),
        "",
        "## Overview",
        "",
        *_table(report.overview()),
        "",
        "## Compliance",
        "",
        *_table(_compliance(report)),
        "",
        "## Rules",
        "",
        *_table(report.by_rule()),
    ]
    failed = report.failures()
    lines += ["", f"## Failures ({len(failed)})", ""]
    for failure in failed[:_SHOWN]:
        lines += [
            f"### {inline(failure.model)}: {failure.kind}",
            "",
            f"- rule: {inline(failure.rule) or '–'}",
            f"- input: {inline(failure.input)}",
            f"- output: {inline(failure.output)}",
            f"- reason: {inline(failure.reason)}",
            "",
        ]
    if len(failed) > _SHOWN:
        lines.append(f"{len(failed) - _SHOWN} more failures are in the JSON report.")
    return "\n".join(lines).rstrip() + "\n"


def _compliance(report: Report) -> list[Row]:
    rows: list[Row] = []
    for model in report.models:
        for kind, by in KINDS.items():
            rate = report.tnc(model=model, by=by)
            if not rate.ok + rate.err + rate.unknown + rate.errors:
                continue
            low, high = rate.interval or (None, None)
            rows.append(
                {
                    "model": model,
                    "tests": kind,
                    "ok": rate.ok,
                    "err": rate.err,
                    "unknown": rate.unknown,
                    "errors": rate.errors,
                    "compliant": None if rate.compliant is None else f"{rate.compliant:.1%}",
                    "95 %": None if low is None or high is None else f"{low:.1%} – {high:.1%}",
                }
            )
    return rows


def _rate(rate: Rate) -> dict[str, Any]:
    return {
        "ok": rate.ok, "err": rate.err, "unknown": rate.unknown, "errors": rate.errors,
        "n": rate.n, "compliant": rate.compliant, "ci95": rate.interval,
    }  # fmt: skip


def _csv_cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return repr(int(cell)) if cell.is_integer() else repr(cell)
    if not isinstance(cell, str):
        return str(cell)
    text = visible(cell).replace("\n", "\\n")
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


# --- Markdown


def _table(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return ["(none)"]
    names = list(rows[0])
    lines = [f"| {' | '.join(map(_cell, names))} |", "|" + " --- |" * len(names)]
    lines += [f"| {' | '.join(_cell(row.get(name)) for name in names)} |" for row in rows]
    return lines


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:.1f}" if isinstance(cell, float) else inline(str(cell), in_table=True)
