"""The private loop: sync facades work everywhere but on it, and survive a fork."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest
from forked import forked

from rag_eval_integrations import _loop
from rag_eval_integrations.errors import ReentryError


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


def test_it_runs_a_coroutine_from_plain_code() -> None:
    """Twice, on the same loop: clients that live on it stay usable."""
    assert _loop.run(double(2)) == 4
    assert _loop.run(double(3)) == 6


async def test_it_runs_inside_a_running_loop() -> None:
    """As in a notebook: the caller's loop is neither patched nor used."""
    assert _loop.run(double(2)) == 4


def test_exceptions_reach_the_caller() -> None:
    """Whatever the coroutine raises is raised in the calling thread."""

    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        _loop.run(fail())


def test_it_refuses_re_entry() -> None:
    """A sync facade called on the loop itself would wait for ever: it raises and says what to do."""

    async def nested() -> int:
        return _loop.run(double(1))

    with pytest.raises(ReentryError, match="await the async form"):
        _loop.run(nested())


def test_many_threads_share_it() -> None:
    """Concurrent callers each get their own result."""
    results: dict[int, int] = {}

    def call(number: int) -> None:
        results[number] = _loop.run(double(number))

    threads = [threading.Thread(target=call, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert results == {number: 2 * number for number in range(20)}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of any fork
def test_it_survives_a_fork() -> None:
    """A forked child (gunicorn prefork) gets a loop of its own instead of hanging."""
    assert _loop.run(double(1)) == 2
    assert forked(lambda: _loop.run(double(21))).said() == "42"


def test_a_task_that_exits_does_not_stop_the_loop() -> None:
    """Asyncio raises `SystemExit` of any task out of the loop; every later caller would hang."""

    async def leave() -> None:
        raise SystemExit(3)

    async def starting() -> str:
        task = asyncio.create_task(leave())
        await asyncio.wait([task])
        return type(task.exception()).__name__

    assert _loop.run(starting()) == "SystemExit"
    assert _loop.run(asyncio.sleep(0, "still there")) == "still there"


def test_it_goes_on_when_a_users_code_stops_it() -> None:
    """The one who asked, and whoever asks next, get their results."""

    async def stop() -> int:
        asyncio.get_running_loop().stop()
        return await double(2)

    assert _loop.run(stop()) == 4
    assert _loop.run(double(3)) == 6
