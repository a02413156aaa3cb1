"""Utilisation of models in a run of prompt tests: 42 tests × 4 models × (compliance + a metric).

    python benchmarks/prompt_tests.py [--latency 0.2] [--concurrency 8] [--tests 42]

Scripted models answer after a fixed latency. Said are the ideal time by the time taken, the CPU
time of this process per request, the share of the time during which all `max_concurrency` places
are taken, and what a second, identical run asks (nothing).
"""

from __future__ import annotations

import argparse
import asyncio
import math
import tempfile
import time
from pathlib import Path

from rag_eval_integrations.metrics.prompty import PromptyMetric, parse_prompty
from rag_eval_integrations.models.completion import Completion, CompletionRequest
from rag_eval_integrations.prompt_tests import (
    PromptEvaluation,
    PromptTest,
    PromptUnderTest,
    Result,
    Rule,
    Spec,
    run_tests,
)
from rag_eval_integrations.prompt_tests._requests import Journal
from rag_eval_integrations.testing import ScriptedModel

MODELS = 4


class Places:
    """The time spent with each number of requests in flight."""

    def __init__(self) -> None:
        self.flying = 0
        self.requests = 0
        self._since = time.perf_counter()
        self._spent: dict[int, float] = {}

    def change(self, by: int) -> None:
        """Record that a request begins (1) or ends (-1)."""
        now = time.perf_counter()
        self._spent[self.flying] = self._spent.get(self.flying, 0.0) + now - self._since
        self._since = now
        self.flying += by
        self.requests += by > 0

    def full(self, places: int) -> float:
        """Return the share of the time in which all places are taken."""
        return self._spent.get(places, 0.0) / sum(self._spent.values())


class Counted(ScriptedModel):
    """A scripted model that records its requests."""

    def __init__(self, name: str, reply: str, latency: float, places: Places) -> None:
        super().__init__(lambda _: reply, name=name, latency=latency)
        self._places = places

    async def complete(self, request: CompletionRequest) -> Completion:
        """Answer after the latency."""
        self._places.change(+1)
        try:
            return await super().complete(request)
        finally:
            self._places.change(-1)


async def once(
    journal: Path, latency: float, concurrency: int, count: int
) -> tuple[list[Result], list[tuple[str, Places, float, float]]]:
    put = PromptUnderTest.from_text("system:\nRepeat.\nuser:\n{{text}}", name="bench")
    spec = Spec(rules=tuple(Rule(id=n, text=f"Rule {n}.") for n in range(1, 9)))
    tests = [PromptTest(uid=f"t{n}", rule_id=1, inputs={"text": f"text {n}"}) for n in range(count)]
    metric = PromptyMetric(parse_prompty("Score.\nuser:\n{{input}} {{output}}", name="score"))
    record = Journal(journal)
    timings: list[tuple[str, Places, float, float]] = []

    places, began, cpu = Places(), time.perf_counter(), time.process_time()
    models = [Counted(f"m{n}", f"out {n}", latency, places) for n in range(MODELS)]
    results = await run_tests(put, tests, models, max_concurrency=concurrency, journal=record)
    timings.append(("run", places, time.perf_counter() - began, time.process_time() - cpu))

    places, began, cpu = Places(), time.perf_counter(), time.process_time()
    judge = Counted("judge", "Fine, score 90.\nOK", latency, places)
    evaluation = PromptEvaluation(
        put, spec, [judge], [metric], max_concurrency=concurrency, journal=record
    )
    results = await evaluation.outputs(results)
    timings.append(("evaluate", places, time.perf_counter() - began, time.process_time() - cpu))
    return results, timings


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--tests", type=int, default=42)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "replies.sqlite"
        for attempt in ("first", "second"):
            results, timings = asyncio.run(
                once(journal, given.latency, given.concurrency, given.tests)
            )
            for stage, places, seconds, cpu in timings:
                ideal = math.ceil(places.requests / given.concurrency) * given.latency
                each = f"{1000 * cpu / places.requests:.2f}" if places.requests else "–"
                busy = f"{places.full(given.concurrency):.1%}" if places.requests else "–"
                print(
                    f"{attempt} {stage}: {places.requests} requests, {seconds:.2f} s "
                    f"(ideal {ideal:.2f} s: {ideal / seconds:.2f} of it), "
                    f"{each} ms of CPU per request, all places taken {busy} of the time"
                )
        print(f"{len(results)} results")


if __name__ == "__main__":
    main()
