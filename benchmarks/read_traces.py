"""Rows per second of reading traces as calls, beside parsing the same lines alone, and memory.

    uv run python benchmarks/read_traces.py --traces 14000

Spans as Phoenix' REST has them, seven per trace, of which two are of embeddings; CPU time. `sorted`
are the spans of a trace one behind the other, `mixed` those of 200 traces in turns.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rag_eval_integrations.dataset import read_calls

TEXT = "The ferry leaves at nine and carries forty passengers over the lake to the island. " * 6


def spans(trace: int) -> Iterator[dict[str, Any]]:
    """The spans of a trace, some 9 kB."""
    texts = [f"{trace} {part} {TEXT}" for part in range(4)]
    question, answer = f"When does ferry {trace} leave?", f"It leaves at nine, as {trace} says."
    found = {f"retrieval.documents.{n}.document.content": text for n, text in enumerate(texts)}
    said = {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "\n".join([*texts, question]),
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": answer,
    }
    vector = json.dumps([0.125] * 96)
    parts: list[tuple[str, dict[str, Any]]] = [
        ("CHAIN", {"input.value": question, "output.value": answer}),
        ("RETRIEVER", {"input.value": question, **found}),
        ("EMBEDDING", {"input.value": question, "output.value": vector}),
        ("EMBEDDING", {"input.value": question, "output.value": vector}),
        ("CHAIN", {"input.value": question, "output.value": answer}),
        ("LLM", {"input.value": json.dumps(said), "output.value": answer, **said}),
        ("CHAIN", {"input.value": answer, "output.value": answer}),
    ]
    for n, (kind, attributes) in enumerate(parts):
        yield {
            "name": kind, "context": {"trace_id": f"t{trace}", "span_id": f"s{n}"},
            "parent_id": "s0" if n else None, "span_kind": kind, "attributes": attributes,
            "start_time": f"2026-01-02T03:04:0{n}+00:00",
        }  # fmt: skip


def rows(traces: int, mixed: bool) -> Iterator[dict[str, Any]]:
    """The spans of all traces."""
    group = 200 if mixed else 1
    for start in range(0, traces, group):
        several = [list(spans(trace)) for trace in range(start, min(start + group, traces))]
        for same in zip(*several, strict=True):
            yield from same


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--traces", type=int, default=14_000)
    traces: int = parser.parse_args().traces
    with tempfile.TemporaryDirectory() as folder:
        for name in ("sorted", "mixed"):
            path = Path(folder, f"{name}.jsonl")
            with path.open("w") as file:
                file.writelines(f"{json.dumps(row)}\n" for row in rows(traces, name == "mixed"))
            began = time.process_time()
            with path.open("rb") as lines:
                count = sum(bool(json.loads(line)) for line in lines)
            parsed = time.process_time() - began
            began = time.process_time()
            calls = sum(line.value is not None for line in read_calls(path))
            read = time.process_time() - began
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(
                f"{name}: {count:,} spans ({path.stat().st_size / 1e6:.0f} MB), {calls:,} calls in "
                f"{read:.1f} s, {count / read:,.0f} spans per second: {read / parsed:.1f} x "
                f"json.loads; peak so far {peak:.0f} MB"
            )


if __name__ == "__main__":
    main()
