"""Rows of PromptPex's files (microsoft/promptpex, "upstream"), which every stage writes.

Types of cells differ between its versions and files, so that every cell is read with care.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import JsonValue, ValidationError

from rag_eval_integrations._contain import words_of
from rag_eval_integrations.errors import ConfigurationError, InputError, RagEvalError, safe_text
from rag_eval_integrations.metrics.prompty._reply import Outcome, read_verdict
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
from rag_eval_integrations.records._json import excerpt, input_error, is_finite, whole_text

Row = Mapping[str, Any]

# --- Names of files


INTENT = "intent.txt"
INPUT_SPEC = "input_spec.txt"
RULES = "rules.txt"
INVERSE_RULES = "inverse_rules.txt"
TESTS = "tests.json"
BASELINE = "baseline_tests.txt"
REVIEW = "test_collection_review.md"
GROUNDTRUTH = "test_groundtruth.json"
RESULTS = "test_results.json"
TEST_EVALS = "test_evals.json"
RULE_EVALS = "rule_evals.json"
CONTEXT = "promptpex_context.json"
PROMPT = "prompt.json"
JOURNAL = "replies.sqlite"

# --- Cells, and tables of them: a record's field, the column in PromptPex's files, its reader


Cells = Sequence[tuple[str, str, Callable[[Row, str], object]]]


def _to_cells(record: object, cells: Cells) -> dict[str, Any]:
    """Return a record's fields as the cells of a row; those that are None have no cell."""
    values = ((column, getattr(record, field)) for field, column, _ in cells)
    return {column: value for column, value in values if value is not None}


def _from_cells(row: Row, cells: Cells) -> dict[str, Any]:
    """Return a record's fields from the cells of a row, without missing and empty ones."""
    values = ((field, read(row, column)) for field, column, read in cells)
    return {field: value for field, value in values if value not in (None, "")}


_WHOLE = re.compile(r"-?[0-9]{1,9}")
_MOST = 10**9


def text_of(row: Row, name: str) -> str:
    """Return a row's cell as a text; empty if it is missing.

    Another value is written as by `str`. Lone surrogates are replaced.
    """
    value = row.get(name, "")
    text = value if isinstance(value, str) else safe_text(value, str)
    return "" if value is None else whole_text(text)


def flag_of(row: Row, name: str) -> bool | None:
    """Return a row's cell as a Boolean; None if it is missing or something else.

    A text counts if it is true, false, 1 or 0, in any case.
    """
    value = row.get(name)
    if isinstance(value, str):
        return {"true": True, "1": True, "false": False, "0": False}.get(value.strip().lower())
    return value if isinstance(value, bool) else None


def whole_of(row: Row, name: str) -> int | None:
    """Return a row's cell as a whole number; None if it is missing or something else.

    The number may be written as text.

    A fraction is cut off, unless it is a text. None also for a number of more than nine digits.
    """
    value = row.get(name)
    if isinstance(value, str):
        value = value.strip()
        return int(value) if _WHOLE.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if abs(value) < _MOST else None  # NaN and infinity are not below either


def number_of(row: Row, name: str) -> float | None:
    """Return a row's cell as a finite number; None if it is missing or something else."""
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if is_finite(value) else None


def outcome_of(row: Row, name: str) -> Outcome | None:
    """Return a row's cell as an outcome; None if it is missing or something else."""
    value = row.get(name)
    return cast(Outcome, value) if value in ("ok", "err", "unknown") else None


def why_not(error: Exception) -> str:
    """Say why a row is not usable; names the field where it is known."""
    if isinstance(error, ValidationError):
        return str(input_error(error))
    if isinstance(error, RagEvalError):
        return str(error)
    return f"is not usable: {type(error).__name__}: {words_of(error)}"


def rows_of(content: object, what: str) -> list[dict[str, Any]]:
    """Return content that is a list of objects; refuse anything else.

    The list is returned itself, not a copy.

    Args:
        content: JSON from a file.
        what: the file's name, for error messages.

    Raises:
        InputError: for anything else; names the row.
    """
    if not isinstance(content, list):
        raise InputError(f"{what} should be a list of objects, not {excerpt(content)}")
    for position, row in enumerate(content):
        if not isinstance(row, dict):
            raise InputError(
                f"should be an object, not {excerpt(row)}", field=f"{what}[{position}]"
            )
    return content


# --- `tests.json`: one object per test, with the prompt's inputs among the columns


