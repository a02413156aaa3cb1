"""`test_evals.json` and `rule_evals.json`: what is said about tests and rules themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.records import PromptTest, Rule, RuleCheck, Spec, TestCheck
from rag_eval_integrations.prompt_tests.upstream import cells
from rag_eval_integrations.prompt_tests.upstream.results import judged_from
from rag_eval_integrations.prompt_tests.upstream.tests import from_test_rows


def checks_to_rows(checks: Iterable[TestCheck]) -> list[dict[str, Any]]:
    """Write checks of tests; `coverage` is upstream's name for the agreement of the spec."""
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
    """Read checks of tests, ours or upstream's; rows without a usable input are left out."""
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
    """Read checks of rules, ours or upstream's."""
    return [
        RuleCheck(
            rule=Rule(id=cells.whole(row, "ruleid") or 0, text=cells.text(row, "rule")),
            grounded=judged_from(row, "grounded", cells.text(row, "model") or None),
        )
        for row in rows
    ]
