"""The shared limit: what many processes start in a minute is within it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jumping import JumpingLoop

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.models.throttling import Permits
from rag_eval_integrations.ray._permits import BlockPermits, PermitBlocks

T = TypeVar("T")


def run(main: Callable[[JumpingLoop], Coroutine[None, None, T]]) -> T:
    loop = JumpingLoop()
    try:
        return loop.run_until_complete(main(loop))
    finally:
        loop.close()


class Far:
    """A `PermitBlocks` in another process: questions and answers take their time."""

    def __init__(self, blocks: PermitBlocks, seconds: float) -> None:
        self._blocks, self._seconds = blocks, seconds
        self.questions = 0

    async def block(self, wanted: Sequence[tuple[int, int]]) -> int:
        self.questions += 1
        await asyncio.sleep(self._seconds)
        count = await self._blocks.block(wanted)
        await asyncio.sleep(self._seconds)
        return count


def most_in_a_minute(starts: Sequence[float]) -> int:
    return max(sum(0 <= other - start < 60 for other in starts) for start in starts)


@settings(max_examples=40)
@given(
    rpm=st.integers(1, 300),
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
        blocks = PermitBlocks(rpm=rpm, clock=loop.time)
        shared = [BlockPermits(Far(blocks, delay).block) for _ in range(processes)]
        assert all(isinstance(one, Permits) for one in shared)

        async def attempt(permits: BlockPermits, at: float) -> None:
            await asyncio.sleep(at)
            await permits.take(1, 100)
            starts.append(loop.time())

        await asyncio.gather(
            *(attempt(one, idle * wave) for one in shared for wave in (0, 1) for _ in range(rpm))
        )

    run(main)
    assert len(starts) == 2 * rpm * processes
    assert most_in_a_minute(starts) <= rpm


def test_the_limit_is_used_by_those_who_need_it() -> None:
    """One process has nothing to do: the other gets all. One question serves many requests."""

    async def main(loop: JumpingLoop) -> tuple[float, int]:
        far = Far(PermitBlocks(rpm=6_000, clock=loop.time), 0.005)
        BlockPermits(far.block)
        busy = BlockPermits(far.block)
        start = loop.time()
        await asyncio.gather(*(busy.take(1, 10) for _ in range(12_000)))
        return loop.time() - start, far.questions

    seconds, questions = run(main)
    assert seconds < 125
    assert questions <= 12_000 / 50


def test_tokens_are_limited_and_a_request_above_the_limit_goes_alone() -> None:
    """Blocks hold a second's tokens, or one request."""

    async def main(loop: JumpingLoop) -> list[float]:
        permits = BlockPermits(PermitBlocks(tpm=600, clock=loop.time).block)
        starts: list[float] = []
        for tokens in (300, 300, 900, 10):
            await permits.take(1, tokens)
            starts.append(round(loop.time() - 1000))
        return starts

    assert run(main) == pytest.approx([0, 30, 91, 181], abs=1.5)


def test_processes_take_turns() -> None:
    """One with a long queue does not keep the other waiting for all of it."""

    async def main(loop: JumpingLoop) -> list[str]:
        blocks = PermitBlocks(rpm=60, clock=loop.time)
        order: list[str] = []

        async def ask(name: str, permits: BlockPermits) -> None:
            await permits.take(1, 1)
            order.append(name)

        first, second = (BlockPermits(blocks.block) for _ in range(2))
        await asyncio.gather(*(ask("a", first) for _ in range(20)), ask("b", second))
        return order

    assert run(main).index("b") <= 2


def test_a_cancelled_request_leaves_its_permit_to_none_and_nobody_waits_for_it() -> None:
    """Those behind it go on."""

    async def main(loop: JumpingLoop) -> None:
        permits = BlockPermits(PermitBlocks(rpm=60, clock=loop.time).block)
        tasks = [asyncio.ensure_future(permits.take(1, 1)) for _ in range(4)]
        await asyncio.sleep(0.5)
        tasks[1].cancel()
        tasks[2].cancel()
        await asyncio.wait_for(tasks[3], 10)

    run(main)


def test_a_limit_that_is_gone_ends_the_requests_that_wait() -> None:
    """With a reason; a later one may ask again."""

    async def gone(wanted: object) -> int:
        raise RuntimeError("the actor died")

    async def main(loop: JumpingLoop) -> None:
        permits = BlockPermits(gone)
        for _ in range(2):
            results = await asyncio.gather(
                *(permits.take(1, 1) for _ in range(3)), return_exceptions=True
            )
            assert [str(one) for one in results] == [
                "the shared limit does not answer: the actor died"
            ] * 3

    run(main)


def test_a_limit_that_begins_again_assumes_that_all_was_given_out() -> None:
    """An actor that died does not know what it gave: it waits for a minute."""

    async def main(loop: JumpingLoop) -> float:
        blocks = PermitBlocks(rpm=60, tpm=600, clock=loop.time, all_taken=True)
        await blocks.block([(1, 1)])
        return loop.time() - 1000.0

    assert run(main) >= 60


def test_a_wrong_limit_is_named() -> None:
    """Before any process starts."""
    with pytest.raises(ConfigurationError, match="`tpm`"):
        PermitBlocks(tpm=-1)
