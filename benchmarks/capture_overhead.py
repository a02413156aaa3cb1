"""Overhead of capture per call: a LangChain LCEL chain and a LlamaIndex query engine, in memory.

Run: python benchmarks/capture_overhead.py [--calls 2000] [--memory-calls 10000]

For each framework, calls without a handler, with one that does nothing, and with ours take turns
in one loop, so that a busy machine affects all alike. Times are CPU seconds of the app's thread, at
the 20th percentile and the median. Ours has two kinds of target: a function, which is to have the
record when the call ends, and an evaluator, whose own thread finds the documents in the prompt and
hashes the texts. (Its judge never answers here, so that evaluations take nothing from the app.)
After many calls, the remaining open calls, failures and resident memory are printed. Last, a
handler per call, as web apps make them, takes turns with one handler for all on the same evaluator.

In an app the code of capture is cold: the same events, replayed in a loop of their own, take a
third of the time that they add to a chain.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path

from langchain_core.callbacks import BaseCallbackHandler
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.event_handlers import NullEventHandler
from llama_index_instrumentation.span_handlers import NullSpanHandler

from rag_eval_integrations import BackgroundEvaluator, EmbeddedJudge, RagEvaluator
from rag_eval_integrations.cli.demo import langchain_app, llama_index_app
from rag_eval_integrations.cli.demo.corpus import LANGCHAIN_EXCHANGES, LLAMA_INDEX_EXCHANGES
from rag_eval_integrations.langchain import RagEvalCallbackHandler
from rag_eval_integrations.llama_index import RagEvalHandler
from rag_eval_integrations.records import Labelling, SentencizedCall

Ask = Callable[[], object]


class DoesNothing(BaseCallbackHandler):
    """The floor: the time that LangChain itself needs to call any handler."""

    run_inline = True


def discard(call: object) -> None:
    """Accept the call and do nothing."""


class Waiting(EmbeddedJudge):
    """A judge that never answers."""

    async def label(self, call: SentencizedCall) -> Labelling:
        """Wait."""
        await asyncio.Event().wait()
        raise AssertionError("nothing sets it")


def evaluator(calls: int) -> BackgroundEvaluator:
    """Return an evaluator that takes so many calls and finishes none."""
    return BackgroundEvaluator(
        RagEvaluator(Waiting()), max_pending=calls, max_concurrency=1, exit_grace=0
    )


def measured(variants: dict[str, Ask], calls: int) -> dict[str, list[float]]:
    """Measure the seconds of CPU of every call of each variant, taken in turns."""
    times: dict[str, list[float]] = {name: [] for name in variants}
    for ask in variants.values():
        for _ in range(50):
            ask()
    for _ in range(calls):
        for name, ask in variants.items():
            began = time.thread_time()
            ask()
            times[name].append(time.thread_time() - began)
    return times


def resident_mb() -> float:
    """Return the resident memory in MB, or its peak where there is no /proc."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize() / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def report(host: str, times: dict[str, list[float]]) -> None:
    """Print what each variant adds, beside what a handler that does nothing adds."""
    for label, place in (("20th percentile", 0.2), ("median", 0.5)):
        found = {name: sorted(taken)[int(len(taken) * place)] for name, taken in times.items()}
        base = found.pop("no handler")
        nothing = found["does nothing"] - base
        print(f"{host}, {label}: {base * 1e6:.0f} µs per call without a handler")
        for name, taken in found.items():
            added = taken - base
            ratio = f", {added / nothing:.2f} times" if nothing > 0 else ""
            print(f"  {name:<14} + {added * 1e6:6.0f} µs{ratio}")


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

    background = evaluator(calls + 100)
    variants = {
        "no handler": ask(),
        "does nothing": ask(DoesNothing()),
        "to a function": ask(handler),
        "to an evaluator": ask(RagEvalCallbackHandler(background)),
    }
    report("LangChain", measured(variants, calls))
    background.close(0)
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

    background = evaluator(calls + 100)
    handlers = {"to a function": handler, "to an evaluator": RagEvalHandler(background)}
    times: dict[str, list[float]] = {
        "no handler": [],
        "does nothing": [],
        **{n: [] for n in handlers},
    }

    def timed(name: str) -> None:
        began = time.thread_time()
        plain()
        times[name].append(time.thread_time() - began)

    for round_ in range(calls + 50):
        timed("no handler")
        spans, events = root.span_handlers, root.event_handlers
        root.span_handlers, root.event_handlers = [*spans, span_handler], [*events, event_handler]
        timed("does nothing")
        root.span_handlers, root.event_handlers = spans, events
        for name, one in handlers.items():
            with one:
                timed(name)
        if round_ == 50:
            times = {name: [] for name in times}
    report("LlamaIndex", times)
    background.close(0)
    memory("no handler", plain, memory_calls)
    with handler:
        memory("ours", plain, memory_calls)
    left(handler)


def per_request(requests: int) -> None:
    """Print what a handler per call costs beside one for all; each call is evaluated."""
    chain = langchain_app.build_chain()
    question = LANGCHAIN_EXCHANGES[0].question
    evaluator = RagEvaluator()
    shared = RagEvalCallbackHandler(evaluator)
    before = threading.active_count()

    def ask(handler: RagEvalCallbackHandler) -> None:
        chain.invoke(question, config={"callbacks": [handler]})
        handler.flush()

    variants: dict[str, Ask] = {
        "one handler": lambda: ask(shared),
        "one per call": lambda: ask(RagEvalCallbackHandler(evaluator)),
    }
    print(f"{requests} handlers on one evaluator")
    for name, taken in measured(variants, requests).items():
        print(f"  {name:<14} {sorted(taken)[requests // 2] * 1e6:6.0f} µs of CPU, median")
    memory("a handler each", variants["one per call"], requests)
    print(f"  {threading.active_count() - before} threads more")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--memory-calls", type=int, default=10_000)
    chosen = parser.parse_args()
    langchain(chosen.calls, chosen.memory_calls)
    llama_index(chosen.calls, chosen.memory_calls)
    per_request(300)


if __name__ == "__main__":
    main()
