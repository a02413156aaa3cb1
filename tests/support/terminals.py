"""A terminal of 80 columns in which a command runs: what it shows, and keys that a person presses."""

from __future__ import annotations

import os
import select
import struct
import subprocess
from contextlib import contextmanager, suppress
from typing import Any

from forked import WarmPopen


class Terminal:
    """A command on a pseudo-terminal.

    Args:
        command: `[sys.executable, "-c", code, *words]`.
        columns: its width.
    """

    def __init__(self, command: list[str], columns: int = 80) -> None:
        import fcntl
        import pty
        import termios

        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
        environment |= {"TERM": "dumb"}
        streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
        self.process: subprocess.Popen[Any] = WarmPopen(command, env=environment, **streams)
        os.close(theirs)
        self.shown = ""
        """All that was shown so far."""

    def until(self, words: str, times: int = 1, seconds: float = 60) -> str:
        """Wait until words were shown so often, and return all that was shown."""
        while self.shown.count(words) < times:
            assert self._more(seconds), f"{words!r} was not shown {times} times: {self.shown}"
        return self.shown

    def press(self, keys: str) -> None:
        """Press keys."""
        os.write(self._ours, keys.encode())

    def end(self, seconds: float = 60) -> tuple[int, str]:
        """Wait for the end; return the exit code, and all that was shown."""
        while self._more(seconds):
            pass
        return self.process.wait(seconds), self.shown

    def _more(self, seconds: float) -> bool:
        """Read what is shown next; False at the end."""
        assert select.select([self._ours], [], [], seconds)[0], f"nothing more: {self.shown}"
        part = b""
        with suppress(OSError):  # the other side is closed
            part = os.read(self._ours, 1 << 16)
        self.shown += part.decode(errors="replace").replace("\r\n", "\n")
        return bool(part)

    def close(self) -> None:
        """End the command, if it still runs."""
        self.process.kill()
        self.process.wait(60)
        os.close(self._ours)


@contextmanager
def terminal(command: list[str], columns: int = 80) -> Any:
    """Run a command on a pseudo-terminal, and end it."""
    opened = Terminal(command, columns)
    try:
        yield opened
    finally:
        opened.close()
