"""`run_tests`: run every test on every model; a failing model does not stop the others."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import JsonValue

from rag_eval_integrations import _loop
from rag_eval_integrations._visible import logger_of
from rag_eval_integrations.errors import ConfigurationError, JudgeError
from rag_eval_integrations.models._single_flight import SingleFlight
from rag_eval_integrations.models.completion import CompletionRequest
from rag_eval_integrations.prompt_tests._foresight import Forecast, Foreseen
from rag_eval_integrations.prompt_tests._requests import RecordedModel, run_jobs
from rag_eval_integrations.prompt_tests._schema import output_schema, with_schema
from rag_eval_integrations.prompt_tests._settings import (
    Settings,
    not_taken,
    settings_of,
    with_images,
)
from rag_eval_integrations.prompt_tests.journal import Journal
from rag_eval_integrations.prompt_tests.models import (
    App,
    AppBase,
    ModelUnderTest,
    app_base,
    models_of,
)
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.records import PromptTest, Result, digest
from rag_eval_integrations.records import Document, RagCall, Usage

logger = logger_of(__name__)


@dataclass(frozen=True)
class _Job:
    test: PromptTest
    model: ModelUnderTest
    run: int


async def run_tests(
    prompt: object,
    tests: Sequence[PromptTest],
    models: Mapping[str, object] | Sequence[object],
    *,
    runs: int = 1,
    max_concurrency: int = 8,
    parameters: Mapping[str, JsonValue] | None = None,
    journal: Journal | None = None,
    done: Callable[[Result], None] | None = None,
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
        tell: receives what models leave out, one sentence each; by default it is logged.

    Returns:
        One result per test, model and run: model by model, in the tests' order.

    Raises:
        ConfigurationError: for no models, two models with the same name, a number out of range, or
            a setting that cannot be sent.
    """
    put = PromptUnderTest.of(prompt)
    if max_concurrency < 1:
        raise ConfigurationError("max_concurrency", max_concurrency, "use a number from 1")
    found = models_of(dict(models) if isinstance(models, Mapping) else list(models))
    record = Journal() if journal is None else journal
    settings = settings_of(put, parameters)
    schema = output_schema(put)
    askers = {one.name: _asker(one, settings, record, max_concurrency) for one in found}
    jobs = _jobs(tests, found, runs)
    unchecked = () if schema is None else schema.not_checked
    if unchecked:
        tell(f"{put.name}: of its outputs' schema, {', '.join(unchecked)} are not checked")
    for note in (*settings.notes, *(note for one in askers.values() for note in one.notes)):
        tell(note)

    async def work(job: _Job) -> Result:
        return with_schema(await _result(job, put, askers[job.model.name]), schema)

    def report(_: _Job, result: Result) -> None:
        if done is not None:
            done(result)

    results = await run_jobs(jobs, work, max_concurrency=max_concurrency, done=report)
    for name, asker in askers.items():
        for warning, count in asker.warnings.items():
            tell(f"{name}: {warning} ({count} outputs)")
    order = {model.name: number for number, model in enumerate(found)}
    return sorted(results, key=lambda result: (order[result.model], result.run))


async def foresee_tests(
    prompt: object,
    tests: Sequence[PromptTest],
    models: Mapping[str, object] | Sequence[object],
    *,
    runs: int = 1,
    parameters: Mapping[str, JsonValue] | None = None,
    journal: Journal | None = None,
) -> list[Forecast]:
    """Say what `run_tests` is going to ask each model, exactly; nothing is sent.

    Raises:
        ConfigurationError: as for `run_tests`.
    """
    put = PromptUnderTest.of(prompt)
    found = models_of(dict(models) if isinstance(models, Mapping) else list(models))
    record = Journal() if journal is None else journal
    settings = settings_of(put, parameters)
    askers = {one.name: _asker(one, settings, record, 1, foresee=True) for one in found}
    for job in _jobs(tests, found, runs):
        await _result(job, put, askers[job.model.name])
    return [asker.forecast() for asker in askers.values()]


def _jobs(tests: Sequence[PromptTest], models: Sequence[ModelUnderTest], runs: int) -> list[_Job]:
    if runs < 1:
        raise ConfigurationError("runs", runs, "use a number from 1")
    # Order by test, not by model, so that a slow model does not delay the other models.
    return [_Job(test, model, run) for run in range(runs) for test in tests for model in models]


def run_tests_sync(
    prompt: object,
    tests: Sequence[PromptTest],
    models: Mapping[str, object] | Sequence[object],
    **options: Any,
) -> list[Result]:
    """Run tests from synchronous code; see `run_tests`."""
    return _loop.run(run_tests(prompt, tests, models, **options))


