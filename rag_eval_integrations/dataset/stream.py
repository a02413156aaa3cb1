"""`evaluate_calls`: evaluates many calls in order, with bounded concurrency and memory."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from functools import partial
from itertools import count
from typing import Generic, Protocol, TypeVar

from rag_eval_integrations import _loop
from rag_eval_integrations.dataset._input import Line
from rag_eval_integrations.dataset._processes import OfLines, Processes
from rag_eval_integrations.errors import ConfigurationError
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

    def __repr__(self) -> str:
        return "<EvaluationStream: loop over it, or call collect_sync() or await collect()>"

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
        calls = enumerate(self._calls)
        done: asyncio.Queue[tuple[int, Evaluation] | None] = asyncio.Queue()
        room = asyncio.Semaphore(_AHEAD * self._max_concurrency)
        workers: list[asyncio.Task[None]] = []

        async def work() -> None:
            try:
                while True:
                    await room.acquire()
                    if (numbered := next(calls, None)) is None:
                        return
                    start()  # with each call at most one, so there are never more than calls
                    index, call = numbered
                    done.put_nowait((index, await self._evaluator.evaluate(call)))
                    # A judge that never waits would otherwise keep the consumer from running.
                    await asyncio.sleep(0)
            finally:
                done.put_nowait(None)

        def start() -> None:
            if len(workers) < self._max_concurrency:
                workers.append(asyncio.create_task(work()))

        start()
        waiting: dict[int, Evaluation] = {}
        position = ended = 0
        try:
            while ended < len(workers):
                if (result := await done.get()) is None:
                    ended += 1
                    continue
                waiting[result[0]] = result[1]
                position = position if self._ordered else result[0]
                while position in waiting:
                    room.release()
                    yield position, waiting.pop(position)
                    position += 1
            for worker in workers:
                worker.result()  # raises what the iterable of calls raised
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

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


class _InProcesses(EvaluationStream[RagCall | Line[RagCall]]):
    """The evaluations that several processes make, always in order."""

    def __init__(
        self, calls: Iterable[RagCall | Line[RagCall]], evaluator: RagEvaluator, workers: int,
        max_concurrency: int,
    ) -> None:  # fmt: skip
        super().__init__(calls, OfLines(evaluator), max_concurrency=max_concurrency)
        self._processes = partial(Processes, evaluator, workers)
        self._processes()  # raises what is wrong with the arguments

    async def numbered(self) -> AsyncIterator[tuple[int, Evaluation]]:
        processes = self._processes()
        rows = processes.rows(self._calls)
        position = count()
        try:
            async for batch in rows:
                for line in batch.lines:
                    yield next(position), from_line(Evaluation, line)
        finally:
            await rows.aclose()  # type: ignore[attr-defined]  # an async generator
            processes.close()


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
    lines = OfLines(evaluator)
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
