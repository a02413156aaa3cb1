"""Cost of throttling and caching, and their effect on a model that fails or limits requests.

    python benchmarks/throttling.py [--requests 2000]

CPU is real; runs under fire are simulated: the loop's clock jumps from timer to timer, the judge is
a script, and the same seed gives the same figures. The floor is a bare loop of 32 workers without
faults.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import selectors
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from rag_eval_integrations.errors import JudgeUnavailableError
from rag_eval_integrations.models.caching import CachedModel
from rag_eval_integrations.models.completion import (
    Choice,
    Completion,
    CompletionRequest,
    Message,
    Model,
)
from rag_eval_integrations.models.throttling import ThrottledModel
from rag_eval_integrations.records import Usage

ANSWER = Completion(
    choices=(Choice(text='{"relevant": ["0a"]}' * 60, finish_reason="stop"),),
    usage=Usage(requests=1, prompt_tokens=1500, completion_tokens=300),
)


def request(number: int) -> CompletionRequest:
    return CompletionRequest(
        messages=(
            Message(role="system", content="i" * 2500),
            Message(role="user", content=f"{number} " + "x" * 4000),
        ),
        max_tokens=500,
    )


class Script:
    """A model made of a function."""

    name = "script"

    def __init__(self, answer: Callable[[], Awaitable[Completion]]) -> None:
        self._answer = answer
        self.asked = 0

    async def complete(self, request: CompletionRequest) -> Completion:
        """Answer as scripted."""
        self.asked += 1
        return await self._answer()


class Jumping(selectors.DefaultSelector):
    """A selector that never waits: the clock jumps to the next timer."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return the events that are ready; without any, jump to the next timer."""
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("all tasks wait and no timer is set")
        if not ready and timeout:
            self.now += timeout
        return ready


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop with simulated time."""

    def __init__(self) -> None:
        self._jumping = Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the simulated time in seconds."""
        return self._jumping.now


# --- CPU ---------------------------------------------------------------------------------------


async def at_once() -> Completion:
    await asyncio.sleep(0)
    return ANSWER


def cpu(make: Callable[[Script], Model], count: int) -> float:
    """Measure the microseconds of CPU per request, best of three runs, 32 at once."""
    requests = [request(number) for number in range(count)]

    async def main() -> float:
        judge = make(Script(at_once))
        todo = iter(requests)

        async def worker() -> None:
            for one in todo:
                await judge.complete(one)

        start = time.process_time()
        await asyncio.gather(*(worker() for _ in range(32)))
        return (time.process_time() - start) / count * 1e6

    return min(asyncio.run(main()) for _ in range(3))


def overhead(count: int) -> None:
    bare = cpu(lambda script: script, count)
    print(f"CPU per request, 32 workers, {count} requests; bare loop {bare:.0f} µs, and beyond it:")
    for label, options in (
        ("throttled", {}),
        ("throttled, rpm and tpm far away", {"rpm": 1e8, "tpm": 1e12}),
        ("throttled, 8 places for 32 workers", {"max_concurrency": 8}),
    ):
        took = cpu(lambda script, o=options: ThrottledModel(script, **o), count)
        print(f"  {label:36} {took - bare:6.0f} µs")
    with tempfile.TemporaryDirectory() as folder:
        made = 0

        def cold(script: Script) -> Model:
            nonlocal made
            made += 1
            return CachedModel(script, Path(folder) / f"cold-{made}.sqlite")

        print(f"  {'cached, every request new':36} {cpu(cold, count) - bare:6.0f} µs")
        warm = cpu(lambda script: CachedModel(script, Path(folder) / "cold-1.sqlite"), count)
        print(f"  {'cached, every request known':36} {warm - bare:6.0f} µs")


# --- Under fire --------------------------------------------------------------------------------


def simulate(
    title: str,
    count: int,
    answer: Callable[[JumpingLoop, random.Random, Script], Awaitable[Completion]],
    floor: float,
    **options: float,
) -> None:
    """Send all requests at once through a throttled model and print the outcome."""
    loop = JumpingLoop()
    chance = random.Random(1)

    async def main() -> None:
        script = Script(lambda: answer(loop, chance, script))
        judge = ThrottledModel(script, clock=loop.time, **options)  # type: ignore[arg-type]
        judge._random = random.Random(2)  # the same figures in every run
        one = request(0)
        results = await asyncio.gather(
            *(judge.complete(one) for _ in range(count)), return_exceptions=True
        )
        answered = sum(isinstance(result, Completion) for result in results)
        stated = sum(isinstance(result, JudgeUnavailableError) for result in results)
        print(
            f"  {title:42} {answered:6} answered, {stated:5} stated errors, "
            f"{script.asked:6} attempts, {loop.time():7.1f} s ({loop.time() / floor:4.2f} x floor)"
        )

    loop.run_until_complete(main())
    loop.close()


def failing(p429: float, p500: float, hangs: float, timeout: float = 30.0):
    """Fail at random: 429 with Retry-After 1 s, 500, and hangs that end in a timeout."""

    async def answer(loop: JumpingLoop, chance: random.Random, script: Script) -> Completion:
        drawn = chance.random()
        if drawn < p429:
            await asyncio.sleep(0.01)
            raise JudgeUnavailableError("replied 429", status=429, retry_after=1.0)
        if drawn < p429 + p500:
            await asyncio.sleep(0.01)
            raise JudgeUnavailableError("replied 500", status=500)
        if drawn < p429 + p500 + hangs:
            await asyncio.sleep(timeout)
            raise JudgeUnavailableError("no answer in time")
        await asyncio.sleep(0.5)
        return ANSWER

    return answer


def ten_places():
    """Simulate a server with ten places that answers 429 when all are taken."""
    busy = 0

    async def answer(loop: JumpingLoop, chance: random.Random, script: Script) -> Completion:
        nonlocal busy
        await asyncio.sleep(0.005)
        if busy >= 10:
            raise JudgeUnavailableError("replied 429", status=429)
        busy += 1
        await asyncio.sleep(0.2 * chance.uniform(0.7, 1.3))
        busy -= 1
        return ANSWER

    return answer


async def dead(loop: JumpingLoop, chance: random.Random, script: Script) -> Completion:
    await asyncio.sleep(0.001)
    raise JudgeUnavailableError("no connection")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=2000)
    count = parser.parse_args().requests
    overhead(count)
    floor = count * 0.5 / 32
    print(f"\nSimulated, {count} requests of 0.5 s, 32 at once; floor {floor:.1f} s:")
    simulate("no faults", count, failing(0, 0, 0), floor)
    simulate("10 % 429, 5 % 500", count, failing(0.10, 0.05, 0), floor)
    simulate("10 % 429, 5 % 500, 2 % hangs of 30 s", count, failing(0.10, 0.05, 0.02), floor)
    hung = floor + count * 0.02 * 30 / 32
    print(f"    (those hangs alone take the floor to {hung:.1f} s; the bound is 3 x floor + 30 s = "
          f"{3 * floor + 30:.1f} s)")  # fmt: skip
    simulate("2 % 429", count, failing(0.02, 0, 0), floor)
    ideal = count * 0.205 / 10
    simulate("10 places of 0.2 s, 64 at once", count, ten_places(), ideal, max_concurrency=64)
    simulate("50 requests at rpm=30", 50, failing(0, 0, 0), 98.5, rpm=30)
    simulate("10,000 requests to a dead judge", 10_000, dead, 10_000 * 0.5 / 32)


if __name__ == "__main__":
    main()
