"""`rag-eval rescore`: judge calls of a store by another judge or metric."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, closing
from typing import Any, cast

from rag_eval_integrations import _loop
from rag_eval_integrations._visible import counted
from rag_eval_integrations.cli._judges import WatchedModel, judge_of, key_for
from rag_eval_integrations.cli._options import metrics_from, moment
from rag_eval_integrations.cli._store_arguments import RescoreOptions
from rag_eval_integrations.cli._terminal import print_stderr, print_stdout
from rag_eval_integrations.cli.run import estimated_cost
from rag_eval_integrations.cli.worker import shared_permits
from rag_eval_integrations.dataset import evaluate_calls
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.evaluations._filters import Filters
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.records import RagCall
from rag_eval_integrations.store import Store
from rag_eval_integrations.store._worker import outcome_of
from rag_eval_integrations.store.database import ClaimedCall, Outcome

_BATCH = 50
_RECORDED = 1.0
"""Seconds after which evaluations are recorded, if there are fewer than a batch."""


def rescore(options: RescoreOptions) -> int:
    """Judge calls of a store by another judge or metric, and return the exit code.

    Returns:
        1 if calls could not be judged, which another run tries again; else 0.

    Raises:
        ConfigurationError: for options that cannot work.
        OSError: when the store cannot be used.
    """
    filters = Filters(options.where)
    with closing(Store(options.store, create=False)) as store:
        watched: list[WatchedModel] = []
        metrics = metrics_from(
            options.metrics, options.trace_settings(), options.metric_settings(), options.metric_var
        )
        permits = shared_permits(store, options.judge, rpm=options.rpm, tpm=options.tpm)
        judge = judge_of(
            options.judge,
            options.requests(),
            options.wording(),
            watched,
            max_concurrency=options.max_concurrency,
            permits=permits,
            **key_for(dry_run=options.dry_run),
        )
        evaluator = RagEvaluator(judge, metrics, flags=options.flags)
        since = moment(options.since, "--since", store.now())

        def calls_to_rescore() -> Iterator[tuple[ClaimedCall, RagCall]]:
            """Yield the stored calls that this evaluator has not judged and the filters keep."""
            for claimed, latest in store.without(evaluator.fingerprint, since):
                if not filters.conditions or any(filters.keep([latest] if latest else [])):
                    try:
                        call = claimed.call()
                    except InputError as error:
                        print_stderr(f"{claimed.call_uid} is left out: {error}")
                        continue
                    yield claimed, call

        calls, usage, words = estimated_cost((call for _, call in calls_to_rescore()), evaluator)
        least = usage.requests / options.rpm * 60 if options.rpm else None
        duration = _duration(store, evaluator.judge.name, calls, options.max_concurrency, least)
        print_stdout(f"{words}{duration}")
        if options.dry_run or not calls:
            return 0
        done = _loop.run(
            _judge_again(store, evaluator, calls_to_rescore(), options.max_concurrency, watched)
        )
    print_stdout(f"{counted(done, 'evaluation')} recorded")
    if done < calls:
        left = counted(calls - done, "call was", "calls were")
        print_stderr(f"FAILED: {left} not judged; the same command tries them again")
    return int(done < calls)


def _duration(
    store: Store, judge: str, calls: int, max_concurrency: int, least: float | None
) -> str:
    """Estimate the duration, in words, by this judge's earlier calls and the limit per minute."""
    past = [row for row in store.evaluators() if row[0] == judge]
    seconds = [] if least is None else [least]
    cost = ""
    if past:
        _, _, _, mean, usd = past[0]
        seconds.append((mean or 0.0) * calls / max_concurrency)
        cost = f", ${usd * calls:.2f}" if usd is not None else ""
    if not seconds:
        return "; how long it takes is not known, since the store has no evaluation by this judge"
    return f"; about {max(seconds):,.0f} s{cost}, as its earlier evaluations and limits say"


async def _judge_again(
    store: Store,
    evaluator: RagEvaluator,
    calls: Iterator[tuple[ClaimedCall, RagCall]],
    max_concurrency: int,
    watched: list[WatchedModel],
) -> int:
    """Evaluate stored calls again and write the results in batches; return their number.

    A call that cannot be judged is reported and keeps its state; once no request of the judge can
    succeed, the rest is left.
    """
    claimed_by_number: dict[int, tuple[ClaimedCall, float]] = {}
    batch: list[Outcome] = []
    done, settled = 0, time.monotonic()

    def calls_to_judge() -> Iterator[RagCall]:
        """Yield the calls to evaluate, noting when each began."""
        for number, (claimed, call) in enumerate(calls):
            claimed_by_number[number] = claimed, time.perf_counter()
            yield call

    stream = evaluate_calls(calls_to_judge(), evaluator, max_concurrency=max_concurrency)
    results = cast(AsyncGenerator[Any], stream.numbered())
    async with aclosing(results):
        async for number, evaluation in results:
            call, began = claimed_by_number.pop(number)
            outcome = outcome_of(call, evaluation, time.perf_counter() - began)
            if outcome.evaluation is None:  # the call stays what it is
                print_stderr(f"{call.call_uid}: {outcome.why}")
            else:
                batch.append(outcome)
            if len(batch) >= _BATCH or time.monotonic() > settled + _RECORDED:
                done += len(await asyncio.to_thread(store.settle, batch))
                batch, settled = [], time.monotonic()
            if any(model.unusable for model in watched):
                break
    return done + len(await asyncio.to_thread(store.settle, batch))
