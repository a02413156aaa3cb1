"""What a user's code raises that is not an exception is held; what comes from outside goes on."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rag_eval_integrations._contain import EscapedError, contained, words_of


class OwnExit(BaseException):
    """An application's own way out."""


class Unspeakable(Exception):
    """An exception that cannot say what happened."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    def __repr__(self) -> str:
        raise SystemExit(3)


def raise_it(error: BaseException) -> None:
    """Raise in a frame of its own, as a user's function does."""
    raise error


ESCAPES = (
    SystemExit(1),
    asyncio.CancelledError(),
    OwnExit("bye"),
    BaseExceptionGroup("all", [OwnExit()]),
    StopIteration("the script has ended"),
)


@pytest.mark.parametrize("error", ESCAPES, ids=lambda error: type(error).__name__)
async def test_what_user_code_raises_is_contained(error: BaseException) -> None:
    """With the original in it: in a coroutine that nobody cancelled, and in a thread."""

    def run() -> None:
        with pytest.raises(EscapedError, match=type(error).__name__) as caught, contained:
            raise_it(error)
        assert caught.value.original is error

    run()
    await asyncio.to_thread(run)


def test_ctrl_c_ends_the_main_thread_only() -> None:
    """Signals reach no other thread, whose loop a `KeyboardInterrupt` would end."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            with contained:
                raise_it(KeyboardInterrupt())
        except EscapedError as escaped:
            errors.append(escaped.original)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

    assert [type(error) for error in errors] == [KeyboardInterrupt]
    with pytest.raises(KeyboardInterrupt):
        run()


def test_exceptions_are_left_alone() -> None:
    """They are data already."""
    with pytest.raises(ValueError, match="mine"), contained:
        raise ValueError("mine")


async def test_a_cancelled_task_is_cancelled() -> None:
    """The cancellation comes from outside, so nothing may hold it."""

    async def work() -> None:
        with contained:
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_closed_coroutine_is_closed() -> None:
    """`close` raises `GeneratorExit` in it, which is not user code's."""

    async def work() -> None:
        with contained:
            await asyncio.sleep(60)

    coroutine = work()
    coroutine.send(None)
    coroutine.close()  # RuntimeError if the coroutine went on


def test_words_never_raise() -> None:
    """Not even for an exception whose `str` and `repr` raise; long ones are cut."""
    assert words_of(ValueError("why")) == "why"
    assert words_of(KeyError()) == "KeyError()"
    assert "cannot be read" in words_of(Unspeakable())
    assert len(words_of(ValueError("x" * 1_000_000))) <= 2_000


# --- Signals: in a process of its own, whose main thread runs the user's code

_SCRIPT = """
import asyncio, os, signal, sys, time
from rag_eval_integrations import RagCall, RagEvaluator
from rag_eval_integrations.dataset import evaluate_calls

class Judge:
    name = "busy"
    version = "1"

    async def label(self, call):
        print("asked", flush=True)
        {body}

async def main():
    calls = [RagCall(str(n), ["A document."], "An answer.") for n in range(3)]
    async for evaluation in evaluate_calls(calls, RagEvaluator(Judge()), max_concurrency=1):
        print(evaluation.error.type, flush=True)

{start}
"""
_BUSY = "end = time.monotonic() + 20\n        while time.monotonic() < end: pass"
_ASLEEP = "await asyncio.sleep(20)"
_RUN = "asyncio.run(main())"
_OWN_LOOP = "loop = asyncio.new_event_loop(); loop.run_until_complete(main())"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "start", "number"),
    [
        (_ASLEEP, _RUN, signal.SIGINT),
        (_ASLEEP, _OWN_LOOP, signal.SIGINT),
        (_BUSY, _OWN_LOOP, signal.SIGINT),
    ],
    ids=["asyncio.run", "own loop", "busy"],
)
def test_a_signal_ends_the_run(tmp_path: Path, body: str, start: str, number: int) -> None:
    """Ctrl-C is not a row's error, whatever the main thread was doing."""
    code = _code_after(tmp_path, body, start, lambda process: process.send_signal(number))

    assert code in (130, -signal.SIGINT, 1)


def _code_after(
    tmp_path: Path, body: str, start: str, act: Callable[[subprocess.Popen[str]], object]
) -> int:
    script = tmp_path / "run.py"
    script.write_text(_SCRIPT.format(body=body, start=start), encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, text=True, env={**os.environ}
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
        act(process)
        rest, _ = process.communicate(timeout=15)
    assert rest == ""  # no row was written, and no other call was asked for
    return process.returncode


@pytest.mark.slow
def test_an_exit_raised_by_a_judge_is_a_row(tmp_path: Path) -> None:
    """In the main thread too, out of whose loop asyncio would raise it."""
    script = tmp_path / "run.py"
    script.write_text(_SCRIPT.format(body="raise SystemExit(3)", start=_RUN), encoding="utf-8")

    run = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)

    assert run.returncode == 0, run.stderr
    assert [line for line in run.stdout.splitlines() if line != "asked"] == ["SystemExit"] * 3
