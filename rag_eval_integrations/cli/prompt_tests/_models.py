"""The models that options name, and what they are asked and cost: before a stage, and after it.

Estimates are formulas. Tokens of prompts are characters / 4 before a request, and the endpoint's
count after it. Costs are known only by prices that the user gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from rag_eval_integrations._visible import counted, one_line
from rag_eval_integrations.cli._judges import WatchedModel
from rag_eval_integrations.cli._terminal import print_stderr
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations.summary import usage_words
from rag_eval_integrations.judges import judge_from
from rag_eval_integrations.judges._named import imported
from rag_eval_integrations.models import Model
from rag_eval_integrations.prompt_tests import _upstream as files
from rag_eval_integrations.prompt_tests._test_stages import ATTEMPTS
from rag_eval_integrations.prompt_tests.generate import Generation
from rag_eval_integrations.prompt_tests.prompt import read_content
from rag_eval_integrations.prompt_tests.run import ModelUnderTest, model_of
from rag_eval_integrations.records import Usage

# --- Costs

ASSUMED = 2_000
"""Characters that are assumed in a request beside the prompt, before it can be written."""
_RULES = 10
"""Rules that are assumed where their number is not known; PromptPex's prompts have 4 to 21."""
_MOST_BYTES = 1_000_000
_Dollars = Annotated[float, Field(ge=0, lt=1e9, strict=True)]


