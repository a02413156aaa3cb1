"""Rows of PromptPex's files (microsoft/promptpex, "upstream"), which every stage writes.

Types of cells differ between its versions and files, so that every cell is read with care.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from pydantic import JsonValue, ValidationError

from rag_eval_integrations._contain import words_of
from rag_eval_integrations.errors import ConfigurationError, InputError, RagEvalError
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
    input_text,
    make_uid,
)
from rag_eval_integrations.records import whole_text
from rag_eval_integrations.records._json import input_error, is_finite, shown

Row = Mapping[str, Any]

# --- Cells


_WHOLE = re.compile(r"-?[0-9]{1,9}")
_MOST = 10**9


def text_of(row: Row, name: str) -> str:
    """Read a text; empty if the cell is missing."""
    value = row.get(name)
    return "" if value is None else whole_text(value if isinstance(value, str) else _shown(value))


def _shown(value: object) -> str:
    try:
        return str(value)
    except (ValueError, RecursionError):  # 5,000 digits; 1,000 lists in lists
        return f"<{type(value).__name__} that cannot be shown>"


def flag_of(row: Row, name: str) -> bool | None:
    """Read a Boolean; None if the cell is missing or something else."""
    value = row.get(name)
    if isinstance(value, str):
        return {"true": True, "1": True, "false": False, "0": False}.get(value.strip().lower())
    return value if isinstance(value, bool) else None


def whole_of(row: Row, name: str) -> int | None:
    """Read a whole number; None if the cell is missing or something else."""
    value = row.get(name)
    if isinstance(value, str):
        value = value.strip()
        return int(value) if _WHOLE.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if abs(value) < _MOST else None  # NaN and infinity are not below either


def number_of(row: Row, name: str) -> float | None:
    """Read a finite number; None if the cell is missing or something else."""
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if is_finite(value) else None


def why_not(error: Exception) -> str:
    """Say why a row is not usable; names the field where it is known."""
    if isinstance(error, ValidationError):
        return str(input_error(error))
    if isinstance(error, RagEvalError):
        return str(error)
    return f"is not usable: {type(error).__name__}: {words_of(error)}"


def rows_of(content: object, what: str) -> list[dict[str, Any]]:
    """Check that content is a list of objects, and return it.

    Args:
        content: JSON from a file.
        what: the file's name, for error messages.

    Raises:
        InputError: for anything else; names the row.
    """
    if not isinstance(content, list):
        raise InputError(f"{what} should be a list of objects, not {shown(content)}")
    for position, row in enumerate(content):
        if not isinstance(row, dict):
            raise InputError(f"should be an object, not {shown(row)}", field=f"{what}[{position}]")
    return content


# --- `tests.json`: one object per test, with the prompt's inputs among the columns


_COLUMNS = (
    "ruleid", "testid", "expectedoutput", "reasoning", "testinput", "testinputOriginal", "scenario",
    "generation", "baseline", "inverse", "testuid", "groundtruth", "groundtruthModel",
    "groundtruthScore", "rule",
)  # fmt: skip


def to_test_rows(tests: Iterable[PromptTest]) -> list[dict[str, Any]]:
    """Write tests: PromptPex's columns, and `inputs`, `inverse`, `testuid` and the rule's text."""
    rows = []
    for test in tests:
        row: dict[str, Any] = {
            "ruleid": "" if test.rule_id is None else str(test.rule_id),
            "testid": test.test_id,
            "expectedoutput": test.expected,
            "reasoning": test.reasoning,
            **{name: value for name, value in test.inputs.items() if name not in _COLUMNS},
            "inputs": test.inputs,
            "testinput": test.testinput,
            "scenario": test.scenario,
            "generation": test.generation,
            "baseline": test.baseline,
            "inverse": test.inverse,
            "testuid": test.uid,
            "rule": test.rule,
        }
        if test.original is not None:
            row |= {"testinputOriginal": input_text(test.original), "inputsOriginal": test.original}
        if test.groundtruth is not None:
            row |= {"groundtruth": test.groundtruth, "groundtruthModel": test.groundtruth_model,
                    "groundtruthScore": test.groundtruth_score}  # fmt: skip
        rows.append(row)
    return rows


def from_test_rows(
    rows: Sequence[Row], prompt: PromptUnderTest, spec: Spec, lost: list[str]
) -> list[PromptTest]:
    """Read tests, ours, PromptPex's or edited by hand.

    The inputs are the object `inputs`, `testinput`, or the columns named like the prompt's inputs.
    A rule's text that is not in the row is looked up by `ruleid` in the specification; the
    direction is the row's `inverse`, or else the rule's.

    Args:
        rows: one row per test.
        prompt: the prompt under test, which has the inputs.
        spec: its specification, numbered as when the tests were made.
        lost: receives one sentence per row without a usable input.
    """
    by_id = {rule.id: rule for rule in spec.rules}
    tests = []
    for number, row in enumerate(rows, start=1):
        try:
            inputs = inputs_of(row, prompt, prompt.parameters(text_of(row, "scenario")))
            tests.append(make_test(row, inputs, number, by_id))
        except (ValueError, RecursionError) as error:
            lost.append(f"test {number}: {why_not(error)}")
    return tests


def make_test(
    row: Row, inputs: dict[str, JsonValue], number: int, by_id: Mapping[int, Rule] | None = None
) -> PromptTest:
    """Make a test of a row and its inputs.

    Args:
        row: the row.
        inputs: the test's inputs by name.
        number: the row's number, from 1.
        by_id: rules by number, in which a text that is not in the row is looked up.

    Raises:
        ValueError: for inputs that are not JSON.
    """
    rule_id = whole_of(row, "ruleid")
    rule = (by_id or {}).get(rule_id or 0)
    words = text_of(row, "rule") or (rule.text if rule else "")
    inverse = flag_of(row, "inverse")
    baseline = bool(flag_of(row, "baseline"))
    if inverse is None:
        inverse = bool(rule and rule.inverse)
    elif rule is not None and rule.inverse != inverse and not text_of(row, "rule"):
        # The numbers belong to another list of rules: leave the text empty rather than wrong.
        words = ""
    scenario = text_of(row, "scenario")
    original = row.get("inputsOriginal")
    if original is None and text_of(row, "testinputOriginal"):
        original = {"testinput": text_of(row, "testinputOriginal")}
    groundtruth = row.get("groundtruth")
    return PromptTest(
        uid=text_of(row, "testuid")
        or make_uid(
            rule=words, inverse=inverse, inputs=inputs, scenario=scenario, baseline=baseline
        ),
        rule_id=None if baseline else rule_id,
        rule="" if baseline else words,
        inverse=inverse and not baseline,
        inputs=inputs,
        test_id=text_of(row, "testid") or str(number),
        expected=text_of(row, "expectedoutput"),
        reasoning=text_of(row, "reasoning"),
        scenario=scenario,
        generation=whole_of(row, "generation") or 0,
        baseline=baseline,
        original=original if isinstance(original, dict) else None,
        groundtruth=groundtruth if isinstance(groundtruth, str) else None,
        groundtruth_model=text_of(row, "groundtruthModel") or None,
        groundtruth_score=number_of(row, "groundtruthScore"),
    )


def inputs_of(
    row: Row, prompt: PromptUnderTest, fixed: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Read a row's inputs: the object `inputs`, `testinput`, or columns with the inputs' names.

    Raises:
        ConfigurationError: for a text that cannot be divided into the inputs.
        ValueError: for a row without an input.
    """
    given = row.get("inputs")
    if isinstance(given, dict) and given:
        return given
    columns = {name: row[name] for name in prompt.inputs if row.get(name) is not None}
    text = given if isinstance(given, str) and given.strip() else row.get("testinput")
    # PromptPex overwrites `testinput` when it expands a test; the columns keep the original.
    if isinstance(text, str) and (text.strip() or not columns):
        try:
            return prompt.inputs_from(text, fixed)
        except ConfigurationError:
            if not columns:
                raise
    if columns:
        return columns
    raise InputError("has no input")


