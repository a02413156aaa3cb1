"""The models that options name, and the settings of the models under test."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import cast

from pydantic import JsonValue

from rag_eval_integrations.cli._model_options import model_options
from rag_eval_integrations.cli._terminal import print_stderr
from rag_eval_integrations.cli._watched import WatchedModel
from rag_eval_integrations.cli.prompt_tests._options import MutSettings, RequestSettings
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges import judge_from
from rag_eval_integrations.judges._named import imported
from rag_eval_integrations.models import Model
from rag_eval_integrations.prompt_tests.models import ModelUnderTest, model_of


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
        found = judge_from(
            name, base_url=requests.base_url, rpm=requests.rpm, tpm=requests.tpm,
            max_concurrency=requests.max_concurrency,
            # An estimate is wanted before there is a key.
            api_key="none" if requests.dry_run and not os.environ.get("OPENAI_API_KEY") else None,
            **model_options(requests.timeout, requests.max_tokens, requests.extra_body),
        )  # fmt: skip
        return WatchedModel(cast(Model, found), tell)
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
    found = model_under_test(name, option, requests, tell)
    if not isinstance(found, Model):
        raise ConfigurationError(option, name, "is an app; use a model that answers messages")
    return found


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
