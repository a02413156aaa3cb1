"""The report as a page, Markdown, JSON and CSV, in which texts under test stay text.

Figures and failures of the page are plain HTML. Its script adds a filter, and shows the failures
page by page; without it they stand one after another, in sections that link to each other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from rag_eval_integrations._visible import counted, one_line, visible_json
from rag_eval_integrations.evaluations._cells import csv_text, inline, markdown_table
from rag_eval_integrations.prompt_tests._rates import (
    KINDS,
    Rate,
    Row,
    judge_verdicts,
    rate_of,
    share_of,
    without_empty_columns,
)
from rag_eval_integrations.prompt_tests.records import PromptTest, Result, Rule, digest
from rag_eval_integrations.prompt_tests.report import Report
from rag_eval_integrations.records._json import SCHEMA
from rag_eval_integrations.report._page import drawn, page_text, pieces

_NAMES = {
    "all": "all rule tests",
    "rule": "rules",
    "inverse": "inverse rules",
    "baseline": "baseline tests",
    "valid": "rule tests with a valid input",
}
_SIGNS = {"ok": "✓", "err": "✗", "unknown": "?", "error": "!"}
_STATES = {
    "ok": "complies",
    "err": "does not comply",
    "unknown": "no verdict",
    "error": "no output",
}
_PER_PAGE = 25
_MOST_FAILURES = 1_000
"""Failures on the page; of more, each rule and model keeps the same number. JSON has all."""
_LINE = 160
"""Characters of a text that stands on one line."""
_TEXT = 2_000
"""Characters of an input, an output or a judge's reply from which on it is cut."""


