"""Rows per second and memory of `rag-eval run` with the embedded judge, on one core.

    python benchmarks/throughput.py [--data ../shared/data] [--rows 100000]

Rows are RAGBench's, repeated with their own questions; time and memory are of the child process
that runs the command. The baseline in the same run is reading, validating and writing the rows
without splitting or judging.
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


def run(calls: Path, out: Path) -> tuple[float, float]:
    """Measure the seconds and peak megabytes of `rag-eval run` in a child process."""
    code = "from rag_eval_integrations.cli import main; main()"
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", code, "run", calls, "-o", out, "--overwrite"],
        check=True,
        capture_output=True,
    )
    seconds = time.perf_counter() - start
    return seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--rows", type=int, default=100_000)
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
                seconds, peak = run(calls, out)
                kind = "recorded sentences" if recorded else "split by Punkt"
                print(
                    f"{rows:7} rows, {kind:18} {size / 1e6:7.1f} MB: {seconds:7.1f} s = "
                    f"{rows / seconds:6.0f} rows/s (reading, writing alone {rows / floor:6.0f}), "
                    f"peak {peak:5.0f} MB",
                    flush=True,
                )


if __name__ == "__main__":
    main()