class _Price(BaseModel):
    """US dollars per million tokens."""

    input: _Dollars
    output: _Dollars

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the price of tokens in US dollars."""
        return (self.input * prompt_tokens + self.output * completion_tokens) / 1_000_000


class Bill:
    """What stages are going to cost at most, and what they have cost.

    Args:
        prices: a JSON or YAML file `{MODEL: {input: 0.15, output: 0.6}}`, in US dollars per million
            tokens; None for unknown costs.

    Raises:
        ConfigurationError: for a file that is not of prices.
        OSError: when the file cannot be read.
    """

    def __init__(self, prices: str | None) -> None:
        self._prices = {} if prices is None else _read_prices(Path(prices))
        self._total = Usage()

    def _price(self, model: str) -> _Price | None:
        """Return a model's price, by its name without prefixes if need be; None if unknown."""
        while model and model not in self._prices:
            model = model.partition(":")[2]  # of `openai:gpt-4o`, `langchain:ChatOpenAI:gpt-4o`
        return self._prices.get(model)

    def estimate(self, model: str, most: int, characters: float | None, least: int = 0) -> str:
        """Return the requests to a model, their tokens and the cost, in words.

        The cost is of the prompts alone; it is unknown without a price. With `least`, requests,
        tokens and cost are ranges.

        Args:
            model: the model.
            most: number of requests; recorded replies make it less.
            characters: characters per request; None for an app, which writes its own prompts.
            least: the smallest number of requests; 0 if it is not known.
        """
        ranged = f"{_range(least, most)} requests"
        requests = ranged if least else f"at most {counted(most, 'request')}"
        asked = f"{requests} to {one_line(model)}"
        if characters is None:
            return f"{asked}, an app, whose own requests are not known, cost unknown"
        tokens = [int(n * characters) // 4 for n in (least or most, most)]
        asked = f"{asked} and about {_range(*tokens)} prompt tokens"
        price = self._price(model)
        if price is None:
            return f"{asked}, cost unknown"
        costs = dict.fromkeys(f"${price.of(n, 0):.4f}" for n in tokens)
        return f"{asked}, cost {' to '.join(costs)} without the answers"

    def print_estimate(self, stage: str, model: str, most: int, characters: float | None) -> None:
        """Print to stderr what a stage is going to ask a model; nothing for no request.

        Arguments as for `estimate`.
        """
        if most:
            print_stderr(f"{stage}: {self.estimate(model, most, characters)}")

    def generation(self, generation: Generation, *, groundtruth: bool) -> tuple[int, str]:
        """Estimate what a generation is going to ask; the most if every reply is asked for twice.

        If the tests are there, their number is returned, and only missing expected outputs cost
        something.

        Args:
            generation: the generation, whose folder says which stages are done.
            groundtruth: whether expected outputs are to be written and rated by one judge.

        Returns:
            The number of tests if every rule gets all of its tests, and the estimate in words.
        """
        folder, options = generation.workspace, generation.options
        name, characters = generation.model.name, len(generation.prompt.text) + ASSUMED
        if folder.has(files.TESTS):
            rows = folder.rows(files.TESTS)
            missing = sum(row.get("groundtruth") is None for row in rows) if groundtruth else 0
            cost = "no cost"
            if missing:
                cost = self.estimate(name, 2 * ATTEMPTS * missing, characters, 2 * missing)
            there = f"generate: there are {len(rows):,} tests"
            return len(rows), f"{there}; {cost}" if missing else f"{there}, {cost}"
        known = len(folder.read_lines(files.RULES)) or options.rules
        rules = min(known or _RULES, options.max_rules or known or _RULES)
        stages = [files.INTENT, files.INPUT_SPEC, files.RULES, files.INVERSE_RULES]
        missing_stages = [stage for stage in stages if not folder.has(stage)]
        per_group, scenarios = options.rules_per_group, max(1, len(generation.scenarios))
        groups = 2 * -(-rules // per_group) if options.split_rules else -(-2 * rules // per_group)
        tests = 2 * rules * options.tests_per_rule * options.generations * scenarios
        least = len(missing_stages) + groups * scenarios * options.generations
        least += tests * options.expansions
        if options.keep is not None and tests > options.keep:
            least, tests = least + 1, options.keep
        if options.baseline:
            least, tests = least + 1, 2 * tests
        # Missing inverse rules are asked for once more.
        most = 2 * least + 2 * (files.INVERSE_RULES in missing_stages)
        if groundtruth:
            least, most = least + 2 * tests, most + 2 * ATTEMPTS * tests
        why = "" if known else f"if the prompt has {rules} rules, "
        cost = self.estimate(name, most, characters, least)
        return tests, f"generate: {why}at most {tests:,} tests; {cost}"

    def words(self, spent: Mapping[str, Usage]) -> str:
        """Return in words what was spent; empty for nothing."""
        usage = self._sum(spent)
        return usage_words(usage) if usage.requests else ""

    def add(self, stage: str, spent: Mapping[str, Usage]) -> None:
        """Print what a stage has spent, and add it to the total; no line if it asked nothing."""
        self._total += self._sum(spent)
        if words := self.words(spent):
            print_stderr(f"{stage}: spent {words}")

    def print_total(self) -> None:
        """Print what all stages together have spent."""
        print_stderr(f"all: spent {usage_words(self._total)}")

    def _sum(self, spent: Mapping[str, Usage]) -> Usage:
        """Return the usage of all models; its cost is None unless all of it is known.

        Usage without a cost is priced by the user's prices.
        """
        total = Usage()
        for model, usage in spent.items():
            price = self._price(model)
            if price is not None and usage.cost_usd is None and usage.prompt_tokens:
                cost = price.of(usage.prompt_tokens, usage.completion_tokens)
                usage = usage.model_copy(update={"cost_usd": cost})
            total += usage
        return total


def _range(least: int, most: int) -> str:
    """Return a range of numbers in words; one number if both are the same."""
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"


def _read_prices(path: Path) -> dict[str, _Price]:
    """Return the prices by model in the file of `--prices`.

    Raises:
        ConfigurationError: for a file that is not of prices, or larger than 1 MB.
        OSError: when the file cannot be read.
    """
    try:
        content = read_content(path, "--prices", _MOST_BYTES)
        return TypeAdapter(dict[str, _Price]).validate_python(content)
    except ValidationError as error:
        where = " ".join(map(str, error.errors()[0]["loc"])) or "the file"
        why = f"{where} should be `{{input: …, output: …}}`, US dollars per million tokens, from 0"
        raise ConfigurationError("--prices", str(path), why) from error


# --- Models


def model_under_test(
    name: str, option: str, requests: Mapping[str, Any], tell: Callable[[str], None] = print_stderr
) -> ModelUnderTest:
    """Return the model `openai:NAME`, or import `MODULE:OBJECT`.

    The model of `openai:NAME` tells when it cannot be used.

    Args:
        name: the model, as given on the command line.
        option: the option that it was given to, for error messages.
        requests: arguments of `judge_from`; for `openai:NAME` only.
        tell: shows that an `openai:NAME` cannot be used.

    Raises:
        ConfigurationError: for a model, module or object that does not exist.
    """
    if not name.startswith("openai:"):
        return model_of(imported(name, option, "use openai:NAME or MODULE:OBJECT"))
    return WatchedModel(cast(Model, judge_from(name, **requests)), tell)


def model_from_option(
    name: str, option: str, requests: Mapping[str, Any], tell: Callable[[str], None] = print_stderr
) -> Model:
    """Return a model that answers messages; see `model_under_test`.

    Raises:
        ConfigurationError: for a model that does not exist, or a whole app.
    """
    model = model_under_test(name, option, requests, tell)
    if not isinstance(model, Model):
        raise ConfigurationError(option, name, "is an app; use a model that answers messages")
    return model


def generator_of(name: str, requests: Mapping[str, Any]) -> Model:
    """Return the model of `--model`, which says nothing when it cannot be used."""
    # Its failure ends the command, which then says it.
    return model_from_option(name, "--model", requests, tell=lambda _: None)


def optional_model(name: str | None, option: str, requests: Mapping[str, Any]) -> Model | None:
    """Return the model that an option names; None if the option was not given."""
    return None if name is None else model_from_option(name, option, requests)


def models_under_test(
    names: Sequence[str], requests: Mapping[str, Any], max_tokens: int | None
) -> list[ModelUnderTest]:
    """Return the models of `--mut`; print for which of them `--max-tokens` has no effect.

    Raises:
        ConfigurationError: for a model that does not exist.
    """
    models = [model_under_test(name, "--mut", requests) for name in names]
    for name in names:
        if max_tokens is not None and not name.startswith("openai:"):
            print_stderr(f"{name}: --max-tokens is for openai: models; it keeps its own limit")
    return models
