"""Rows of PromptPex's results and checks: `test_results`, `test_evals` and `rule_evals`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from rag_eval_integrations.metrics.prompty.reply import Outcome, read_verdict
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.records import (
    Judged,
    MetricResult,
    PromptTest,
    Result,
    Rule,
    RuleCheck,
    Spec,
    TestCheck,
)
from rag_eval_integrations.prompt_tests.upstream import _cells as cells
from rag_eval_integrations.prompt_tests.upstream.tests import from_test_rows

# --- `test_evals.json` and `rule_evals.json`: verdicts on tests and rules themselves


def checks_to_rows(checks: Iterable[TestCheck]) -> list[dict[str, Any]]:
    """Write checks of tests; PromptPex calls the agreement of the specification `coverage`."""
    rows = []
    for check in checks:
        test = check.test
        row: dict[str, Any] = {
            "testuid": test.uid, "ruleid": test.rule_id, "rule": test.rule,
            "inverse": test.inverse, "baseline": test.baseline, "input": test.testinput,
        }  # fmt: skip
        if check.validity is not None:
            row |= {"validity": check.validity.outcome, "validityText": check.validity.raw}
            row |= {"model": check.validity.judge}
        if check.agreement is not None:
            row |= {
                "coverage": check.agreement.outcome,
                "coverageText": check.agreement_output,
                "coverageEvalText": check.agreement.raw,
            }
        rows.append(row)
    return rows


def checks_from_rows(
    rows: Sequence[cells.Row],
    prompt: PromptUnderTest,
    spec: Spec,
    tests: Sequence[PromptTest] = (),
) -> list[TestCheck]:
    """Read checks of tests, ours or PromptPex's; rows without a usable input are left out."""
    by_uid = {test.uid: test for test in tests}
    checks = []
    for row in rows:
        test = by_uid.get(cells.text(row, "testuid"))
        if test is None:
            as_test = {**row, "testinput": row.get("testinput") or row.get("input")}
            found = from_test_rows([as_test], prompt, spec, [])
            if not found:
                continue
            test = found[0]
        model = cells.text(row, "model") or None
        agreed = {**row, "coverageText": row.get("coverageEvalText")}
        checks.append(
            TestCheck(
                test=test,
                validity=judged_from(row, "validity", model) if row.get("validity") else None,
                agreement=judged_from(agreed, "coverage", model) if row.get("coverage") else None,
                agreement_output=cells.text(row, "coverageText"),
            )
        )
    return checks


def rule_checks_to_rows(checks: Iterable[RuleCheck], prompt_id: str) -> list[dict[str, Any]]:
    """Write checks of rules."""
    return [
        {
            "id": f"{prompt_id}-{check.rule.id}", "promptid": prompt_id, "ruleid": check.rule.id,
            "rule": check.rule.text, "grounded": check.grounded.outcome,
            "groundedText": check.grounded.raw, "model": check.grounded.judge,
        }
        for check in checks
    ]  # fmt: skip


def rule_checks_from_rows(rows: Sequence[cells.Row]) -> list[RuleCheck]:
    """Read checks of rules, ours or PromptPex's."""
    return [
        RuleCheck(
            rule=Rule(id=cells.whole(row, "ruleid") or 0, text=cells.text(row, "rule")),
            grounded=judged_from(row, "grounded", cells.text(row, "model") or None),
        )
        for row in rows
    ]


# --- `test_results.json`, and the CSV of older versions: one row per output


def results_to_rows(results: Iterable[Result]) -> list[dict[str, Any]]:
    """Write results: PromptPex's columns, and `run`, `contexts`, `latencySeconds`, `judges`."""
    return [_row(result) for result in results]


def _row(result: Result) -> dict[str, Any]:
    test = result.test
    row: dict[str, Any] = {
        "id": result.id,
        "promptid": result.prompt_id,
        "ruleid": test.rule_id,
        "rule": test.rule,
        "inverse": test.inverse,
        "testuid": test.uid,
        "scenario": test.scenario,
        "baseline": test.baseline,
        "testinput": test.testinput,
        "model": result.model,
        "input": test.testinput,
        "output": result.output,
        "run": result.run,
    }
    if result.error is not None:
        row["error"] = result.error
    if result.contexts:
        row["contexts"] = list(result.contexts)
    if result.parameters:
        row["parameters"] = result.parameters
    if result.latency_s is not None:
        row["latencySeconds"] = result.latency_s
    if result.compliance is not None:
        row["compliance"] = result.compliance.outcome
        row["complianceText"] = result.compliance.raw
        row["complianceReason"] = result.compliance.reason
        row["judges"] = [
            {"judge": one.judge, "compliance": one.outcome, "complianceText": one.raw,
             "failed": one.failed}
            | ({} if one.probability is None else {"probability": one.probability})
            for one in (result.compliance, *result.others)
        ]  # fmt: skip
    row["metrics"] = {one.key: _metric_cell(one) for one in result.metrics}
    return row


