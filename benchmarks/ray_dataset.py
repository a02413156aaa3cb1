"""Rows per second from one core to two simulated Ray machines, with the embedded judge.

    python benchmarks/ray_dataset.py [--rows 20000]

Needs the extra `ray`. Rows are made here, and all steps evaluate the same file: one process, two
processes, and by `evaluate_dataset` one Ray machine with two CPUs, and two with one CPU each
(simulated on this one by `ray.cluster_utils.Cluster`). Each step says its seconds with the start,
which on short runs is most of it, and its rate after it beside that of one process. Where
PYTHONDONTWRITEBYTECODE is set, compile the packages first: the start is twice as long otherwise.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

_OBJECTS = 256 * 2**20


def make_rows(target: Path, count: int) -> int:
    """Write calls of three documents of four sentences, about 1.2 kB each; return the bytes."""
    with target.open("w", encoding="ascii") as stream:
        for at in range(count):
            documents = [
                f"Ferry {at + place} leaves the north quay at {place + 7} in the morning. It has "
                f"{at % 90 + 10} cars, and no lorries. Tickets are sold on board until the gate "
                "closes. Dogs travel free of charge on the upper deck."
                for place in range(3)
            ]
            row = {
                "id": str(at),
                "question": f"When does ferry {at} leave, and may I take my dog?",
                "documents": documents,
                "response": f"Ferry {at} leaves at 7 in the morning. Dogs travel free of charge.",
            }
            stream.write(json.dumps(row) + "\n")
    return target.stat().st_size


def timed(found: Any, calls: Iterable[Any]) -> tuple[float, float, int]:
    """Evaluate in processes; return seconds until the first and last row, and bytes."""

    async def main() -> tuple[float, float, int]:
        start, first, size = time.perf_counter(), 0.0, 0
        async for made in found.rows(calls):
            first = first or time.perf_counter() - start
            size += sum(len(line) + 1 for line in made.lines)
        return first, time.perf_counter() - start, size

    try:
        return asyncio.run(main())
    finally:
        found.close()


def told(name: str, rows: int, first: float, last: float, base: float) -> float:
    """Print a step; return its rate after the start, which is 0 where it is not told apart."""
    if first >= last:  # files of results appear at the end
        print(f"{name:44} {last:6.1f} s, the start included", flush=True)
        return 0.0
    rate = rows / (last - first)
    beside = f", {rate / base:.2f} x" if base else ""
    print(
        f"{name:44} {last:6.1f} s, {first:5.1f} s of them until the first rows; "
        f"then {rate:6.0f} rows/s{beside}",
        flush=True,
    )
    return rate


def by_dataset(calls: Path, rows: int, actors: int) -> tuple[float, float, int]:
    """Evaluate by Ray Data, from JSON to Parquet; the start is that of a tenth of the rows."""
    import ray

    from rag_eval_integrations.ray import EvaluatorConfig, evaluate_dataset

    ray.data.DataContext.get_current().enable_progress_bars = False
    seconds, size = [], 0
    for part in (rows // 10, rows):
        out = Path(tempfile.mkdtemp())
        ds = ray.data.read_json(str(calls)).limit(part).repartition(4 * actors)
        start = time.perf_counter()
        evaluate_dataset(ds, EvaluatorConfig(), concurrency=actors).write_parquet(str(out))
        seconds.append(time.perf_counter() - start)
        size = sum(path.stat().st_size for path in out.iterdir())
        shutil.rmtree(out)
    start = max(0.0, seconds[0] - (seconds[1] - seconds[0]) / 9)
    return start, seconds[1], size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    options = parser.parse_args()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")  # that of the processes without Ray
    import ray
    from ray.cluster_utils import Cluster

    from rag_eval_integrations import RagEvaluator
    from rag_eval_integrations.dataset import read_calls
    from rag_eval_integrations.dataset.stream import Processes

    rows = options.rows
    folder = Path(tempfile.mkdtemp())
    calls = folder / "calls.jsonl"
    size = make_rows(calls, rows)

    def stream() -> Iterable[Any]:
        return (line.value for line in read_calls(calls))

    start = time.perf_counter()
    sum(1 for _ in stream())
    reading = time.perf_counter() - start
    print(
        f"{platform.python_version()}, ray {ray.__version__}, {os.cpu_count()} cores; {rows} rows "
        f"of {size / rows:.0f} bytes; reading alone {rows / reading:.0f} rows/s"
    )

    evaluator = RagEvaluator()
    first, last, written = timed(Processes(evaluator, 1, alone=rows), stream())
    print(f"a row of EVALS has {written / rows:.0f} bytes")
    base = told("one process", rows, first, last, 0.0)
    told("two processes", rows, *timed(Processes(evaluator, 2, alone=0), stream())[:2], base)

    def both(name: str) -> None:
        first, last, parquet = by_dataset(calls, rows, 2)
        told(name, rows, first, last, base)
        print(f"  in Parquet, a row has {parquet / rows:.0f} bytes")

    one: dict[str, Any] = {"include_dashboard": False, "object_store_memory": _OBJECTS}
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    ray.init(num_cpus=2, _node_ip_address="127.0.0.1", **one, **quiet)
    end: Callable[[], None] = ray.shutdown
    try:
        both("one Ray machine of 2 CPUs")
    finally:
        end()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **one})
    try:
        cluster.add_node(num_cpus=1, object_store_memory=_OBJECTS)
        ray.init(address=cluster.address, **quiet)
        both("two Ray machines of 1 CPU")
    finally:
        end()
        cluster.shutdown()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
