"""A forked child that always ends: what it does, returns or raises comes back as text.

A child of a test process must not trace its lines: coverage takes a lock for each new file of code,
and a lock that another thread holds at the fork is never given back in the child (it hung one run
in twenty under load). It must not return into the test runner either, whose pipes it has inherited.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn


@dataclass
class Forked:
    """A child that runs, and the end of the pipe on which it tells its result."""

    pid: int
    reading: int

    def printed(self, seconds: float = 60) -> str:
        """Wait for its end and return what it returned.

        Raises:
            AssertionError: it raised (its traceback is the message), was killed, or is killed now
                because it does not end.
        """
        parts = []
        while select.select([self.reading], [], [], seconds)[0]:
            part = os.read(self.reading, 1 << 16)
            if not part:
                break
            parts.append(part)
        else:
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.reading)
        _, status = os.waitpid(self.pid, 0)
        text = b"".join(parts).decode()
        code = os.waitstatus_to_exitcode(status)
        assert code == 0, f"the child ended with {code}: {text or 'it hung'}"
        return text


def forked(work: Callable[[], object]) -> Forked:
    """Fork, do `work` in the child, and go on in the parent."""
    reading, writing = os.pipe()
    tracer = sys.gettrace()
    sys.settrace(None)
    pid = os.fork()
    if pid == 0:  # pragma: no cover  # runs in the child
        _child(work, writing)
    sys.settrace(tracer)
    os.close(writing)
    return Forked(pid, reading)


def _child(work: Callable[[], object], writing: int) -> NoReturn:  # pragma: no cover
    code = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(120)  # where the parent does not ask
        text = str(work())
        code = 0
    except BaseException:  # noqa: BLE001 -- told to the parent, whatever it is
        text = traceback.format_exc()
    finally:
        os.write(writing, text.encode())
        os._exit(code)
