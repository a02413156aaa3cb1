"""A whole evaluation by an LLM judge: requests, throughput, CPU and memory; and under faults.

    python benchmarks/llm_judge.py [--calls 600] [--concurrency 32]

The endpoint (`tests/support/loopback.py`) is a process of its own. The floor is a bare
`AsyncOpenAI` loop that sends the very same messages in the same run. Under faults (10 % 429 with
Retry-After, 5 % 500, 5 % bodies cut off, 2 % hangs of 30 s) every call should end scored or with a
stated error.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from loopback import Behaviour, spawned
from openai import AsyncOpenAI

from rag_eval_integrations import OpenAIModel, RagCall, RagEvaluator, evaluate_calls
from rag_eval_integrations.judges import _prompt as prompt
from rag_eval_integrations.sentences import Punkt, sentencize
from rag_eval_integrations.testing import labels_reply

SENTENCE = "The ferry to the northern island leaves at nine and carries forty passengers."
KEYS = [f"{number}{letter}" for number in range(3) for letter in "abcdef"]
REPLY = labels_reply(KEYS[:6], ["a", "b", "c"])
FAULTS = {"429": 0.10, "500": 0.05, "truncate": 0.05, "hang": 0.02}
TIMEOUT = 20.0


def calls(count: int) -> Iterator[RagCall]:
    """Make calls of RAGBench's median size: 3 documents, 18 sentences, 3 response sentences."""
    for number in range(count):
        yield RagCall(
            question=f"When does ferry number {number} leave?",
            documents=[" ".join([SENTENCE] * 6)] * 3,
            response=" ".join([SENTENCE] * 3),
        )


async def bare(url: str, count: int, concurrency: int) -> tuple[float, float]:
    """Measure seconds and CPU seconds of the client alone, on the same messages."""
    splitter = Punkt()
    asked = []
    for call in calls(count):
        made = sentencize(call, splitter)
        messages = prompt.messages(call.question, made.documents, made.response)
        asked.append([{"role": m.role, "content": m.content} for m in messages])
    schema = {"name": "labels", "strict": True, "schema": prompt.LABELS_SCHEMA}
    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0, timeout=60.0)
    waiting = iter(asked)

    async def work() -> None:
        for messages in waiting:
            reply = await client.chat.completions.create(
                model="m",
                messages=messages,  # type: ignore[arg-type]
                response_format={"type": "json_schema", "json_schema": schema},  # type: ignore[arg-type]
                temperature=0.0,
                max_tokens=1000,
            )
            json.loads(reply.choices[0].message.content or "")

    start, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(work() for _ in range(concurrency)))
    used = time.perf_counter() - start, time.process_time() - cpu
    await client.close()
    return used


async def judged(url: str, count: int, concurrency: int) -> tuple[float, float, dict[str, int]]:
    """Measure seconds, CPU seconds and outcomes of the whole evaluation."""
    judge = OpenAIModel("m", base_url=url, timeout=TIMEOUT)
    evaluator = RagEvaluator(judge)
    await evaluator.evaluate(next(calls(1)))  # imports and the first connection
    outcomes = {"scored": 0, "unscored": 0, "error": 0, "requests": 0}
    start, cpu = time.perf_counter(), time.process_time()
    async for evaluation in evaluate_calls(
        calls(count), evaluator, max_concurrency=concurrency, ordered=False
    ):
        outcomes[evaluation.scores["adherence"].status] += 1
        outcomes["requests"] += evaluation.usage.requests
    used = time.perf_counter() - start, time.process_time() - cpu
    await judge.aclose()
    return *used, outcomes


async def run(count: int, concurrency: int) -> None:
    """Print all figures."""
    plain = 0.0
    for latency in (0.05, 0.5):
        with spawned(Behaviour(content=REPLY, latency=latency)) as url:
            floor_s, floor_cpu = await bare(url, count, concurrency)
        with spawned(Behaviour(content=REPLY, latency=latency)) as url:
            seconds, cpu, outcomes = await judged(url, count, concurrency)
        ideal = count * latency / concurrency
        print(
            f"latency {latency * 1000:3.0f} ms, {concurrency} at once: "
            f"{count / seconds:6.1f} calls/s = {floor_s / seconds:.2f} of the bare client, "
            f"{ideal / seconds:.3f} of the ideal; CPU {cpu / count * 1000:.2f} ms per call "
            f"(bare {floor_cpu / count * 1000:.2f}); "
            f"{outcomes['requests'] / count:.2f} requests per call for four metrics",
            flush=True,
        )
        plain = seconds
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory so far: {peak:.0f} MB")
    faulty = Behaviour(
        content=REPLY, latency=0.5, faults=FAULTS, hang=30.0, headers={"retry-after": "1"}
    )
    with spawned(faulty) as url:
        seconds, _, outcomes = await judged(url, count, concurrency)
    print(
        f"under faults: {outcomes}, {outcomes['scored'] / count:.1%} scored, {seconds:.1f} s = "
        f"{seconds / plain:.2f} x the fault-free run (bound 3 x + {TIMEOUT:g} s: "
        f"{3 * plain + TIMEOUT:.1f} s)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=600)
    parser.add_argument("--concurrency", type=int, default=32)
    options = parser.parse_args()
    asyncio.run(run(options.calls, options.concurrency))


if __name__ == "__main__":
    main()