# --- `test_evals.json` and `rule_evals.json`: verdicts on tests and rules themselves


def _verdict_cells(name: str, verdict: Judged) -> dict[str, Any]:
    return {name: verdict.outcome, f"{name}Text": verdict.raw}


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
            row |= {**_verdict_cells("validity", check.validity), "model": check.validity.judge}
        if check.agreement is not None:
            row |= {
                "coverage": check.agreement.outcome,
                "coverageText": check.agreement_output,
                "coverageEvalText": check.agreement.raw,
            }
        rows.append(row)
    return rows


def checks_from_rows(
    rows: Sequence[Row],
    prompt: PromptUnderTest,
    spec: Spec,
    tests: Sequence[PromptTest] = (),
) -> list[TestCheck]:
    """Read checks of tests, ours or PromptPex's; rows without a usable input are left out."""
    by_uid = {test.uid: test for test in tests}
    checks = []
    for row in rows:
        test = by_uid.get(text_of(row, "testuid"))
        as_test = {**row, "testinput": row.get("testinput") or row.get("input")}
        if test is None and not (read := from_test_rows([as_test], prompt, spec, [])):
            continue
        test = test or read[0]
        model = text_of(row, "model") or None
        agreed = {**row, "coverageText": row.get("coverageEvalText")}
        checks.append(
            TestCheck(
                test=test,
                validity=judged_from(row, "validity", model) if row.get("validity") else None,
                agreement=judged_from(agreed, "coverage", model) if row.get("coverage") else None,
                agreement_output=text_of(row, "coverageText"),
            )
        )
    return checks


def rule_checks_to_rows(checks: Iterable[RuleCheck], prompt_id: str) -> list[dict[str, Any]]:
    """Write checks of rules."""
    return [
        {
            "id": f"{prompt_id}-{check.rule.id}", "promptid": prompt_id, "ruleid": check.rule.id,
            "rule": check.rule.text, **_verdict_cells("grounded", check.grounded),
            "model": check.grounded.judge,
        }
        for check in checks
    ]  # fmt: skip


