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
from rag_eval_integrations._visible import LogOnce, counted, logger_of
from rag_eval_integrations.cli._arguments import Scoring, WorkerOptions
from rag_eval_integrations.cli._judges import WatchedModel, judge_of
from rag_eval_integrations.cli._options import metrics_from
from rag_eval_integrations.cli._terminal import print_stderr
from rag_eval_integrations.cli.push import tool_sink
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.judges._named import asks_endpoint
from rag_eval_integrations.sinks import JsonlSink, LoggingSink, Sink
from rag_eval_integrations.sinks.local import SCORES_LOG
from rag_eval_integrations.store import Store
from rag_eval_integrations.store._failures import PATIENCE, UnavailableError
from rag_eval_integrations.store._worker import StorePermits, Worker

_OTHER_SINKS = "log", "a name that ends in .jsonl"


def worker(options: WorkerOptions) -> int:
    """Judge the calls of a store until SIGTERM or Ctrl-C, and return the exit code.

    Returns:
        With `once`, 1 if calls were tried in vain and none was judged, or the database was away for
        a minute; else 0.

    Raises:
        ConfigurationError: for options that cannot work.
        OSError: when the store cannot be used.
    """
    sinks = dict(map(_sink, options.to or ()))
    try:
        with contextlib.closing(_opened(options)) as store:
            working = Worker(
                store,
                evaluator_of(options, store),
                [path.absolute() for path in options.spool or ()],
                sinks,
                sample_rate=options.sample_rate,
                per_minute=options.per_minute,
                dollars_per_day=options.dollars_per_day,
                max_concurrency=options.max_concurrency,
            )
            with _drained(working):
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
    return int(options.once and not counts["judged"] and counts["due"] + counts["parked"] > 0)


def _opened(options: WorkerOptions) -> Store:
    """Open the store; wait for a database that is away, and say so once per kind of failure.

    Raises:
        UnavailableError: with `once`, it was away for a minute.
    """
    failures, began = LogOnce(logger_of("rag_eval_integrations.store")), time.monotonic()
    while True:
        try:
            return Store(options.store)
        except UnavailableError as error:
            if options.once and time.monotonic() - began > PATIENCE:
                raise
            failures.log(error.kind, "%s; tried again every second, and logged once", error)
            time.sleep(1.0)


def _sink(word: str) -> tuple[str, Sink]:
    """Make the sink of a word: log, a file or a tool; with its name in the store."""
    if word == "log":
        scores = logging.getLogger(SCORES_LOG)
        scores.setLevel(logging.INFO)
        if not scores.hasHandlers():
            scores.addHandler(logging.StreamHandler())
        return word, LoggingSink()
    if word.endswith(".jsonl"):
        file = JsonlSink(word)
        return str(file.path), file
    return word, tool_sink(word, others=_OTHER_SINKS)


def evaluator_of(
    options: Scoring, store: Store, watched: list[WatchedModel] | None = None
) -> RagEvaluator:
    """Make the evaluator that the options name, its limits per minute shared by the store.

    Args:
        options: the options.
        store: the store.
        watched: as for `judge_of`.
    """
    metrics = metrics_from(options)
    more: dict[str, Any] = {"max_concurrency": options.max_concurrency}
    if options.judge and asks_endpoint(options.judge) and (options.rpm or options.tpm):
        more["permits"] = StorePermits(store, options.judge, options.rpm, options.tpm)
    return RagEvaluator(judge_of(options, watched, **more), metrics, flags=options.flags)


@contextlib.contextmanager
def _drained(working: Worker) -> Iterator[None]:
    """Have the first SIGTERM or Ctrl-C let the worker finish; the next one ends it at once."""
    before: dict[signal.Signals, Any] = {}

    def restore() -> None:
        """Set the earlier signal handlers again."""
        for number, handler in before.items():
            signal.signal(number, handler)

    def drain(number: int, frame: object) -> None:
        """Stop after the calls in progress, at the first signal."""
        restore()
        print_stderr("Finishing the calls in progress; again to end at once.")
        working.stop()

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            before[number] = signal.signal(number, drain)
    try:
        yield
    finally:
        restore()
