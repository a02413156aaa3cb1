"""What a user's code raises that is not an exception is held; what comes from outside goes on."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys

import pytest

from rag_eval_integrations._contain import contained, words_of


class Unspeakable(Exception):
    """An exception that cannot say what happened."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    def __repr__(self) -> str:
        raise SystemExit(3)


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt()])
def test_exceptions_and_ctrl_c_are_left_alone(error: BaseException) -> None:
    """The first are data already, the other ends the main thread."""
    with pytest.raises(type(error)) as raised, contained:
        raise error
    assert raised.value is error


async def test_a_coroutine_is_closed() -> None:
    """That comes from outside, so nothing may hold it; `close` raises `GeneratorExit`."""

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
    ("body", "start"),
    [(_ASLEEP, _RUN), (_ASLEEP, _OWN_LOOP), (_BUSY, _OWN_LOOP)],
    ids=["asyncio.run", "own loop", "busy"],
)
def test_a_signal_ends_the_run(body: str, start: str) -> None:
    """Ctrl-C is not a row's error, whatever the main thread was doing."""
    command = [sys.executable, "-c", _SCRIPT.format(body=body, start=start)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=15)

    assert rest == ""  # no row was written, and no other call was asked for
    assert process.returncode in (130, -signal.SIGINT, 1)
