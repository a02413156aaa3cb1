"""What a stage is going to ask, before it asks; and what requests cost.

`Foreseen` takes a model's place: it answers from the record and counts the requests that are not in
it, so that a stage's own code says what it would send. Tokens of prompts are characters / 4 before
a request, and the endpoint's count after it. Costs are known only by prices that the user gives.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rag_eval_integrations._counted import counted
from rag_eval_integrations._target import read_whole
from rag_eval_integrations._visible import one_line
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics.prompty._frontmatter import FrontMatterError, read_yaml
from rag_eval_integrations.models.completion import Choice, Completion, CompletionRequest
from rag_eval_integrations.prompt_tests import _workspace as files
from rag_eval_integrations.prompt_tests._requests import RecordedModel
from rag_eval_integrations.prompt_tests.generate import Generation
from rag_eval_integrations.prompt_tests.stages._review import ATTEMPTS
from rag_eval_integrations.records import Usage

# --- Counting instead of asking


@dataclass(frozen=True)
class Forecast:
    """What one model is going to be asked."""

    model: str
    requests: int
    """Number of requests whose replies are not recorded."""
    prompt_tokens: int | None
    """Characters / 4; None for an app, which writes its own prompts."""
    most_completion_tokens: int | None = None
    """The most that the answers may have by `max_tokens`; None without such a limit."""


class Foreseen(RecordedModel):
    """Answers from the record, and counts the other requests instead of sending them.

    Args:
        model: the model that would be asked.
    """

    def __init__(self, model: RecordedModel) -> None:
        super().__init__(model, model.journal)
        self._keys: set[str] = set()
        self._characters = 0
        self._most: int | None = 0

    async def complete(self, request: CompletionRequest) -> Completion:
        """Return the recorded answer; without one, count the request and return a stand-in."""
        key = self.key(request)
        line = self.journal.get_line(key)
        recorded = None if line is None or not self.holds(request) else self._read(key, line)
        if recorded is not None:
            return recorded
        if key not in self._keys:
            self._keys.add(key)
            self._characters += sum(len(message.content) for message in request.messages)
            limit = request.parameters.get("max_tokens", request.max_tokens)
            if isinstance(limit, int) and self._most is not None:
                self._most += limit
            else:
                self._most = None
        return Completion(choices=(Choice(text="OK", finish_reason="stop"),))

    def forecast(self) -> Forecast:
        """Return what was counted."""
        return Forecast(self.name, len(self._keys), self._characters // 4, self._most)


def merged(forecasts: Iterable[Forecast]) -> list[Forecast]:
    """Add up the forecasts of the same model, in the order of their models."""
    found: dict[str, Forecast] = {}
    for one in forecasts:
        other = found.get(one.model)
        found[one.model] = one if other is None else _sum(other, one)
    return list(found.values())


def _sum(a: Forecast, b: Forecast) -> Forecast:
    def both(x: int | None, y: int | None) -> int | None:
        return None if x is None or y is None else x + y

    return Forecast(
        a.model,
        a.requests + b.requests,
        both(a.prompt_tokens, b.prompt_tokens),
        both(a.most_completion_tokens, b.most_completion_tokens),
    )


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
    numbers = [float(one) for one in values if isinstance(one, int | float) and 0 <= one < 1e9]
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


# --- In words


def forecast_words(stage: str, forecasts: Iterable[Forecast], prices: Prices) -> list[str]:
    """Say what each model is going to be asked, one line per model."""
    found = merged(forecasts)
    lines = [f"{stage}: {_asked(one)}, {_cost(one, prices)}" for one in found if one.requests]
    return lines or [f"{stage}: no requests, no cost"]


def _asked(one: Forecast) -> str:
    who = f"{counted(one.requests, 'request')} to {one_line(one.model)}"
    if one.prompt_tokens is None:
        return f"{who}, an app, whose own requests are not known"
    tokens = f"{who} and about {one.prompt_tokens:,} prompt tokens"
    most = one.most_completion_tokens
    return tokens if most is None else f"{tokens}, answers of at most {most:,} tokens"


def _cost(one: Forecast, prices: Prices) -> str:
    price = prices.price(one.model)
    if price is None or one.prompt_tokens is None:
        return "cost unknown"
    if one.most_completion_tokens is None:
        return f"cost ${price.of(one.prompt_tokens, 0):.4f} without the answers"
    return f"cost at most ${price.of(one.prompt_tokens, one.most_completion_tokens):.4f}"


def range_words(least: Forecast, most: Forecast, prices: Prices) -> str:
    """Say the tokens and the cost between two forecasts of one model."""
    price = prices.price(most.model)
    low, high = least.prompt_tokens or 0, most.prompt_tokens or 0
    tokens = f"about {Bounds(low, high)} prompt tokens"
    if price is None:
        return f"{tokens}, cost unknown" if high else f"{tokens}, no cost"
    costs = f"${price.of(low, 0):.4f} to ${price.of(high, 0):.4f}"
    return f"{tokens}, cost {costs} without the answers"


def spent_of(spent: Mapping[str, Usage], prices: Prices) -> Usage:
    """Add up what models were asked; the cost is None unless all of it is known."""
    total = Usage()
    for model, usage in spent.items():
        total += prices.usage(model, usage)
    return total


# --- Before there are rules or tests: by formula


class Bounds(NamedTuple):
    """The least and the most of a number."""

    least: int
    most: int

    def __str__(self) -> str:
        if self.least == self.most:
            return f"{self.least:,}"
        return f"{self.least:,} to {self.most:,}"


_RULES = 10
"""Rules that are assumed where their number is not known; PromptPex's prompts have 4 to 21."""


