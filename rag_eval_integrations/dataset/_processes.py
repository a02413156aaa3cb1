"""Evaluates calls in several processes, for judges that compute: `Processes`.

    calls ─▶ batches, as JSON lines ─▶ processes ─▶ rows of EVALS with their summary, in order

A process gives back the lines that go to the file and the totals of a batch, not evaluations: to
unpickle one takes .36 ms, an eighth of making it, and all of that would lie on the one process that
gives out the calls. In this form it spends some .1 ms per call.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from typing import cast

from rag_eval_integrations import _loop
from rag_eval_integrations._contain import words_of
from rag_eval_integrations._scoring import NO_CALL, failure_of
from rag_eval_integrations.dataset._input import Line
from rag_eval_integrations.errors import ConfigurationError, InputError
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

ALONE = 256
"""Calls that are evaluated before the first process is started, which takes half a second."""
_ALONE_S = 1.0
"""Seconds after which processes are started, however few calls were evaluated: one that a local
model reads may take a second."""
_BATCH = 16
_AHEAD = 4
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
    if workers < 1:
        raise ConfigurationError(option, workers, "use a whole number from 1")
    if evaluator.asks_models:
        raise ConfigurationError(
            option, workers, f"is for judges that compute; {evaluator.judge.name} waits for a "
            "model's answers: raise the number of concurrent calls instead",
        )  # fmt: skip
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
            option, value, "the judge, the metrics and the splitter have to go to other "
            f"processes, and cannot be pickled: {words_of(error)}",
        ) from error  # fmt: skip


@dataclass
class Processes:
    """Evaluates calls in several processes; close it at the end.

    The first calls are evaluated in the own process. A call with which a process dies is evaluated
    once more, alone, and is an error if that process dies, too.

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
        """
        remaining = iter(calls)
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
                for batch in islice(batches, _AHEAD * self.workers - len(given)):
                    given.append((batch, await self._send(batch)))
                if not given:
                    return
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

    def close(self) -> None:
        """End the processes, each after the batch that it is evaluating."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    async def _start(self) -> ProcessPoolExecutor:
        # A forked process would have the locks of threads that it does not have.
        pool = self._pool = ProcessPoolExecutor(self.workers, get_context("spawn"), _begin)
        try:
            await asyncio.get_running_loop().run_in_executor(pool, _is_ready, self._packed)
        except BrokenProcessPool as error:
            raise ConfigurationError(
                self.option, self.workers, "the processes end as they start; a script that uses "
                "them runs its code under `if __name__ == \"__main__\":`",
            ) from error  # fmt: skip
        except Exception as error:  # whatever an object of the user's raises
            why = f"the evaluator cannot be made in another process: {words_of(error)}"
            raise ConfigurationError(self.option, self.workers, why) from error
        return pool

    async def _send(self, batch: Sequence[RagCall | Line[RagCall]]) -> asyncio.Future[Rows]:
        pool = self._pool or await self._start()
        calls = [item.value if isinstance(item, Line) else item for item in batch]
        try:
            lines = [to_line(cast(RagCall, call)) for call in calls]
        except Exception:  # noqa: BLE001 -- a bad row, or metadata that was changed since
            return asyncio.ensure_future(_evaluated(self.evaluator, batch))
        return asyncio.get_running_loop().run_in_executor(pool, _evaluate, self._packed, lines)

    async def _alone(self, item: RagCall | Line[RagCall]) -> Evaluation:
        try:
            rows = await (await self._send([item]))
        except BrokenProcessPool:
            self.close()
            call = item.value if isinstance(item, Line) else item
            assert call is not None  # a bad row is not sent
            return self.evaluator.without_result(call, DIED)
        return from_line(Evaluation, rows.lines[0])


@dataclass(frozen=True)
class OfLines:
    """Evaluates calls, also where they are lines of a file."""

    evaluator: RagEvaluator

    async def evaluate(self, item: RagCall | Line[RagCall], /) -> Evaluation:
        """Evaluate a call; a bad row gives an evaluation with its error."""
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
    lines = OfLines(evaluator)
    return Rows.of([await lines.evaluate(item) for item in items])


# --- In the other processes


def _begin() -> None:
    # Ctrl-C reaches every process of a terminal; this one ends when the first one does.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)  # it was killed: nobody waits for this process's rows


@lru_cache(1)
def _unpacked(evaluator: bytes) -> RagEvaluator:
    # From the process that started this one.
    unpacked: RagEvaluator = pickle.loads(evaluator)
    return unpacked


def _is_ready(evaluator: bytes) -> bool:
    return bool(_unpacked(evaluator).names)


def _evaluate(evaluator: bytes, lines: Sequence[str]) -> Rows:
    calls = [from_line(RagCall, line) for line in lines]
    return _loop.run(_evaluated(_unpacked(evaluator), calls))
