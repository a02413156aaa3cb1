"""The shared limit: what many processes start in a minute is within it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jumping import JumpingLoop

from rag_eval_integrations.models.throttling import Permits
from rag_eval_integrations.ray.dataset import Limit, SharedPermits

T = TypeVar("T")


def run(main: Callable[[JumpingLoop], Coroutine[None, None, T]]) -> T:
    loop = JumpingLoop()
    try:
        return loop.run_until_complete(main(loop))
    finally:
        loop.close()


def most_in_a_minute(starts: Sequence[float]) -> int:
    return max(sum(0 <= other - start < 60 for other in starts) for start in starts)


@settings(max_examples=40)
@given(
    rpm=st.integers(1, 60),
    processes=st.integers(1, 4),
    delay=st.floats(0.0, 1.0),
    idle=st.floats(0.0, 90.0),
)
def test_no_minute_has_more_than_the_limit(
    rpm: int, processes: int, delay: float, idle: float
) -> None:
    """Whatever number of processes ask, whenever, and however late their permits come."""
    starts: list[float] = []

    async def main(loop: JumpingLoop) -> None:
        limit = Limit(rpm=rpm, clock=loop.time)

        async def far(requests: int, tokens: int) -> None:
            await asyncio.sleep(delay)
            await limit.take(requests, tokens)
            await asyncio.sleep(delay)

        shared = [SharedPermits(far) for _ in range(processes)]
        assert all(isinstance(one, Permits) for one in shared)

        async def attempt(permits: SharedPermits, at: float) -> None:
            await asyncio.sleep(at)
            await permits.take(1, 100)
            starts.append(loop.time())

        await asyncio.gather(
            *(attempt(one, idle * wave) for one in shared for wave in (0, 1) for _ in range(rpm))
        )

    run(main)
    assert len(starts) == 2 * rpm * processes
    assert most_in_a_minute(starts) <= rpm


def test_a_cancelled_request_keeps_nobody_waiting() -> None:
    """Those behind it go on."""

    async def main(loop: JumpingLoop) -> None:
        permits = SharedPermits(Limit(rpm=60, clock=loop.time).take)
        tasks = [asyncio.ensure_future(permits.take(1, 1)) for _ in range(4)]
        await asyncio.sleep(0.5)
        tasks[1].cancel()
        tasks[2].cancel()
        await asyncio.wait_for(tasks[3], 10)

    run(main)


def test_a_limit_that_is_gone_ends_the_requests_that_wait() -> None:
    """With a reason."""

    async def gone(requests: int, tokens: int) -> None:
        raise RuntimeError("the actor died")

    async def main(loop: JumpingLoop) -> None:
        with pytest.raises(ConnectionError, match="does not answer: the actor died"):
            await SharedPermits(gone).take(1, 1)

    run(main)


def test_a_limit_that_begins_again_assumes_that_all_was_given_out() -> None:
    """An actor that died does not know what it gave: it waits for a minute."""

    async def main(loop: JumpingLoop) -> float:
        await Limit(rpm=60, tpm=600, clock=loop.time, again=True).take(1, 1)
        return loop.time() - 1000.0

    assert run(main) >= 60
