"""Rows of `tests.json`: one object per test, with the prompt's inputs among the columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.prompt_tests._workspace import TESTS, Workspace
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.records import PromptTest, Rule, Spec, input_text, make_uid
from rag_eval_integrations.prompt_tests.upstream import _cells as cells

COLUMNS = (
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
            **{name: value for name, value in test.inputs.items() if name not in COLUMNS},
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
            row["testinputOriginal"] = input_text(test.original)
            row["inputsOriginal"] = test.original
        if test.groundtruth is not None:
            row["groundtruth"] = test.groundtruth
            row["groundtruthModel"] = test.groundtruth_model
            row["groundtruthScore"] = test.groundtruth_score
        rows.append(row)
    return rows


def from_test_rows(
    rows: Sequence[cells.Row], prompt: PromptUnderTest, spec: Spec, lost: list[str]
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
        inputs = _inputs(row, prompt)
        if isinstance(inputs, str):
            lost.append(f"test {number}: {inputs}")
            continue
        try:
            tests.append(_test(row, inputs, by_id, number))
        except (ValueError, RecursionError) as error:
            lost.append(f"test {number}: {cells.why_not(error)}")
    return tests


def read_tests_file(
    workspace: Workspace, prompt: PromptUnderTest, spec: Spec, tell: Callable[[str], None]
) -> list[PromptTest]:
    """Read a folder's tests; rows that cannot be used are reported and left out.

    Args:
        workspace: the folder.
        prompt: the prompt under test.
        spec: its specification, for the rules of tests that have only a number.
        tell: receives one sentence per row that cannot be used.

    Raises:
        ConfigurationError: when the file is not JSON.
        InputError: when the file is not a list of objects.
        OSError: when the file cannot be read.
    """
    lost: list[str] = []
    rows = cells.rows_of(workspace.read_json(TESTS), TESTS)
    tests = from_test_rows(rows, prompt, spec, lost)
    for one in lost:
        tell(f"{workspace.path(TESTS)}: {one}")
    return tests


def _test(
    row: cells.Row, inputs: dict[str, Any], by_id: dict[int, Rule], number: int
) -> PromptTest:
    rule_id = cells.whole(row, "ruleid")
    rule = by_id.get(rule_id) if rule_id is not None else None
    words = cells.text(row, "rule") or (rule.text if rule else "")
    inverse = cells.flag(row, "inverse")
    baseline = bool(cells.flag(row, "baseline"))
    if inverse is None:
        inverse = bool(rule and rule.inverse)
    elif rule is not None and rule.inverse != inverse and not cells.text(row, "rule"):
        # The numbers belong to another list of rules: leave the text empty rather than wrong.
        words = ""
    scenario = cells.text(row, "scenario")
    original = row.get("inputsOriginal")
    if original is None and cells.text(row, "testinputOriginal"):
        original = {"testinput": cells.text(row, "testinputOriginal")}
    groundtruth = row.get("groundtruth")
    return PromptTest(
        uid=cells.text(row, "testuid")
        or make_uid(
            rule=words, inverse=inverse, inputs=inputs, scenario=scenario, baseline=baseline
        ),
        rule_id=None if baseline else rule_id,
        rule="" if baseline else words,
        inverse=inverse and not baseline,
        inputs=inputs,
        test_id=cells.text(row, "testid") or str(number),
        expected=cells.text(row, "expectedoutput"),
        reasoning=cells.text(row, "reasoning"),
        scenario=scenario,
        generation=cells.whole(row, "generation") or 0,
        baseline=baseline,
        original=original if isinstance(original, dict) else None,
        groundtruth=groundtruth if isinstance(groundtruth, str) else None,
        groundtruth_model=cells.text(row, "groundtruthModel") or None,
        groundtruth_score=cells.number(row, "groundtruthScore"),
    )


def _inputs(row: cells.Row, prompt: PromptUnderTest) -> dict[str, Any] | str:
    given = row.get("inputs")
    if isinstance(given, dict) and given:
        return given
    columns = {name: row[name] for name in prompt.inputs if row.get(name) is not None}
    testinput = row.get("testinput")
    # PromptPex overwrites `testinput` when it expands a test; the columns keep the original.
    if isinstance(testinput, str) and (testinput.strip() or not columns):
        fixed = prompt.parameters(cells.text(row, "scenario"))
        try:
            return prompt.inputs_from(testinput, fixed)
        except ConfigurationError as error:
            if not columns:
                return str(error)
    if columns:
        return columns
    return "has no input"
