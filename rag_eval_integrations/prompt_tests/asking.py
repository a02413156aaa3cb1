"""How models are asked: each request once, never too many at a time, every reply recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.errors import (
    ConfigurationError,
    InputError,
    JudgeError,
    RagEvalError,
)
from rag_eval_integrations.judges import Completer, ThrottledJudge
from rag_eval_integrations.judges.completion import Completion, CompletionRequest
from rag_eval_integrations.judges.single_flight import SingleFlight
from rag_eval_integrations.judges.wrapping import WrappedCompleter
from rag_eval_integrations.prompt_tests.journal import Journal
from rag_eval_integrations.prompt_tests.records import digest
from rag_eval_integrations.records import Usage, from_object

J = TypeVar("J")
R = TypeVar("R")


class Recorded(WrappedCompleter):
    """A model whose replies are recorded: what it answered once it is not asked again.

    Unlike `CachingJudge` it keeps every reply, also an empty or a truncated one: of a model under
    test these are the results. Independent samples differ by the request's `seed`.
    """

    retries = True

    def __init__(
        self, completer: Completer, journal: Journal, *, max_concurrency: int = 32
    ) -> None:
        if not getattr(completer, "retries", False):
            completer = ThrottledJudge(completer, max_concurrency=max_concurrency)
        super().__init__(completer)
        self.journal = journal
        self._flights = SingleFlight[Completion](0)
        self.asked = 0
        """Requests that were made, retries not counted."""
        self.usage = Usage()
        """What they cost."""
        self.replied: Callable[[], None] | None = None
        """Told each reply that was asked for."""

    async def complete(self, request: CompletionRequest) -> Completion:
        """Answer from the record, or ask.

        Raises:
            JudgeError: as the model raised it, or of what else a model of the user's own raised;
                nothing is recorded then.
        """
        key = self._key(request)

        async def make() -> Completion:
            known = self.journal.get(key)
            if known is not None:
                try:
                    return from_object(Completion, known)
                except InputError:
                    pass  # written by another version: asked again, as if it were not there
            self.asked += 1
            try:
                with suppress_capture():
                    completion = await self._completer.complete(request)
            except RagEvalError:
                raise
            except Exception as error:
                # An async function of the user's raises what its client does: one judge that is
                # down would end the run, and lose what the others said.
                raise JudgeError(f"{type(error).__name__}: {error}") from error
            self.usage += completion.usage
            self.journal.put(key, self.name, completion.model_dump(mode="json"))
            if self.replied is not None:
                self.replied()
            return completion

        return await self._flights.get(key, make)

    def forget(self, request: CompletionRequest) -> None:
        """Have a request asked anew: its reply is of no use, and another one may be."""
        self.journal.put(self._key(request), self.name, None)

    def _key(self, request: CompletionRequest) -> str:
        content = {
            "who": [self.name, self.model, self.version, (self.base_url or "").partition("?")[0]],
            "request": request.model_dump(exclude_defaults=True),
        }
        return digest(json.dumps(content, sort_keys=True))


async def each(
    jobs: Iterable[J],
    work: Callable[[J], Awaitable[R]],
    *,
    max_concurrency: int,
    done: Callable[[J, R], None] | None = None,
) -> list[R]:
    """Do jobs at once, at most so many, and return the results in the jobs' order.

    As soon as one ends the next begins, so that all places are taken until fewer jobs than places
    are left. The first exception stops the rest and is raised.

    Args:
        jobs: read as places become free.
        work: does one job.
        max_concurrency: most jobs under way, from 1.
        done: told each result as it comes.

    Raises:
        ConfigurationError: for a concurrency below 1.
    """
    if max_concurrency < 1:
        raise ConfigurationError("max_concurrency", max_concurrency, "use a number from 1")
    numbered = enumerate(jobs)
    results: dict[int, R] = {}

    async def worker() -> None:
        for number, job in numbered:
            result = await work(job)
            results[number] = result
            if done is not None:
                done(job, result)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(max_concurrency):
                group.create_task(worker())
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [results[number] for number in sorted(results)]