_TEST: Cells = (
    ("test_id", "testid", text_of),
    ("expected", "expectedoutput", text_of),
    ("reasoning", "reasoning", text_of),
    ("scenario", "scenario", text_of),
    ("generation", "generation", whole_of),
    ("baseline", "baseline", flag_of),
    ("inverse", "inverse", flag_of),
    ("uid", "testuid", text_of),
    ("rule", "rule", text_of),
    ("groundtruth", "groundtruth", text_of),
    ("groundtruth_model", "groundtruthModel", text_of),
    ("groundtruth_score", "groundtruthScore", number_of),
)
_COLUMNS = {"ruleid", "testinput", "testinputOriginal", *(column for _, column, _ in _TEST)}


def to_test_rows(tests: Iterable[PromptTest]) -> list[dict[str, Any]]:
    """Return tests as rows of `tests.json`: PromptPex's columns, and some of our own.

    An input with the name of another column has no column of its own. Fields that are None are left
    out. Tests that were made longer also have the inputs from before.
    """
    rows = []
    for test in tests:
        row = {
            "ruleid": "" if test.rule_id is None else str(test.rule_id),
            **_to_cells(test, _TEST[:3]),
            **{name: value for name, value in test.inputs.items() if name not in _COLUMNS},
            "inputs": test.inputs,
            "testinput": test.testinput,
            **_to_cells(test, _TEST),
        }
        if test.original is not None:
            row |= {"testinputOriginal": input_text(test.original), "inputsOriginal": test.original}
        rows.append(row)
    return rows


def from_test_rows(
    rows: Sequence[Row], prompt: PromptUnderTest, spec: Spec, lost: list[str]
) -> list[PromptTest]:
    """Return the tests of rows that are ours, PromptPex's or edited by hand.

    The inputs are the object `inputs`, `testinput`, or the columns named like the prompt's inputs.
    A rule's text that is not in the row is looked up by `ruleid` in the specification; the
    direction is the row's `inverse`, or else the rule's.

    A row that cannot be used is left out.

    Args:
        rows: one row per test.
        prompt: the prompt under test, which has the inputs.
        spec: its specification, numbered as when the tests were made.
        lost: receives one sentence per row without a usable input.
    """
    by_id = {rule.id: rule for rule in spec.rules}
    tests: list[PromptTest] = []
    known: set[str] = set()
    for number, row in enumerate(rows, start=1):
        try:
            inputs = inputs_of(row, prompt, prompt.parameters(text_of(row, "scenario")))
            test = make_test(row, inputs, number, by_id)
            if test.uid in known:  # the row was copied by hand
                names = ("rule", "inverse", "inputs", "scenario", "baseline")
                uid = make_uid(**{name: getattr(test, name) for name in names})
                uid = f"{uid}-{number}" if uid in known else uid
                test = test.model_copy(update={"uid": uid})
            known.add(test.uid)
            tests.append(test)
        except (ValueError, RecursionError) as error:
            lost.append(f"test {number}: {why_not(error)}")
    return tests


def make_test(
    row: Row, inputs: dict[str, JsonValue], number: int, by_id: Mapping[int, Rule] | None = None
) -> PromptTest:
    """Return the test of a row and its inputs.

    A baseline test has no rule. The text of a rule in `by_id` is not used for a test of the other
    direction. Without a number or uid in the row, the test gets the row's number and a uid made of
    its content.

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
    known = {
        "rule": "",
        "inverse": bool(rule and rule.inverse),
        "baseline": False,
        "scenario": "",
        "test_id": str(number),
        **_from_cells(row, _TEST),
    }
    # With the other direction, the numbers belong to another list of rules: the text is left empty
    # rather than wrong.
    if rule is not None and not known["rule"] and rule.inverse == known["inverse"]:
        known["rule"] = rule.text
    place = {name: known[name] for name in ("rule", "inverse", "scenario", "baseline")}
    known.setdefault("uid", make_uid(**place, inputs=inputs))
    if known["baseline"]:
        known, rule_id = {**known, "rule": "", "inverse": False}, None
    original = row.get("inputsOriginal")
    if original is None and text_of(row, "testinputOriginal"):
        original = {"testinput": text_of(row, "testinputOriginal")}
    return PromptTest(
        **known,
        rule_id=rule_id,
        inputs=inputs,
        original=original if isinstance(original, dict) else None,
    )


def inputs_of(
    row: Row, prompt: PromptUnderTest, fixed: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return a row's inputs: the object `inputs`, `testinput`, or columns with the inputs' names.

    Columns are used without a usable text, and where the text cannot be divided into the inputs. An
    object `inputs` is returned as it is.

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


def _test_cells(test: PromptTest) -> dict[str, Any]:
    """Return the cells that describe a test in PromptPex's rows."""
    return {
        "ruleid": test.rule_id,
        "rule": test.rule,
        "inverse": test.inverse,
        "testuid": test.uid,
        "scenario": test.scenario,
        "baseline": test.baseline,
        "testinput": test.testinput,
        "input": test.testinput,
    }


