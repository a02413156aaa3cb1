"""`run_tests`: run every test on every model or app; one that fails does not stop the others."""

from __future__ import annotations

import inspect
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast, runtime_checkable

from pydantic import JsonValue

from rag_eval_integrations import _loop
from rag_eval_integrations._visible import logger_of
from rag_eval_integrations.errors import ConfigurationError, whole_number
from rag_eval_integrations.judges import Judge, judge_from
from rag_eval_integrations.models import CallableModel, Model
from rag_eval_integrations.models._single_flight import SingleFlight
from rag_eval_integrations.models.completion import CompletionRequest, WrappedModel
from rag_eval_integrations.prompt_tests._requests import Journal, RecordedModel, run_jobs
from rag_eval_integrations.prompt_tests._settings import (
    Settings,
    output_schema,
    settings_not_sent,
    settings_of,
    with_images,
    with_schema,
)
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest, adapter_of
from rag_eval_integrations.prompt_tests.records import PromptTest, Result, digest
from rag_eval_integrations.records import RagCall, Usage
from rag_eval_integrations.records.call import framework_of

logger = logger_of(__name__)


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
    """Return the model under test that a name, an object or a function stands for.

    Args:
        model: `openai:MODEL`; a `Model`; an `App`; a LangChain chat model, chain or retrieval app;
            a LlamaIndex LLM, query engine or chat engine; or an async function that takes messages
            (`[{"role", "content"}, …]`) and returns text.
        name: name in files and reports; by default the model's own.

    Raises:
        ConfigurationError: for anything else, a judge included.
    """
    under_test: object = model
    framework = framework_of(model)
    if isinstance(model, str):
        under_test = judge_from(model)
    elif framework is not None:
        under_test = adapter_of(framework).as_model_under_test(model, name=name)
    elif inspect.iscoroutinefunction(model):
        under_test = CallableModel(model, name=name or model.__name__)
    if not isinstance(under_test, Model | App) or isinstance(under_test, Judge):
        raise ConfigurationError(
            "model",
            model,
            "use openai:MODEL, a LangChain or LlamaIndex model or app, or an async function that "
            "takes messages and returns text",
        )
    if name is None or under_test.name == name:
        return under_test
    return _renamed(under_test, name)


def model_from(model: object, field: str) -> Model:
    """Make a model from its name, or from an object that answers messages.

    Args:
        model: `openai:MODEL`, a `Model`, or a framework's model.
        field: the argument that it was given to, for error messages.

    Raises:
        ConfigurationError: for an object that does not answer messages.
    """
    model_to_run = judge_from(model) if isinstance(model, str | Model) else model_of(model)
    if not isinstance(model_to_run, Model):
        raise ConfigurationError(field, model, "does not answer messages; use openai:MODEL")
    return model_to_run


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
    """Return a model or app under another name."""
    return _NamedApp(model, name) if isinstance(model, App) else _NamedModel(model, name)


class _NamedModel(WrappedModel):
    """A model under another name."""

    def __init__(self, model: Model, name: str) -> None:
        super().__init__(model)
        self.name = name
        self.retries = self._wrapped.retries


class _NamedApp:
    """An app under another name, with the version that its class may declare.

    The version stands for everything else that an answer depends on; only answers recorded with
    the same version are reused.
    """

    def __init__(self, app: App, name: str) -> None:
        self._app, self.name = app, name
        self.version: str | None = app.version if hasattr(app, "version") else None

    async def answer(self, inputs: Mapping[str, JsonValue], text: str) -> RagCall:
        return await self._app.answer(inputs, text)


# --- The run


