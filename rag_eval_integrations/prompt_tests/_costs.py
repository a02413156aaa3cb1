"""What stages ask at most and cost, by formula, before anything is asked; and prices of models.

Tokens of prompts are characters / 4 before a request, and the endpoint's count after it. Costs are
known only by prices that the user gives.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rag_eval_integrations._counted import counted
from rag_eval_integrations._target import read_whole
from rag_eval_integrations._visible import one_line
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics.prompty._frontmatter import FrontMatterError, read_yaml
from rag_eval_integrations.prompt_tests import _workspace as files
from rag_eval_integrations.prompt_tests._stages import ATTEMPTS
from rag_eval_integrations.prompt_tests.generate import Generation
from rag_eval_integrations.prompt_tests.records import PromptTest
from rag_eval_integrations.prompt_tests.upstream import rows_of
from rag_eval_integrations.records import Usage

# --- Estimates


ASSUMED = 2_000
"""Characters that are assumed in a request beside the prompt, before it can be written."""
_RULES = 10
"""Rules that are assumed where their number is not known; PromptPex's prompts have 4 to 21."""


@dataclass(frozen=True)
class CostEstimate:
    """What one model is going to be asked; recorded replies make it less."""

    model: str
    most: int
    """Number of requests."""
    characters: float | None
    """Characters per request; None for an app, which writes its own prompts."""
    least: int = 0

    def words(self, prices: Prices) -> str:
        """Say the requests, their tokens and the cost."""
        requests = f"at most {counted(self.most, 'request')}" if not self.least else (
            f"{_range(self.least, self.most)} requests")  # fmt: skip
        asked = f"{requests} to {one_line(self.model)}"
        if self.characters is None:
            return f"{asked}, an app, whose own requests are not known, cost unknown"
        least, most = (int(n * self.characters) // 4 for n in (self.least or self.most, self.most))
        asked = f"{asked} and about {_range(least, most)} prompt tokens"
        price = prices.price(self.model)
        if price is None:
            return f"{asked}, cost unknown"
        costs = dict.fromkeys(f"${price.of(tokens, 0):.4f}" for tokens in (least, most))
        return f"{asked}, cost {' to '.join(costs)} without the answers"


def _range(least: int, most: int) -> str:
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"


@dataclass(frozen=True)
class GenerationEstimate:
    """What generating is going to ask, and the tests that it makes."""

    cost: CostEstimate
    tests: int
    """Number of tests if every rule gets all of its tests; baseline tests included."""
    exact: bool = False
    """Whether the tests are there."""
    assumed: int = 0
    """Number of rules that was assumed, because it is not known before; 0 if it is known."""

    def words(self, prices: Prices) -> str:
        """Say the tests, and the cost."""
        if self.exact:
            tests = f"there are {self.tests:,} tests"
            return f"{tests}; {self.cost.words(prices)}" if self.cost.most else f"{tests}, no cost"
        why = f"if the prompt has {self.assumed} rules, " if self.assumed else ""
        return f"{why}at most {self.tests:,} tests; {self.cost.words(prices)}"


def estimate_generation(generation: Generation, *, groundtruth: bool = False) -> GenerationEstimate:
    """Estimate what `generation` is going to ask; the most if every reply is asked for twice.

    Args:
        generation: the generation, whose folder says which stages are done.
        groundtruth: whether expected outputs are to be written and rated by one judge.
    """
    folder, options = generation.workspace, generation.options
    name, characters = generation.model.name, len(generation.prompt.text) + ASSUMED
    if folder.has(files.TESTS):
        rows = rows_of(folder.read_json(files.TESTS), files.TESTS)
        missing = sum(row.get("groundtruth") is None for row in rows) if groundtruth else 0
        cost = CostEstimate(name, 2 * ATTEMPTS * missing, characters, 2 * missing)
        return GenerationEstimate(cost, len(rows), exact=True)
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
    cost = CostEstimate(name, most, characters, least)
    return GenerationEstimate(cost, tests, assumed=0 if known else rules)


def mean_characters(prompt: str, tests: Sequence[PromptTest]) -> float:
    """Return the characters of a request to a model under test, with its prompt and its input."""
    return len(prompt) + sum(len(test.testinput) for test in tests) / max(1, len(tests))


def judged_requests(outputs: int, *, metrics: int) -> int:
    """Return what each judge is asked at most: every output for compliance and each metric."""
    return outputs * (1 + metrics)


# --- Prices


class Price(NamedTuple):
    """US dollars per million tokens."""

    prompt: float
    completion: float

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the cost in US dollars."""
        return (self.prompt * prompt_tokens + self.completion * completion_tokens) / 1_000_000


LIBRARY = "genai-prices"
"""The word that stands for the prices of the package of this name, if it is installed."""
_MOST_BYTES = 1_000_000


class Prices:
    """Prices of models by name: from a file, or from the package `genai-prices`.

    Args:
        by_name: prices by the model's name, with or without the part before a colon.
        library: whether to look other names up in the package.
    """

    def __init__(
        self, by_name: Mapping[str, Price] | None = None, *, library: bool = False
    ) -> None:
        self._by_name = dict(by_name or {})
        self._library = library
        self._found: dict[str, Price | None] = {}

    @staticmethod
    def of(source: str | None) -> Prices:
        """Read prices.

        Args:
            source: a JSON or YAML file `{MODEL: {input: 0.15, output: 0.6}}`, in US dollars per
                million tokens; `genai-prices` for the installed package; None for no prices.

        Raises:
            ConfigurationError: for another content, a negative price, or a package that is not
                there.
            OSError: when the file cannot be read.
        """
        if source is None:
            return Prices()
        if source == LIBRARY:
            try:
                importlib.import_module("genai_prices")
            except ImportError:
                why = "the package is not installed; pip install genai-prices"
                raise ConfigurationError("--prices", source, why) from None
            return Prices(library=True)
        return Prices(_read(Path(source)))

    def price(self, model: str) -> Price | None:
        """Return a model's price; None if it is not known."""
        if model not in self._found:
            self._found[model] = self._look_up(model)
        return self._found[model]

    def _look_up(self, model: str) -> Price | None:
        name = model
        while name:
            if name in self._by_name:
                return self._by_name[name]
            found = _of_library(name) if self._library else None
            if found is not None:
                return found
            name = name.partition(":")[2]  # of `openai:gpt-4o`, `langchain:ChatOpenAI:gpt-4o`
        return None

    def usage(self, model: str, usage: Usage) -> Usage:
        """Add the cost to a usage; it stays None for an unknown price or tokens not counted."""
        if usage.cost_usd is not None or not usage.requests:
            return usage
        price = self.price(model)
        if price is None or not usage.prompt_tokens:
            return usage
        cost = price.of(usage.prompt_tokens, usage.completion_tokens)
        return usage.model_copy(update={"cost_usd": cost})


def _read(path: Path) -> dict[str, Price]:
    try:
        text = read_whole(path, "--prices", longest=_MOST_BYTES).decode("utf-8-sig")
        content = json.loads(text) if path.suffix.lower() == ".json" else read_yaml(text).value
    except (FrontMatterError, ValueError, RecursionError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError("--prices", str(path), f"cannot be read: {error}") from error
    if not isinstance(content, dict):
        why = "should map models to {input: …, output: …}, in US dollars per million tokens"
        raise ConfigurationError("--prices", str(path), why)
    return {str(name): _price(str(name), value, path) for name, value in content.items()}


def _price(name: str, value: object, path: Path) -> Price:
    given = value if isinstance(value, dict) else {}
    values = [given.get(key) for key in ("input", "output")]
    numbers = [
        float(value) for value in values if isinstance(value, int | float) and 0 <= value < 1e9
    ]
    if len(numbers) != 2:
        why = f"{name} needs `input` and `output`: US dollars per million tokens, from 0"
        raise ConfigurationError("--prices", str(path), why)
    return Price(*numbers)


def _of_library(name: str) -> Price | None:
    library: Any = importlib.import_module("genai_prices")
    million = 1_000_000
    tokens = library.Usage(input_tokens=million, output_tokens=million)
    try:
        found = library.calc_price(tokens, model_ref=name)
    except LookupError:
        return None
    return Price(float(found.input_price), float(found.output_price))


def spent_of(spent: Mapping[str, Usage], prices: Prices) -> Usage:
    """Add up what models were asked; the cost is None unless all of it is known."""
    total = Usage()
    for model, usage in spent.items():
        total += prices.usage(model, usage)
    return total