def _verdict_cells(name: str, verdict: Judged) -> dict[str, Any]:
    """Return a verdict's cells: the outcome under the name, the judge's reply under `…Text`."""
    of_reply = read_verdict(verdict.raw).reason if verdict.raw else ""
    why = {} if verdict.reason == of_reply else {f"{name}Reason": verdict.reason}
    return {name: verdict.outcome, f"{name}Text": verdict.raw, **why}


def checks_to_rows(checks: Iterable[TestCheck]) -> list[dict[str, Any]]:
    """Return checks of tests as rows; PromptPex calls the agreement `coverage`.

    What was not judged has no cells. Of a verdict, the outcome and the judge's reply are kept, or
    the reason where there is no reply.
    """
    rows = []
    for check in checks:
        row, agreed = _test_cells(check.test), check.agreement
        if check.validity is not None:
            row |= {**_verdict_cells("validity", check.validity), "model": check.validity.judge}
        if agreed is not None:
            row |= {
                **_verdict_cells("coverage", agreed),
                "coverageText": check.agreement_output,
                "coverageEvalText": agreed.raw,
            }
        rows.append(row)
    return rows


def checks_from_rows(
    rows: Sequence[Row],
    prompt: PromptUnderTest,
    spec: Spec,
    tests: Sequence[PromptTest] = (),
) -> list[TestCheck]:
    """Return the checks of tests in rows; rows without a usable input are left out.

    Verdicts without a cell are None.
    """
    checks = []
    for row, test in _rows_with_tests(rows, prompt, spec, tests, []):
        model = text_of(row, "model") or None
        agreed = {**row, "coverageText": row.get("coverageEvalText")}
        checks.append(
            TestCheck(
                test=test,
                validity=verdict_of_row(row, "validity", model) if row.get("validity") else None,
                agreement=verdict_of_row(agreed, "coverage", model)
                if row.get("coverage")
                else None,
                agreement_output=text_of(row, "coverageText"),
            )
        )
    return checks


def _rows_with_tests(
    rows: Sequence[Row],
    prompt: PromptUnderTest,
    spec: Spec,
    tests: Sequence[PromptTest],
    lost: list[str],
) -> Iterator[tuple[Row, PromptTest]]:
    """Yield each row with its test: the one of its `testuid`, or else one made from the row.

    A row of which no test can be made is left out, with a reason in `lost`.
    """
    by_uid = {test.uid: test for test in tests}
    for row in rows:
        test = by_uid.get(text_of(row, "testuid"))
        if test is not None:
            yield row, test
            continue
        given = {**row, "testinput": row.get("testinput", row.get("input"))}
        for name in ("inputs", "expectedoutput", "reasoning"):
            given.pop(name, None)
        if "baseline" in row and flag_of(row, "baseline") is None:
            # The CSV of version 7 has an empty `baseline` for rule tests.
            given["baseline"] = not text_of(row, "rule")
        for row_test in from_test_rows([given], prompt, spec, lost):
            yield row, row_test


def rule_checks_to_rows(checks: Iterable[RuleCheck], prompt_id: str) -> list[dict[str, Any]]:
    """Return checks of rules as rows: the outcome, and the judge's reply or why there is none."""
    return [
        {
            "id": f"{prompt_id}-{check.rule.id}",
            "promptid": prompt_id,
            "ruleid": check.rule.id,
            "rule": check.rule.text,
            **_verdict_cells("grounded", check.grounded),
            "model": check.grounded.judge,
        }
        for check in checks
    ]


def rule_checks_from_rows(rows: Sequence[Row]) -> list[RuleCheck]:
    """Return the checks of rules in rows that are ours or PromptPex's.

    A rule without a number has 0; a verdict that is missing is `unknown`.
    """
    return [
        RuleCheck(
            rule=Rule(id=whole_of(row, "ruleid") or 0, text=text_of(row, "rule")),
            grounded=verdict_of_row(row, "grounded", text_of(row, "model") or None),
        )
        for row in rows
    ]


# --- `test_results.json`, and the CSV of older versions: one row per output


_RESULT: Cells = (
    ("prompt_id", "promptid", text_of),
    ("model", "model", text_of),
    ("output", "output", text_of),
    ("run", "run", whole_of),
    ("error", "error", text_of),
    ("latency_s", "latencySeconds", number_of),
)
_METRIC: Cells = (
    ("score", "score", number_of),
    ("outcome", "outcome", outcome_of),
    ("content", "content", text_of),
    ("problem", "problem", text_of),
    ("failed", "failed", flag_of),
)