async def run_tests(
    prompt: object,
    tests: Sequence[PromptTest],
    models: Mapping[str, object] | Sequence[object],
    *,
    runs: int = 1,
    max_concurrency: int = 8,
    parameters: Mapping[str, JsonValue] | None = None,
    journal: Journal | None = None,
    done: Callable[[Result], object] | None = None,
    tell: Callable[[str], None] = logger.warning,
) -> list[Result]:
    """Run tests on models under test.

    Replies are recorded: running the same again sends no requests, and a run that was killed
    continues. Each repetition (`runs`) sends its own request. A failure is a result with its
    `error`; it is not recorded, and the next run asks again.

    Models get the settings of the prompt's file: its parameters, response format, tools and images.
    What a model leaves out is told before any request, and what its endpoint refuses at the end. An
    output is also checked by the prompt's schema of outputs, which sends no request.

    Args:
        prompt: the prompt under test, in any form that `PromptUnderTest.of` accepts.
        tests: the tests.
        models: the models under test, in a mapping by name or with their own names; see `model_of`.
        runs: repetitions per test, from 1.
        max_concurrency: maximum number of concurrent requests over all models, from 1.
        parameters: settings of the requests, such as `temperature` or `top_p`, which replace the
            prompt's; None as a value removes one.
        journal: where replies are recorded; by default only in memory.
        done: called with each result as it arrives.
        tell: receives what models leave out and what is not checked, one sentence each; by default
            it is logged.

    Returns:
        One result per test, model and run: model by model, then run by run, in the tests' order.

    Raises:
        ConfigurationError: for no models, two models with the same name, a number out of range, or
            a setting that cannot be sent.
    """
    under_test = PromptUnderTest.of(prompt)
    whole_number("max_concurrency", max_concurrency)
    whole_number("runs", runs)
    named = _named_models(models)
    record = Journal() if journal is None else journal
    settings = settings_of(under_test, parameters)
    schema = output_schema(under_test)
    askers: dict[str, _AskModel | _AskApp] = {}
    for model in named:
        if isinstance(model, App):
            askers[model.name] = _AskApp(model, settings, record)
        else:
            recorded = RecordedModel(model, record, max_concurrency=max_concurrency)
            askers[model.name] = _AskModel(recorded, settings)
    # Order by test, not by model, so that a slow model does not delay the other models.
    jobs = [(test, model, run) for run in range(runs) for test in tests for model in named]
    unchecked = () if schema is None else schema.not_checked
    if unchecked:
        tell(f"{under_test.name}: of its outputs' schema, {', '.join(unchecked)} are not checked")
    for note in (*settings.notes, *(note for asker in askers.values() for note in asker.notes)):
        tell(note)

    async def work(job: tuple[PromptTest, ModelUnderTest, int]) -> Result:
        """Run a job, and check its output by the schema."""
        test, model, run = job
        return with_schema(await _run_test(under_test, test, askers[model.name], run), schema)

    results = await run_jobs(jobs, work, max_concurrency=max_concurrency, done=done)
    for name, asker in askers.items():
        for warning, count in asker.warnings.items():
            tell(f"{name}: {warning} ({count} outputs)")
    order = list(askers)
    return sorted(results, key=lambda result: (order.index(result.model), result.run))


def _named_models(models: Mapping[str, object] | Sequence[object]) -> list[ModelUnderTest]:
    """Return models under test, named by the keys of a mapping or by their own names.

    Raises:
        ConfigurationError: for no models, two with the same name, or something that is not a model.
    """
    pairs = models.items() if isinstance(models, Mapping) else [(None, model) for model in models]
    named = [model_of(model, name=name) for name, model in pairs]
    if not named:
        raise ConfigurationError("models", models, "give at least one model under test")
    for name, count in Counter(model.name for model in named).items():
        if count > 1:
            raise ConfigurationError("models", name, "two models have this name; rename one")
    return named


def run_tests_sync(
    prompt: object,
    tests: Sequence[PromptTest],
    models: Mapping[str, object] | Sequence[object],
    **options: Any,
) -> list[Result]:
    """Run tests from synchronous code; see `run_tests`."""
    return _loop.run(run_tests(prompt, tests, models, **options))


