"""What stages are going to ask and cost: the forecast against what is then asked."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from prompt_test_models import generator
from pydantic import JsonValue

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics.prompty import PromptyMetric, parse_prompty
from rag_eval_integrations.models.completion import Choice, Completion, CompletionRequest
from rag_eval_integrations.prompt_tests import (
    GenerateOptions,
    Generation,
    Journal,
    PromptEvaluation,
    PromptTest,
    PromptUnderTest,
    Spec,
    run_tests,
)
from rag_eval_integrations.prompt_tests._foresight import (
    Forecast,
    Price,
    Prices,
    forecast_words,
    foresee_generation,
    judged_requests,
    spent_of,
)
from rag_eval_integrations.prompt_tests.run import foresee_tests
from rag_eval_integrations.records import RagCall, Usage
from rag_eval_integrations.testing import ScriptedModel

TESTS = [PromptTest(uid=f"t{n}", rule_id=1, inputs={"text": f"text {n % 4}"}) for n in range(6)]
LOUD = PromptyMetric(parse_prompty("{{output}}", name="loud"))


def counting(name: str) -> ScriptedModel:
    def reply(request: CompletionRequest) -> Completion:
        characters = sum(len(message.content) for message in request.messages)
        usage = Usage(requests=1, prompt_tokens=characters // 4, completion_tokens=2)
        text = "OK" if "JSON" not in request.messages[0].content else "{}"
        return Completion(choices=(Choice(text=text, finish_reason="stop"),), usage=usage)

    return ScriptedModel(reply, name=name)


async def test_a_run_is_foreseen_exactly(prompt: PromptUnderTest) -> None:
    """Equal inputs are one request, what is recorded is none, and nothing is sent to find out."""
    journal, models = Journal(), [counting("a"), counting("b")]
    await run_tests(prompt, TESTS[:2], models[:1], journal=journal)
    assert len(models[0].requests) == 2

    said = await foresee_tests(prompt, TESTS, models, runs=2, journal=journal)

    assert [len(model.requests) for model in models] == [2, 0]
    assert len(journal) == 2
    await run_tests(prompt, TESTS, models, runs=2, journal=journal)
    assert [one.requests for one in said] == [len(models[0].requests) - 2, len(models[1].requests)]
    assert [one.requests for one in said] == [6, 8]
    spent = journal.spent["b"]
    tokens = said[1].prompt_tokens
    assert tokens is not None
    assert spent.prompt_tokens <= tokens <= spent.prompt_tokens + said[1].requests  # rounded once
    again = await foresee_tests(prompt, TESTS, models, runs=2, journal=journal)
    assert [one.requests for one in again] == [0, 0]


async def test_judging_is_foreseen_exactly(prompt: PromptUnderTest, spec: Spec) -> None:
    """Verdicts and metrics by each judge, tests and rules; empty outputs and errors ask nobody."""
    journal = Journal()
    outputs = iter(["A", "", "B", "C", "A", "D"])
    model = ScriptedModel(lambda _: next(outputs), name="m")
    tests = [one.model_copy(update={"inputs": {"text": one.uid}}) for one in TESTS]
    results = await run_tests(prompt, tests, [model], max_concurrency=1)
    results[2] = results[2].model_copy(update={"error": "down"})
    judges = [counting("j1"), counting("j2")]
    evaluation = PromptEvaluation(prompt, spec, judges, [LOUD], journal=journal)

    said = await evaluation.foresee(results, tests, validity=True, groundedness=True)

    assert (evaluation.asked, len(journal)) == (0, 0)
    await evaluation.outputs(results)
    await evaluation.tests(tests)
    await evaluation.rules()
    assert {one.model: one.requests for one in said} == {
        judge.name: len(judge.requests) for judge in judges
    }
    assert evaluation.asked == sum(one.requests for one in said) > 0
    after = await evaluation.foresee(results, tests, validity=True, groundedness=True)
    assert sum(one.requests for one in after) == 0


async def test_answers_from_rules_alone_are_foreseen_for_both(
    prompt: PromptUnderTest, spec: Spec
) -> None:
    """The model that answers and the judge of its answers."""
    judge, other = counting("j"), counting("o")
    evaluation = PromptEvaluation(prompt, spec, [judge])
    said = await evaluation.foresee([], TESTS, agreement_model=other)
    await evaluation.tests(TESTS, validity=False, agreement_model=other)
    assert {one.model: one.requests for one in said} == {
        "j": len(judge.requests),
        "o": len(other.requests),
    }


class _Chain:
    name = "app"

    def __init__(self) -> None:
        self.asked = 0

    async def answer(self, inputs: dict[str, JsonValue], text: str) -> RagCall:
        self.asked += 1
        return RagCall(question=text, documents=(), response="x")


async def test_the_requests_of_an_app_are_its_own() -> None:
    """Questions to it are counted; what it asks is not known."""
    put = PromptUnderTest.from_text("Answer.", inputs=["text"], in_app=True)
    app, journal = _Chain(), Journal()
    [said] = await foresee_tests(put, TESTS, [app], journal=journal)
    assert (said.requests, said.prompt_tokens, app.asked) == (4, None, 0)
    await run_tests(put, TESTS, [app], journal=journal)
    assert app.asked == 4
    assert (
        "an app, whose own requests are not known, cost unknown"
        in forecast_words("run", [said], Prices({"app": Price(1, 1)}))[0]
    )


async def test_answers_are_bounded_by_max_tokens(prompt: PromptUnderTest) -> None:
    """Only if every request has a limit."""
    [bounded] = await foresee_tests(prompt, TESTS, [counting("m")], parameters={"max_tokens": 10})
    [free] = await foresee_tests(prompt, TESTS, [counting("m")])
    assert (bounded.most_completion_tokens, free.most_completion_tokens) == (40, None)


# --- Prices


@pytest.mark.parametrize("name", ["p.json", "p.yaml"])
def test_prices_come_from_a_file(tmp_path: Path, name: str) -> None:
    """By name, with or without what stands before a colon; unknown stays unknown."""
    path = tmp_path / name
    path.write_text(
        json.dumps({"gpt-4o": {"input": 2.5, "output": 10}, "a:b": {"input": 0, "output": 0}})
    )
    prices = Prices.of(str(path))

    usage = Usage(requests=2, prompt_tokens=1_000_000, completion_tokens=100_000)
    assert prices.usage("openai:gpt-4o", usage).cost_usd == pytest.approx(3.5)
    assert prices.usage("langchain:ChatOpenAI:gpt-4o", usage).cost_usd == pytest.approx(3.5)
    assert prices.usage("a:b", usage).cost_usd == 0
    assert prices.usage("openai:other", usage).cost_usd is None
    not_counted = Usage(requests=2)
    assert prices.usage("openai:gpt-4o", not_counted).cost_usd is None
    assert spent_of({"openai:gpt-4o": usage, "a:b": usage}, prices).cost_usd == pytest.approx(3.5)
    assert spent_of({"openai:gpt-4o": usage, "x": usage}, prices).cost_usd is None
    assert Prices.of(None).price("openai:gpt-4o") is None


@pytest.mark.parametrize(
    "text",
    ["[]", "{", '{"m": 1}', '{"m": {"input": 1}}', '{"m": {"input": -1, "output": 1}}',
     '{"m": {"input": "1", "output": 1}}'],
)  # fmt: skip
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    """With the option's name."""
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="--prices"):
        Prices.of(str(path))