async def _result(job: _Job, prompt: PromptUnderTest, asker: Asker) -> Result:
    began = time.monotonic()
    output, error = "", None
    contexts: tuple[str, ...] = ()
    try:
        values = prompt.values(job.test.inputs, prompt.parameters(job.test.scenario))
        output, contexts = await asker.ask(prompt, values, job)
    except (JudgeError, ConfigurationError) as failure:
        error = f"{type(failure).__name__}: {failure}"
    except Exception as failure:  # noqa: BLE001 -- a user's app failed: the run goes on
        error = f"{type(failure).__name__}: {failure}"
    return Result(
        test=job.test,
        model=job.model.name,
        run=job.run,
        prompt_id=prompt.id,
        output=output,
        contexts=contexts,
        parameters=asker.parameters(job.run),
        error=error,
        latency_s=round(time.monotonic() - began, 3),
    )


class Asker(ABC):
    """Asks one model under test, and counts the warnings of its answers."""

    notes: tuple[str, ...] = ()
    """Sentences about what the model leaves out."""

    def __init__(self) -> None:
        self.warnings: Counter[str] = Counter()

    def parameters(self, run: int) -> dict[str, JsonValue]:
        """Return the settings that are sent for a repetition."""
        return {}

    @abstractmethod
    def forecast(self) -> Forecast:
        """Return what was counted instead of asked."""

    @abstractmethod
    async def ask(
        self, prompt: PromptUnderTest, values: Mapping[str, Any], job: _Job
    ) -> tuple[str, tuple[str, ...]]:
        """Return the output for a test, and the documents that were retrieved."""


def _asker(
    model: ModelUnderTest,
    settings: Settings,
    journal: Journal,
    max_concurrency: int,
    *,
    foresee: bool = False,
) -> Asker:
    if isinstance(model, App):
        return _AskApp(app_base(model), settings, journal, foresee=foresee)
    recorded = RecordedModel(model, journal, max_concurrency=max_concurrency)
    return _AskModel(Foreseen(recorded) if foresee else recorded, settings)


class _AskModel(Asker):
    def __init__(self, recorded: RecordedModel, settings: Settings) -> None:
        super().__init__()
        self._recorded, self._settings = recorded, settings
        without = not_taken(recorded, settings)
        self._images = bool(settings.images) and "images" not in without
        # What is not sent is no part of the key, so that answers are used whatever the file says.
        self._without = frozenset(without)
        if without:
            who = f"{recorded.name}: does not pass on {', '.join(without)}"
            self.notes = (f"{who}; its own settings are tested",)

    def forecast(self) -> Forecast:
        assert isinstance(self._recorded, Foreseen)
        return self._recorded.forecast()

    def parameters(self, run: int) -> dict[str, JsonValue]:
        of_run = self._settings.of_run(run)
        return {name: value for name, value in of_run.items() if name not in self._without}

    async def ask(
        self, prompt: PromptUnderTest, values: Mapping[str, Any], job: _Job
    ) -> tuple[str, tuple[str, ...]]:
        messages = prompt.render(values)
        if self._images:
            messages = with_images(messages, self._settings, values)
        parameters = self.parameters(job.run)
        seed = parameters.pop("seed", job.run or None)
        request = CompletionRequest(
            messages=messages,
            seed=cast(int | None, seed),
            parameters=parameters,
            prompt_version="prompt-under-test",
        )
        completion = await self._recorded.complete(request)
        if parameters or self._images or self._settings.parameters:
            self.warnings.update(completion.warnings)
        if not completion.text and completion.choices[0].refusal:
            return completion.choices[0].refusal, ()
        return completion.text, ()


class _AskApp(Asker):
    def __init__(
        self, app: AppBase, settings: Settings, journal: Journal, *, foresee: bool
    ) -> None:
        super().__init__()
        self._app, self._journal = app, journal
        self._foreseen: set[str] | None = set() if foresee else None
        self._flights = SingleFlight[tuple[str, tuple[str, ...]]](0)
        if settings.parameters:
            names = ", ".join(settings.parameters)
            self.notes = (f"{app.name}: is an app, which does not get {names}",)

    def forecast(self) -> Forecast:
        return Forecast(self._app.name, len(self._foreseen or ()), None)

    async def ask(
        self, prompt: PromptUnderTest, values: Mapping[str, Any], job: _Job
    ) -> tuple[str, tuple[str, ...]]:
        app, journal = self._app, self._journal
        key = digest(repr([app.name, app.version, prompt.id, sorted(values.items()), job.run]))

        async def make() -> tuple[str, tuple[str, ...]]:
            known = journal.get(key)
            if isinstance(known, dict):
                return known["output"], tuple(known["contexts"])
            if self._foreseen is not None:
                self._foreseen.add(key)
                return "", ()
            call: RagCall = await app.answer(values, job.test.testinput)
            output, contexts = call.response or "", tuple(map(_context, call.documents))
            journal.spend(app.name, Usage(requests=1))
            journal.put(key, app.name, {"output": output, "contexts": list(contexts)})
            return output, contexts

        return await self._flights.get(key, make)


def _context(document: Document) -> str:
    return document.shown
