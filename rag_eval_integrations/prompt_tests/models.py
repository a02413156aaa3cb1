"""Models under test: models that answer messages, and apps that contain the prompt."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast, runtime_checkable

from pydantic import JsonValue

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges import Judge, judge_from
from rag_eval_integrations.models import CallableModel, Model
from rag_eval_integrations.models.completion import WrappedModel
from rag_eval_integrations.records import RagCall
from rag_eval_integrations.records._frameworks import framework_of

# --- Models and apps under test


@runtime_checkable
class App(Protocol):
    """A whole app under test: it contains the prompt, retrieves and answers by itself."""

    @property
    def name(self) -> str:
        """Name in files and reports."""
        ...

    async def answer(self, inputs: Mapping[str, JsonValue], text: str) -> RagCall:
        """Answer a test.

        Args:
            inputs: the test's inputs by name.
            text: the inputs as one text: a single input's text, or a JSON object.

        Returns:
            The call, with the retrieved contexts as its documents.
        """
        ...


ModelUnderTest = Model | App


def model_of(model: object, *, name: str | None = None) -> ModelUnderTest:
    """Make a model under test.

    Args:
        model: `openai:MODEL`; a `Model`; an `App`; a LangChain chat model, chain or retrieval app;
            a LlamaIndex LLM, query engine or chat engine; or an async function that takes messages
            (`[{"role", "content"}, …]`) and returns text.
        name: name in files and reports; by default the model's own.

    Raises:
        ConfigurationError: for anything else.
    """
    found: object = model
    framework = framework_of(model)
    if isinstance(model, str):
        found = judge_from(model)
    elif framework == "langchain":
        from rag_eval_integrations.langchain.under_test import (  # noqa: PLC0415  # if installed
            as_model_under_test as of_langchain,
        )

        found = of_langchain(cast(Any, model), name=name)
    elif framework == "llama_index":
        from rag_eval_integrations.llama_index.under_test import (  # noqa: PLC0415  # if installed
            as_model_under_test as of_llama_index,
        )

        found = of_llama_index(cast(Any, model), name=name)
    elif inspect.iscoroutinefunction(model):
        found = CallableModel(model, name=name or model.__name__)
    if not isinstance(found, Model | App) or isinstance(found, Judge):
        raise ConfigurationError(
            "model",
            model,
            "use openai:MODEL, a LangChain or LlamaIndex model or app, or an async function that "
            "takes messages and returns text",
        )
    return found if name is None or found.name == name else _renamed(found, name)


def models_of(models: Mapping[str, object] | list[object]) -> list[ModelUnderTest]:
    """Make several models under test, named by the keys of a mapping or by their own names.

    Raises:
        ConfigurationError: for no models, an object that is not a model, or two models with the
            same name.
    """
    if isinstance(models, Mapping):
        found = [model_of(model, name=name) for name, model in models.items()]
    else:
        found = [model_of(model) for model in models]
    if not found:
        raise ConfigurationError("models", models, "give at least one model under test")
    names = [one.name for one in found]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError("models", name, "two models have this name; rename one")
    return found


def apps_of(make: Callable[[Any], object], models: Mapping[str, object]) -> dict[str, object]:
    """Make one app per model.

    Args:
        make: builds the app, such as a chain or an engine, around a model.
        models: models by the names that their apps get.

    Returns:
        The apps by name, for `run_tests`.
    """
    return {name: make(model) for name, model in models.items()}


def _renamed(model: ModelUnderTest, name: str) -> ModelUnderTest:
    return _NamedApp(model, name) if isinstance(model, App) else _NamedModel(model, name)


class _NamedModel(WrappedModel):
    def __init__(self, model: Model, name: str) -> None:
        super().__init__(model)
        self.name = name
        self.retries = self._wrapped.retries


class AppBase(ABC):
    """An `App` that declares the optional member `version`."""

    name: str
    version: str | None = None
    """Version of everything else that an answer depends on; only answers recorded with the same
    version are reused."""

    @abstractmethod
    async def answer(self, inputs: Mapping[str, JsonValue], text: str) -> RagCall:
        """Answer a test; see `App.answer`."""


class _NamedApp(AppBase):
    """An app under another name; it keeps its version."""

    def __init__(self, app: App, name: str) -> None:
        self._app, self.name = app, name
        if hasattr(app, "version"):
            self.version = app.version

    async def answer(self, inputs: Mapping[str, JsonValue], text: str) -> RagCall:
        return await self._app.answer(inputs, text)


def app_base(app: App) -> AppBase:
    """Return the app, wrapped if its class does not declare `version`."""
    return app if isinstance(app, AppBase) else _NamedApp(app, app.name)