def report_pieces(report: Report) -> Iterator[str]:
    """Render the page in pieces, with at most 1,000 failures."""
    failed, shown_failures = _page_failures(report.results)
    counts = {
        "test": len({result.test.uid for result in report.results}),
        "model": len(report.models),
        "output": len(report.results),
    }
    lead = ", ".join(counted(count, word) for word, count in counts.items())
    return pieces(
        "prompt_tests.html",
        script="prompt_tests.js",
        style="prompt_tests.css",
        title=f"Prompt tests of {report.name}",
        lead=f"{lead}." if report.results else "There are no results.",
        intent=page_text(report.spec.intent),
        unknown_as_err=report.unknown_as == "err",
        compliance=[
            {
                "model": page_text(model),
                "kind": _NAMES[kind],
                "all": kind == "all",
                **_rate_cells(rate),
            }
            for model, kind, rate in report.rates()
        ],
        models=[page_text(model) for model in report.models],
        matrix=list(_rule_rows(report, shown_failures)),
        by_judge=list(_judge_rows(report)),
        agreement=list(map(_escaped_cells, _agreement_rows(report))),
        made=[(name, values) for name, values in _provenance(report).items() if values],
        failures=failed,
        kept=len(shown_failures),
        # Rendered as they are read, so that their texts are never held twice.
        pages=_failure_pages(shown_failures),
        page_count=-(-len(shown_failures) // _PER_PAGE),
        per_page=_PER_PAGE,
        choices=_filter_choices(shown_failures),
        signs=_SIGNS,
        states=_STATES,
    )


# --- Compliance: by model and kind of test, by rule and model


def _percent(share: float | None, digits: int = 1) -> str:
    """Return a share in percent as text; a dash if it is not known."""
    return "–" if share is None else f"{share:.{digits}%}"


def _rate_cells(rate: Rate) -> dict[str, str]:
    """Return a rate's figures and interval as texts for the page.

    Without a verdict, the share is a dash, and interval and bars are empty.
    """
    low, high = rate.interval or (None, None)
    ends = {"at": rate.compliant, "low": low, "high": high}
    return {
        "compliant": _percent(rate.compliant),
        "interval": f"{low:.1%} to {high:.1%}" if low is not None else "",
        "n": f"{rate.n:,}",
        **{name: drawn(share, 160) if rate.n else "" for name, share in ends.items()},
        **{name: f"{count:,}" for name, count in rate.counts.items()},
    }


def _rule_rows(report: Report, failures: Sequence[Result]) -> Iterator[dict[str, Any]]:
    """Yield the table of rules by models, a row per rule, also for rules without tests.

    Rows are sorted by rule; tests without a rule and baseline tests come last. A row notes that no
    test names the rule, or that a judge did not find it grounded. A cell, one per model, links to
    its first failure on the page, if there is one.
    """
    first: dict[tuple[str, str], int] = {}
    for number, result in enumerate(failures, 1):
        first.setdefault((_rule_key(result.test), result.model), number)
    outputs: dict[tuple[str, str], list[Result]] = defaultdict(list)
    tests = {_rule_key(test): test for test in map(_placeholder_test, report.spec.rules)}
    untested = set(tests)
    for result in report.results:
        name = _rule_key(result.test)
        tests[name] = result.test
        untested.discard(name)
        outputs[name, result.model].append(result)
    grounded = {(check.rule.id, check.rule.text): check.grounded for check in report.rule_checks}
    doubts = {"err": "not grounded in the prompt", "unknown": "grounded in the prompt: no verdict"}
    for name, test in sorted(tests.items(), key=lambda item: _sort_key(item[1])):
        verdict = grounded.get((test.rule_id or 0, test.rule))
        notes = ["no test names it"] if name in untested and report.results else []
        if verdict is not None and verdict.outcome != "ok":
            notes.append(f"{doubts[verdict.outcome]}: {one_line(verdict.reason, _LINE)}")
        yield {
            "name": name,
            "title": _title(test),
            "text": page_text(test.rule) if test.rule_id is not None and not test.baseline else "",
            "notes": page_text("; ".join(notes)),
            "cells": [
                {
                    "model": page_text(model),
                    "first": first.get((name, model)),
                    **_rule_cell(report, outputs[name, model]),
                }
                for model in report.models
            ],
        }


def _placeholder_test(rule: Rule) -> PromptTest:
    """Return an empty test, which stands for a rule without tests."""
    return PromptTest(uid="", rule_id=rule.id, rule=rule.text, inverse=rule.inverse, inputs={})


def _rule_cell(report: Report, outputs: Sequence[Result]) -> dict[str, str]:
    """Return the cell of a rule and a model, as texts.

    The state is empty without any failure, `err` if no output complies, and `some` otherwise.
    """
    rate = rate_of(outputs, unknown_as=report.unknown_as)
    without = {"without verdict": rate.unknown, "without output": rate.errors}
    failed = rate.err + rate.unknown + rate.errors
    return {
        "state": "" if not failed else "some" if rate.ok else "err",
        "compliant": _percent(rate.compliant, 0),
        "counts": f"{rate.ok:,} of {rate.n:,}" if rate.n else "",
        "width": drawn(rate.compliant, 80),
        "more": ", ".join(f"{count:,} {words}" for words, count in without.items() if count),
        "failed": f"{failed:,}",
    }


# --- Judges and metrics


def _judge_rows(report: Report) -> Iterator[dict[str, Any]]:
    """Yield the means of verdicts and metrics, 0 to 100: a row per metric and judge.

    Rows are sorted by metric; several judges have one more for the mean over them, and the verdicts
    of a single judge have none.
    Baseline tests and failed outputs are left out.
    """
    values: dict[str, dict[str, dict[str, list[float | None]]]] = defaultdict(dict)
    for result in report.results:
        if result.test.baseline or result.error is not None:
            continue
        shares = [(v.judge, share_of(v.outcome, report.unknown_as)) for v in judge_verdicts(result)]
        given = [("", judge, share and 100 * share) for judge, share in shares if judge]
        given += [(metric.metric, metric.judge, metric.value) for metric in result.metrics]
        for name, judge, value in given:
            of_judge = values[name].setdefault(judge or "", defaultdict(list))
            of_judge[result.model].append(value)
    for metric, judges in sorted(values.items()):
        rows: list[tuple[str, dict[str, list[float | None]], str]] = [
            (page_text(judge), of_model, "scored") for judge, of_model in judges.items()
        ]
        if len(judges) > 1:
            means: dict[str, list[float | None]] = {}
            for model in report.models:
                means[model] = [_mean(of.get(model, []))[0] for of in judges.values()]
            rows.append(("mean over judges", means, "judges"))
        elif not metric:
            continue
        for judge, of_model, unit in rows:
            cells = []
            for model in report.models:
                mean, n = _mean(of_model.get(model, []))
                of = f" of {len(of_model.get(model, []))}" if unit == "scored" else ""
                cells.append(("–" if mean is None else f"{mean:.1f}", f"{n}{of} {unit}"))
            name = page_text(metric) or "compliance"
            yield {"metric": name, "judge": judge, "cells": cells, "mean": unit == "judges"}


def _mean(values: Iterable[float | None]) -> tuple[float | None, int]:
    """Return the mean of the known values, and their number; None and 0 without any."""
    known = [value for value in values if value is not None]
    return (fmean(known) if known else None), len(known)


def _escaped_cells(row: Row) -> dict[str, str]:
    """Return a row's cells as texts that are safe on the page."""
    return {name: page_text(str(cell)) for name, cell in row.items()}


def _agreement_rows(report: Report) -> list[Row]:
    """Return a row per pair of judges that says how far they agree; empty for fewer than two."""
    return [
        {
            "judges": " and ".join(pair.judges),
            "same verdict": _percent(pair.agree),
            "kappa": "–" if pair.kappa is None else f"{pair.kappa:.2f} (Cohen)",
            "outputs": pair.n,
        }
        for pair in report.agreement()
    ]


def _provenance(report: Report) -> dict[str, list[str]]:
    """Return where the results come from, by heading: judges, settings, input rules and checks.

    A list is empty if nothing is known. Seeds are left out of the parameters.
    """

    def shares(outcomes: Iterable[str]) -> list[str]:
        """Return the share of OK outcomes in words; empty without any."""
        known = list(outcomes)
        return [f"{known.count('ok'):,} of {len(known):,}"] if known else []

    judges = Counter(
        verdict.judge
        for result in report.results
        for verdict in judge_verdicts(result)
        if verdict.judge
    )
    asked: dict[str, None] = {}
    for result in report.results:
        # The seed differs with the repetition.
        words = [
            f"{name}={visible_json(value)}"
            for name, value in result.parameters.items()
            if name != "seed"
        ]
        if words:
            asked[f"{result.model}: {one_line(', '.join(words), _LINE)}"] = None
    checks = report.checks
    return {
        "judges of compliance": [
            f"{page_text(name)} ({n:,} verdicts)" for name, n in judges.items()
        ],
        "settings that models were asked with": list(map(page_text, asked)),
        "rules of a valid input": list(map(page_text, report.spec.input_spec)),
        "inputs judged valid": shares(c.validity.outcome for c in checks if c.validity),
        "answers made from the rules alone that comply": shares(
            c.agreement.outcome for c in checks if c.agreement
        ),
        "rules grounded in the prompt": shares(c.grounded.outcome for c in report.rule_checks),
    }


# --- Failures


def _rule_key(test: PromptTest) -> str:
    """Return a key for a test's rule: its number with a digest of its text and direction.

    A number alone may stand for several texts over time. The key is `baseline` for a baseline test,
    and `none` for another test without a rule.
    """
    if test.baseline or test.rule_id is None:
        return "baseline" if test.baseline else "none"
    return f"{test.rule_id}-{digest(f'{test.inverse} {test.rule}')[:6]}"


def _title(test: PromptTest) -> str:
    """Return the heading of a test's rule: `Rule 3`, `Inverse rule 3` or `Baseline tests`."""
    if test.baseline or test.rule_id is None:
        return "Baseline tests" if test.baseline else "Tests without a rule"
    return f"{'Inverse rule' if test.inverse else 'Rule'} {test.rule_id}"


def _sort_key(test: PromptTest) -> tuple[bool, bool, int, str]:
    """Return the sort key of a test: by rule, then tests without a rule, baseline last."""
    return (test.baseline, test.rule_id is None, test.rule_id or 0, test.rule)


def _page_failures(results: Iterable[Result]) -> tuple[int, list[Result]]:
    """Return the number of failures, and those that the page shows, in the order of their rules.

    Failures are outputs that do not comply or have no verdict, and failed outputs, but not outputs
    that were not judged. The page shows at most 1,000. If there are more, each rule and model keeps
    the same number of them, and at least one while there is room.
    """
    states = list(_SIGNS)
    failed = sorted(
        (result for result in results if result.state in states[1:]),
        key=lambda result: (_sort_key(result.test), result.model, states.index(result.state)),
    )
    if len(failed) <= _MOST_FAILURES:
        return len(failed), failed
    groups: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for result in failed:
        groups[_rule_key(result.test), result.model].append(result)
    most = max(1, _MOST_FAILURES // len(groups))
    chosen = [result for group in groups.values() for result in group[:most]]
    return len(failed), chosen[:_MOST_FAILURES]


def _failure_pages(kept: Sequence[Result]) -> Iterator[dict[str, Any]]:
    """Yield the pages of failures, 25 on each, numbered from 1 over all pages."""
    for start in range(0, len(kept), _PER_PAGE):
        of_page = kept[start : start + _PER_PAGE]
        failures = [
            _failure_fields(result, number) for number, result in enumerate(of_page, start + 1)
        ]
        yield {"from": start + 1, "to": start + len(of_page), "failures": failures}


def _failure_fields(result: Result, number: int) -> dict[str, Any]:
    """Return the texts that the page shows of a failure.

    Long texts are cut. Facts that are empty are left out.
    """
    test = result.test
    verdicts = []
    for verdict in result.verdicts:
        name = verdict.judge or "no judge was asked"
        sure = "" if verdict.probability is None else f" (P(OK) = {verdict.probability:.2f})"
        raw = "" if verdict.raw.strip() in ("", verdict.reason.strip()) else _shortened(verdict.raw)
        verdicts.append(
            {
                "judge": page_text(name + sure),
                "state": verdict.outcome,
                "reason": _shortened(verdict.reason),
                "raw": raw,
            }
        )
    facts = {
        "test": test.uid,
        "repetition": str(result.run + 1) if result.run else "",
        "scenario": test.scenario,
        "expected by the generator": test.expected,
        "expected output": test.usable_groundtruth or "",
        "why it is a test": test.reasoning,
    }
    facts |= {f"document {n}": text for n, text in enumerate(result.contexts)}
    for metric in result.metrics:
        score = None if metric.score is None else f"{metric.score:g}"
        facts[metric.key] = score or metric.problem or metric.outcome or ""
    return {
        "number": number,
        "rule": _rule_key(test),
        "title": _title(test),
        "rule_text": page_text(test.rule),
        "model": page_text(result.model),
        "state": result.state,
        "line": one_line(test.testinput, _LINE) or "(empty input)",
        "input": _shortened(test.testinput),
        "output": _shortened(result.output),
        "error": None if result.error is None else _shortened(result.error),
        "verdicts": verdicts,
        "facts": [(page_text(name), _shortened(value)) for name, value in facts.items() if value],
    }


def _shortened(text: str) -> str:
    """Return a text for the page, cut after 2,000 characters, with how much follows."""
    if len(text) <= _TEXT:
        return page_text(text)
    return f"{page_text(text[:_TEXT])} … ({len(text) - _TEXT:,} more characters)"


def _filter_choices(failures: Sequence[Result]) -> dict[str, list[tuple[str, str]]]:
    """Return the values that failures can be filtered by, with their words, by field."""
    rules, models, kinds = {}, {}, {}
    for result in failures:
        test = result.test
        words = f": {one_line(test.rule, 60)}" if test.rule else ""
        rules[_rule_key(test)] = f"{_title(test)}{words}"
        models[page_text(result.model)] = page_text(result.model)
        kinds[str(result.state)] = _STATES[result.state]
    return {"rule": [*rules.items()], "model": [*models.items()], "kind": [*kinds.items()]}


# --- Markdown, JSON, CSV


_MOST_LISTED = 50
"""Maximum number of failures on a page; the JSON has all of them."""


def to_csv(report: Report) -> str:
    """Write the overview as CSV like PromptPex's; no cell or heading is read as a formula."""
    rows = report.overview()
    names = list(rows[0]) if rows else []
    return csv_text(names, (list(row.values()) for row in rows))


def _rates_json(report: Report, model: str) -> dict[str, Any]:
    """Return the rates of one model, by the kind of test."""
    rates = {kind: report.tnc(model=model, by=by) for kind, by in KINDS.items()}
    return {
        kind: {**rate.counts, "n": rate.n, "compliant": rate.compliant, "ci95": rate.interval}
        for kind, rate in rates.items()
    }


def to_json(report: Report) -> str:
    """Write a report as one JSON object: overview, rates with intervals, rules, failures.

    Agreement of judges and groundedness of rules are included, and so are all failures.
    """
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "name": report.name,
        "intent": report.spec.intent,
        "overview": report.overview(),
        "compliance": {model: _rates_json(report, model) for model in report.models},
        "judges": [asdict(pair) for pair in report.agreement()],
        "rules": report.by_rule(),
        "grounded": [
            {
                "ruleid": check.rule.id,
                "rule": check.rule.text,
                "grounded": check.grounded.outcome,
                "reason": check.grounded.reason,
            }
            for check in report.rule_checks
        ],
        "failures": [asdict(failure) for failure in report.failures()],
    }
    return visible_json(content) + "\n"


def to_markdown(report: Report) -> str:
    """Write a report as a Markdown page: overview, compliance with intervals, rules, failures.

    Only 50 failures are shown, and then the number of the others. Columns of the overview that are
    empty or 0 in every row are left out, except those of compliance, and so is the agreement of
    judges if there are fewer than two.
    """
    rates: list[Row] = []
    for model, kind, rate in report.rates():
        low, high = rate.interval or (0.0, 0.0)
        share = None if rate.compliant is None else _percent(rate.compliant)
        interval = f"{low:.1%} – {high:.1%}" if rate.n else None
        rates.append(
            {"model": model, "tests": kind, **rate.counts, "compliant": share, "95 %": interval}
        )
    tables = {
        "Overview": without_empty_columns(report.overview()),
        "Compliance": rates,
        "Agreement of judges": _agreement_rows(report),
        "Rules": report.by_rule(),
    }
    unknown = "count as not compliant" if report.unknown_as == "err" else "left out of the share"
    lines = [f"# Prompt tests of {inline(report.name)}", ""]
    if report.spec.intent:
        lines += [inline(report.spec.intent), ""]
    lines += [
        "Compliance is the share of outputs that keep to the prompt; it does not say whether they "
        f"are right. Outputs without a verdict are listed as `unknown` and {unknown}.",
        "",
    ]
    for title, rows in tables.items():
        if rows or title != "Agreement of judges":
            table = markdown_table([_with_errors_renamed(row) for row in rows])
            lines += [f"## {title}", "", *table, ""]
    failed = report.failures()
    lines += [f"## Failures ({len(failed)})", ""]
    for failure in failed[:_MOST_LISTED]:
        lines += [
            f"### {inline(failure.model)}: {failure.kind}",
            "",
            f"- rule: {inline(failure.rule) or '–'}",
            f"- input: {inline(failure.input)}",
            f"- output: {inline(failure.output)}",
            f"- reason: {inline(failure.reason)}",
            "",
        ]
    if len(failed) > _MOST_LISTED:
        lines.append(f"{len(failed) - _MOST_LISTED} more failures are in the JSON report.")
    return "\n".join(lines).rstrip() + "\n"


def _with_errors_renamed(row: Row) -> Row:
    """Return a row whose column `errors` is named `no output`."""
    # Beside `err`, `errors` would read as the sum of them.
    return {"no output" if name == "errors" else name: cell for name, cell in row.items()}


FORMATS: dict[str, Callable[[Report], str]] = {
    "md": to_markdown,
    "csv": to_csv,
    "json": to_json,
    "html": lambda report: "".join(report_pieces(report)),
}
"""Writers of a report by the name of the format."""
