"""The models that options name, and what they are asked and cost: before a stage, and after it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from pydantic import JsonValue

from rag_eval_integrations.cli._model_options import model_options
from rag_eval_integrations.cli._terminal import print_stderr
from rag_eval_integrations.cli._watched import WatchedModel
from rag_eval_integrations.cli.prompt_tests._options import MutSettings, RequestSettings
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations.summary import usage_words
from rag_eval_integrations.judges import judge_from
from rag_eval_integrations.judges._named import imported
from rag_eval_integrations.models import Model
from rag_eval_integrations.prompt_tests._costs import CostEstimate, Prices, spent_of
from rag_eval_integrations.prompt_tests.run import ModelUnderTest, model_of
from rag_eval_integrations.records import Usage


class Bill:
    """Says what stages are going to cost at most, and what they have cost.

    Args:
        prices: a file of prices, or `genai-prices`; None for unknown costs.

    Raises:
        ConfigurationError: for a file or word that is not of prices.
        OSError: when the file cannot be read.
    """

    def __init__(self, prices: str | None) -> None:
        self.prices = Prices.of(prices)
        self._total = Usage()

    def estimate(self, stage: str, costs: Sequence[CostEstimate]) -> None:
        """Print what a stage is going to ask."""
        for cost in costs:
            if cost.most:
                print_stderr(f"{stage}: {cost.words(self.prices)}")

    def words(self, spent: Mapping[str, Usage]) -> str:
        """Say what was spent; empty for nothing."""
        usage = spent_of(spent, self.prices)
        return usage_words(usage) if usage.requests else ""

    def add(self, stage: str, spent: Mapping[str, Usage]) -> None:
        """Print what a stage has spent; nothing if it asked nothing."""
        self._total += spent_of(spent, self.prices)
        if words := self.words(spent):
            print_stderr(f"{stage}: spent {words}")

    def print_total(self) -> None:
        """Print what all stages together have spent."""
        print_stderr(f"all: spent {usage_words(self._total)}")


def model_under_test(
    name: str,
    option: str,
    requests: RequestSettings,
    tell: Callable[[str], None] = print_stderr,
) -> ModelUnderTest:
    """Make the model `openai:NAME`, or import `MODULE:OBJECT`.

    Args:
        name: the model, as given on the command line.
        option: the option that it was given to, for error messages.
        requests: endpoint and limits; for `openai:NAME` only.
        tell: shows that an `openai:NAME` cannot be used.

    Raises:
        ConfigurationError: for a model, module or object that does not exist.
    """
    if name.startswith("openai:"):
        model = judge_from(
            name, base_url=requests.base_url, rpm=requests.rpm, tpm=requests.tpm,
            max_concurrency=requests.max_concurrency,
            # An estimate is wanted before there is a key.
            api_key="none" if requests.dry_run and not os.environ.get("OPENAI_API_KEY") else None,
            **model_options(requests.timeout, requests.max_tokens, requests.extra_body),
        )  # fmt: skip
        return WatchedModel(cast(Model, model), tell)
    return model_of(imported(name, option, "use openai:NAME or MODULE:OBJECT"))


def model_from_option(
    name: str,
    option: str,
    requests: RequestSettings,
    tell: Callable[[str], None] = print_stderr,
) -> Model:
    """Make a model that answers messages; see `model_under_test`.

    Raises:
        ConfigurationError: for a model that does not exist, or a whole app.
    """
    model = model_under_test(name, option, requests, tell)
    if not isinstance(model, Model):
        raise ConfigurationError(option, name, "is an app; use a model that answers messages")
    return model


def parameters_of(
    muts: Sequence[str], settings: MutSettings, requests: RequestSettings
) -> dict[str, JsonValue]:
    """Return the settings that replace those of the prompt's file."""
    parameters = settings.parameters()
    if requests.max_tokens is not None:
        if "max_tokens" in parameters:
            raise ConfigurationError("--param", "max_tokens", "has a value: --max-tokens; give one")
        parameters["max_tokens"] = None  # the openai: models have it already, in place of this
        for name in muts:
            if not name.startswith("openai:"):
                print_stderr(f"{name}: --max-tokens is for openai: models; it keeps its own limit")
    return parameters
