"""The report as a page, Markdown, JSON and CSV, in which texts under test stay text.

Figures and failures of the page are plain HTML. Its script adds a filter, and shows the failures
page by page; without it they stand one after another, in sections that link to each other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from rag_eval_integrations._visible import one_line, visible_json
from rag_eval_integrations.evaluations._cells import csv_text, inline, markdown_table
from rag_eval_integrations.prompt_tests.rates import (
    Rate,
    Row,
    judges_agreement,
    rate_of,
    share_of,
    without_empty_columns,
)
from rag_eval_integrations.prompt_tests.records import PromptTest, Result, digest
from rag_eval_integrations.prompt_tests.report import KINDS, Report
from rag_eval_integrations.records import SCHEMA
from rag_eval_integrations.report._page import drawn, pieces, shown

_NAMES = {
    "all": "all rule tests", "rule": "rules", "inverse": "inverse rules",
    "baseline": "baseline tests", "valid": "rule tests with a valid input",
}  # fmt: skip
_SIGNS = {"ok": "✓", "err": "✗", "unknown": "?", "error": "!"}
_STATES = {"ok": "complies", "err": "does not comply", "unknown": "no verdict",
           "error": "no output"}  # fmt: skip
_PER_PAGE = 25
_MOST_FAILURES = 1_000
"""Failures on the page; of more, each rule and model keeps the same number. JSON has all."""
_LINE = 160
"""Characters of a text that stands on one line."""
_TEXT = 2_000
"""Characters of an input, an output or a judge's reply from which on it is cut."""


