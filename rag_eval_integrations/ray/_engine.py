"""`RayWorkers`: the actors behind `rag-eval run --engine ray`.

    calls, read here ─▶ batches, as JSON lines ─▶ actors ─▶ rows of EVALS and their sums, in order

It does for a cluster what `dataset._processes` does for the cores of a machine: reading, order,
`--resume` and the file stay with the process that has them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any

from rag_eval_integrations._contain import words_of
from rag_eval_integrations.dataset._processes import Rows, pickled
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.ray import _cluster
from rag_eval_integrations.ray.config import EvaluatorConfig
from rag_eval_integrations.records import RagCall, from_line, to_line

_FIRST = 4
"""Calls that the own process evaluates where a model is asked, before Ray is started, which takes
seconds: a wrong key or URL is told at once."""
_BATCH = 32
_AHEAD = 3
"""Batches per actor that are given out before the first of them is back."""


@dataclass
class RayWorkers:
    """Evaluates calls in the actors of a Ray cluster; close it at the end.

    Args:
        evaluator: the evaluator of this process, of the same fingerprint.
        config: what the actors make theirs of.
        workers: number of actors, from 1; None for one per CPU where the judge computes, one per
            machine where it waits for a model.
        address: of the cluster; None to start one on this machine.

    Raises:
        ConfigurationError: the configuration cannot be pickled.
        MissingDependencyError: Ray is not installed.
    """

    evaluator: RagEvaluator
    config: EvaluatorConfig
    workers: int | None = None
    address: str | None = None
    _own: bool = field(default=False, init=False)
    _actors: list[Any] = field(default_factory=list, init=False)
    _permits: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        ray = _cluster.imported()
        pickled(self.config, "--engine", "ray", ray.cloudpickle.dumps)

    async def rows(self, calls: Iterable[RagCall]) -> AsyncIterator[Rows]:
        """Yield the rows of the calls, batch by batch, in the order of the calls.

        Raises:
            ConfigurationError: there is no cluster, or the evaluator cannot be made there.
            OSError: the cluster is lost.
        """
        remaining = iter(calls)
        asked = self.evaluator.asks_models
        used: list[tuple[int, int]] = []
        for call in islice(remaining, _FIRST if asked else 0):
            evaluation = await self.evaluator.evaluate(call)
            usage = evaluation.usage
            used.append((usage.requests, usage.prompt_tokens + usage.completion_tokens))
            yield Rows.of([evaluation])
        numbers = count()
        given: deque[asyncio.Future[Rows]] = deque()
        in_flight: list[int] = []
        try:
            for batch in _batches(remaining, self.config.max_concurrency if asked else 1):
                if not self._actors:
                    await asyncio.to_thread(self._start)
                    await self._count(used)
                    in_flight = [0] * len(self._actors)
                while len(given) >= _AHEAD * len(self._actors):
                    yield await _of(given.popleft())
                given.append(self._send(batch, next(numbers), in_flight))
            while given:
                yield await _of(given.popleft())
        finally:
            for other in given:
                other.cancel()

    def close(self) -> None:
        """End the actors, and Ray if it was started here."""
        ray = _cluster.imported()
        for actor in self._actors:
            ray.kill(actor)
        self._actors = []
        if self._own:
            self._own = False
            ray.shutdown()

    def _start(self) -> None:
        ray = _cluster.imported()
        self._own = _cluster.connect(self.address)
        available = _cluster.cpus()
        workers = self.workers
        if workers is None:
            asks = self.evaluator.asks_models
            workers = _cluster.nodes() if asks else max(1, int(available))
        reserved = _cluster.cpus_per_actor(workers, available, spare=0.0)
        self._permits = _cluster.start_permits(self.config)
        attempts = _cluster.start_attempts()
        actor = ray.remote(num_cpus=reserved, scheduling_strategy="SPREAD", **_cluster.ACTORS)(
            _Actor
        )
        self._actors = [actor.remote(self.config, self._permits, attempts) for _ in range(workers)]
        try:
            found = ray.get([one.fingerprint.remote() for one in self._actors])
        except ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None) or error
            why = f"the evaluator cannot be made in an actor: {words_of(cause)}"
            raise ConfigurationError("--engine", "ray", why) from error
        if set(found) != {self.evaluator.fingerprint}:
            why = "the actors make another evaluator than this process: other releases or files"
            raise ConfigurationError("--engine", "ray", why)

    async def _count(self, used: Sequence[tuple[int, int]]) -> None:
        """Count what this process asked of the limit that it shares with the actors."""
        for requests, tokens in used if self._permits is not None else ():
            if requests:
                await self._permits.block.remote([(requests, tokens)])

    def _send(
        self, batch: Sequence[RagCall], number: int, in_flight: list[int]
    ) -> asyncio.Future[Rows]:
        try:
            lines = [to_line(call) for call in batch]
        except Exception:  # noqa: BLE001 -- not JSON, such as metadata that was changed since
            return asyncio.ensure_future(self._here(batch))
        place = in_flight.index(min(in_flight))
        in_flight[place] += 1
        sent = self._actors[place].rows.remote(lines, str(number))
        future: asyncio.Future[Rows] = asyncio.wrap_future(sent.future())

        def ended(_: object) -> None:
            in_flight[place] -= 1

        future.add_done_callback(ended)
        return future

    async def _here(self, batch: Sequence[RagCall]) -> Rows:
        return Rows.of([await self.evaluator.evaluate(call) for call in batch])


def _batches(calls: Iterator[RagCall], at_once: int) -> Iterator[list[RagCall]]:
    while batch := list(islice(calls, max(_BATCH, 4 * at_once))):
        yield batch


async def _of(future: asyncio.Future[Rows]) -> Rows:
    try:
        return await future
    except _cluster.imported().exceptions.RayError as error:
        raise OSError(f"the Ray cluster was lost: {words_of(error)}") from error


class _Actor:
    """What runs in an actor."""

    def __init__(self, config: EvaluatorConfig, permits: Any, attempts: Any) -> None:
        self._worker = _cluster.worker_of(config, config.max_concurrency, permits, attempts)

    def fingerprint(self) -> str:
        return self._worker.evaluator.fingerprint

    def rows(self, lines: Sequence[str], task: str) -> Rows:
        return Rows.of(self._worker.evaluate([from_line(RagCall, one) for one in lines], task))
