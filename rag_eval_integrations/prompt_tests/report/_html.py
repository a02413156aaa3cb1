"""The report as one HTML page: compliance by rule and model, judges, metrics, and the failures.

Figures and failures are plain HTML. The page's script adds a filter, and shows the failures page by
page; without it they stand one after another, in sections that link to each other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

from rag_eval_integrations._visible import one_line, visible_json
from rag_eval_integrations.prompt_tests.records import Judged, PromptTest, Result, RuleCheck
from rag_eval_integrations.prompt_tests.report._failures import (
    LINE,
    PER_PAGE,
    SIGNS,
    STATES,
    Group,
    choices_of,
    failures_of,
    order_of,
    pages_of,
    rule_name,
    state_of,
    title_of,
)
from rag_eval_integrations.prompt_tests.report._overview import without_empty_columns
from rag_eval_integrations.prompt_tests.report.rates import (
    JudgesAgreement,
    Rate,
    by_majority,
    judges_agreement,
    rate_of,
    verdicts_of,
)
from rag_eval_integrations.prompt_tests.report.report import KINDS, Report
from rag_eval_integrations.report._page import drawn, pieces, shown

_STRIP = 160
"""Width of the drawing of an interval."""
_CELL = 80
"""Width of the drawing of a share."""
_MOST_TESTS = 300
"""Rows of the table of tests."""
_NAMES = {
    "all": "all rule tests",
    "rule": "rules",
    "inverse": "inverse rules",
    "baseline": "baseline tests",
    "valid": "rule tests with a valid input",
}


def report_pieces(report: Report) -> Iterator[str]:
    """Render the page in pieces."""
    failed, kept = failures_of(report.results)
    first: dict[Group, int] = {}
    for number, result in enumerate(kept, 1):
        first.setdefault((rule_name(result.test), result.model), number)
    models = [shown(model) for model in report.models]
    return pieces(
        "prompt_tests.html",
        script="prompt_tests.js",
        style="prompt_tests.css",
        title=f"Prompt tests of {report.name}",
        lead=_lead(report),
        intent=shown(report.spec.intent),
        unknown_as_err=report.unknown_as == "err",
        compliance=list(_compliance(report)),
        models=models,
        matrix=list(_matrix(report, first)),
        tests=_tests(report),
        judges=_judges(report),
        agreement=[_agreement(one) for one in judges_agreement(report.results)],
        counted=shown(_counted(report)),
        metrics=_metrics(report),
        overview=_overview(report),
        made=[(name, values) for name, values in _made(report) if values],
        failures=failed,
        kept=len(kept),
        # Rendered as they are read, so that their texts are never held twice.
        pages=pages_of(kept),
        page_count=-(-len(kept) // PER_PAGE),
        per_page=PER_PAGE,
        choices=choices_of(kept),
        signs=SIGNS,
        states=STATES,
    )


def _lead(report: Report) -> str:
    if not report.results:
        return "There are no results."
    counts = {
        "test": len({result.test.uid for result in report.results}),
        "model": len(report.models),
        "output": len(report.results),
    }
    told = (f"{count:,} {word}{'s' if count > 1 else ''}" for word, count in counts.items())
    return f"{', '.join(told)}."


# --- Compliance: by model and kind of test, by rule and model


def _compliance(report: Report) -> Iterator[dict[str, Any]]:
    for model in report.models:
        for kind, by in KINDS.items():
            rate = report.tnc(model=model, by=by)
            if rate.ok + rate.err + rate.unknown + rate.errors:
                yield {
                    "model": shown(model),
                    "kind": _NAMES[kind],
                    "all": kind == "all",
                    **_rate(rate),
                }


def _rate(rate: Rate) -> dict[str, str]:
    low, high = rate.interval or (None, None)
    return {
        "compliant": "–" if rate.compliant is None else f"{rate.compliant:.1%}",
        "interval": "" if low is None or high is None else f"{low:.1%} to {high:.1%}",
        "at": "" if rate.compliant is None else drawn(rate.compliant, _STRIP),
        "low": "" if low is None else drawn(low, _STRIP),
        "high": "" if high is None else drawn(high, _STRIP),
        "n": f"{rate.n:,}",
        "ok": f"{rate.ok:,}",
        "err": f"{rate.err:,}",
        "unknown": f"{rate.unknown:,}",
        "errors": f"{rate.errors:,}",
    }


def _matrix(report: Report, first: dict[Group, int]) -> Iterator[dict[str, Any]]:
    cells: dict[Group, list[Result]] = defaultdict(list)
    rules: dict[str, PromptTest] = {}
    for result in report.results:
        name = rule_name(result.test)
        rules.setdefault(name, result.test)
        cells[name, result.model].append(result)
    grounded = {(check.rule.id, check.rule.text): check for check in report.rule_checks}
    for name, test in sorted(rules.items(), key=lambda one: order_of(one[1])):
        rates = [
            (model, rate_of(cells[name, model], unknown_as=report.unknown_as))
            for model in report.models
        ]
        yield {
            "name": name,
            "title": title_of(test),
            "text": shown(test.rule) if test.rule_id is not None and not test.baseline else "",
            "inverse": test.inverse,
            "grounded": _grounded(grounded.get((test.rule_id or 0, test.rule))),
            "cells": [
                {"model": shown(model), "first": first.get((name, model)), **_cell(rate)}
                for model, rate in rates
            ],
        }


def _grounded(check: RuleCheck | None) -> str:
    if check is None or check.grounded.outcome == "ok":
        return ""
    words = {"err": "not grounded in the prompt", "unknown": "grounded in the prompt: no verdict"}
    return shown(f"{words[check.grounded.outcome]}: {one_line(check.grounded.reason, LINE)}")


def _cell(rate: Rate) -> dict[str, Any]:
    more = [
        f"{count:,} {word}"
        for count, word in ((rate.unknown, "without verdict"), (rate.errors, "without output"))
        if count
    ]
    return {
        "state": "err" if rate.n and not rate.ok else "",
        "compliant": "–" if rate.compliant is None else f"{rate.compliant:.0%}",
        "counts": f"{rate.ok:,} of {rate.n:,}" if rate.n else "",
        "width": drawn(rate.compliant, _CELL),
        "more": ", ".join(more),
        "failed": f"{rate.err + rate.unknown + rate.errors:,}",
    }


# --- Tests and models, judges, metrics


def _tests(report: Report) -> dict[str, Any]:
    found: dict[str, dict[str, list[str]]] = {}
    tests: dict[str, PromptTest] = {}
    for result in report.results:
        tests.setdefault(result.test.uid, result.test)
        by_model = found.setdefault(result.test.uid, {})
        by_model.setdefault(result.model, []).append(state_of(result))
    order = sorted(tests.values(), key=order_of)
    rows = [
        {
            "title": title_of(test),
            "input": one_line(test.testinput, LINE),
            "cells": [_states(found[test.uid].get(model, ())) for model in report.models],
        }
        for test in order[:_MOST_TESTS]
    ]
    return {"rows": rows, "more": max(0, len(order) - _MOST_TESTS)}


def _states(states: Sequence[str]) -> list[tuple[str, str]]:
    """Count the states of a test's repetitions, as sign and words."""
    found = Counter(states)
    several = len(states) > 1
    return [
        (f"{found[state]} {SIGNS[state]}" if several else SIGNS[state], STATES[state])
        for state in SIGNS
        if found[state]
    ]