def results_to_rows(results: Iterable[Result]) -> list[dict[str, Any]]:
    """Return results as rows: PromptPex's columns, and some of our own."""
    return [_result_row(result) for result in results]


def _result_row(result: Result) -> dict[str, Any]:
    """Return a result as PromptPex's row; what is None or was not judged has no cells.

    Contexts and parameters without content are left out, too.
    """
    row = {"id": result.id, **_test_cells(result.test), **_to_cells(result, _RESULT)}
    known = {"contexts": list(result.contexts), "parameters": result.parameters}
    row |= {name: value for name, value in known.items() if value}
    if result.compliance is not None:
        row |= _verdict_cells("compliance", result.compliance)
        row["complianceReason"] = result.compliance.reason
        row["judges"] = [
            {
                "judge": verdict.judge,
                **_verdict_cells("compliance", verdict),
                "failed": verdict.failed,
            }
            | ({} if verdict.probability is None else {"probability": verdict.probability})
            for verdict in result.verdicts
        ]
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
    """Return the results in rows that are ours or PromptPex's.

    A row's test is the one with its `testuid`, which kept its rule. Only without such a test the
    rule in the row counts; in the data of PromptPex's paper it is missing or wrong in 1,668 of
    1,944 rows.

    A row that cannot be used is left out. Averages over judges are not read.

    Args:
        rows: one row per output.
        prompt: the prompt under test.
        spec: its specification.
        tests: the tests that were run.
        lost: receives one sentence per row that cannot be used; None to drop them.
    """
    lost, results = [] if lost is None else lost, []
    for row, test in _rows_with_tests(rows, prompt, spec, tests, lost):
        try:
            results.append(_result_of_row(row, test))
        except (ValueError, RecursionError) as error:
            lost.append(f"result of {test.uid}: {why_not(error)}")
    return results


def _result_of_row(row: Row, test: PromptTest) -> Result:
    """Return the result in PromptPex's row.

    What is missing is empty. The model is `?` if there is none. An empty verdict is read as
    `unknown`, unless the row has an error. Averages over judges are not read.
    """
    contexts, parameters, judges = (row.get(n) for n in ("contexts", "parameters", "judges"))
    judged: list[Judged] = []
    if isinstance(judges, list):
        given = (item for item in judges if isinstance(item, Mapping))
        judged = [
            verdict_of_row(item, "compliance", text_of(item, "judge") or None) for item in given
        ]
        if judged and outcome_of(row, "compliance") not in (None, judged[0].outcome):
            judged[0] = verdict_of_row(row, "compliance", judged[0].judge)  # edited by hand
    elif row.get("compliance") is not None and not text_of(row, "error"):
        judged = [verdict_of_row(row, "compliance")]  # an empty cell: judged, without a verdict
    metrics = row.get("metrics")
    return Result(
        test=test,
        contexts=tuple(map(str, contexts)) if isinstance(contexts, list) else (),
        parameters=parameters if isinstance(parameters, dict) else {},
        compliance=judged[0] if judged else None,
        others=tuple(judged[1:]),
        metrics=tuple(
            MetricResult(
                metric=text_of(cell, "metric") or metric,
                judge=text_of(cell, "judge") or judge,
                **_from_cells(cell, _METRIC),
            )
            for key, cell in (metrics.items() if isinstance(metrics, Mapping) else ())
            for metric, _, judge in [str(key).partition(" with ")]
            # An average is computed from the others.
            if isinstance(cell, Mapping) and judge != "average"
        ),
        **{"model": "?", **_from_cells(row, _RESULT)},
    )


def verdict_of_row(row: Row, name: str, judge: str | None = None) -> Judged:
    """Return the verdict in a row's cells, such as `compliance` and `complianceText`.

    The recorded verdict counts, even if this version would read the reply differently.

    The outcome is `unknown` without a verdict. The reason is the one in the column
    `…Reason`, or else in the reply. A probability outside 0 to 1 is dropped.

    Args:
        row: the row.
        name: the column of the verdict.
        judge: the judge's name; None if it is not known.
    """
    raw = text_of(row, f"{name}Text")
    sure = number_of(row, "probability")
    return Judged(
        outcome=outcome_of(row, name) or "unknown",
        reason=text_of(row, f"{name}Reason") or (read_verdict(raw).reason if raw else ""),
        raw=raw,
        judge=judge,
        failed=bool(flag_of(row, "failed")),
        probability=sure if sure is not None and 0 <= sure <= 1 else None,
    )
