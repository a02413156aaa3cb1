"""`evaluate_calls`: evaluates many calls in order, with bounded concurrency and memory."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, Protocol, TypeVar

from rag_eval_integrations import _loop
from rag_eval_integrations._scoring import failure_of
from rag_eval_integrations.dataset._input import Line
from rag_eval_integrations.dataset._processes import Processes
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.evaluations import Evaluations
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.records import Evaluation, RagCall, from_line

_AHEAD = 64
"""Number of finished calls that may wait for an earlier slow one, per call in progress. At 500 ms
per call, a call that hangs for 30 s holds back 60 others."""

MAX_CONCURRENCY = 32
"""Calls in progress at once, by default: as many as `ThrottledModel` has requests in flight."""
_READY = 4
"""One call in so many is begun ahead where requests wait for their turn themselves: with its prompt
ready, the next request is sent as soon as another one is answered."""


T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Evaluates(Protocol[T_contra]):
    """Evaluates one item after the other, such as a `RagEvaluator` its calls."""

    async def evaluate(self, item: T_contra, /) -> Evaluation:
        """Evaluate one item."""
        ...


class EvaluationStream(Generic[T]):
    """The evaluations of many calls; iterate with `async for`, or with `for` in synchronous code.

    Made by `evaluate_calls`. Each iteration starts from the beginning, and leaving one early
    cancels the calls in progress.
    """

    def __init__(
        self,
        calls: Iterable[T],
        evaluator: Evaluates[T],
        *,
        max_concurrency: int = MAX_CONCURRENCY,
        ordered: bool = True,
        ahead: int = 0,
    ) -> None:
        if type(max_concurrency) is not int or max_concurrency < 1:
            raise ConfigurationError(
                "max_concurrency", max_concurrency, "use a whole number from 1"
            )
        self._calls = calls
        self._evaluator = evaluator
        self._max_concurrency = max_concurrency + ahead
        self._ordered = ordered

    async def __aiter__(self) -> AsyncIterator[Evaluation]:
        async for _, evaluation in self.numbered():
            yield evaluation

    def __iter__(self) -> Iterator[Evaluation]:
        for _, evaluation in self.numbered_sync():
            yield evaluation

    async def collect(self) -> Evaluations:
        """Evaluate all calls and hold the evaluations in memory; a loop over the stream does not.

        Returns:
            The evaluations, in the order of the stream.
        """
        return Evaluations([evaluation async for evaluation in self])

    def collect_sync(self) -> Evaluations:
        """Do the same as `collect`, for synchronous code."""
        return Evaluations(self)

    async def numbered(self) -> AsyncIterator[tuple[int, Evaluation]]:
        """Yield (index of the call, from 0, and its evaluation), in the order of the stream."""
        work = _Workers(enumerate(self._calls), self._evaluator, self._max_concurrency)
        waiting: dict[int, Evaluation] = {}
        position = 0
        try:
            work.start()
            async for index, evaluation in work.results():
                if not self._ordered:
                    work.room.release()
                    yield index, evaluation
                    continue
                waiting[index] = evaluation
                while position in waiting:
                    work.room.release()
                    yield position, waiting.pop(position)
                    position += 1
        finally:
            await work.stop()

    def numbered_sync(self) -> Iterator[tuple[int, Evaluation]]:
        """Yield the same as `numbered`, for synchronous code."""
        results = self.numbered()

        async def following() -> tuple[int, Evaluation] | None:
            return await anext(results, None)

        async def close() -> None:
            await results.aclose()  # type: ignore[attr-defined]  # an async generator

        try:
            while (item := _loop.run(following())) is not None:
                yield item
        finally:
            _loop.run(close())


@dataclass
class _Workers(Generic[T]):
    """The worker tasks of one iteration."""

    calls: Iterator[tuple[int, T]]
    evaluator: Evaluates[T]
    concurrency: int
    done: asyncio.Queue[tuple[int, Evaluation] | None] = field(default_factory=asyncio.Queue)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.room = asyncio.Semaphore(_AHEAD * self.concurrency)
        self.working = 0

    def start(self) -> None:
        """Start a worker, unless there are as many as may be.

        Each worker that finds a call starts the next, so there are never more than calls.
        """
        if len(self.tasks) < self.concurrency:
            self.working += 1
            self.tasks.append(asyncio.create_task(self._worker()))

    async def _worker(self) -> None:
        fresh = True
        try:
            while True:
                await self.room.acquire()
                numbered = next(self.calls, None)
                if numbered is None:
                    return
                if fresh:
                    fresh = False
                    self.start()
                index, call = numbered
                self.done.put_nowait((index, await self.evaluator.evaluate(call)))
                # A judge that never waits would otherwise keep the consumer from running.
                await asyncio.sleep(0)
        finally:
            self.done.put_nowait(None)

    async def results(self) -> AsyncIterator[tuple[int, Evaluation]]:
        while self.working:
            item = await self.done.get()
            if item is None:
                self.working -= 1
            else:
                yield item
        for task in self.tasks:
            task.result()  # raises what the iterable of calls raised

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


class _InProcesses(EvaluationStream[RagCall | Line[RagCall]]):
    """The evaluations that several processes make, always in order."""

    def __init__(
        self,
        calls: Iterable[RagCall | Line[RagCall]],
        evaluator: RagEvaluator,
        workers: int,
        max_concurrency: int,
    ) -> None:
        super().__init__(calls, _OfLines(evaluator), max_concurrency=max_concurrency)
        self._processes = partial(Processes, evaluator, workers)
        self._processes()  # raises what is wrong with the arguments

    async def numbered(self) -> AsyncIterator[tuple[int, Evaluation]]:
        broken: dict[int, Line[RagCall]] = {}
        processes = self._processes()
        position = 0
        rows = processes.rows(self._of(broken))
        try:
            async for batch in rows:
                for line in batch.lines:
                    while position in broken:
                        yield position, await self._evaluator.evaluate(broken.pop(position))
                        position += 1
                    yield position, from_line(Evaluation, line)
                    position += 1
            for at in sorted(broken):
                yield at, await self._evaluator.evaluate(broken[at])
        finally:
            await rows.aclose()  # type: ignore[attr-defined]  # an async generator
            processes.close()

    def _of(self, broken: dict[int, Line[RagCall]]) -> Iterator[RagCall]:
        """Yield the calls, and put the lines that hold none aside, by their number."""
        for number, item in enumerate(self._calls):
            if not isinstance(item, Line):
                yield item
            elif item.value is not None:
                yield item.value
            else:
                broken[number] = item


def evaluate_calls(
    calls: Iterable[RagCall | Line[RagCall]],
    evaluator: RagEvaluator,
    *,
    max_concurrency: int = MAX_CONCURRENCY,
    ordered: bool = True,
    workers: int = 1,
) -> EvaluationStream[RagCall | Line[RagCall]]:
    """Evaluate many calls, with one evaluation per call and bounded concurrency and memory.

    Iterate over the result with `async for`, or with `for` in synchronous code; `await
    stream.collect()` (`stream.collect_sync()`) gives all of them as `Evaluations`. Calls are read
    from the iterable when they are needed, so that a loop over a million rows takes constant
    memory. A
    call that cannot be evaluated gives an evaluation with an error; only an exception of the
    iterable stops the run.

    Args:
        calls: any iterable of calls, or what `read_calls` gives; it is read on the event loop's
            thread. A row that is not a call gives an evaluation with the error `InputError`.
        evaluator: the evaluator to use.
        max_concurrency: number of calls in progress at once, from 1. Where the evaluator's models
            allow no more requests at once themselves (`ThrottledModel`), a few more calls wait with
            their prompts ready.
        ordered: True for results in the order of the calls, False for the order of completion.
        workers: number of processes, from 1; more than one for a judge that computes. They are
            started after 256 calls or a second, import the main module (so a script runs its code
            under `if __name__ == "__main__":`), evaluate one call at a time each, and give results
            in the order of the calls. The evaluator has to be one that can be pickled.

    Raises:
        ConfigurationError: `max_concurrency` or `workers` is below 1; there are several workers,
            and the evaluator asks a model or cannot be pickled; `calls` are not many calls, or
            `evaluator` is not a `RagEvaluator`.
    """
    _check_arguments(calls, evaluator)
    if workers != 1:
        return _InProcesses(calls, evaluator, workers, max_concurrency)
    lines = _OfLines(evaluator)
    return EvaluationStream(
        calls, lines, max_concurrency=max_concurrency, ordered=ordered,
        ahead=_ahead(evaluator, max_concurrency),
    )  # fmt: skip


def _check_arguments(calls: object, evaluator: object) -> None:
    if isinstance(calls, str | os.PathLike):
        raise ConfigurationError("calls", calls, "should be calls; use read_calls(path)")
    if isinstance(calls, RagCall | Mapping) or not isinstance(calls, Iterable):
        raise ConfigurationError("calls", calls, "should be an iterable of calls, such as a list")
    if not isinstance(evaluator, RagEvaluator):
        raise ConfigurationError("evaluator", evaluator, "should be a RagEvaluator")


def _ahead(evaluator: RagEvaluator, max_concurrency: int) -> int:
    """Return how many calls may be begun beyond `max_concurrency` without a request more."""
    requests = evaluator.max_concurrency
    return 0 if requests is None or requests > max_concurrency else math.ceil(requests / _READY)


@dataclass(frozen=True)
class _OfLines:
    """Evaluates calls, also where they are lines of a file."""

    evaluator: RagEvaluator

    async def evaluate(self, item: RagCall | Line[RagCall], /) -> Evaluation:
        if not isinstance(item, Line):
            return await self.evaluator.evaluate(item)
        if item.value is not None:
            return await self.evaluator.evaluate(item.value)
        error = item.error or InputError("is not a call", line=item.number)
        nothing = RagCall(question="", documents=(), response=None, id=f"row {item.number}")
        evaluation = await self.evaluator.evaluate(nothing)  # asks no judge about an empty call
        return evaluation.model_copy(update={"error": failure_of(nothing, "app", error)})
