"""A whole evaluation by an LLM judge: requests, throughput, CPU and memory; and under faults.

    python benchmarks/llm_judge.py [--calls 640] [--concurrency 32] [--rounds 3] [--no-faults]

Calls have five documents of 5,400 characters together (`real_rows.py`); the endpoint
(`tests/support/loopback.py`) is a process of its own, which labels each in 2.4 kB. The floor is a
bare `AsyncOpenAI` loop that sends the very same messages in the same run. With a
fixed latency all replies come at once, again and again, and the client's pool looks at all idle
connections for each; a spread of +/- 50 % is what a model's replies have. Both, and the evaluation
over aiohttp where it is installed, take turns, over connections that are open already; of rounds
the best counts, since whatever else the machine does only slows them down. CPU is this process's.
Under faults (10 % 429 with Retry-After, 5 % 500, 5 % bodies cut off, 2 % hangs of 30 s) every call
should end scored or with a stated error.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import openai
from loopback import Behaviour, spawned
from openai import AsyncOpenAI
from real_rows import calls, reply

from rag_eval_integrations import OpenAIModel, RagEvaluator, evaluate_calls
from rag_eval_integrations.judges import _prompt as prompt
from rag_eval_integrations.models import ThrottledModel
from rag_eval_integrations.sentences import Punkt, sentencize

REPLY = reply()
FAULTS = {"429": 0.10, "500": 0.05, "truncate": 0.05, "hang": 0.02}
TIMEOUT = 20.0


@dataclass(frozen=True)
class Figures:
    """The figures of one run."""

    per_second: float
    cpu_ms: float
    outcomes: dict[str, int] = field(default_factory=dict)


Run = Callable[[str, int, int], Awaitable[Figures]]


async def bare(url: str, count: int, concurrency: int) -> Figures:
    """Measure the client alone, on the same messages."""
    splitter = Punkt()
    asked = []
    for call in calls(count + concurrency):
        made = sentencize(call, splitter)
        messages = prompt.messages(call.question, made.documents, made.response)
        asked.append([{"role": m.role, "content": m.content} for m in messages])
    schema = {"name": "labels", "strict": True, "schema": prompt.LABELS_SCHEMA}
    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0, timeout=60.0)
    waiting = iter(asked)

    async def ask(messages: object) -> None:
        reply = await client.chat.completions.create(
            model="m",
            messages=messages,  # type: ignore[arg-type]
            response_format={"type": "json_schema", "json_schema": schema},  # type: ignore[arg-type]
            temperature=0.0,
            max_tokens=1000,
        )
        json.loads(reply.choices[0].message.content or "")

    async def work() -> None:
        for messages in waiting:
            await ask(messages)

    await asyncio.gather(*(ask(messages) for messages in islice(waiting, concurrency)))
    start, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(work() for _ in range(concurrency)))
    seconds, used = time.perf_counter() - start, time.process_time() - cpu
    await client.close()
    return Figures(count / seconds, used / count * 1000)


async def judged(url: str, count: int, concurrency: int) -> Figures:
    """Measure the whole evaluation."""
    return await _judged(OpenAIModel("m", base_url=url, timeout=TIMEOUT), count, concurrency)


async def over_aiohttp(url: str, count: int, concurrency: int) -> Figures:
    """Measure the whole evaluation, over aiohttp under the openai client."""

    def make() -> AsyncOpenAI:
        http = openai.DefaultAioHttpClient(timeout=TIMEOUT)
        return AsyncOpenAI(base_url=url, api_key="none", max_retries=0, http_client=http)

    return await _judged(OpenAIModel("m", client=make, timeout=TIMEOUT), count, concurrency)


async def _judged(model: OpenAIModel, count: int, concurrency: int) -> Figures:
    evaluator = RagEvaluator(ThrottledModel(model, max_concurrency=concurrency))
    rows = iter(list(calls(count + concurrency)))  # made before the clock starts
    # Imports, and a connection per slot.
    await asyncio.gather(*map(evaluator.evaluate, islice(rows, concurrency)))
    outcomes = {"scored": 0, "unscored": 0, "error": 0, "requests": 0}
    start, cpu = time.perf_counter(), time.process_time()
    async for evaluation in evaluate_calls(
        rows, evaluator, max_concurrency=concurrency, ordered=False
    ):
        outcomes[evaluation.scores["adherence"].status] += 1
        outcomes["requests"] += evaluation.usage.requests
    seconds, used = time.perf_counter() - start, time.process_time() - cpu
    await model.aclose()
    return Figures(count / seconds, used / count * 1000, outcomes)


async def run(count: int, concurrency: int, rounds: int, faults: bool) -> None:
    """Print all figures."""
    runs: dict[str, Run] = {"bare": bare, "judged": judged}
    try:
        openai.DefaultAioHttpClient()
        runs["judged, aiohttp"] = over_aiohttp
    except RuntimeError as error:  # its extra is not installed
        print(error)
    plain = 0.0
    for latency, spread in ((0.05, 0.0), (0.5, 0.0), (0.5, 0.5)):
        found: dict[str, list[Figures]] = {name: [] for name in runs}
        with spawned(Behaviour(content=REPLY, latency=latency, spread=spread)) as url:
            for _ in range(rounds):
                for name, one in runs.items():
                    found[name].append(await one(url, count, concurrency))
        speed = {name: max(one.per_second for one in all_) for name, all_ in found.items()}
        cpu = {name: min(one.cpu_ms for one in all_) for name, all_ in found.items()}
        for name, figures in found.items():
            requests = figures[0].outcomes.get("requests", count)
            print(
                f"latency {latency * 1000:3.0f} ms +/- {spread:.0%}, {concurrency} at once, "
                f"{name:15}: "
                f"{speed[name]:6.1f} calls/s = {speed[name] / speed['bare']:.2f} of the bare "
                f"client, {speed[name] * latency / concurrency:.3f} of the ideal; CPU "
                f"{cpu[name]:.2f} ms per call = {cpu[name] / cpu['bare']:.2f} of the bare client; "
                f"{requests / count:.2f} requests per call",
                flush=True,
            )
        plain = count / speed["judged"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory so far: {peak:.0f} MB")
    if not faults:
        return
    faulty = Behaviour(
        content=REPLY, latency=0.5, faults=FAULTS, hang=30.0, headers={"retry-after": "1"}
    )
    with spawned(faulty) as url:
        figures = await judged(url, count, concurrency)
    outcomes, seconds = figures.outcomes, count / figures.per_second
    print(
        f"under faults: {outcomes}, {outcomes['scored'] / count:.1%} scored, {seconds:.1f} s = "
        f"{seconds / plain:.2f} x the fault-free run (bound 3 x + {TIMEOUT:g} s: "
        f"{3 * plain + TIMEOUT:.1f} s)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=640)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-faults", action="store_true", help="leave the run under faults out")
    options = parser.parse_args()
    asyncio.run(run(options.calls, options.concurrency, options.rounds, not options.no_faults))


if __name__ == "__main__":
    main()
