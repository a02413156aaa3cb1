"""Throughput and client CPU of `OpenAIModel` beside a bare `AsyncOpenAI` loop.

    python benchmarks/openai_judge_floor.py [--requests N] [--concurrency N] [--latency S …]

The endpoint (`tests/support/loopback.py`) is a process of its own and answers each request after
the latency. Both clients ask the same questions for the same JSON, in turns, in this process; the
best of the rounds counts, since whatever else the machine does only slows them down.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from loopback import Behaviour, spawned

from rag_eval_integrations.models.completion import CompletionRequest, Message
from rag_eval_integrations.models.openai import OpenAIModel
from rag_eval_integrations.models.openai._bodies import strict_schema

ENTRY = {
    "type": "object",
    "properties": {
        "response_sentence_key": {"type": "string"},
        "explanation": {"type": "string"},
        "supporting_sentence_keys": {"type": "array", "items": {"type": "string"}},
        "fully_supported": {"type": "boolean"},
    },
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "relevance_explanation": {"type": "string"},
        "all_relevant_sentence_keys": {"type": "array", "items": {"type": "string"}},
        "sentence_support_information": {"type": "array", "items": ENTRY},
    },
}
ANSWER = {
    "relevance_explanation": "The first document says so. " * 8,
    "all_relevant_sentence_keys": ["0a", "0b", "1c"],
    "sentence_support_information": [
        {
            "response_sentence_key": key,
            "explanation": "It is stated in so many words. " * 3,
            "supporting_sentence_keys": ["0a"],
            "fully_supported": True,
        }
        for key in "abcdef"
    ],
}
SYSTEM, TEXT = "Label the sentences. " * 100, "0a A sentence of a document. " * 250


@dataclass(frozen=True)
class Figures:
    """The figures of one run."""

    per_second: float
    cpu_ms: float


async def measure(ask: Callable[[int], Awaitable[str]], requests: int, concurrency: int) -> Figures:
    """Ask `requests` questions, `concurrency` at a time, over connections opened before."""
    await asyncio.gather(*[ask(-i) for i in range(concurrency)])
    numbers = iter(range(requests))

    async def work() -> None:
        for number in numbers:
            assert json.loads(await ask(number))

    start, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*[work() for _ in range(concurrency)])
    seconds, used = time.perf_counter() - start, time.process_time() - cpu
    return Figures(requests / seconds, used / requests * 1000)


async def bare(url: str, requests: int, concurrency: int) -> Figures:
    """Measure the floor: the bare client."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0, timeout=60.0)
    schema: Any = {"name": "answer", "schema": strict_schema(SCHEMA), "strict": True}

    async def ask(number: int) -> str:
        reply = await client.chat.completions.create(
            model="m",
            messages=[
                {"role": "system", "content": SYSTEM},
                {"role": "user", "content": f"{number} {TEXT}"},
            ],
            response_format={"type": "json_schema", "json_schema": schema},
        )
        return reply.choices[0].message.content or ""

    async with client:
        return await measure(ask, requests, concurrency)


async def ours(url: str, requests: int, concurrency: int) -> Figures:
    """Measure `OpenAIModel`."""
    judge = OpenAIModel("m", base_url=url)

    async def ask(number: int) -> str:
        request = CompletionRequest(
            messages=(
                Message(role="system", content=SYSTEM),
                Message(role="user", content=f"{number} {TEXT}"),
            ),
            json_schema=SCHEMA,
        )
        return (await judge.complete(request)).text

    try:
        return await measure(ask, requests, concurrency)
    finally:
        await judge.aclose()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1600, help="at 50 ms; fewer when slower")
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--latency", type=float, nargs="+", default=[0.05, 0.5])
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    import openai

    print(f"openai {openai.__version__}, concurrency {options.concurrency}")
    for latency in options.latency:
        # At least 20 rounds of all slots: the first, when all ask at once, is the slowest.
        requests = max(int(options.requests * 0.05 / latency), options.concurrency * 20)
        ideal = options.concurrency / latency
        figures: dict[str, list[Figures]] = {"bare": [], "ours": []}
        with spawned(Behaviour(latency=latency, content=json.dumps(ANSWER))) as url:
            for _ in range(options.rounds):
                for name, run in (("bare", bare), ("ours", ours)):
                    figures[name].append(asyncio.run(run(url, requests, options.concurrency)))
        best = {name: max(of.per_second for of in all_) for name, all_ in figures.items()}
        cpu = {name: min(of.cpu_ms for of in all_) for name, all_ in figures.items()}
        for name in figures:
            print(
                f"{latency * 1000:4.0f} ms, {requests} requests, {name}: {best[name]:6.1f}/s = "
                f"{best[name] / ideal:.3f} of the ideal, {cpu[name]:.2f} ms CPU a request"
            )
        print(
            f"{latency * 1000:4.0f} ms, ours / bare: throughput {best['ours'] / best['bare']:.2f}, "
            f"CPU {cpu['ours'] / cpu['bare']:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
