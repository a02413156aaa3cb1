"""Overhead of capture per call: a LangChain LCEL chain and a LlamaIndex query engine, in memory.

Run: python benchmarks/capture_overhead.py [--calls 2000] [--memory-calls 10000]

For each framework, calls without a handler, with one that does nothing, and with ours take turns in
one loop, so that a busy machine affects all alike; the medians are compared. After many calls, the
remaining open calls, failures and resident memory are printed.

On a busy machine times vary by half, so changes were compared by instructions per call (callgrind,
without garbage collections, and with LangChain's threads run inline), of all that is added to a
call without a handler. A handler that does nothing adds 320,000 to the chain and 150,000 to the
query. Capture added 621,000 and 646,000 while it made every call's default id by `json.dumps` and
looked at each text by itself for lone surrogates; now it adds 572,000 and 497,000, and 535,000 and
463,000 where the target is an evaluator, whose thread makes the id. While ids were made when they
were first read, and texts kept their lone surrogates, it was 526,000 to 533,000 and 479,000 to
485,000.
"""

from __future__ import annotations

import argparse
import gc
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from langchain_core.callbacks import BaseCallbackHandler
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.event_handlers import NullEventHandler
from llama_index_instrumentation.span_handlers import NullSpanHandler

from rag_eval_integrations.cli.demo import langchain_app, llama_index_app
from rag_eval_integrations.cli.demo.corpus import LANGCHAIN_EXCHANGES, LLAMA_INDEX_EXCHANGES
from rag_eval_integrations.langchain import RagEvalCallbackHandler
from rag_eval_integrations.llama_index import RagEvalHandler

Ask = Callable[[], object]


class DoesNothing(BaseCallbackHandler):
    """The floor: the time that LangChain itself needs to call any handler."""

    run_inline = True


def discard(call: object) -> None:
    """Accept the call and do nothing."""


def medians(variants: dict[str, Ask], calls: int) -> dict[str, float]:
    """Measure the median seconds per call of each variant, taken in turns."""
    times: dict[str, list[float]] = {name: [] for name in variants}
    for ask in variants.values():
        for _ in range(50):
            ask()
    for _ in range(calls):
        for name, ask in variants.items():
            began = time.perf_counter()
            ask()
            times[name].append(time.perf_counter() - began)
    return {name: statistics.median(taken) for name, taken in times.items()}


def resident_mb() -> float:
    """Return the resident memory in MB, or its peak where there is no /proc."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize() / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def report(host: str, found: dict[str, float]) -> None:
    base = found["no handler"]
    print(f"{host}: {base * 1e6:.0f} µs per call without a handler")
    for name, median in found.items():
        if name != "no handler":
            print(f"  {name:<18} + {(median - base) * 1e6:6.0f} µs")


def memory(name: str, ask: Ask, calls: int) -> None:
    """Print the memory that many calls leave behind; the frameworks leave some too."""
    for _ in range(500):  # caches
        ask()
    gc.collect()
    before, objects = resident_mb(), len(gc.get_objects())
    for _ in range(calls):
        ask()
    gc.collect()
    print(
        f"  {calls} calls, {name}: RSS {before:.1f} -> {resident_mb():.1f} MB, "
        f"{len(gc.get_objects()) - objects:+d} objects"
    )


def left(handler: RagEvalCallbackHandler | RagEvalHandler) -> None:
    """Print the objects that our handler still holds."""
    print(f"  {handler.open_calls} open, {handler.failed} failed, {handler.dropped} dropped")


def langchain(calls: int, memory_calls: int) -> None:
    handler = RagEvalCallbackHandler(discard)
    chain = langchain_app.build_chain()
    question = LANGCHAIN_EXCHANGES[0].question

    def ask(*callbacks: BaseCallbackHandler) -> Ask:
        return lambda: chain.invoke(question, config={"callbacks": list(callbacks)})

    variants = {"no handler": ask(), "does nothing": ask(DoesNothing()), "ours": ask(handler)}
    report("LangChain", medians(variants, calls))
    memory("no handler", ask(), memory_calls)
    memory("ours", ask(handler), memory_calls)
    left(handler)


def llama_index(calls: int, memory_calls: int) -> None:
    handler = RagEvalHandler(discard)
    engine = llama_index_app.build_engine()
    question = LLAMA_INDEX_EXCHANGES[0].question
    root = get_dispatcher()
    span_handler, event_handler = NullSpanHandler(), NullEventHandler()

    def plain() -> object:
        return engine.query(question)

    times: dict[str, list[float]] = {"no handler": [], "does nothing": [], "ours": []}

    def timed(name: str) -> None:
        began = time.perf_counter()
        plain()
        times[name].append(time.perf_counter() - began)

    for round_ in range(calls + 50):
        timed("no handler")
        spans, events = root.span_handlers, root.event_handlers
        root.span_handlers, root.event_handlers = [*spans, span_handler], [*events, event_handler]
        timed("does nothing")
        root.span_handlers, root.event_handlers = spans, events
        handler.install()
        timed("ours")
        handler.uninstall()
        if round_ == 50:
            times = {name: [] for name in times}
    report("LlamaIndex", {name: statistics.median(taken) for name, taken in times.items()})
    memory("no handler", plain, memory_calls)
    with handler:
        memory("ours", plain, memory_calls)
    left(handler)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--memory-calls", type=int, default=10_000)
    chosen = parser.parse_args()
    langchain(chosen.calls, chosen.memory_calls)
    llama_index(chosen.calls, chosen.memory_calls)


if __name__ == "__main__":
    main()
