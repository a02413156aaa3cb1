"""Rows per second and memory of reading calls in every format, and of writing them again.

    python benchmarks/reading.py [--rows 1000000] [--only jsonl,csv]

Every format is made, read and written again as CALLS in a process of its own. The baseline reads
the JSONL file with `json.loads` and writes it with `json.dumps`, line by line. Memory is the peak
of the process less what it has before the first row, for all rows and for a tenth of them: flat
means that both are alike.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

FORMATS = ("jsonl", "jsonl.gz", "json", "csv", "csv.gz", "parquet", "ragas.jsonl")


def rows(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {
            "id": str(number),
            "question": f"When does ferry {number} leave?",
            "documents": ["It leaves at nine. It carries forty passengers.", "The pier is old."],
            "response": "It leaves at nine.",
        }


def foreign(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": row["id"], "user_input": row["question"], "retrieved_contexts": row["documents"],
        "response": row["response"],
    }  # fmt: skip


def write_text(file: TextIO, form: str, count: int) -> None:
    if form == "csv":
        table = csv.writer(file)
        table.writerow(["id", "question", "documents", "response"])
        for row in rows(count):
            table.writerow([*list(row.values())[:2], json.dumps(row["documents"]), row["response"]])
    elif form == "json":
        file.write("[")
        for number, row in enumerate(rows(count)):
            file.write(f"{',' if number else ''}\n{json.dumps(row)}")
        file.write("]\n")
    else:
        for row in rows(count):
            file.write(json.dumps(foreign(row) if form == "ragas.jsonl" else row) + "\n")


def make(path: Path, form: str, count: int) -> None:
    if form == "parquet":
        import pyarrow as pa
        from pyarrow import parquet as pq

        schema = pa.Table.from_pylist(list(rows(1))).schema
        held = rows(count)
        with pq.ParquetWriter(path, schema) as file:
            while group := list(islice(held, 100_000)):
                file.write_table(pa.Table.from_pylist(group, schema=schema))
    elif form.endswith(".gz"):
        with gzip.open(path, "wt", compresslevel=1, encoding="utf-8", newline="") as file:
            write_text(file, form.removesuffix(".gz"), count)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            write_text(file, form, count)


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def copy(path: Path, form: str) -> None:
    """Read a file and write it again; print rows, seconds, CPU seconds and growth in MB."""
    from rag_eval_integrations.dataset import read_calls
    from rag_eval_integrations.records import to_line

    if form == "parquet":
        import pyarrow.parquet  # noqa: F401 -- its 80 MB are no rows
    count, before = 0, peak()
    started, cpu = time.perf_counter(), time.process_time()
    with path.with_suffix(".copy").open("w", encoding="ascii") as out:
        if form == "baseline":
            with path.open("rb") as file:
                for line in file:
                    out.write(json.dumps(json.loads(line)) + "\n")
                    count += 1
        else:
            for found in read_calls(path):
                assert found.value is not None, found.error
                out.write(to_line(found.value) + "\n")
                count += 1
    took = time.perf_counter() - started, time.process_time() - cpu
    path.with_suffix(".copy").unlink()
    print(json.dumps([count, *took, peak() - before]))


def measured(path: Path, form: str) -> tuple[int, float, float, float]:
    words = [sys.executable, __file__, "--copy", str(path), "--form", form]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    count, seconds, cpu, grown = json.loads(done.stdout)
    return count, seconds, cpu, grown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", default=",".join(FORMATS))
    parser.add_argument("--copy", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--form", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.copy:
        copy(given.copy, given.form)
        return
    print(f"{given.rows:,} rows; rows per second of wall time and of CPU; MB for all and a tenth")
    heads = f"{'rows/s':>10}{'per CPU s':>12}{'of baseline':>13}{'MB':>8}{'MB of 1/10':>12}"
    print(f"{'format':<14}{heads}")
    with tempfile.TemporaryDirectory() as folder:
        whole, tenth = Path(folder, "rows.jsonl"), Path(folder, "tenth.jsonl")
        make(whole, "jsonl", given.rows)
        count, seconds, cpu, grown = measured(whole, "baseline")
        base = count / cpu
        print(f"{'json.loads':<14}{count / seconds:>10,.0f}{base:>12,.0f}{1:>13.2f}{grown:>8.1f}")
        whole.unlink()
        for form in given.only.split(","):
            whole, tenth = (Path(folder, f"{name}.{form}") for name in ("rows", "tenth"))
            make(whole, form, given.rows)
            make(tenth, form, given.rows // 10)
            count, seconds, cpu, grown = measured(whole, form)
            assert count == given.rows
            _, _, _, less = measured(tenth, form)
            rate = count / cpu
            print(
                f"{form:<14}{count / seconds:>10,.0f}{rate:>12,.0f}{rate / base:>13.2f}"
                f"{grown:>8.1f}{less:>12.1f}",
                flush=True,
            )
            whole.unlink()
            tenth.unlink()


if __name__ == "__main__":
    main()
