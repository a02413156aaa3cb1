"""Hold back what a user's code raises that is not an `Exception`, so that it ends no run.

A judge, model, metric or app may raise `SystemExit`, `KeyboardInterrupt`, `GeneratorExit`, or
`CancelledError` although nobody cancelled it. Out of a task, asyncio would raise the first two out
of its loop, and with them end every other evaluation. `Contained` is put around the place where
such code is called or awaited: there, they become an `EscapedError`, which is an `Exception` like
any other failure. Those that come from outside go on: the cancellation of the task itself, a
coroutine that is closed, and a signal such as Ctrl-C.
"""

from __future__ import annotations

import functools
import opcode
import signal
import sys
import threading
from collections.abc import Iterator
from types import CodeType, TracebackType
from typing import Any

_RAISE = opcode.opmap["RAISE_VARARGS"]
_LONGEST = 2_000
"""Characters of an exception's words that are kept."""


class EscapedError(Exception):
    """What a user's code raised that is not an `Exception`; `held` is that."""

    def __init__(self, held: BaseException) -> None:
        super().__init__(f"{type(held).__name__}: {words_of(held)}")
        self.held = held


class Contained:
    """A context manager around a call of a user's code; it may hold an `await`.

    Raises:
        EscapedError: instead of anything that is not an `Exception` and does not come from
            outside, and instead of `StopIteration`.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            return
        if isinstance(error, StopIteration):
            # No coroutine lets it through, and the future of a thread never ends with it.
            raise EscapedError(error) from error
        if isinstance(error, Exception) or _is_from_outside(error, traceback):
            return
        raise EscapedError(error) from error


contained = Contained()
"""The one that everybody uses: it has no state."""


def words_of(error: BaseException) -> str:
    """Return an exception's message, else its `repr`; never raises, whatever the exception is."""
    try:
        words = str(error) or repr(error)
    except BaseException as failed:
        if _is_from_outside(failed, failed.__traceback__):
            raise
        return f"<{type(error).__name__}, whose message cannot be read>"
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


def _is_from_outside(error: BaseException, traceback: TracebackType | None) -> bool:
    if isinstance(error, GeneratorExit):
        # `close` raises it in the frame of the `with` itself; a user's code, in one further in.
        return traceback is None or traceback.tb_next is None
    asyncio = sys.modules.get("asyncio")  # 40 ms to import, and not needed before it is there
    if asyncio is None or not isinstance(error, asyncio.CancelledError):
        return _is_of_signal(error)
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs here, so that nothing can have been cancelled
        return False
    return task is None or task.cancelling() > 0


def _is_of_signal(error: BaseException | None) -> bool:
    """Tell whether a signal's handler raised it, or what it was raised for."""
    if threading.current_thread() is not threading.main_thread():
        return False  # handlers run in the main thread only
    handlers = set(_handlers())
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if _was_raised_by(handlers, error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _was_raised_by(handlers: set[CodeType], error: BaseException) -> bool:
    innermost = traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in handlers:
            return True
        innermost, traceback = traceback, traceback.tb_next
    if not isinstance(error, KeyboardInterrupt) or innermost is None:
        return False
    # Python's own handler of Ctrl-C has no frame: it interrupts any instruction but a `raise`.
    return innermost.tb_frame.f_code.co_code[innermost.tb_lasti] != _RAISE


def _handlers() -> Iterator[CodeType]:
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        while isinstance(handler, functools.partial):  # asyncio's handler of Ctrl-C
            handler = handler.func
        code = getattr(getattr(handler, "__func__", handler), "__code__", None)
        if isinstance(code, CodeType):
            yield code
