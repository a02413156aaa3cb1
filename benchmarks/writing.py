"""Rows per second, memory and disk of writing EVALS as they are made, in every form.

    python benchmarks/writing.py [--rows 50000] [--only jsonl,jsonl.gz,parquet]

Evaluations of 500 calls with four documents, made once, are written again and again under other
ids, in order, as a run does: `EvaluationFile.add` and `finish`, in a process of its own.
The baseline is the same as plain lines. The disk is looked at every 10 ms: `more disk` is how much
its peak is above the result, in MB; for gzip and Parquet, these are the lines of which they are
made. `to read` is rows per second of `read_evaluations`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

FORMS = ("jsonl", "jsonl.gz", "parquet")
WORDS = (
    "ferry", "pier", "harbour", "ticket", "captain", "island", "engine", "lantern", "anchor",
    "morning", "weather", "cargo",
)  # fmt: skip


def texts(number: int) -> tuple[str, list[str], str]:
    """Return a question, documents and a response that differ from call to call."""
    word = [WORDS[(number * step) % 12] for step in (1, 5, 7, 11)]
    documents = [
        f"The {one} {number + place} leaves at {place + 7}. It carries {number} passengers and a "
        f"{word[place - 1]}. Its {word[place - 2]} was painted in {1900 + number % 100}. Nobody "
        f"has seen the {one} of {word[place - 3]} {number * 31 % 977} since then."
        for place, one in enumerate(word)
    ]
    response = f"The {word[0]} {number} leaves at 7. Its {word[2]} was painted in {1900 + number}."
    return f"When does the {word[0]} {number} leave?", documents, response


def used(folder: Path) -> int:
    """Return the bytes that files take in a folder."""
    total = 0
    for below, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(below, name)).st_size
            except FileNotFoundError:  # renamed meanwhile
                continue
    return total


def write(folder: Path, form: str, count: int) -> None:
    """Write rows in a form; print what it took."""
    from rag_eval_integrations import RagCall, RagEvaluator
    from rag_eval_integrations.dataset import EvaluationFile
    from rag_eval_integrations.dataset._evals import read_evaluations

    if form == "parquet":
        import pyarrow.parquet  # noqa: F401 -- its memory is not that of rows
    evaluator = RagEvaluator("embedded")

    async def evaluate() -> list[object]:
        calls = [texts(number) for number in range(500)]
        return [
            await evaluator.evaluate(RagCall(question=asked, documents=found, response=said))
            for asked, found, said in calls
        ]

    made = asyncio.run(evaluate())
    out = folder / f"evals.{form}"
    peak, ended = 0, threading.Event()

    def look() -> None:
        nonlocal peak
        while not ended.wait(0.01):
            peak = max(peak, used(folder))

    def memory() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    looking = threading.Thread(target=look, daemon=True)
    before = memory()
    looking.start()
    started, cpu = time.perf_counter(), time.process_time()
    with EvaluationFile(out, evaluator.fingerprint) as file:
        for number in range(count):
            one = made[number % 500].model_copy(update={"id": str(number)})  # type: ignore[attr-defined]
            file.add(number, one)
        file.finish()
    took = time.perf_counter() - started, time.process_time() - cpu
    grown = memory() - before
    ended.set()
    looking.join()
    started = time.perf_counter()
    assert sum(line.value is not None for line in read_evaluations(out)) == count
    reading = time.perf_counter() - started
    result = used(folder)
    print(json.dumps([*took, max(peak - result, 0), result, grown, reading]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--only", default=",".join(FORMS))
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--form", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.write:
        write(given.write, given.form, given.rows)
        return
    print(f"{given.rows:,} rows; sizes and rates as multiples of plain lines in brackets")
    print(
        f"{'form':<10}{'rows/s':>10}{'per CPU s':>18}{'bytes/row':>18}{'more disk':>11}{'MB':>7}"
        f"{'to read':>10}"
    )
    base: tuple[float, float] | None = None
    for form in ["jsonl", *(one for one in given.only.split(",") if one != "jsonl")]:
        with tempfile.TemporaryDirectory() as folder:
            words = [sys.executable, __file__, "--write", folder, "--form", form]
            words += ["--rows", str(given.rows)]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
        seconds, cpu, more, size, grown, reading = json.loads(done.stdout)
        rate, bytes_per_row = given.rows / cpu, size / given.rows
        base = base or (rate, bytes_per_row)
        print(
            f"{form:<10}{given.rows / seconds:>10,.0f}{rate:>10,.0f} ({rate / base[0]:.2f})"
            f"{bytes_per_row:>10,.0f} ({bytes_per_row / base[1]:.3f}){more / 1e6:>11.1f}"
            f"{grown:>7.0f}{given.rows / reading:>10,.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
