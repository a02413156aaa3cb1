"""Reports as CSV, JSON or Markdown; texts under test are escaped."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rag_eval_integrations.prompt_tests.report._overview import Cell, Row
from rag_eval_integrations.prompt_tests.report.rates import Rate
from rag_eval_integrations.prompt_tests.report.report import Report
from rag_eval_integrations.records import SCHEMA

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_SHOWN = 50
"""Maximum number of failures on a page; the JSON has all of them."""


def to_csv(rows: Sequence[Row]) -> str:
    """Write rows as CSV, formatted like PromptPex's; spreadsheet formulas are escaped."""
    out = io.StringIO(newline="")
    names = list(rows[0]) if rows else []
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
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
                for kind, by in _KINDS.items()
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
    return json.dumps(content, indent=1) + "\n"


_KINDS: dict[str, Any] = {
    "all": None, "rule": "rule", "inverse": "inverse", "baseline": "baseline", "valid": "valid",
}  # fmt: skip


def to_markdown(report: Report) -> str:
    """Write a report as a Markdown page: overview, compliance with intervals, rules, failures."""
    lines = [f"# Prompt tests of {_inline(report.name)}", ""]
    if report.spec.intent:
        lines += [_inline(report.spec.intent), ""]
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
            f"### {_inline(failure.model)}: {failure.kind}",
            "",
            f"- rule: {_inline(failure.rule) or '–'}",
            f"- input: {_inline(failure.input)}",
            f"- output: {_inline(failure.output)}",
            f"- reason: {_inline(failure.reason)}",
            "",
        ]
    if len(failed) > _SHOWN:
        lines.append(f"{len(failed) - _SHOWN} more failures are in the JSON report.")
    return "\n".join(lines).rstrip() + "\n"


def _compliance(report: Report) -> list[Row]:
    rows: list[Row] = []
    for model in report.models:
        for kind, by in _KINDS.items():
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
    text = str(cell)
    return f"'{text}" if isinstance(cell, str) and text.startswith(_FORMULA) else text


def _table(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return ["(none)"]
    names = list(rows[0])
    lines = [f"| {' | '.join(map(_inline, names))} |", "|" + " --- |" * len(names)]
    lines += [f"| {' | '.join(_cell(row.get(name)) for name in names)} |" for row in rows]
    return lines


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:.1f}" if isinstance(cell, float) else _inline(str(cell))


_SPECIAL = str.maketrans(
    {character: f"\\{character}" for character in "\\`*_{}[]()#+!|~$"}
    | {"<": "&lt;", ">": "&gt;", "&": "&amp;", ":": "&#58;", "@": "&#64;"}
)


def _inline(text: str, most: int = 500) -> str:
    """Write a text on one line, escaped so that Markdown and HTML show it as plain text."""
    line = " ".join(text.split())
    line = line if len(line) <= most else f"{line[: most - 1]}…"
    plain = "".join(
        character if unicodedata.category(character) not in {"Cc", "Cf", "Cs"} else "�"
        for character in line
    )
    return plain.translate(_SPECIAL)