def _judges(report: Report) -> list[dict[str, Any]]:
    """Compare the judges' verdicts on compliance; nothing to compare for a single one."""
    tests = [one for one in report.results if not one.test.baseline and one.error is None]
    named = (said.judge or "" for one in tests for said in verdicts_of(one))
    names = [name for name in dict.fromkeys(named) if name != "majority"]
    if len(names) < 2:
        return []
    rows = []
    shares: dict[str, list[float]] = defaultdict(list)
    for name in names:
        cells = []
        for model in report.models:
            said = [
                verdict
                for one in tests
                if one.model == model
                for verdict in verdicts_of(one)
                if (verdict.judge or "") == name
            ]
            rate = rate_of((_judged_by(verdict) for verdict in said), unknown_as=report.unknown_as)
            if rate.compliant is not None:
                shares[model].append(rate.compliant)
            cells.append(_share(rate))
        rows.append({"name": shown(name) or "–", "cells": cells, "mean": False})
    means = [
        (f"{fmean(shares[model]):.1%}", f"{len(shares[model])} judges")
        if shares[model]
        else ("–", "")
        for model in report.models
    ]
    most = by_majority(tests)
    majority = [
        _share(rate_of((one for one in most if one.model == model), unknown_as=report.unknown_as))
        for model in report.models
    ]
    return [
        *rows,
        {"name": "mean over judges", "cells": means, "mean": True},
        {"name": "majority of the judges", "cells": majority, "mean": True},
    ]


def _share(rate: Rate) -> tuple[str, str]:
    if rate.compliant is None:
        return "–", ""
    return f"{rate.compliant:.1%}", f"{rate.ok} of {rate.n}"


