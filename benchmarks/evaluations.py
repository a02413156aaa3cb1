"""Cost of keeping, summing up and showing many evaluations: time and memory beside a baseline.

    python benchmarks/evaluations.py [--rows 1000] [--adds 200000]

Prints, for calls of 5 documents with 20 sentences, judged by the embedded judge:

* keeping them (`BackgroundEvaluator(keep=…)`): memory, and what a full garbage collection takes,
  which stops the app's threads, beside keeping none;
* the app's `submit` with 100 kept and with none, in turns;
* `Summary.add` per evaluation, and the memory of a summary after one round and after all;
* `Evaluations.by` over 100,000 rows;
* saving, loading, the notebook's cell.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rag_eval_integrations import (
    BackgroundEvaluator,
    Evaluations,
    RagCall,
    RagEvaluator,
)
from rag_eval_integrations.report import Summary

DOCUMENTS = tuple(
    f"Ferry {number} leaves the harbour at nine. It carries forty passengers and ten bicycles. "
    "Tickets are sold on board and cost two coins. Dogs travel free of charge."
    for number in range(5)
)


def call(number: int) -> RagCall:
    """Make a call; no two are equal."""
    documents = [f"{text} It is number {number}." for text in DOCUMENTS]
    response = "The ferry leaves at nine. It carries forty passengers."
    return RagCall(f"When does ferry {number} leave?", documents, response, id=str(number))


def collection() -> float:
    """Time a full garbage collection: the best of three, in seconds."""
    return min(timed(gc.collect)[0] for _ in range(3))


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Run a function: seconds and result."""
    started = time.perf_counter()
    result = function()
    return time.perf_counter() - started, result


def keeping(evaluator: RagEvaluator, rows: int) -> None:
    """Compare what is kept with nothing: memory and a full collection."""
    fresh = [call(number) for number in range(rows)]
    for each in fresh:  # calls and splitters remember what they worked out
        evaluator.evaluate_sync(each)
    base = collection()
    print(f"a full garbage collection without any: {base * 1e3:.1f} ms")
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = [evaluator.evaluate_sync(each) for each in fresh]
    gc.collect()
    memory = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    print(
        f"keeping {len(kept)} evaluations: {memory / 1e6:.1f} MB, "
        f"collection +{(collection() - base) * 1e3:.1f} ms"
    )


def submitting(evaluator: RagEvaluator, rows: int) -> None:
    """Compare the app's own time per submitted call, with 100 kept and with none."""
    calls = [call(number) for number in range(rows)]
    times_by_keep: dict[int, list[float]] = {0: [], 100: []}
    for _ in range(3):
        for keep, times in times_by_keep.items():
            with BackgroundEvaluator(evaluator, keep=keep, max_pending=rows) as background:
                for each in calls:
                    times.append(timed(lambda each=each, to=background: to.submit(each))[0])
                    time.sleep(0.001)  # the app's own work, while the worker evaluates
                background.flush(600)
    medians = {keep: statistics.median(times) * 1e6 for keep, times in times_by_keep.items()}
    tails = {
        keep: statistics.quantiles(times, n=100)[98] * 1e6 for keep, times in times_by_keep.items()
    }
    print(
        f"submit: keep=0 median {medians[0]:.1f} us, p99 {tails[0]:.0f} us; keep=100 "
        f"{medians[100]:.1f} us, {tails[100]:.0f} us; ratio of medians "
        f"{medians[100] / medians[0]:.2f}"
    )


def summing(evaluations: Evaluations, adds: int) -> None:
    """Time `Summary.add`, and show that memory does not grow with the number of rows."""
    tracemalloc.start()
    summary = Summary.of(evaluations)
    first = tracemalloc.get_traced_memory()[0]
    rounds = max(1, adds // len(evaluations))
    for _ in range(rounds):
        for evaluation in evaluations:
            summary.add(evaluation)
    last = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    seconds, _ = timed(lambda: Summary.of(evaluations))
    each = seconds / len(evaluations) * 1e6
    print(
        f"summary: {each:.1f} us per evaluation; memory {first / 1e3:.0f} kB after "
        f"{len(evaluations):,}, {last / 1e3:.0f} kB after {summary.calls:,}"
    )


def grouping(evaluations: Evaluations, rows: int) -> None:
    """Time `by` over many rows, in few groups and in conversations of five turns."""
    many = Evaluations(
        evaluations[number % len(evaluations)].model_copy(
            update={"metadata": {"route": f"r{number % 10}", "thread_id": number // 5}}
        )
        for number in range(rows)
    )
    base, _ = timed(many.summary)
    for field in ("metadata.route", "conversation"):
        seconds, groups = timed(lambda field=field: many.by(field))
        print(f"by {field}: {seconds:.1f} s for {rows:,} rows in {len(groups):,} groups; "
              f"{seconds / base:.2f} of summing them up at once")  # fmt: skip


def files(evaluations: Evaluations) -> None:
    """Time save, load and the views; the baseline is reading the bytes."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("evals.jsonl", "evals.jsonl.gz"):
            path = Path(folder) / name
            saving, _ = timed(lambda path=path: evaluations.save(path))
            loading, back = timed(lambda path=path: Evaluations.load(path))
            reading, content = timed(path.read_bytes)
            assert back == evaluations
            print(
                f"{name}: {len(content) / 1e6:.1f} MB, save {saving:.2f} s, load {loading:.2f} s "
                f"({loading / reading:.0f} x reading the bytes); summary of what was loaded "
                f"{timed(back.summary)[0]:.2f} s"
            )
    cell, html = timed(evaluations._repr_html_)
    text, _ = timed(lambda: str(evaluations))
    print(f"notebook cell {cell:.2f} s, {len(html.encode()) / 1e3:.0f} kB; print {text:.2f} s")


def main() -> None:
    """Print every figure."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, default=1_000)
    options.add_argument("--adds", type=int, default=200_000)
    given = options.parse_args()
    evaluator = RagEvaluator()
    keeping(evaluator, given.rows)
    submitting(evaluator, given.rows)
    evaluations = Evaluations(evaluator.evaluate_sync(call(n)) for n in range(given.rows))
    summing(evaluations, given.adds)
    grouping(evaluations, 100_000)
    files(evaluations)


if __name__ == "__main__":
    main()
