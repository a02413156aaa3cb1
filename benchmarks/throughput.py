"""Rows per second and memory of `rag-eval run` with the embedded judge, by number of processes.

    python benchmarks/throughput.py [--data ../shared/data] [--rows 100000] [--workers 1 2]

Rows are RAGBench's, repeated with their own questions. Seconds are the clock's and, per CPU, those
of all processes of the command; memory is the largest process's. Baselines in the same run are
reading, validating and writing the rows without splitting or judging, and the first of `--workers`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from rag_eval_integrations.dataset import read_calls
from rag_eval_integrations.records import to_line


def make_calls(data: Path, target: Path, rows: int, *, recorded: bool) -> int:
    """Write `rows` CALLS rows made of the RAGBench files; return the bytes written."""
    sources = sorted((data / "ragbench").glob("*.jsonl.gz"))
    lines = [line for path in sources for line in gzip.decompress(path.read_bytes()).splitlines()]
    kept = ["id", "question", "documents", "response"]
    kept += ["documents_sentences", "response_sentences"] if recorded else []
    with target.open("w", encoding="ascii") as stream:
        for number in range(rows):
            row = json.loads(lines[number % len(lines)])
            row = {name: row[name] for name in kept}
            row["question"] = f"{row['question']} ({number})"  # no two rows share labels
            stream.write(json.dumps(row) + "\n")
    return target.stat().st_size


class Run(NamedTuple):
    """What one run of the command took."""

    wall: float
    cpu: float
    """Seconds of all its processes."""
    peak: float
    """Megabytes of the largest process; those of the runs before count, too."""


def run(calls: Path, out: Path, workers: int) -> Run:
    """Measure `rag-eval run` in child processes."""
    code = "from rag_eval_integrations.cli import main; main()"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(
        [
            sys.executable,
            "-c",
            code,
            "run",
            calls,
            "-o",
            out,
            "--overwrite",
            f"--workers={workers}",
        ],
        check=True,
        capture_output=True,
    )
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Run(wall, cpu, after.ru_maxrss / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="processes")
    options = parser.parse_args()
    if not options.data.is_dir():
        print(f"{options.data} is not here: the labelled development data is needed")
        return
    with tempfile.TemporaryDirectory() as folder:
        calls, out = Path(folder) / "calls.jsonl", Path(folder) / "evals.jsonl"
        for recorded in (False, True):
            for rows in (options.rows // 10, options.rows):
                size = make_calls(options.data, calls, rows, recorded=recorded)
                start = time.perf_counter()
                for line in read_calls(calls):
                    assert line.value is not None
                    to_line(line.value)
                floor = time.perf_counter() - start
                kind = "recorded sentences" if recorded else "split by Punkt"
                print(f"{rows} rows, {kind}, {size / 1e6:.1f} MB; "
                      f"reading and writing alone {rows / floor:.0f} rows/s")  # fmt: skip
                first = 0.0
                for workers in options.workers:
                    took = run(calls, out, workers)
                    first = first or took.wall
                    print(
                        f"  {workers} processes: {took.wall:7.1f} s = {rows / took.wall:6.0f} "
                        f"rows/s, {first / took.wall:.2f} x; {rows / took.cpu:5.0f} rows per CPU "
                        f"second; peak {took.peak:.0f} MB",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
