"""`run_tests`: run every test on every model; a failing model does not stop the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_eval_integrations import _loop
from rag_eval_integrations._visible import logger_of
from rag_eval_integrations.errors import ConfigurationError, JudgeError
from rag_eval_integrations.models._single_flight import SingleFlight
from rag_eval_integrations.models.completion import CompletionRequest
from rag_eval_integrations.prompt_tests._requests import RecordedModel, run_jobs
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
from rag_eval_integrations.records import Document, RagCall

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
    journal: Journal | None = None,
    done: Callable[[Result], None] | None = None,
) -> list[Result]:
    """Run tests on models under test.

    Replies are recorded: running the same again sends no requests, and a run that was killed
    continues. Each repetition (`runs`) sends its own request. A failure is a result with its
    `error`; it is not recorded, and the next run asks again.

    Args:
        prompt: the prompt under test, in any form that `PromptUnderTest.of` accepts.
        tests: the tests.
        models: the models under test, in a mapping by name or with their own names; see `model_of`.
        runs: repetitions per test, from 1.
        max_concurrency: maximum number of concurrent requests over all models, from 1.
        journal: where replies are recorded; by default only in memory.
        done: called with each result as it arrives.

    Returns:
        One result per test, model and run: model by model, in the tests' order.

    Raises:
        ConfigurationError: for no models, two models with the same name, or a number out of range.
    """
    put = PromptUnderTest.of(prompt)
    if max_concurrency < 1:
        raise ConfigurationError("max_concurrency", max_concurrency, "use a number from 1")
    found = models_of(dict(models) if isinstance(models, Mapping) else list(models))
    if runs < 1:
        raise ConfigurationError("runs", runs, "use a number from 1")
    record = Journal() if journal is None else journal
    askers: dict[str, _Asker] = {one.name: _asker(one, record, max_concurrency) for one in found}
    # Order by test, not by model, so that a slow model does not delay the other models.
    jobs = [_Job(test, model, run) for run in range(runs) for test in tests for model in found]

    async def work(job: _Job) -> Result:
        return await _result(job, put, askers[job.model.name])

    def report(_: _Job, result: Result) -> None:
        if done is not None:
            done(result)

    results = await run_jobs(jobs, work, max_concurrency=max_concurrency, done=report)
    order = {model.name: number for number, model in enumerate(found)}
    return sorted(results, key=lambda result: (order[result.model], result.run))


def run_tests_sync(
    prompt: object,
    tests: Sequence[PromptTest],
    models: Mapping[str, object] | Sequence[object],
    **options: Any,
) -> list[Result]:
    """Run tests from synchronous code; see `run_tests`."""
    return _loop.run(run_tests(prompt, tests, models, **options))


async def _result(job: _Job, prompt: PromptUnderTest, ask: _Asker) -> Result:
    began = time.monotonic()
    output, contexts, error = "", (), None
    try:
        values = prompt.values(job.test.inputs, prompt.parameters(job.test.scenario))
        output, contexts = await ask(prompt, values, job)
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
        error=error,
        latency_s=round(time.monotonic() - began, 3),
    )


_Asker = Callable[
    [PromptUnderTest, Mapping[str, Any], _Job], Any
]  # returns an awaitable of (output, contexts)


def _asker(model: ModelUnderTest, journal: Journal, max_concurrency: int) -> _Asker:
    if isinstance(model, App):
        return _ask_app(app_base(model), journal)
    return _ask_model(RecordedModel(model, journal, max_concurrency=max_concurrency))


def _ask_model(recorded: RecordedModel) -> _Asker:

    async def ask(
        prompt: PromptUnderTest, values: Mapping[str, Any], job: _Job
    ) -> tuple[str, tuple[str, ...]]:
        request = CompletionRequest(
            messages=prompt.render(values), seed=job.run or None, prompt_version="prompt-under-test"
        )
        completion = await recorded.complete(request)
        if not completion.text and completion.choices[0].refusal:
            return completion.choices[0].refusal, ()
        return completion.text, ()

    return ask


def _ask_app(app: AppBase, journal: Journal) -> _Asker:
    flights = SingleFlight[tuple[str, tuple[str, ...]]](0)

    async def ask(
        prompt: PromptUnderTest, values: Mapping[str, Any], job: _Job
    ) -> tuple[str, tuple[str, ...]]:
        key = digest(repr([app.name, app.version, prompt.id, sorted(values.items()), job.run]))

        async def make() -> tuple[str, tuple[str, ...]]:
            known = journal.get(key)
            if isinstance(known, dict):
                return known["output"], tuple(known["contexts"])
            call: RagCall = await app.answer(values, job.test.testinput)
            output, contexts = call.response or "", tuple(map(_context, call.documents))
            journal.put(key, app.name, {"output": output, "contexts": list(contexts)})
            return output, contexts

        return await flights.get(key, make)

    return ask


def _context(document: Document) -> str:
    return document.shown
