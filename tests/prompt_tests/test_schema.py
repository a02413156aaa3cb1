"""The schema of a prompt's outputs: checked as a JSON Schema validator would, without a request."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_eval_integrations.metrics.prompty import parse_prompty
from rag_eval_integrations.prompt_tests import (
    PromptEvaluation,
    PromptTest,
    PromptUnderTest,
    Report,
    Rule,
    Spec,
    run_tests,
    run_tests_sync,
)
from rag_eval_integrations.testing import ScriptedModel

HEAD = (
    "---\noutputs: {label: {type: string, enum: [spam, ham]}, score: {type: number},"
    " tags: {type: array, items: {type: string}, required: false}}\n---\n{{text}}\n"
)


def prompt(head: str = HEAD) -> PromptUnderTest:
    return PromptUnderTest.of(parse_prompty(head, name="p"))


def problems_of(put: PromptUnderTest, output: str) -> list[str] | None:
    """Run a test and read the check of its output; None if it was not checked."""
    test = PromptTest(uid="t", inputs=dict.fromkeys(put.inputs, "x"))
    [result] = run_tests_sync(put, [test], [ScriptedModel([output], name="m")])
    if not result.metrics:
        return None
    [metric] = result.metrics
    assert metric.key == "output schema with check"
    assert metric.outcome == ("err" if metric.content else "ok")
    return metric.content.split("; ") if metric.content else []


@pytest.mark.parametrize(
    ("output", "problems"),
    [
        ('{"label": "spam", "score": 1}', []),
        ('\n {"label": "ham", "score": 0.5, "tags": ["a"], "more": 1}\n', []),
        ('{"label": "ham", "score": 1' + "0" * 400 + "}", []),
        ('{"label": "eggs", "score": 1}', ['`label` of the output is "eggs", which is not one of ["spam", "ham"]']),
        ('{"label": "spam"}', ["the output has no `score`"]),
        ('{"label": "spam", "score": true}', ["`score` of the output is boolean, not number"]),
        ('{"label": "spam", "score": 1, "tags": ["a", 2]}',
         ["item 2 of `tags` of the output is integer, not string"]),
        ("[]", ["the output is array, not object"]),
        ("spam", ["the output is not JSON"]),
        ("[" * 100_000, ["the output is not JSON"]),
        ('```json\n{"label": "spam", "score": 1}\n```',
         ["the output is not JSON (it stands in a code fence)"]),
    ],
)  # fmt: skip
def test_outputs_are_checked(output: str, problems: list[str]) -> None:
    """Every place that does not fit is told."""
    assert problems_of(prompt(), output) == problems


def test_schemas_in_every_form() -> None:
    """A JSON Schema, Prompty's list, and the schema of the response format."""
    listed = "outputs: [{name: a, kind: integer}, {name: b, kind: string}]"
    form = "{type: json_schema, json_schema: {name: n, schema: {type: object, required: [a]}}}"
    # If the prompt asks for JSON, its only text has to be in it.
    only = (
        "model: {parameters: {response_format: {type: json_object}}}\noutputs: {a: {type: string}}"
    )
    for head, output, problems in (
        ("outputs: {type: array, items: {type: integer}}", "[1, 2.0, 2.5]",
         ["item 3 of the output is number, not integer"]),
        (listed, '{"a": 1}', ["the output has no `b`"]),
        (f"model: {{parameters: {{response_format: {form}}}}}", "{}", ["the output has no `a`"]),
        (only, "hello", ["the output is not JSON"]), (only, '{"a": "hello"}', []),
    ):  # fmt: skip
        assert problems_of(prompt(f"---\n{head}\n---\n{{{{x}}}}"), output) == problems


@pytest.mark.parametrize(
    "head",
    ["{{x}}", "---\noutputs: {}\n---\n{{x}}", "---\noutputs: {answer: {type: string}}\n---\n{{x}}",
     "---\noutputs: {type: string}\n---\n{{x}}", "---\noutputs: 3\n---\n{{x}}"],
)  # fmt: skip
def test_text_has_no_schema(head: str) -> None:
    """A prompt that declares nothing, or one text, is not asked for JSON."""
    assert problems_of(prompt(head), "text") is None


def test_keywords_that_are_not_checked_are_named() -> None:
    """Each once, wherever it stands."""
    head = (
        "---\noutputs: {a: {type: string, pattern: x, minLength: 1}, "
        "b: {type: array, items: {pattern: y}}}\n---\n{{x}}"
    )
    notices: list[str] = []
    run_tests_sync(prompt(head), [], [ScriptedModel([], name="m")], tell=notices.append)
    assert notices == ["p: of its outputs' schema, pattern, minLength are not checked"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
NAMES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
SCHEMAS = st.recursive(
    st.fixed_dictionaries({}, optional={"type": NAMES, "enum": st.lists(VALUES)}),
    lambda inner: st.fixed_dictionaries(
        {"type": NAMES},
        optional={
            "items": inner, "properties": st.dictionaries(st.text(max_size=3), inner, max_size=3),
            "required": st.lists(st.text(max_size=3), max_size=2, unique=True),
            "additionalProperties": st.booleans(),
        },
    ),
    max_leaves=4,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(SCHEMAS, VALUES)
def test_outputs_are_checked_as_a_validator_does(schema: dict[str, Any], value: Any) -> None:
    """Against jsonschema, for every keyword that is checked."""
    head: dict[str, Any] = {"outputs": {"type": "array", "items": schema}}
    problems = problems_of(replace(prompt("{{x}}"), head=head), json.dumps([value]))
    whole = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert problems is not None
    assert (problems == []) == whole


@settings(max_examples=60, deadline=None)
@given(VALUES, VALUES)
def test_any_schema_and_any_output_give_words(outputs: Any, value: Any) -> None:
    """Whatever a front matter holds, checking neither fails nor hangs."""
    problems = problems_of(replace(prompt("{{x}}"), head={"outputs": outputs}), json.dumps(value))
    assert problems is None or len(problems) <= 10


async def test_the_check_is_a_metric_of_every_output_and_asks_nobody() -> None:
    """After the run already; judging keeps it, and adds it to results that lack it."""
    model = ScriptedModel(['{"label": "spam", "score": 1}', "no"], name="m")
    tests = [PromptTest(uid=f"t{n}", rule_id=1, inputs={"text": str(n)}) for n in range(2)]

    results = await run_tests(prompt(), tests, [model], max_concurrency=1)

    assert [result.metrics[0].outcome for result in results] == ["ok", "err"]
    assert results[1].metrics[0].content == "the output is not JSON"
    bare = [result.model_copy(update={"metrics": ()}) for result in results]
    judge = ScriptedModel(lambda _: "Fine.\nOK", name="j")
    spec = Spec(rules=(Rule(id=1, text="It is JSON."),))
    judged = await PromptEvaluation(prompt(), spec, [judge]).outputs(bare)
    assert [result.metrics for result in judged] == [result.metrics for result in results]
    assert len(judge.requests) == 2
    [row] = Report("p", judged).overview()
    assert row["output schema with check"] == "1 of 2 ok"


def test_true_is_not_one_at_any_depth() -> None:
    """Python takes them for equal; JSON does not, and an integer may be written with a fraction."""
    head = "---\noutputs: {type: array, items: {enum: [[true, {a: 1}]]}}\n---\n{{x}}"
    fits = {text: problems_of(prompt(head), text) == [] for text in
            ('[[true, {"a": 1.0}]]', '[[1, {"a": 1}]]', '[[true, {"a": true}]]')}  # fmt: skip
    assert list(fits.values()) == [True, False, False]