@dataclass(frozen=True)
class GenerationForecast:
    """What generating is going to ask, and the tests that it makes."""

    requests: Bounds
    """The most if every useless reply is asked for again."""
    tests: int
    """Number of tests if every rule gets all of its tests; baseline tests included."""
    exact: bool
    """Whether the tests are there, so that their number is known."""
    rules: int
    assumed: bool
    """Whether the number of rules is assumed, because it is not known before."""
    model: str = ""
    """The generator's name."""
    characters: int = 0
    """Characters that are assumed per request."""

    def forecasts(self) -> tuple[Forecast, Forecast]:
        """Return what the generator is asked at least and at most."""
        least, most = (rough(self.model, asked, self.characters) for asked in self.requests)
        return least, most

    def __str__(self) -> str:
        if self.exact:
            return f"generate: {self.requests} requests; there are {self.tests:,} tests"
        why = f"if the prompt has {self.rules} rules, " if self.assumed else ""
        return f"generate: {why}{self.requests} requests for at most {self.tests:,} tests"


def foresee_generation(generation: Generation, *, groundtruth: bool = False) -> GenerationForecast:
    """Say what `generation` is going to ask, by formula; nothing is sent.

    Args:
        generation: the generation, whose folder says which stages are done.
        groundtruth: whether expected outputs are to be written and rated by one judge.
    """
    folder, options = generation.workspace, generation.options
    name, characters = generation.model.name, len(generation.prompt.text) + ASSUMED
    if folder.has(files.TESTS):
        rows = folder.read_json(files.TESTS)
        rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        missing = sum(row.get("groundtruth") is None for row in rows) if groundtruth else 0
        asked = Bounds(2 * missing, 2 * ATTEMPTS * missing)
        return GenerationForecast(asked, len(rows), True, 0, False, name, characters)
    known = len(folder.read_lines(files.RULES)) if folder.has(files.RULES) else options.rules
    rules = min(known or _RULES, options.max_rules or known or _RULES)
    least = most = 0
    for name in (files.INTENT, files.INPUT_SPEC, files.RULES, files.INVERSE_RULES):
        if not folder.has(name):
            least += 1
            most += 4 if name == files.INVERSE_RULES else 2  # missing ones are asked for once more
    per_group = options.rules_per_group
    groups = 2 * -(-rules // per_group) if options.split_rules else -(-2 * rules // per_group)
    rounds = groups * max(1, len(generation.scenarios)) * options.generations
    tests = 2 * rules * options.tests_per_rule * options.generations
    tests *= max(1, len(generation.scenarios))
    once = rounds + tests * options.expansions
    if options.keep is not None and tests > options.keep:
        once, tests = once + 1, options.keep
    if options.baseline:
        once, tests = once + 1, 2 * tests
    least, most = least + once, most + 2 * once
    if groundtruth:
        least, most = least + 2 * tests, most + 2 * ATTEMPTS * tests
    bounds = Bounds(least, most)
    return GenerationForecast(bounds, tests, False, rules, not known, name, characters)


ASSUMED = 2_000
"""Characters that are assumed in a request beside the prompt, before it can be written."""


def rough(model: str, requests: int, characters: int) -> Forecast:
    """Forecast requests that cannot be written yet, of so many characters each."""
    return Forecast(model, requests, requests * characters // 4)


def judged_requests(tests: int, *, models: int, runs: int, metrics: int, judges: int) -> int:
    """Return the requests for T·M·R outputs: a verdict and every metric by each judge.

    Args:
        tests: number of tests, T.
        models: number of models under test, M.
        runs: repetitions per test, R.
        metrics: number of metric files, m.
        judges: number of judges, j.

    Returns:
        T·M·R·(1 + m)·j, which is the most: no judge is asked about an empty output.
    """
    return tests * models * runs * (1 + metrics) * judges
