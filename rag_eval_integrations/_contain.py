"""Turn `SystemExit` and stray cancellations from user code into ordinary exceptions.

A judge, model, metric or app may raise `SystemExit`, or `CancelledError` although nobody cancelled
it. Out of a task, asyncio would raise the first out of its loop, and with it end every other
evaluation. `contained` is put around the place where such code is called or awaited: there, they
become an `EscapedError`, which is an `Exception` like any other failure. Ctrl-C, the cancellation
of the task itself and the closing of a coroutine go on.
"""

from __future__ import annotations

import sys
import threading
from types import TracebackType

_LONGEST = 2_000
"""Characters of an exception's words that are kept."""


class EscapedError(Exception):
    """What a user's code raised that is not an `Exception`; `original` is what was raised."""

    def __init__(self, original: BaseException) -> None:
        super().__init__(f"{type(original).__name__}: {words_of(original)}")
        self.original = original


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
        # No coroutine lets a StopIteration through, and the future of a thread never ends with it.
        if error is None or (isinstance(error, Exception) and not isinstance(error, StopIteration)):
            return
        if not _is_from_outside(error):
            raise EscapedError(error) from error


contained = Contained()
"""The instance that everybody uses: it has no state."""


def words_of(error: BaseException) -> str:
    """Return an exception's message, else its `repr`; never raises, whatever the exception is."""
    try:
        with contained:
            words = str(error) or repr(error)
    except Exception:  # noqa: BLE001 -- a user's `__str__` may raise anything
        return f"<{type(error).__name__}, whose message cannot be read>"
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


def _is_from_outside(error: BaseException) -> bool:
    """Tell Ctrl-C and cancellation from the same exceptions raised by a user's code.

    The closing of a coroutine counts as from outside.
    """
    if isinstance(error, KeyboardInterrupt):  # signals reach the main thread only
        return threading.current_thread() is threading.main_thread()
    if isinstance(error, GeneratorExit):  # the closing of a coroutine
        return True
    asyncio = sys.modules.get("asyncio")  # 40 ms to import, and not needed before it is there
    if asyncio is None or not isinstance(error, asyncio.CancelledError):
        return False
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs here, so that nothing can have been cancelled
        return False
    return task is None or task.cancelling() > 0