def rule_checks_from_rows(rows: Sequence[Row]) -> list[RuleCheck]:
    """Read checks of rules, ours or PromptPex's."""
    return [
        RuleCheck(
            rule=Rule(id=whole_of(row, "ruleid") or 0, text=text_of(row, "rule")),
            grounded=judged_from(row, "grounded", text_of(row, "model") or None),
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
    known = {"error": result.error, "contexts": list(result.contexts) or None,
             "parameters": result.parameters or None,
             "latencySeconds": result.latency_s}  # fmt: skip
    row |= {name: value for name, value in known.items() if value is not None}
    if result.compliance is not None:
        row |= _verdict_cells("compliance", result.compliance)
        row["complianceReason"] = result.compliance.reason
        row["judges"] = [
            {"judge": verdict.judge, **_verdict_cells("compliance", verdict),
             "failed": verdict.failed}
            | ({} if verdict.probability is None else {"probability": verdict.probability})
            for verdict in (result.compliance, *result.others)
        ]  # fmt: skip
    row["metrics"] = {
        metric.key: {"content": metric.content, **metric.model_dump(exclude_defaults=True)}
        for metric in result.metrics
    }
    return row


def results_from_rows(
    rows: Sequence[Row],
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
        test = by_uid.get(text_of(row, "testuid"))
        if test is None and not (read := from_test_rows([_as_test(row)], prompt, spec, lost)):
            continue
        test = test or read[0]
        try:
            results.append(_result(row, test))
        except (ValueError, RecursionError) as error:
            lost.append(f"result {number}: {why_not(error)}")
    return results


def _as_test(row: Row) -> dict[str, Any]:
    as_test = dict(row)
    as_test.setdefault("testinput", row.get("input"))
    for name in ("inputs", "expectedoutput", "reasoning"):
        as_test.pop(name, None)
    if "baseline" in row and flag_of(row, "baseline") is None:
        # The CSV of version 7 has an empty `baseline` for rule tests.
        as_test["baseline"] = not text_of(row, "rule")
    return as_test


def _result(row: Row, test: PromptTest) -> Result:
    contexts = row.get("contexts")
    judged = _judged(row)
    return Result(
        test=test,
        model=text_of(row, "model") or "?",
        run=whole_of(row, "run") or 0,
        prompt_id=text_of(row, "promptid"),
        output=text_of(row, "output"),
        contexts=tuple(map(str, contexts)) if isinstance(contexts, list) else (),
        error=text_of(row, "error") or None,
        parameters=row["parameters"] if isinstance(row.get("parameters"), dict) else {},
        latency_s=number_of(row, "latencySeconds"),
        compliance=judged[0] if judged else None,
        others=tuple(judged[1:]),
        metrics=_metrics(row.get("metrics")),
    )


def _judged(row: Row) -> list[Judged]:
    given = row.get("judges")
    if isinstance(given, list):
        rows = [item for item in given if isinstance(item, Mapping)]
        return [judged_from(item, "compliance", text_of(item, "judge") or None) for item in rows]
    if row.get("compliance") is not None and not text_of(row, "error"):
        return [judged_from(row, "compliance")]  # an empty cell means judged, without a verdict
    return []


def judged_from(row: Row, name: str, judge: str | None = None) -> Judged:
    """Read a verdict and the judge's reply, such as `compliance` and `complianceText`.

    The recorded verdict counts, even if this version would read the reply differently.

    Args:
        row: the row.
        name: the column of the verdict.
        judge: the judge's name; None if it is not known.
    """
    raw = text_of(row, f"{name}Text")
    outcome = text_of(row, name)
    sure = number_of(row, "probability")
    return Judged(
        outcome=cast(Outcome, outcome if outcome in ("ok", "err") else "unknown"),
        reason=read_verdict(raw).reason if raw else text_of(row, f"{name}Reason"),
        raw=raw,
        judge=judge,
        failed=bool(flag_of(row, "failed")),
        probability=sure if sure is not None and 0 <= sure <= 1 else None,
    )


def _metrics(given: object) -> tuple[MetricResult, ...]:
    if not isinstance(given, Mapping):
        return ()
    results = []
    for key, cell in given.items():
        if not isinstance(cell, Mapping):
            continue
        metric, _, judge = str(key).partition(" with ")
        if judge == "average":
            continue  # computed from the others
        outcome = text_of(cell, "outcome")
        results.append(
            MetricResult(
                metric=metric,
                judge=judge,
                score=number_of(cell, "score"),
                outcome=cast(Outcome, outcome) if outcome in ("ok", "err", "unknown") else None,
                content=text_of(cell, "content"),
                problem=text_of(cell, "problem") or None,
                failed=bool(flag_of(cell, "failed")),
            )
        )
    return tuple(results)
