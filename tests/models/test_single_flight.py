"""Single flight: one request however many ask, on whatever loop, and no failure of one for all."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest
from forked import forked

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


async def test_ten_askers_make_one_request() -> None:
    """All get the one answer."""
    flights, request = SingleFlight[int](4), Requests()

    tasks = [asyncio.create_task(flights.get("k", request)) for _ in range(10)]
    await asyncio.sleep(0)
    request.go.set()

    assert await asyncio.gather(*tasks) == [1] * 10
    assert request.made == 1


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
    flights: SingleFlight[int] = SingleFlight(4)
    calls = 0

    async def fail() -> int:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0)
        raise ValueError("no")

    results = await asyncio.gather(
        *(flights.get("k", fail) for _ in range(3)), return_exceptions=True
    )

    assert [str(result) for result in results] == ["no"] * 3
    assert calls == 1
    with pytest.raises(ValueError, match="no"):
        await flights.get("k", fail)
    assert calls == 2


async def test_a_cancelled_asker_hands_the_request_on() -> None:
    """The others are not cancelled with it: one of them makes the request."""
    flights, request = SingleFlight[int](4), Requests()
    first = asyncio.create_task(flights.get("k", request))
    await asyncio.sleep(0)
    others = [asyncio.create_task(flights.get("k", request)) for _ in range(3)]
    await asyncio.sleep(0)

    first.cancel()
    await asyncio.sleep(0.01)
    request.go.set()

    assert await asyncio.gather(*others) == [2] * 3
    assert request.made == 2
    assert first.cancelled()


async def test_a_cancelled_waiter_leaves_the_request_alone() -> None:
    """Only the one who waits goes; the request and the other waiters go on."""
    flights, request = SingleFlight[int](4), Requests()
    maker = asyncio.create_task(flights.get("k", request))
    await asyncio.sleep(0)
    waiter = asyncio.create_task(flights.get("k", request))
    other = asyncio.create_task(flights.get("k", request))
    await asyncio.sleep(0)

    waiter.cancel()
    await asyncio.sleep(0)
    request.go.set()

    assert await maker == 1
    assert await other == 1


def test_askers_on_two_loops_share_a_request() -> None:
    """The app's loop and the library's own ask the same thing at once."""
    flights: SingleFlight[int] = SingleFlight(4)
    made = 0
    started = threading.Event()
    answers: list[int] = []

    async def request() -> int:
        nonlocal made
        made += 1
        started.set()
        await asyncio.sleep(0.05)
        return 7

    def ask() -> None:
        answers.append(asyncio.run(flights.get("k", request)))

    first = threading.Thread(target=ask)
    first.start()
    assert started.wait(5)
    second = threading.Thread(target=ask)
    second.start()
    first.join(5)
    second.join(5)

    assert answers == [7, 7]
    assert made == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of any fork
def test_a_forked_child_makes_its_own_request() -> None:
    """Requests in flight at the fork are answered in the parent only."""
    flights: SingleFlight[int] = SingleFlight(4)
    started, go = threading.Event(), threading.Event()

    async def slow() -> int:
        started.set()
        await asyncio.to_thread(go.wait, 10)
        return 1

    async def quick() -> int:
        return 2

    parent = threading.Thread(target=lambda: asyncio.run(flights.get("k", slow)))
    parent.start()
    assert started.wait(5)
    said = forked(lambda: asyncio.run(flights.get("k", quick))).said()
    go.set()
    parent.join(5)

    assert said == "2"


def test_a_coroutine_that_is_abandoned_while_another_asks_locks_nobody_out() -> None:
    """A garbage collection closes it wherever it strikes, also inside the flight's own lock."""
    flight = SingleFlight[int](8)

    async def never() -> int:
        await asyncio.Event().wait()
        return 0

    async def one() -> int:
        return 1

    def main() -> None:
        abandoned = flight.get("abandoned", never)
        loop = asyncio.new_event_loop()
        asyncio._set_running_loop(loop)
        abandoned.send(None)
        asyncio._set_running_loop(None)
        loop.close()

        class Collecting(str):
            __slots__ = ()

            def __hash__(self) -> int:  # asked for inside the lock
                abandoned.close()
                return str.__hash__(self)

        assert asyncio.run(flight.get(Collecting("key"), one)) == 1

    thread = threading.Thread(target=main, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
