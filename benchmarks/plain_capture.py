"""Capture overhead for a plain RAG function: as a block, decorated, streamed, by `record_call`.

Run: python benchmarks/plain_capture.py [--calls 5000] [--documents 5] [--memory-calls 10000]

The same function uncaptured and captured take turns in one loop, so that a busy machine affects
all alike. Each way's figures are its median less the uncaptured median, and its p99 less the
uncaptured p99. `per item` is the additional waiting time of a stream's reader per token.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator

from rag_eval_integrations.capture import (
    capture_call,
    capture_failures,
    current_call,
    record_call,
)

QUESTION = "How do I reset the station?"
ANSWER = "Hold the blue button for eight seconds. " * 5
TOKENS = 100

Ask = Callable[[], object]


def discard(call: object) -> None:
    """Accept the call and do nothing."""


def ways(documents: list[dict[str, object]]) -> dict[str, Ask]:
    """Return the same call uncaptured and captured in each way."""

    def answer(question: str) -> str:
        current = list(documents)
        return ANSWER if current else ""

    def stream(question: str) -> Iterator[str]:
        for _ in range(TOKENS):
            yield "token "

    @capture_call(discard)
    def decorated(question: str) -> str:
        current_call().documents = documents
        return answer(question)

    def block() -> str:
        with capture_call(discard, QUESTION) as call:
            call.documents = documents
            call.response = answer(QUESTION)
            return call.response

    def at_hand() -> str:
        response = answer(QUESTION)
        record_call(discard, question=QUESTION, documents=documents, response=response)
        return response

    streamed = capture_call(discard)(stream)
    return {
        "uncaptured": lambda: answer(QUESTION),
        "block": block,
        "decorated": lambda: decorated(QUESTION),
        "record_call": at_hand,
        "stream, uncaptured": lambda: list(stream(QUESTION)),
        "stream": lambda: list(streamed(QUESTION)),
    }


def timed(variants: dict[str, Ask], calls: int) -> dict[str, tuple[float, float]]:
    """Measure median and p99 of each variant in microseconds, taken in turns."""
    times: dict[str, list[float]] = {name: [] for name in variants}
    for ask in variants.values():
        for _ in range(100):
            ask()
    for _ in range(calls):
        for name, ask in variants.items():
            began = time.perf_counter()
            ask()
            times[name].append(time.perf_counter() - began)
    return {
        name: (statistics.median(taken) * 1e6, statistics.quantiles(taken, n=100)[98] * 1e6)
        for name, taken in times.items()
    }


def left_behind(ask: Ask, calls: int) -> int:
    """Measure the bytes that a number of calls leave allocated."""
    for _ in range(200):
        ask()
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for _ in range(calls):
        ask()
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return after - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--documents", type=int, default=5)
    parser.add_argument("--memory-calls", type=int, default=10_000)
    chosen = parser.parse_args()
    text = "Hold the blue button for eight seconds to reset it. " * 8
    documents: list[dict[str, object]] = [
        {"id": f"{number}", "text": text, "metadata": {"page": number, "source": "manual.pdf"}}
        for number in range(chosen.documents)
    ]
    variants = ways(documents)

    found = timed(variants, chosen.calls)
    print(f"{chosen.calls} calls with {chosen.documents} documents of {len(text)} characters")
    for name, (median, p99) in found.items():
        base = found["stream, uncaptured" if name.startswith("stream") else "uncaptured"]
        added = f"+ {median - base[0]:6.1f} µs median, + {p99 - base[1]:6.1f} µs p99"
        if name.endswith("uncaptured"):
            added = f"  {median:6.1f} µs median,   {p99:6.1f} µs p99"
        elif name == "stream":
            added += f" ({TOKENS} tokens: {(median - base[0]) / TOKENS:.2f} µs per item)"
        print(f"  {name:<20} {added}")
    for name in ("block", "decorated", "stream"):
        grown = left_behind(variants[name], chosen.memory_calls)
        print(f"  {name:<20} {grown:+d} bytes left after {chosen.memory_calls} calls")
    print(f"  {capture_failures()} failures")


if __name__ == "__main__":
    main()