def report_pieces(report: Report) -> Iterator[str]:
    """Render the page in pieces."""
    failed, kept = _failures_of(report.results)
    first: dict[tuple[str, str], int] = {}
    for number, result in enumerate(kept, 1):
        first.setdefault((_rule_name(result.test), result.model), number)
    counts = {"test": len({result.test.uid for result in report.results}),
              "model": len(report.models), "output": len(report.results)}  # fmt: skip
    lead = (f"{count:,} {word}{'s' if count > 1 else ''}" for word, count in counts.items())
    return pieces(
        "prompt_tests.html",
        script="prompt_tests.js",
        style="prompt_tests.css",
        title=f"Prompt tests of {report.name}",
        lead=f"{', '.join(lead)}." if report.results else "There are no results.",
        intent=shown(report.spec.intent),
        unknown_as_err=report.unknown_as == "err",
        compliance=[
            {"model": shown(model), "kind": _NAMES[kind], "all": kind == "all", **_rate(rate)}
            for model, kind, rate in report.rates()
        ],
        models=[shown(model) for model in report.models],
        matrix=list(_matrix(report, first)),
        by_judge=list(_by_judge(report)),
        agreement=[
            {
                "judges": shown(" and ".join(pair.judges)),
                "agree": _percent(pair.agree),
                "kappa": f"{'–' if pair.kappa is None else f'{pair.kappa:.2f}'} (Cohen)",
                "n": f"{pair.n:,}",
            }
            for pair in judges_agreement(report.results)
        ],
        made=[(name, values) for name, values in _made(report).items() if values],
        failures=failed,
        kept=len(kept),
        # Rendered as they are read, so that their texts are never held twice.
        pages=_pages(kept),
        page_count=-(-len(kept) // _PER_PAGE),
        per_page=_PER_PAGE,
        choices=_choices(kept),
        signs=_SIGNS,
        states=_STATES,
    )


# --- Compliance: by model and kind of test, by rule and model


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


def _rate(rate: Rate) -> dict[str, str]:
    low, high = rate.interval or (0.0, 0.0)
    return {
        "compliant": _percent(rate.compliant),
        "interval": f"{low:.1%} to {high:.1%}" if rate.n else "",
        "at": drawn(rate.compliant, 160) if rate.n else "",
        "low": drawn(low, 160) if rate.n else "",
        "high": drawn(high, 160) if rate.n else "",
        "n": f"{rate.n:,}", "ok": f"{rate.ok:,}", "err": f"{rate.err:,}",
        "unknown": f"{rate.unknown:,}", "errors": f"{rate.errors:,}",
    }  # fmt: skip


def _matrix(report: Report, first: Mapping[tuple[str, str], int]) -> Iterator[dict[str, Any]]:
    outputs: dict[tuple[str, str], list[Result]] = defaultdict(list)
    tests: dict[str, PromptTest] = {}
    for result in report.results:
        name = _rule_name(result.test)
        tests.setdefault(name, result.test)
        outputs[name, result.model].append(result)
    grounded = {(check.rule.id, check.rule.text): check.grounded for check in report.rule_checks}
    doubts = {"err": "not grounded in the prompt", "unknown": "grounded in the prompt: no verdict"}
    for name, test in sorted(tests.items(), key=lambda item: _order(item[1])):
        verdict = grounded.get((test.rule_id or 0, test.rule))
        doubt = "" if verdict is None or verdict.outcome == "ok" else (
            f"{doubts[verdict.outcome]}: {one_line(verdict.reason, _LINE)}")  # fmt: skip
        cells = []
        for model in report.models:
            rate = rate_of(outputs[name, model], unknown_as=report.unknown_as)
            without = {"without verdict": rate.unknown, "without output": rate.errors}
            cells.append(
                {
                    "model": shown(model),
                    "first": first.get((name, model)),
                    "state": "err" if rate.n and not rate.ok else "",
                    "compliant": "–" if rate.compliant is None else f"{rate.compliant:.0%}",
                    "counts": f"{rate.ok:,} of {rate.n:,}" if rate.n else "",
                    "width": drawn(rate.compliant, 80),
                    "more": ", ".join(
                        f"{count:,} {word}" for word, count in without.items() if count
                    ),
                    "failed": f"{rate.err + rate.unknown + rate.errors:,}",
                }
            )
        yield {
            "name": name,
            "title": _title(test),
            "text": shown(test.rule) if test.rule_id is not None and not test.baseline else "",
            "grounded": shown(doubt),
            "cells": cells,
        }


# --- Judges and metrics


def _by_judge(report: Report) -> Iterator[dict[str, Any]]:
    """Average verdicts (several judges' only) and metrics, 0 to 100, by judge and model."""
    values: dict[str, dict[str, dict[str, list[float | None]]]] = {"": {}}
    for result in report.results:
        if result.test.baseline or result.error is not None:
            continue
        shares = [
            ("", verdict.judge, share_of(verdict.outcome, report.unknown_as))
            for verdict in result.verdicts
            if verdict.judge not in (None, "majority")
        ]
        scores = [(metric.metric, metric.judge, metric.value) for metric in result.metrics]
        for metric, judge, value in shares + scores:
            of_judge = values.setdefault(metric, {}).setdefault(judge or "", {})
            scale = 1 if metric else 100
            of_judge.setdefault(result.model, []).append(value and scale * value)
    for metric, judges in sorted(values.items()):
        if not metric and len(judges) < 2:
            continue
        name = shown(metric) or "compliance"
        means: dict[str, list[float]] = defaultdict(list)
        for judge, by_model in judges.items():
            cells = []
            for model in report.models:
                of_model = by_model.get(model, [])
                known = [value for value in of_model if value is not None]
                means[model] += [fmean(known)] if known else []
                mean = f"{fmean(known):.1f}" if known else "–"
                cells.append((mean, f"{len(known)} of {len(of_model)} scored"))
            yield {"metric": name, "judge": shown(judge), "cells": cells, "mean": False}
        if len(judges) > 1:
            cells = [
                (f"{fmean(of_judges):.1f}", f"{len(of_judges)} judges") if of_judges else ("–", "")
                for of_judges in (means[model] for model in report.models)
            ]
            yield {"metric": name, "judge": "mean over judges", "cells": cells, "mean": True}


def _made(report: Report) -> dict[str, list[str]]:
    def shares(outcomes: Iterable[str]) -> list[str]:
        known = list(outcomes)
        return [f"{known.count('ok'):,} of {len(known):,}"] if known else []

    judges = Counter(
        verdict.judge for result in report.results for verdict in result.verdicts if verdict.judge
    )
    settings = (
        (result.model, [f"{name}={visible_json(value)}" for name, value in result.parameters.items()
                        if name != "seed"])  # which differs with the repetition
        for result in report.results
    )  # fmt: skip
    asked = (f"{name}: {one_line(', '.join(words), _LINE)}" for name, words in settings if words)
    return {
        "judges of compliance": [f"{shown(name)} ({n:,} verdicts)" for name, n in judges.items()],
        "settings that models were asked with": [shown(words) for words in dict.fromkeys(asked)],
        "rules of a valid input": [shown(rule) for rule in report.spec.input_spec],
        "inputs judged valid": shares(
            check.validity.outcome for check in report.checks if check.validity
        ),
        "answers made from the rules alone that comply": shares(
            check.agreement.outcome for check in report.checks if check.agreement
        ),
        "rules grounded in the prompt": shares(
            check.grounded.outcome for check in report.rule_checks
        ),
    }


# --- Failures


def _rule_name(test: PromptTest) -> str:
    """Name a test's rule; a number alone may stand for several texts over time."""
    if test.baseline or test.rule_id is None:
        return "baseline" if test.baseline else "none"
    return f"{test.rule_id}-{digest(f'{test.inverse} {test.rule}')[:6]}"


def _title(test: PromptTest) -> str:
    if test.baseline or test.rule_id is None:
        return "Baseline tests" if test.baseline else "Tests without a rule"
    return f"{'Inverse rule' if test.inverse else 'Rule'} {test.rule_id}"


def _order(test: PromptTest) -> tuple[bool, bool, int, str]:
    return (test.baseline, test.rule_id is None, test.rule_id or 0, test.rule)


def _failures_of(results: Iterable[Result]) -> tuple[int, list[Result]]:
    """Count the failures, and choose those of the page, in the order of their rules."""
    states = list(_SIGNS)
    failed = sorted(
        (result for result in results if result.state in ("err", "unknown", "error")),
        key=lambda result: (_order(result.test), result.model, states.index(result.state)),
    )
    if len(failed) <= _MOST_FAILURES:
        return len(failed), failed
    groups: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for result in failed:
        groups[_rule_name(result.test), result.model].append(result)
    most = max(1, _MOST_FAILURES // len(groups))
    kept = [result for group in groups.values() for result in group[:most]]
    return len(failed), kept[:_MOST_FAILURES]


def _pages(kept: Sequence[Result]) -> Iterator[dict[str, Any]]:
    for start in range(0, len(kept), _PER_PAGE):
        of_page = kept[start : start + _PER_PAGE]
        yield {
            "from": start + 1,
            "to": start + len(of_page),
            "failures": [
                _failure(result, number) for number, result in enumerate(of_page, start + 1)
            ],
        }


def _failure(result: Result, number: int) -> dict[str, Any]:
    test = result.test
    verdicts = []
    for verdict in result.verdicts:
        name = verdict.judge or "no judge was asked"
        sure = "" if verdict.probability is None else f" (P(OK) = {verdict.probability:.2f})"
        raw = "" if verdict.raw.strip() in ("", verdict.reason.strip()) else _cut(verdict.raw)
        verdicts.append({"judge": shown(name + sure), "state": verdict.outcome,
                         "reason": _cut(verdict.reason), "raw": raw})  # fmt: skip
    facts = [
        ("test", test.uid),
        ("repetition", str(result.run + 1) if result.run else ""),
        ("scenario", test.scenario),
        ("expected by the generator", test.expected),
        ("expected output", test.usable_groundtruth or ""),
        ("why it is a test", test.reasoning),
        *((f"document {n}", text) for n, text in enumerate(result.contexts)),
        *(
            (
                metric.key,
                f"{metric.score:g}"
                if metric.score is not None
                else metric.problem or metric.outcome or "",
            )
            for metric in result.metrics
        ),
    ]
    return {
        "number": number,
        "rule": _rule_name(test),
        "title": _title(test),
        "rule_text": shown(test.rule),
        "model": shown(result.model),
        "state": result.state,
        "line": one_line(test.testinput, _LINE) or "(empty input)",
        "input": _cut(test.testinput),
        "output": _cut(result.output),
        "error": None if result.error is None else _cut(result.error),
        "said": verdicts,
        "facts": [(shown(name), _cut(value)) for name, value in facts if value],
    }


def _cut(text: str) -> str:
    if len(text) <= _TEXT:
        return shown(text)
    return f"{shown(text[:_TEXT])} … ({len(text) - _TEXT:,} more characters)"


def _choices(kept: Sequence[Result]) -> dict[str, list[tuple[str, str]]]:
    """List what the failures can be filtered by, as value and words."""
    rules = {_rule_name(result.test): result.test for result in kept}
    models = [shown(name) for name in dict.fromkeys(result.model for result in kept)]
    return {
        "rule": [
            (name, f"{_title(test)}: {one_line(test.rule, 60)}" if test.rule else _title(test))
            for name, test in rules.items()
        ],
        "model": [(name, name) for name in models],
        "kind": [(kind, _STATES[kind]) for kind in dict.fromkeys(result.state for result in kept)],
    }


# --- Markdown, JSON, CSV


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
            model: {kind: _counts(report.tnc(model=model, by=by)) for kind, by in KINDS.items()}
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


def _counts(rate: Rate) -> dict[str, Any]:
    counts = {"ok": rate.ok, "err": rate.err, "unknown": rate.unknown, "errors": rate.errors}
    return {**counts, "n": rate.n, "compliant": rate.compliant, "ci95": rate.interval}


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
            "judges": " and ".join(group.judges),
            "same verdict": None if group.agree is None else f"{group.agree:.1%}",
            "kappa": None if group.kappa is None else f"{group.kappa:.2f} (Cohen)",
            "outputs": group.n,
        }
        for group in report.agreement()
    ]
    return ["## Agreement of judges", "", *markdown_table(rows), ""] if rows else []
