"""`rag-eval worker`: judge the calls of a store as they come."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

from rag_eval_integrations import _loop
from rag_eval_integrations._visible import LogOnce, counted, logger_of, visible
from rag_eval_integrations.cli._judges import judge_of
from rag_eval_integrations.cli._options import metrics_from, moment
from rag_eval_integrations.cli._store_arguments import WorkerOptions
from rag_eval_integrations.cli._terminal import end_now, print_stderr
from rag_eval_integrations.cli.push import tool_sink
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.judges._named import asks_endpoint
from rag_eval_integrations.sinks import JsonlSink, LoggingSink, Sink
from rag_eval_integrations.sinks.local import SCORES_LOG
from rag_eval_integrations.store import Store
from rag_eval_integrations.store._failures import PATIENCE, UnavailableError
from rag_eval_integrations.store._worker import StorePermits, Worker

_LAST = 28.0
"""Seconds after a signal at which the process ends, whatever hangs."""
_OTHER_SINKS = "log", "a name that ends in .jsonl"


def worker(options: WorkerOptions) -> int:
    """Judge the calls of a store until SIGTERM or Ctrl-C, and return the exit code.

    Returns:
        With `once`, 1 if calls were tried in vain and none was judged, calls wait because the judge
        could not be reached, or the database was away for a minute; else 0.

    Raises:
        ConfigurationError: for options that cannot work.
        OSError: when the store cannot be used.
    """
    sinks = dict(map(_named_sink, options.to or ()))
    now, spools = time.time(), [path.absolute() for path in options.spool or ()]
    max_age = now - moment(options.max_age, "--max-age", now)
    try:
        with contextlib.closing(_open_store(options.store, once=options.once)) as store:
            metrics = metrics_from(
                options.metrics,
                options.trace_settings(),
                options.metric_settings(),
                options.metric_var,
            )
            permits = shared_permits(store, options.judge, rpm=options.rpm, tpm=options.tpm)
            judge = judge_of(
                options.judge,
                options.requests(),
                options.wording(),
                max_concurrency=options.max_concurrency,
                permits=permits,
            )
            evaluator = RagEvaluator(judge, metrics, flags=options.flags)
            working = Worker(
                store,
                evaluator,
                spools,
                sinks,
                sample_rate=options.sample_rate,
                per_minute=options.per_minute,
                dollars_per_day=options.dollars_per_day,
                max_concurrency=options.max_concurrency,
                max_age=max_age,
                say=print_stderr,
            )
            if not options.once:
                watched = [store.name, *(visible(str(spool)) for spool in spools)]
                print_stderr(f"Watching {', '.join(watched)}; judge {evaluator.judge.name}.")
            with _finish_on_signal(working):
                _loop.run(working.run(once=options.once))
    except UnavailableError as error:
        if not options.once:
            raise
        print_stderr(f"rag-eval: {error}")
        return 1
    counts = working.counts
    print_stderr(
        f"{counted(counts['imported'], 'call')} imported, {counts['judged']:,} judged, "
        f"{counts['left_out']:,} left out, {counts['due']:,} to be tried again, "
        f"{counts['parked']:,} parked"
    )
    code = int(options.once and not counts["judged"] and counts["due"] + counts["parked"] > 0)
    if working.hung:
        calls = counted(working.hung, "call")
        print_stderr(f"{calls} had no result in time; what the judge began for them was left")
    if working.waiting:
        calls = counted(working.waiting, "call waits", "calls wait")
        print_stderr(f"FAILED: the judge could not be reached; {calls}")
        code = 1
    if working.hung:  # the interpreter would wait for their threads
        end_now(code)
    return code


def _open_store(address: str, *, once: bool) -> Store:
    """Open the store, and retry while the database is away; each kind of failure is logged once.

    Raises:
        UnavailableError: with `once`, it was away for a minute.
    """
    failures, began = LogOnce(logger_of("rag_eval_integrations.store")), time.monotonic()
    while True:
        try:
            return Store(address)
        except UnavailableError as error:
            if once and time.monotonic() - began > PATIENCE:
                raise
            failures.log(error.kind, "%s; tried again every second, and logged once", error)
            time.sleep(1.0)


def _named_sink(word: str) -> tuple[str, Sink]:
    """Make the sink of a `--to` value (log, file or tool); return it with its name in the store."""
    if word == "log":
        scores = logger_of(SCORES_LOG)
        scores.setLevel(logging.INFO)
        if not scores.hasHandlers():
            scores.addHandler(logging.StreamHandler())
        return word, LoggingSink()
    if word.endswith(".jsonl"):
        file = JsonlSink(word)
        return str(file.path), file
    return word, tool_sink(word, others=_OTHER_SINKS)


def shared_permits(
    store: Store, judge: str | None, *, rpm: float | None, tpm: float | None
) -> StorePermits | None:
    """Make the judge's limits per minute, which all processes of the store share.

    Args:
        store: the store.
        judge: the value of `--judge`.
        rpm: requests per minute; None for no limit.
        tpm: tokens per minute; None for no limit.

    Returns:
        None without a limit, and for a judge that asks no endpoint.
    """
    if judge and asks_endpoint(judge) and (rpm or tpm):
        return StorePermits(store, judge, rpm, tpm)
    return None


@contextlib.contextmanager
def _finish_on_signal(working: Worker) -> Iterator[None]:
    """Have the first SIGTERM or Ctrl-C let the worker finish; the next one ends it at once.

    Half a minute after the first, the process ends whatever hangs.
    """
    before: dict[signal.Signals, Any] = {}

    def drain(number: int, frame: object) -> None:
        """Stop after the calls in progress, at the first signal."""
        for each in before:
            signal.signal(each, lambda number, frame: end_now(128 + number))
        print_stderr("Finishing the calls in progress; again to end at once.")
        working.stop()
        late = threading.Timer(_LAST, give_up)
        late.daemon = True
        late.start()

    def give_up() -> None:
        """End the process although something hangs."""
        print_stderr("FAILED: it did not end by itself; the next worker judges what was left")
        end_now(1)

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            before[number] = signal.signal(number, drain)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
