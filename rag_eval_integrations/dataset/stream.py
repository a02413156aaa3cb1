"""`evaluate_calls`: evaluates many calls in order, with bounded concurrency and memory.

In several processes for judges that compute, `Processes`:

    calls ─▶ batches, as JSON lines ─▶ processes ─▶ rows of EVALS with their summary, in order

A process gives back the lines that go to the file and the totals of a batch, not evaluations: to
unpickle one takes .36 ms, an eighth of making it, and all of that would lie on the one process that
gives out the calls. In this form it spends some .1 ms per call.
"""

from __future__ import annotations

import asyncio
import math
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import count, islice
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from typing import Generic, Protocol, TypeVar, cast

from rag_eval_integrations import _loop
from rag_eval_integrations._contain import words_of
from rag_eval_integrations._scoring import NO_CALL, failure_of
from rag_eval_integrations.dataset._input import Line
from rag_eval_integrations.errors import ConfigurationError, InputError, whole_number
from rag_eval_integrations.evaluations import Evaluations
from rag_eval_integrations.evaluations.summary import Summary
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.judges import EmbeddedJudge
from rag_eval_integrations.records import (
    Evaluation,
    EvaluationError,
    RagCall,
    from_line,
    to_line,
)

_FINISHED_AHEAD = 64
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
        whole_number("max_concurrency", max_concurrency)
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
        """Yield (index of the call, from 0, and its evaluation), in the order of the stream.

        Re-raises an exception of the input after the calls before it.
        """
        calls = enumerate(self._calls)
        done: asyncio.Queue[tuple[int, Evaluation] | None] = asyncio.Queue()
        room = asyncio.Semaphore(_FINISHED_AHEAD * self._max_concurrency)
        workers: list[asyncio.Task[None]] = []

        async def work() -> None:
            """Evaluate calls until there are none."""
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
            """Start another worker, up to the limit."""
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
            """Return the next result; None at the end."""
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
        self,
        calls: Iterable[RagCall | Line[RagCall]],
        evaluator: RagEvaluator,
        workers: int,
        max_concurrency: int,
    ) -> None:
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
        calls,
        lines,
        max_concurrency=max_concurrency,
        ordered=ordered,
        ahead=_ahead(evaluator, max_concurrency),
    )


def _check_arguments(calls: object, evaluator: object) -> None:
    """Refuse calls and evaluators of wrong types."""
    if isinstance(calls, str | os.PathLike):
        raise ConfigurationError("calls", calls, "should be calls; use read_calls(path)")
    if isinstance(calls, RagCall | Mapping) or not isinstance(calls, Iterable):
        raise ConfigurationError("calls", calls, "should be an iterable of calls, such as a list")
    if not isinstance(evaluator, RagEvaluator):
        raise ConfigurationError(
            "evaluator", evaluator, "should be a RagEvaluator, as in RagEvaluator()"
        )


def _ahead(evaluator: RagEvaluator, max_concurrency: int) -> int:
    """Return how many calls to begin beyond `max_concurrency` to keep a limited judge busy."""
    requests = evaluator.max_concurrency
    return 0 if requests is None or requests > max_concurrency else math.ceil(requests / _READY)


# --- In several processes


ALONE = 256
"""Calls that are evaluated before the first process is started, which takes half a second."""
_ALONE_S = 1.0
"""Seconds after which processes are started, however few calls were evaluated: one that a local
model reads may take a second."""
_BATCH = 16
_BATCHES_AHEAD = 4
"""Batches per process that are given out before the first of them is back."""


@dataclass(frozen=True)
class Rows:
    """The evaluations of a batch of calls, in order."""

    lines: Sequence[str]
    """Rows of EVALS."""
    failed: Sequence[bool]
    """Whether the evaluation has an error."""
    summary: Summary

    @classmethod
    def of(cls, evaluations: Sequence[Evaluation]) -> Rows:
        """Render and sum up evaluations."""
        return cls(
            [to_line(evaluation) for evaluation in evaluations],
            [evaluation.error is not None for evaluation in evaluations],
            Summary.of(evaluations),
        )


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def default_workers(evaluator: RagEvaluator) -> int:
    """Return the cores for a judge that computes, 1 for one that waits or is not known."""
    computes = isinstance(evaluator.judge, EmbeddedJudge) and not evaluator.asks_models
    return cores() if computes else 1