def _metric_cell(one: MetricResult) -> dict[str, Any]:
    cell: dict[str, Any] = {"content": one.content, "metric": one.metric, "judge": one.judge}
    if one.score is not None:
        cell["score"] = one.score
    if one.outcome is not None:
        cell["outcome"] = one.outcome
    if one.problem is not None:
        cell["problem"] = one.problem
    if one.failed:
        cell["failed"] = True
    return cell


def results_from_rows(
    rows: Sequence[cells.Row],
    prompt: PromptUnderTest,
    spec: Spec,
    tests: Sequence[PromptTest] = (),
    lost: list[str] | None = None,
) -> list[Result]:
    """Read results, ours or PromptPex's.

    A row's test is the one with its `testuid`, which kept its rule. Only without such a test the
    rule in the row counts; in the data of PromptPex's paper it is missing or wrong in 1,668 of
    1,944 rows.

    Args:
        rows: one row per output.
        prompt: the prompt under test.
        spec: its specification.
        tests: the tests that were run.
        lost: receives one sentence per row that cannot be used; None to drop them.
    """
    by_uid = {test.uid: test for test in tests}
    lost = [] if lost is None else lost
    results = []
    for number, row in enumerate(rows, start=1):
        test = by_uid.get(cells.text(row, "testuid"))
        if test is None:
            found = from_test_rows([_as_test(row)], prompt, spec, lost)
            if not found:
                continue
            test = found[0]
        try:
            results.append(_result(row, test))
        except (ValueError, RecursionError) as error:
            lost.append(f"result {number}: {cells.why_not(error)}")
    return results


def _as_test(row: cells.Row) -> dict[str, Any]:
    as_test = dict(row)
    as_test.setdefault("testinput", row.get("input"))
    for name in ("inputs", "expectedoutput", "reasoning"):
        as_test.pop(name, None)
    if "baseline" in row and cells.flag(row, "baseline") is None:
        # The CSV of version 7 has an empty `baseline` for rule tests.
        as_test["baseline"] = not cells.text(row, "rule")
    return as_test


def _result(row: cells.Row, test: PromptTest) -> Result:
    contexts = row.get("contexts")
    judged = _judged(row)
    return Result(
        test=test,
        model=cells.text(row, "model") or "?",
        run=cells.whole(row, "run") or 0,
        prompt_id=cells.text(row, "promptid"),
        output=cells.text(row, "output"),
        contexts=tuple(map(str, contexts)) if isinstance(contexts, list) else (),
        error=cells.text(row, "error") or None,
        parameters=row["parameters"] if isinstance(row.get("parameters"), dict) else {},
        latency_s=cells.number(row, "latencySeconds"),
        compliance=judged[0] if judged else None,
        others=tuple(judged[1:]),
        metrics=_metrics(row.get("metrics")),
    )


def _judged(row: cells.Row) -> list[Judged]:
    given = row.get("judges")
    if isinstance(given, list):
        rows = [one for one in given if isinstance(one, Mapping)]
        return [judged_from(one, "compliance", cells.text(one, "judge") or None) for one in rows]
    if row.get("compliance") is not None and not cells.text(row, "error"):
        return [judged_from(row, "compliance")]  # an empty cell means judged, without a verdict
    return []


def judged_from(row: cells.Row, name: str, judge: str | None = None) -> Judged:
    """Read a verdict and the judge's reply, such as `compliance` and `complianceText`.

    The recorded verdict counts, even if this version would read the reply differently.

    Args:
        row: the row.
        name: the column of the verdict.
        judge: the judge's name; None if it is not known.
    """
    raw = cells.text(row, f"{name}Text")
    outcome = cells.text(row, name)
    sure = cells.number(row, "probability")
    return Judged(
        outcome=cast(Outcome, outcome if outcome in ("ok", "err") else "unknown"),
        reason=read_verdict(raw).reason if raw else cells.text(row, f"{name}Reason"),
        raw=raw,
        judge=judge,
        failed=bool(cells.flag(row, "failed")),
        probability=sure if sure is not None and 0 <= sure <= 1 else None,
    )


def _metrics(given: object) -> tuple[MetricResult, ...]:
    if not isinstance(given, Mapping):
        return ()
    found = []
    for key, cell in given.items():
        if not isinstance(cell, Mapping):
            continue
        metric, _, judge = str(key).partition(" with ")
        if judge == "average":
            continue  # computed from the others
        outcome = cells.text(cell, "outcome")
        found.append(
            MetricResult(
                metric=metric,
                judge=judge,
                score=cells.number(cell, "score"),
                outcome=cast(Outcome, outcome) if outcome in ("ok", "err", "unknown") else None,
                content=cells.text(cell, "content"),
                problem=cells.text(cell, "problem") or None,
                failed=bool(cells.flag(cell, "failed")),
            )
        )
    return tuple(found)
