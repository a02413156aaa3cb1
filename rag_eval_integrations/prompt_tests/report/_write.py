"""Reports as CSV, JSON, Markdown or HTML, in which texts under test stay text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rag_eval_integrations._visible import visible_json
from rag_eval_integrations.evaluations._cells import csv_text, inline, markdown_table
from rag_eval_integrations.prompt_tests.report.rates import Rate, Row, without_empty_columns
from rag_eval_integrations.prompt_tests.report.report import KINDS, Report
from rag_eval_integrations.records import SCHEMA

_SHOWN = 50
"""Maximum number of failures on a page; the JSON has all of them."""


def to_csv(rows: Sequence[Row]) -> str:
    """Write rows as CSV, formatted like PromptPex's; no cell or heading is read as a formula."""
    names = list(rows[0]) if rows else []
    return csv_text(names, ([row.get(name) for name in names] for row in rows))


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
        "judges": [asdict(group) for group in report.agreement()],
        "rules": report.by_rule(),
        "grounded": [
            {"ruleid": check.rule.id, "rule": check.rule.text, "grounded": check.grounded.outcome,
             "reason": check.grounded.reason}
            for check in report.rule_checks
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
        *markdown_table(without_empty_columns(report.overview())),
        "",
        "## Compliance",
        "",
        *markdown_table(list(_compliance(report))),
        "",
        *_judges(report),
        "## Rules",
        "",
        *markdown_table(report.by_rule()),
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


def _compliance(report: Report) -> Iterator[Row]:
    for model, kind, rate in report.rates():
        low, high = rate.interval or (0.0, 0.0)
        yield {
            "model": model, "tests": kind, "ok": rate.ok, "err": rate.err,
            "unknown": rate.unknown, "errors": rate.errors,
            "compliant": None if rate.compliant is None else f"{rate.compliant:.1%}",
            "95 %": f"{low:.1%} – {high:.1%}" if rate.n else None,
        }  # fmt: skip


def _judges(report: Report) -> list[str]:
    rows: list[Row] = [
        {
            "judges": group.who,
            "same verdict": None if group.agree is None else f"{group.agree:.1%}",
            "kappa": None if group.kappa is None else f"{group.kappa:.2f} ({group.method})",
            "outputs": group.n,
        }
        for group in report.agreement()
    ]
    return ["## Agreement of judges", "", *markdown_table(rows), ""] if rows else []


def _rate(rate: Rate) -> dict[str, Any]:
    return {
        "ok": rate.ok, "err": rate.err, "unknown": rate.unknown, "errors": rate.errors,
        "n": rate.n, "compliant": rate.compliant, "ci95": rate.interval,
    }  # fmt: skip