def packed(evaluator: RagEvaluator, workers: int, option: str) -> bytes:
    """Pickle an evaluator for other processes.

    Raises:
        ConfigurationError: it waits for a model, or cannot be pickled.
    """
    whole_number(option, workers)
    if evaluator.asks_models:
        raise ConfigurationError(
            option,
            workers,
            f"is for judges that compute; {evaluator.judge.name} waits for a "
            "model's answers: raise the number of concurrent calls instead",
        )
    return pickled(evaluator, option, workers, pickle.dumps)


def pickled(made_of: object, option: str, value: object, dumps: Callable[[object], bytes]) -> bytes:
    """Pickle what an evaluator is made of.

    Raises:
        ConfigurationError: for `option`, which has `value`: it cannot be pickled.
    """
    try:
        return dumps(made_of)
    except Exception as error:  # whatever an object of the user's raises
        raise ConfigurationError(
            option,
            value,
            "the judge, the metrics and the splitter have to go to other "
            f"processes, and cannot be pickled: {words_of(error)}",
        ) from error


@dataclass
class Processes:
    """Evaluates calls in several processes; close it at the end.

    The first calls are evaluated in the own process. When a worker dies, its calls are retried one
    by one; a call that kills its worker again is an error.

    Args:
        evaluator: the evaluator.
        workers: number of processes, from 1.
        option: name of the argument, for errors.
        alone: number of first calls that the own process evaluates, if that takes a second at most.

    Raises:
        ConfigurationError: the evaluator waits for a model, or cannot be pickled.
    """

    evaluator: RagEvaluator
    workers: int
    option: str = "workers"
    alone: int = ALONE
    _pool: ProcessPoolExecutor | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._packed = packed(self.evaluator, self.workers, self.option)

    async def rows(self, calls: Iterable[RagCall | Line[RagCall]]) -> AsyncIterator[Rows]:
        """Yield the rows of the calls, batch by batch, in the order of the calls.

        Calls are read from the iterable when they are needed.

        Raises:
            ConfigurationError: the processes cannot start.
            Exception: what the iterable of calls raised, after the rows of the calls before it.
        """
        failures: list[Exception] = []
        remaining = _until_failure(calls, failures)
        batches = iter(lambda: list(islice(remaining, _BATCH)), [])
        spent = 0.0
        for batch in islice(batches, -(-self.alone // _BATCH)):
            began = time.monotonic()
            rows = await _evaluated(self.evaluator, batch)
            spent += time.monotonic() - began
            yield rows
            await asyncio.sleep(0)
            if spent > _ALONE_S:
                break
        given: deque[tuple[list[RagCall | Line[RagCall]], asyncio.Future[Rows]]] = deque()
        try:
            while True:
                for batch in islice(batches, _BATCHES_AHEAD * self.workers - len(given)):
                    given.append((batch, await self._send(batch)))
                if not given:
                    break
                try:
                    rows = await given[0][1]
                except BrokenProcessPool:
                    # All that was given out is lost. One call at a time shows which is to blame.
                    for _, other in given:
                        other.cancel()
                    self.close()
                    while given:
                        batch, _ = given.popleft()
                        yield Rows.of([await self._alone(call) for call in batch])
                else:
                    given.popleft()
                    yield rows
        finally:
            for _, other in given:
                other.cancel()
        for failure in failures:
            raise failure

    def close(self) -> None:
        """End the processes, each after the batch that it is evaluating."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    async def _start(self) -> ProcessPoolExecutor:
        """Start the processes, and check that each can make the evaluator."""
        # A forked process would have the locks of threads that it does not have.
        pool = self._pool = ProcessPoolExecutor(self.workers, get_context("spawn"), _begin)
        try:
            await _submit(pool, _is_ready, self._packed)
        except BrokenProcessPool as error:
            raise ConfigurationError(
                self.option,
                self.workers,
                "the processes end as they start; a script that uses "
                'them runs its code under `if __name__ == "__main__":`',
            ) from error
        except Exception as error:  # whatever an object of the user's raises
            why = f"the evaluator cannot be made in another process: {words_of(error)}"
            raise ConfigurationError(self.option, self.workers, why) from error
        return pool

    async def _send(self, batch: Sequence[RagCall | Line[RagCall]]) -> asyncio.Future[Rows]:
        """Send a batch to the processes; evaluate it here if it cannot be sent."""
        pool = self._pool or await self._start()
        calls = [item.value if isinstance(item, Line) else item for item in batch]
        try:
            lines = [to_line(cast(RagCall, call)) for call in calls]
        except Exception:  # noqa: BLE001 -- a bad row, or metadata that was changed since
            return asyncio.ensure_future(_evaluated(self.evaluator, batch))
        try:
            return _submit(pool, _evaluate, self._packed, lines)
        except BrokenProcessPool as error:  # a process died since the last batch was sent
            broken: asyncio.Future[Rows] = asyncio.get_running_loop().create_future()
            broken.set_exception(error)
            broken.exception()  # marked as seen: one that nobody awaits is not logged
            return broken

    async def _alone(self, item: RagCall | Line[RagCall]) -> Evaluation:
        """Evaluate a call alone, after the processes died; an error if it kills them again."""
        try:
            rows = await (await self._send([item]))
        except BrokenProcessPool:
            self.close()
            call = item.value if isinstance(item, Line) else item
            assert call is not None  # a bad row is not sent
            return self.evaluator.without_result(call, DIED)
        return from_line(Evaluation, rows.lines[0])


def _until_failure(items: Iterable[T], failures: list[Exception]) -> Iterator[T]:
    """Yield items until their iterable raises, and append its exception to `failures`."""
    try:
        yield from items
    except Exception as error:  # noqa: BLE001 -- raised by the caller, later
        failures.append(error)


def _submit(
    pool: ProcessPoolExecutor, work: Callable[..., T], *arguments: object
) -> asyncio.Future[T]:
    """Submit work to a pool, which may start a process for it.

    Ctrl-C reaches every process of a terminal, and would end one that just starts with a traceback:
    it is held back there until `_begin` ignores it.
    """
    mask = getattr(signal, "pthread_sigmask", None)  # not on every platform
    before = mask(signal.SIG_BLOCK, {signal.SIGINT}) if mask else ()
    try:
        return asyncio.get_running_loop().run_in_executor(pool, work, *arguments)
    finally:
        if mask:
            mask(signal.SIG_SETMASK, before)


@dataclass(frozen=True)
class OfLines:
    """Evaluates calls, given as objects or as lines of a file."""

    evaluator: RagEvaluator

    async def evaluate(self, item: RagCall | Line[RagCall], /) -> Evaluation:
        """Evaluate a call; a bad row, or anything else, gives an evaluation with its error."""
        if isinstance(item, RagCall):
            return await self.evaluator.evaluate(item)
        if not isinstance(item, Line):  # one wrong item ends no run
            kind = type(item).__name__
            why = f"a call should be a RagCall(question, documents, response), not {kind}"
            failure = EvaluationError(type="TypeError", message=why, stage="app")
            return self.evaluator.without_result(NO_CALL, failure)
        if item.value is not None:
            return await self.evaluator.evaluate(item.value)
        error = item.error or InputError("is not a call", line=item.number)
        nothing = RagCall(question="", documents=(), response=None, id=f"row {item.number}")
        evaluation = await self.evaluator.evaluate(nothing)  # asks no judge about an empty call
        return evaluation.model_copy(update={"error": failure_of(nothing, "app", error)})


DIED = EvaluationError(
    type="BrokenProcessPool",
    message="the process that evaluated the call ended, twice: killed, out of memory, or crashed",
    stage="judge",
)


async def _evaluated(evaluator: RagEvaluator, items: Sequence[RagCall | Line[RagCall]]) -> Rows:
    """Evaluate a batch, one call after another."""
    lines = OfLines(evaluator)
    return Rows.of([await lines.evaluate(item) for item in items])


# --- In the other processes


def _begin() -> None:
    """Set up a new process: ignore Ctrl-C, and end with the parent."""
    # Ctrl-C reaches every process of a terminal; this one ends when the first one does.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when its parent does."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)  # it was killed: nobody waits for this process's rows


@lru_cache(1)
def _unpacked(evaluator: bytes) -> RagEvaluator:
    """Unpickle the evaluator that the parent process sent."""
    # From the process that started this one.
    unpacked: RagEvaluator = pickle.loads(evaluator)
    return unpacked


def _is_ready(evaluator: bytes) -> bool:
    """Make the evaluator in another process, which raises if it cannot."""
    return bool(_unpacked(evaluator).names)


def _evaluate(evaluator: bytes, lines: Sequence[str]) -> Rows:
    """Evaluate a batch in one of the other processes; raises where a line is not a call."""
    calls = [from_line(RagCall, line) for line in lines]
    return _loop.run(_evaluated(_unpacked(evaluator), calls))
