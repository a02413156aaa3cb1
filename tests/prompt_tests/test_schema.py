"""The schema of a prompt's outputs: checked as a JSON Schema validator would, without a request."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
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
)
from rag_eval_integrations.prompt_tests._schema import OutputSchema, output_schema
from rag_eval_integrations.testing import ScriptedModel

HEAD = """---
outputs:
  label: {type: string, enum: [spam, ham]}
  score: {type: number}
  tags: {type: array, items: {type: string}, required: false}
---
user:
{{text}}
"""


def prompt(head: str = HEAD) -> PromptUnderTest:
    return PromptUnderTest.of(parse_prompty(head, name="p"))


def schema(head: str = HEAD) -> OutputSchema:
    found = output_schema(prompt(head))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("output", "problems"),
    [
        ('{"label": "spam", "score": 1}', []),
        ('\n {"label": "ham", "score": 0.5, "tags": ["a"], "more": 1}\n', []),
        ('{"label": "eggs", "score": 1}',
         ['`label` of the output is "eggs", which is not one of ["spam", "ham"]']),
        ('{"label": "spam"}', ["the output has no `score`"]),
        ('{"label": "spam", "score": true}', ["`score` of the output is boolean, not number"]),
        ('{"label": "spam", "score": 1, "tags": ["a", 2]}',
         ["item 2 of `tags` of the output is integer, not string"]),
        ("[]", ["the output is array, not object"]),
        ("spam", ["the output is not JSON"]),
        ("", ["the output is not JSON"]),
        ('```json\n{"label": "spam", "score": 1}\n```',
         ["the output is not JSON (it stands in a code fence)"]),
    ],
)  # fmt: skip
def test_outputs_are_checked(output: str, problems: list[str]) -> None:
    """Every place that does not fit is told."""
    assert schema().problems(output) == problems


def test_schemas_in_every_form() -> None:
    """A JSON Schema, Prompty's list, and the schema of the response format."""
    whole = "---\noutputs: {type: array, items: {type: integer}}\n---\n{{x}}"
    listed = "---\noutputs: [{name: a, kind: integer}, {name: b, kind: string}]\n---\n{{x}}"
    inner = '{"type": "object", "required": ["a"]}'
    form = f'{{"type": "json_schema", "json_schema": {{"name": "n", "schema": {inner}}}}}'
    asked = f"---\nmodel: {{parameters: {{response_format: {form}}}}}\n---\n{{{{x}}}}"

    assert schema(whole).problems("[1, 2.0, 2.5]") == [
        "item 3 of the output is number, not integer"
    ]
    assert schema(listed).problems('{"a": 1}') == ["the output has no `b`"]
    assert schema(asked).problems("{}") == ["the output has no `a`"]


@pytest.mark.parametrize(
    "head",
    ["{{x}}", "---\noutputs: {}\n---\n{{x}}", "---\noutputs: {answer: {type: string}}\n---\n{{x}}",
     "---\noutputs: {type: string}\n---\n{{x}}", "---\noutputs: 3\n---\n{{x}}"],
)  # fmt: skip
def test_text_has_no_schema(head: str) -> None:
    """A prompt that declares nothing, or one text, is not asked for JSON."""
    assert output_schema(prompt(head)) is None


def test_a_single_text_of_json_is_checked() -> None:
    """If the prompt asks for JSON, its only text has to be in it."""
    head = (
        "---\nmodel: {parameters: {response_format: {type: json_object}}}\n"
        "outputs: {answer: {type: string}}\n---\n{{x}}"
    )
    assert schema(head).problems("hello") == ["the output is not JSON"]
    assert schema(head).problems('{"answer": "hello"}') == []


def test_keywords_that_are_not_checked_are_named() -> None:
    """Each once, wherever it stands."""
    head = (
        "---\noutputs: {a: {type: string, pattern: x, minLength: 1}, "
        "b: {type: array, items: {pattern: y}}}\n---\n{{x}}"
    )
    assert schema(head).not_checked == ("pattern", "minLength")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def naive(value: Any) -> dict[str, Any]:
    """The narrowest schema of one value."""
    if isinstance(value, dict):
        return {
            "type": "object",
            "properties": {name: naive(item) for name, item in value.items()},
            "required": list(value),
            "additionalProperties": False,
        }
    if isinstance(value, list):
        return {"type": "array", "items": naive(value[0])} if len(value) == 1 else {"type": "array"}
    return {"enum": [value]}


@given(VALUES)
def test_a_value_fits_its_own_schema(value: Any) -> None:
    """And a value that lacks a field, or has one more, does not."""
    checked = OutputSchema(naive(value), ())
    assert checked.problems(json.dumps(value)) == []
    if isinstance(value, dict):
        assert checked.problems(json.dumps({**value, "one more field": 1}))
        if value:
            assert checked.problems(json.dumps({name: value[name] for name in list(value)[1:]}))


@given(VALUES, VALUES)
def test_any_schema_and_any_output_give_words(one: Any, output: Any) -> None:
    """Whatever a front matter holds, checking neither fails nor hangs."""
    head = prompt("{{x}}")
    given_head = PromptUnderTest(**{**vars(head), "head": {"outputs": one}})
    found = output_schema(given_head)
    if found is not None:
        assert len(found.problems(json.dumps(output))) <= 10


def test_deep_outputs_end() -> None:
    """A reply of 100,000 brackets is not JSON for us."""
    assert schema().problems("[" * 100_000) == ["the output is not JSON"]


async def test_the_check_is_a_metric_of_every_output_and_asks_nobody() -> None:
    """After the run already; judging keeps it, and adds it to results that lack it."""
    model = ScriptedModel(['{"label": "spam", "score": 1}', "no"], name="m")
    tests = [PromptTest(uid=f"t{n}", rule_id=1, inputs={"text": str(n)}) for n in range(2)]

    results = await run_tests(prompt(), tests, [model], max_concurrency=1)

    assert [one.metrics[0].outcome for one in results] == ["ok", "err"]
    assert results[1].metrics[0].content == "the output is not JSON"
    bare = [one.model_copy(update={"metrics": ()}) for one in results]
    judge = ScriptedModel(lambda _: "Fine.\nOK", name="j")
    spec = Spec(rules=(Rule(id=1, text="It is JSON."),))
    judged = await PromptEvaluation(prompt(), spec, [judge]).outputs(bare)
    assert [one.metrics for one in judged] == [one.metrics for one in results]
    assert len(judge.requests) == 2
    [row] = Report("p", judged).overview()
    assert row["output schema with check"] == "1 of 2 ok"