def _counted(report: Report) -> str:
    if any(one.compliance is not None and one.compliance.judge == "majority"
           for one in report.results):  # fmt: skip
        return "those of the majority"
    return "the first judge's"


def _agreement(found: JudgesAgreement) -> dict[str, str]:
    kappa = "–" if found.kappa is None else f"{found.kappa:.2f}"
    return {
        "judges": shown(" and ".join(found.judges) if len(found.judges) == 2 else "all judges"),
        "agree": "–" if found.agree is None else f"{found.agree:.1%}",
        "kappa": f"{kappa} ({found.method})",
        "n": f"{found.n:,}",
    }


_TEST = PromptTest(uid="", inputs={})


def _judged_by(verdict: Judged) -> Result:
    return Result(test=_TEST, model="", compliance=verdict)


def _metrics(report: Report) -> list[dict[str, Any]]:
    """Average each metric's scores, or the share of OK among its verdicts, by judge and model."""
    found: dict[str, dict[str, dict[str, list[float | None]]]] = {}
    for result in report.results:
        if result.test.baseline or result.error is not None:
            continue
        for one in result.metrics:
            value = one.score
            if value is None and one.outcome in ("ok", "err"):
                value = 100.0 * (one.outcome == "ok")
            of_judge = found.setdefault(one.metric, {}).setdefault(one.judge, {})
            of_judge.setdefault(result.model, []).append(value)
    rows = []
    for metric, judges in sorted(found.items()):
        means: dict[str, list[float]] = defaultdict(list)
        for judge, by_model in judges.items():
            cells = []
            for model in report.models:
                values = by_model.get(model, [])
                known = [value for value in values if value is not None]
                if known:
                    means[model].append(fmean(known))
                cells.append(
                    (
                        f"{fmean(known):.1f}" if known else "–",
                        f"{len(known)} of {len(values)} scored",
                    )
                )
            rows.append(
                {"metric": shown(metric), "judge": shown(judge), "cells": cells, "mean": False}
            )
        if len(judges) > 1:
            cells = [
                (f"{fmean(means[model]):.1f}", f"{len(means[model])} judges")
                if means[model]
                else ("–", "")
                for model in report.models
            ]
            rows.append(
                {"metric": shown(metric), "judge": "mean over judges", "cells": cells, "mean": True}
            )
    return rows


def _overview(report: Report) -> dict[str, Any]:
    rows = without_empty_columns(report.overview())
    names = [name for name in (rows[0] if rows else ()) if name not in ("model", "scenario")]
    return {
        "heads": [
            shown(
                f"{row['model']} / {row['scenario']}" if row.get("scenario") else str(row["model"])
            )
            for row in rows
        ],
        "rows": [(shown(name), [_overview_cell(row.get(name)) for row in rows]) for name in names],
    }


def _overview_cell(cell: object) -> str:
    return "" if cell is None else f"{cell:.1f}" if isinstance(cell, float) else shown(str(cell))


def _made(report: Report) -> Iterator[tuple[str, list[str]]]:
    spec = report.spec
    judges = Counter(
        said.judge for one in report.results for said in verdicts_of(one) if said.judge is not None
    )
    yield (
        "judges of compliance",
        [f"{shown(name)} ({count:,} verdicts)" for name, count in judges.items()],
    )
    yield "settings that models were asked with", list(dict.fromkeys(_settings(report)))
    yield "rules of a valid input", [shown(rule) for rule in spec.input_spec]
    valid = [check.validity.outcome for check in report.checks if check.validity is not None]
    if valid:
        yield "inputs judged valid", [f"{valid.count('ok'):,} of {len(valid):,}"]
    agreed = [check.agreement.outcome for check in report.checks if check.agreement is not None]
    if agreed:
        words = "answers made from the rules alone that comply"
        yield words, [f"{agreed.count('ok'):,} of {len(agreed):,}"]
    grounded = [check.grounded.outcome for check in report.rule_checks]
    if grounded:
        yield "rules grounded in the prompt", [f"{grounded.count('ok'):,} of {len(grounded):,}"]
    prompts = dict.fromkeys(one.prompt_id for one in report.results if one.prompt_id)
    yield "prompt", [shown(name) for name in prompts]


def _settings(report: Report) -> Iterator[str]:
    for result in report.results:
        found = ", ".join(
            f"{name}={visible_json(value)}"
            for name, value in result.parameters.items()
            if name != "seed"  # which differs with the repetition
        )
        if found:
            yield shown(f"{result.model}: {one_line(found, LINE)}")
