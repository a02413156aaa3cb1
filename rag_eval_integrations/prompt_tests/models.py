"""Models under test: what answers messages, and apps that have the prompt inside."""

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

# --- Which framework an object comes from, told without importing any


def framework_of(value: object) -> str | None:
    """Name the framework that an object's class comes from: `langchain`, `llama_index` or None."""
    for kind in type(value).__mro__:
        root = kind.__module__.partition(".")[0]
        if root in ("langchain_core", "llama_index"):
            return root.removesuffix("_core")
    return None


@runtime_checkable
class App(Protocol):
    """A whole app under test: takes a test's inputs, retrieves, prompts and answers by itself."""

    @property
    def name(self) -> str:
        """What it is called in files and reports."""
        ...

    async def answer(self, inputs: Mapping[str, JsonValue], text: str) -> RagCall:
        """Answer a test.

        Args:
            inputs: by name.
            text: the one input's text; of several, a JSON object.

        Returns:
            The call; its documents are the contexts that were retrieved.
        """
        ...


ModelUnderTest = Model | App


def model_of(model: object, *, name: str | None = None) -> ModelUnderTest:
    """Make a model under test.

    Args:
        model: `openai:MODEL`; a `Model`; an `App`; a chat model, chain or retrieval app of
            LangChain; an LLM, query engine or chat engine of LlamaIndex; or an async function of
            messages (`[{"role", "content"}, …]`) that returns text.
        name: what it is called; by default its own name.

    Raises:
        ConfigurationError: none of these.
    """
    found: object = model
    home = framework_of(model)
    if isinstance(model, str):
        found = judge_from(model)
    elif home == "langchain":
        from rag_eval_integrations.langchain.under_test import (  # noqa: PLC0415  # only for its own
            as_model_under_test as of_langchain,
        )

        found = of_langchain(cast(Any, model), name=name)
    elif home == "llama_index":
        from rag_eval_integrations.llama_index.under_test import (  # noqa: PLC0415  # the same
            as_model_under_test as of_llama_index,
        )

        found = of_llama_index(cast(Any, model), name=name)
    elif inspect.iscoroutinefunction(model):
        found = CallableModel(model, name=name or model.__name__)
    if not isinstance(found, Model | App) or isinstance(found, Judge):
        raise ConfigurationError(
            "model",
            model,
            "use openai:MODEL, a model or app of LangChain or LlamaIndex, or an async function of "
            "messages",
        )
    return found if name is None or found.name == name else _renamed(found, name)


def models_of(models: Mapping[str, object] | list[object]) -> list[ModelUnderTest]:
    """Make several; names come from the mapping.

    Raises:
        ConfigurationError: none at all, one that is none, or two of one name.
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
            raise ConfigurationError("models", name, "two models have this name; name them")
    return found


def apps_of(make: Callable[[Any], object], models: Mapping[str, object]) -> dict[str, object]:
    """Make one app for each model: `make(model)` is a chain or an engine.

    Args:
        make: builds the app around a model.
        models: by the name that the app gets.
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
    """An `App` with its optional member."""

    name: str
    version: str | None = None
    """Version of whatever else an answer depends on; recorded answers of another are not reused."""

    @abstractmethod
    async def answer(self, inputs: Mapping[str, JsonValue], text: str) -> RagCall:
        """Answer a test; see `App.answer`."""


class _NamedApp(AppBase):
    """An app of whatever class, by a name; the version that it has is kept."""

    def __init__(self, app: App, name: str) -> None:
        self._app, self.name = app, name
        if hasattr(app, "version"):
            self.version = app.version

    async def answer(self, inputs: Mapping[str, JsonValue], text: str) -> RagCall:
        return await self._app.answer(inputs, text)


def app_base(app: App) -> AppBase:
    """Return an app with its optional member declared."""
    return app if isinstance(app, AppBase) else _NamedApp(app, app.name)
