"""Run: every test on every model, so many times; a failing model stops nobody."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_eval_integrations import _loop
from rag_eval_integrations.errors import ConfigurationError, JudgeError
from rag_eval_integrations.models._single_flight import SingleFlight
from rag_eval_integrations.models.completion import CompletionRequest
from rag_eval_integrations.prompt_tests._asking import Recorded, each
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

logger = logging.getLogger(__name__)

Done = Callable[[Result], None]


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
    done: Done | None = None,
) -> list[Result]:
    """Run tests.

    What a model answered is recorded and not asked again: a second run of the same makes no
    requests, and one that was killed goes on. A repetition (`runs`) is a question of its own. What
    fails is a result with its `error`, not recorded, and asked again by the next run.

    Args:
        prompt: the prompt under test, in any form that `PromptUnderTest.of` takes.
        tests: what to run.
        models: what to run them on, by name or with names of their own; see `models.model_of`.
        runs: how often, from 1.
        max_concurrency: requests under way at once, over all models together.
        journal: where replies are recorded; by default only in memory.
        done: told each result as it comes.

    Returns:
        One result for each test, model and run: model by model, in the tests' order.

    Raises:
        ConfigurationError: no models, two of one name, or numbers out of range.
    """
    put = PromptUnderTest.of(prompt)
    if max_concurrency < 1:
        raise ConfigurationError("max_concurrency", max_concurrency, "use a number from 1")
    found = models_of(dict(models) if isinstance(models, Mapping) else list(models))
    if runs < 1:
        raise ConfigurationError("runs", runs, "use a number from 1")
    record = Journal() if journal is None else journal
    askers: dict[str, _Asker] = {one.name: _asker(one, record, max_concurrency) for one in found}
    # Test by test over all models, so that a slow model does not hold up the others' first tests.
    jobs = [_Job(test, model, run) for run in range(runs) for test in tests for model in found]

    async def work(job: _Job) -> Result:
        return await _result(job, put, askers[job.model.name])

    def tell(_: _Job, result: Result) -> None:
        if done is not None:
            done(result)

    results = await each(jobs, work, max_concurrency=max_concurrency, done=tell)
    order = {model.name: number for number, model in enumerate(found)}
    return sorted(results, key=lambda result: (order[result.model], result.run))


def run_tests_sync(
    prompt: object,
    tests: Sequence[PromptTest],
    models: Mapping[str, object] | Sequence[object],
    **options: Any,
) -> list[Result]:
    """Run tests from code that is not async; see `run_tests`."""
    return _loop.run(run_tests(prompt, tests, models, **options))


async def _result(job: _Job, prompt: PromptUnderTest, ask: _Asker) -> Result:
    began = time.monotonic()
    output, contexts, error = "", (), None
    try:
        values = prompt.values(job.test.inputs, prompt.parameters(job.test.scenario))
        output, contexts = await ask(prompt, values, job)
    except (JudgeError, ConfigurationError) as failure:
        error = f"{type(failure).__name__}: {failure}"
    except Exception as failure:  # noqa: BLE001 -- an app of the user's: a row, not the run's end
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
]  # async, to (output, contexts); mypy knows no async callable types


def _asker(model: ModelUnderTest, journal: Journal, places: int) -> _Asker:
    if isinstance(model, App):
        return _ask_app(app_base(model), journal)
    return _ask_model(Recorded(model, journal, max_concurrency=places))


def _ask_model(recorded: Recorded) -> _Asker:

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
    return document.text
