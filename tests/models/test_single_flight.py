"""Single flight: one request however many ask, on whatever loop, and no failure of one for all."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from rag_eval_integrations.models._single_flight import SingleFlight


class Requests:
    """Counts requests; each waits until it is let go."""

    def __init__(self) -> None:
        self.made = 0
        self.go = asyncio.Event()

    async def __call__(self) -> int:
        self.made += 1
        number = self.made
        await self.go.wait()
        return number


async def test_answers_are_remembered_up_to_the_size() -> None:
    """The least lately used answer is forgotten first; size 0 remembers nothing."""
    flights, request = SingleFlight[int](2), Requests()
    request.go.set()

    for key in ("a", "b", "a", "c", "a", "b"):
        await flights.get(key, request)

    assert request.made == 4  # a, b, c, and b again
    nothing, again = SingleFlight[int](0), Requests()
    again.go.set()
    await nothing.get("a", again)
    await nothing.get("a", again)
    assert again.made == 2


async def test_a_failure_reaches_all_who_wait_and_is_not_remembered() -> None:
    """The next asker tries again."""
    flights = SingleFlight[int](4)
    calls: list[int] = []

    async def fail() -> int:
        calls.append(1)
        await asyncio.sleep(0)
        raise ValueError("no")

    askers = (flights.get("k", fail) for _ in range(3))
    results = await asyncio.gather(*askers, return_exceptions=True)

    assert [str(result) for result in results] == ["no"] * 3
    assert len(calls) == 1
    with pytest.raises(ValueError, match="no"):
        await flights.get("k", fail)
    assert len(calls) == 2


@pytest.mark.parametrize(("cancelled", "made"), [(0, 2), (1, 1)], ids=["the first", "a waiter"])
async def test_a_cancelled_asker_cancels_no_other(cancelled: int, made: int) -> None:
    """Where it made the request, one of the others makes it; else the request goes on."""
    flights, request = SingleFlight[int](4), Requests()
    askers = []
    for _ in range(4):
        askers.append(asyncio.create_task(flights.get("k", request)))
        await asyncio.sleep(0)

    gone = askers.pop(cancelled)
    gone.cancel()
    await asyncio.sleep(0.01)
    request.go.set()

    assert await asyncio.gather(*askers) == [made] * 3
    assert request.made == made
    assert gone.cancelled()


def test_askers_on_two_loops_share_a_request() -> None:
    """The app's loop and the library's own ask the same thing at once."""
    flights: SingleFlight[int] = SingleFlight(4)
    made: list[int] = []
    started = threading.Event()

    async def request() -> int:
        made.append(1)
        started.set()
        await asyncio.sleep(0.05)
        return 7

    def ask() -> int:
        return asyncio.run(flights.get("k", request))

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ask)
        assert started.wait(5)
        assert (ask(), first.result()) == (7, 7)

    assert made == [1]
