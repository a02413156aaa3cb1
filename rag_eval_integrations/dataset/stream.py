"""Many calls at once: bounded concurrency and memory, order kept, nothing raised for one call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field

from rag_eval_integrations import _loop
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.records import Evaluation, RagCall

_AHEAD = 64
"""Finished calls that may wait for an earlier slow one, for each call under way. At 500 ms a
call, one that hangs for 30 s holds back 60 of its own kind."""


class EvaluationStream:
    """Evaluations of many calls, as they come: `async for`, or `for` from code without a loop.

    Made by `evaluate_calls`. Each iteration starts anew; leaving it early cancels what is under
    way.
    """

    def __init__(
        self,
        calls: Iterable[RagCall],
        evaluator: RagEvaluator,
        *,
        max_concurrency: int = 8,
        ordered: bool = True,
    ) -> None:
        if max_concurrency < 1:
            raise ConfigurationError("max_concurrency", max_concurrency, "use a number from 1")
        self._calls = calls
        self._evaluator = evaluator
        self._max_concurrency = max_concurrency
        self._ordered = ordered

    async def __aiter__(self) -> AsyncIterator[Evaluation]:
        async for _, evaluation in self.numbered():
            yield evaluation

    def __iter__(self) -> Iterator[Evaluation]:
        for _, evaluation in self.numbered_sync():
            yield evaluation

    async def numbered(self) -> AsyncIterator[tuple[int, Evaluation]]:
        """Yield (index of the call from 0, evaluation), in the order of the stream."""
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
        """`numbered` for code that is not async."""
        results = self.numbered()

        async def following() -> tuple[int, Evaluation] | None:
            return await anext(results, None)

        async def close() -> None:
            await results.aclose()  # type: ignore[attr-defined]  # it is a generator

        try:
            while (item := _loop.run(following())) is not None:
                yield item
        finally:
            _loop.run(close())


@dataclass
class _Workers:
    """The workers of one iteration."""

    calls: Iterator[tuple[int, RagCall]]
    evaluator: RagEvaluator
    concurrency: int
    done: asyncio.Queue[tuple[int, Evaluation] | None] = field(default_factory=asyncio.Queue)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.room = asyncio.Semaphore(_AHEAD * self.concurrency)

    def start(self) -> None:
        self.tasks = [asyncio.create_task(self._worker()) for _ in range(self.concurrency)]

    async def _worker(self) -> None:
        try:
            while True:
                await self.room.acquire()
                numbered = next(self.calls, None)
                if numbered is None:
                    return
                index, call = numbered
                self.done.put_nowait((index, await self.evaluator.evaluate(call)))
                # A judge that never waits would otherwise keep the consumer from its results.
                await asyncio.sleep(0)
        finally:
            self.done.put_nowait(None)

    async def results(self) -> AsyncIterator[tuple[int, Evaluation]]:
        working = len(self.tasks)
        while working:
            item = await self.done.get()
            if item is None:
                working -= 1
            else:
                yield item
        for task in self.tasks:
            task.result()  # the calls' own iterator may have raised

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


def evaluate_calls(
    calls: Iterable[RagCall],
    evaluator: RagEvaluator,
    *,
    max_concurrency: int = 8,
    ordered: bool = True,
) -> EvaluationStream:
    """Evaluate many calls, one evaluation each, with bounded concurrency and memory.

    Iterate the result with `async for`, or with a plain `for` from code that is not async. Calls
    are taken from the iterable as they are needed, so a file of a million rows runs in flat
    memory. A call that cannot be evaluated gives an evaluation with its error; nothing stops the
    run but the iterable itself.

    Args:
        calls: any iterable; read on the loop's thread.
        evaluator: what evaluates them.
        max_concurrency: calls under way at once.
        ordered: give results in input order; otherwise as they finish.

    Raises:
        ConfigurationError: for a concurrency below 1.
    """
    return EvaluationStream(calls, evaluator, max_concurrency=max_concurrency, ordered=ordered)