async def _run_test(
    prompt: PromptUnderTest, test: PromptTest, asker: _AskModel | _AskApp, run: int
) -> Result:
    """Run a test on a model; a failure becomes the result's `error`.

    After a failure, the output is empty. The time until then is part of the result.
    """
    began = time.monotonic()
    output, error = "", None
    contexts: tuple[str, ...] = ()
    try:
        values = prompt.values(test.inputs, prompt.parameters(test.scenario))
        output, contexts = await asker.ask(prompt, values, test, run)
    except Exception as failure:  # noqa: BLE001 -- a user's app failed: the run goes on
        error = f"{type(failure).__name__}: {failure}"
    return Result(
        test=test,
        model=asker.name,
        run=run,
        prompt_id=prompt.id,
        output=output,
        error=error,
        contexts=contexts,
        parameters=asker.parameters(run),
        latency_s=round(time.monotonic() - began, 3),
    )


class _AskModel:
    """A model under test with the prompt's settings, and the warnings of its answers."""

    def __init__(self, model: RecordedModel, settings: Settings) -> None:
        self.name, self.warnings = model.name, Counter[str]()
        self._model, self._settings = model, settings
        without = settings_not_sent(model, settings)
        self._images = bool(settings.images) and "images" not in without
        # What is not sent is not part of the key, so that answers are used whatever the file says.
        self._without = frozenset(without)
        who = f"{model.name}: does not pass on {', '.join(without)}"
        self.notes = (f"{who}; its own settings are tested",) if without else ()

    def parameters(self, run: int) -> dict[str, JsonValue]:
        """Return the settings that are sent for a repetition; not those the model leaves out."""
        of_run = self._settings.of_run(run)
        return {name: value for name, value in of_run.items() if name not in self._without}

    async def ask(
        self, prompt: PromptUnderTest, values: Mapping[str, Any], test: PromptTest, run: int
    ) -> tuple[str, tuple[str, ...]]:
        """Return the output for a test, and no documents; a recorded reply is used again.

        Without a text, the output is the model's refusal, or empty. Each repetition after the first
        has its own seed. Warnings of the answer are counted if the prompt has settings. Errors of
        rendering and of the model are raised.
        """
        messages = prompt.render(values)
        if self._images:
            messages = with_images(messages, self._settings, values)
        parameters = self.parameters(run)
        seed = cast(int | None, parameters.pop("seed", run or None))
        completion = await self._model.complete(
            CompletionRequest(
                messages=messages,
                seed=seed,
                parameters=parameters,
                prompt_version="prompt-under-test",
            )
        )
        if parameters or self._images or self._settings.parameters:
            self.warnings.update(completion.warnings)
        return completion.text or completion.choices[0].refusal or "", ()


class _AskApp:
    """An app under test, whose answers are recorded with the documents that it retrieved."""

    def __init__(self, app: App, settings: Settings, journal: Journal) -> None:
        self.name, self.warnings = app.name, Counter[str]()
        self._app, self._journal = app, journal
        self._flights = SingleFlight[tuple[str, tuple[str, ...]]](0)
        names = ", ".join(settings.parameters)
        self.notes = (f"{app.name}: is an app, which does not get {names}",) if names else ()

    def parameters(self, run: int) -> dict[str, JsonValue]:
        """Return nothing: an app has its own settings."""
        return {}

    async def ask(
        self, prompt: PromptUnderTest, values: Mapping[str, Any], test: PromptTest, run: int
    ) -> tuple[str, tuple[str, ...]]:
        """Return the app's answer to a test, and the documents that were retrieved.

        Recorded answers of the same app, version, prompt, values and repetition are used again; a
        new one is recorded. What the app raises is raised and not recorded.
        """
        app, journal = self._app, self._journal
        # The version, if its class has one, stands for everything else that an answer depends on.
        version = app.version if hasattr(app, "version") else None
        key = digest(repr([self.name, version, prompt.id, sorted(values.items()), run]))

        async def recorded_answer() -> tuple[str, tuple[str, ...]]:
            """Return the journal's answer, or ask the app and record the answer and its usage."""
            known = journal.get(key)
            if isinstance(known, dict):
                return known["output"], tuple(known["contexts"])
            call: RagCall = await app.answer(values, test.testinput)
            contexts = tuple(document.shown for document in call.documents)
            answer = {"output": call.response or "", "contexts": list(contexts)}
            journal.spend(self.name, Usage(requests=1))
            journal.record(key, self.name, answer)
            return call.response or "", contexts

        return await self._flights.get(key, recorded_answer)