def test_words_say_what_is_known() -> None:
    """About tokens and money; never 0 for unknown."""
    prices = Prices({"m": Price(1, 2)})
    one = Forecast("m", 2, 1_000_000)
    assert forecast_words("run", [one, one], prices) == [
        "run: 4 requests to m and about 2,000,000 prompt tokens, cost $2.0000 without the answers"
    ]
    bounded = Forecast("m", 1, 1_000_000, 500_000)
    assert forecast_words("run", [bounded], prices) == [
        "run: 1 request to m and about 1,000,000 prompt tokens, answers of at most 500,000 tokens, "
        "cost at most $2.0000"
    ]
    assert forecast_words("run", [one], Prices()) == [
        "run: 2 requests to m and about 1,000,000 prompt tokens, cost unknown"
    ]
    assert forecast_words("run", [Forecast("m", 0, 0, 0)], prices) == ["run: no requests, no cost"]


# --- Generation


@pytest.mark.parametrize(
    "options",
    [
        {}, {"rules": 2}, {"tests_per_rule": 1, "baseline": False}, {"max_rules": 1},
        {"split_rules": False, "rules_per_group": 100}, {"generations": 2},
    ],
)  # fmt: skip
async def test_generating_is_foreseen_within_bounds(
    put: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    """Against the scripted generator, which answers everything at once: the least of the bounds.

    Before its rules are there, their number is assumed and said.
    """
    model = generator()
    made = GenerateOptions.of(**options)
    generation = Generation(put, tmp_path / "t", model, made, tell=lambda _: None)
    before = foresee_generation(generation)
    assert (before.exact, before.assumed) == (False, "rules" not in options)
    await generation.spec()
    spec_requests = len(model.requests)
    said = foresee_generation(generation)
    assert (said.rules, said.assumed) == (min(2, options.get("max_rules", 2)), False)
    tests = await generation.tests()

    asked = len(model.requests) - spec_requests
    assert said.requests.least <= asked <= said.requests.most
    assert len(tests) <= said.tests
    assert spec_requests == 4
    after = foresee_generation(generation)
    assert (after.exact, after.requests, after.tests) == (True, (0, 0), len(tests))
    assert foresee_generation(generation, groundtruth=True).requests == (
        2 * len(tests),
        6 * len(tests),
    )


def test_the_formula_of_outputs() -> None:
    """T·M·R·(1 + m)·j: 42 tests on 4 models with one metric and one judge are 336 judgements."""
    assert judged_requests(42, models=4, runs=1, metrics=1, judges=1) == 336
    assert judged_requests(3, models=2, runs=2, metrics=0, judges=3) == 36


def test_the_package_of_prices_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is not installed, the mistake says what to install."""
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    with pytest.raises(ConfigurationError, match="pip install genai-prices"):
        Prices.of("genai-prices")


def test_prices_of_the_package() -> None:
    """If it is installed: in US dollars per million tokens; an unknown model has none."""
    pytest.importorskip("genai_prices")
    prices = Prices.of("genai-prices")
    found = prices.price("openai:gpt-4o-mini")
    assert found is not None
    assert 0 < found.prompt < found.completion
    assert prices.price("mine:no-such-model-anywhere") is None
