"""The private loop: sync facades work everywhere but on it, and survive a fork."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from forked import FORKS_WITH_HOOKS, Fork, forked

from rag_eval_integrations import _loop


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


def test_many_threads_share_it() -> None:
    """Concurrent callers each get their own result."""
    with ThreadPoolExecutor(20) as threads:
        results = list(threads.map(lambda number: _loop.run(double(number)), range(20)))

    assert results == [2 * number for number in range(20)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of any fork
@pytest.mark.parametrize("fork", FORKS_WITH_HOOKS)
def test_a_forked_child_has_a_loop_and_threads_of_its_own(fork: Fork) -> None:
    """It would wait for ever for those of its parent, which go on there."""
    threads = _loop.Threads(1, "test")

    async def everywhere() -> int:
        return await double(1) + await threads.run(lambda: 1)

    assert _loop.run(everywhere()) == 3
    assert forked(lambda: _loop.run(everywhere()), fork).printed(20) == "3"
    assert _loop.run(everywhere()) == 3
    _loop.run(threads.aclose())


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


@pytest.mark.skipif(sys.platform == "win32", reason="this platform sends no thread a signal")
def test_a_ctrl_c_that_another_thread_gets_ends_the_wait() -> None:
    """Python does not end a lock's wait for it."""
    interrupted = threading.Event()

    async def outlast() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        await asyncio.to_thread(interrupted.wait)

    with pytest.raises(KeyboardInterrupt):
        _loop.run(outlast())
    interrupted.set()


GEVENT = """
import gevent, sys
from gevent import monkey
early, threads = "early" in sys.argv, "threads" in sys.argv
if early:
    monkey.patch_all(thread=threads)

import asyncio
from rag_eval_integrations.background import BackgroundEvaluator
from rag_eval_integrations.capture import capture_call
from rag_eval_integrations.errors import ConfigurationError, ReentryError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.testing import small_call

CALL, turns = small_call().call, []

def beats():
    while True:
        gevent.sleep(0.01)
        turns.append(1)

def stays_alive():
    before = len(turns)
    gevent.sleep(0.2)
    assert len(turns) > before

def refused(function, argument, error, words):
    try:
        function(argument)
    except error as raised:
        assert words in str(raised), raised
    else:
        raise AssertionError("not refused")

evaluator = RagEvaluator()
background = None if early else BackgroundEvaluator(evaluator, exit_grace=0)
monkey.patch_all(thread=threads)
gevent.spawn(beats)
"""


def greenlets(root: Path, code: str, *options: str) -> str:
    """Run code in a process that gevent has patched; return what it logged."""
    done = subprocess.run(
        [sys.executable, "-c", GEVENT + code, *options],
        capture_output=True, text=True, cwd=root, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.slow
def test_greenlets_are_refused_where_they_would_freeze_the_app(root: Path) -> None:
    """A BackgroundEvaluator says what to do instead; that works, from twenty greenlets at once."""
    code = """
instead = "gevent.spawn(evaluator.evaluate_sync, call)"
refused(BackgroundEvaluator, evaluator, ConfigurationError, instead)
jobs = []
with capture_call(lambda call: jobs.append(gevent.spawn(evaluator.evaluate_sync, call)), "Q?") as c:
    c.documents = ["It is so."]
    c.response = "It is so."
jobs += [gevent.spawn(evaluator.evaluate_sync, CALL) for _ in range(20)]
gevent.joinall(jobs)
assert len(jobs) == 21 and all(job.value.error is None for job in jobs)
stays_alive()
"""
    assert greenlets(root, code, "early", "threads") == ""


@pytest.mark.slow
def test_greenlets_with_a_loop_of_the_apps_get_an_error(root: Path) -> None:
    """Never a hang: one thread runs one loop, and `evaluate` may be awaited on that one."""
    code = """
async def app():
    await asyncio.sleep(0.1)
    return await evaluator.evaluate(CALL)

running = gevent.spawn(asyncio.run, app())
gevent.sleep(0.02)
for _ in range(2):
    refused(evaluator.evaluate_sync, CALL, ReentryError, "await the async form on that loop")
assert running.get().error is None
assert evaluator.evaluate_sync(CALL).error is None  # the app's loop has ended
stays_alive()
"""
    greenlets(root, code, "early", "threads")


@pytest.mark.slow
def test_a_loop_of_half_patched_modules_gets_an_error(root: Path) -> None:
    """Threads that are real cannot wait in gevent's selectors: an error, where it hung."""
    code = 'refused(evaluator.evaluate_sync, CALL, ReentryError, "could not run (LoopExit)")'
    greenlets(root, code, "early")


@pytest.mark.slow
def test_greenlets_that_come_late_do_not_freeze_the_app(root: Path) -> None:
    """Patched after the evaluator was made: its loop cannot run beside another, and says so once."""
    code = """
assert evaluator.evaluate_sync(CALL).error is None
for _ in range(5):
    background.submit(CALL)
    stays_alive()
assert not background.flush(0.1)
"""
    logged = greenlets(root, code, "threads")

    assert logged.count("RuntimeError: another event loop runs in this thread") == 1
