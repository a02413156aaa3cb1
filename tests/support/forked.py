"""Forks: a child that tells what it did, and commands that start without the time of imports.

What a forked child does, returns or raises comes back as text, and it always ends.

`FORKS` are Python's fork and those of a library in C, which has Python's hooks of the child run, or
none. Python is not told before them. Without the hooks, its own lock may hang a child where another
thread waited for it at the fork: those are for a process in which no thread is busy.

A child of a test process must not trace its lines: coverage takes a lock for each new file of code,
and a lock that another thread holds at the fork is never given back in the child (it hung one run
in twenty under load). It must not return into the test runner either, whose pipes it has inherited.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType
from typing import Any, NoReturn

import pytest


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


def fork_in_c() -> int:
    """Fork as uWSGI does: none of Python's hooks is called."""
    pid: int = ctypes.PyDLL(None).fork()
    return pid


def fork_in_c_with_hooks() -> int:
    """Fork as uWSGI with `--py-call-osafterfork` does: the hooks of the child are called."""
    pid = fork_in_c()
    if pid == 0:  # pragma: no cover  # runs in the child
        ctypes.pythonapi.PyOS_AfterFork_Child()
    return pid


Fork = Callable[[], int]
FORKS_WITH_HOOKS: list[Fork] = [os.fork, fork_in_c_with_hooks] if hasattr(os, "fork") else []
FORKS: list[Fork] = [*FORKS_WITH_HOOKS, fork_in_c] if FORKS_WITH_HOOKS else []


def forked(work: Callable[[], object], fork: Fork | None = None) -> Forked:
    """Fork, by Python where nothing else is given; do `work` in the child, go on in the parent."""
    if fork not in (None, os.fork) and len(os.listdir("/proc/self/task")) > 1:
        pytest.skip(
            "another thread may wait for Python's own lock, which hangs a child of a fork in C"
        )
    reading, writing = os.pipe()
    tracer = sys.gettrace()
    sys.settrace(None)
    pid = (fork or os.fork)()
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


# --- Commands in forks of a process that has imported what they need


class WarmPopen(subprocess.Popen[Any]):
    """`Popen([sys.executable, "-c", code, *words], …)` without the second that imports take.

    The code runs as `__main__` in a fork of a process that has imported the command line and
    openai, with this process's environment and folder, and ends as an interpreter does. Elsewhere
    than on Linux it is started as usual. What an interpreter reads as it starts (`PYTHONPATH`,
    `-W`, a terminal) is that of the process that was forked.
    """

    def _execute_child(self, args: list[str], *rest: Any) -> None:
        self._status: int | None = None
        if sys.platform != "linux":
            return super()._execute_child(args, *rest)  # type: ignore[misc]
        cwd, env = rest[4:6]
        stdin, to_stdin, from_stdout, stdout, from_stderr, stderr = rest[9:15]
        _, option, code, *words = args
        assert option == "-c"
        request = {
            "code": code,
            "argv": ["-c", *words],
            "cwd": os.fspath(cwd or os.getcwd()),
            "env": dict(os.environ if env is None else env),
        }
        given = [own if own != -1 else number for number, own in enumerate((stdin, stdout, stderr))]
        self._status, status = os.pipe()
        with _ASKING:
            _, warm = _started()
            socket.send_fds(warm, [json.dumps(request).encode()], [*given, status])
            self.pid = int(warm.recv(64))
        self._child_created = True
        os.close(status)
        ends = (to_stdin, stdin), (from_stdout, stdout), (from_stderr, stderr)
        for ours, theirs in ends:
            if ours != -1:  # a pipe, not somebody's file
                os.close(theirs)

    def _try_wait(self, flags: int) -> tuple[int, int]:
        """Wait for the exit status, which the fork's parent tells."""
        if self._status is None:
            return super()._try_wait(flags)  # type: ignore[misc, no-any-return]
        if flags and not select.select([self._status], [], [], 0)[0]:
            return 0, 0
        status = int(os.read(self._status, 64))
        os.close(self._status)
        return self.pid, status

    def _internal_poll(self, *defaults: Any, **more: Any) -> int | None:
        if self._status is None:
            return super()._internal_poll(*defaults, **more)  # type: ignore[misc, no-any-return]
        with self._waitpid_lock:  # type: ignore[attr-defined]
            if self.returncode is None:
                pid, status = self._try_wait(os.WNOHANG)
                if pid:
                    self._handle_exitstatus(status)  # type: ignore[attr-defined]
        return self.returncode


def finished(
    command: list[str], *, check: bool = False, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run code as `WarmPopen` does until it ends, and return what it printed."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with WarmPopen(command, **{**pipes, **options}) as process:
        try:
            out, err = process.communicate(timeout=200)
        finally:
            process.kill()
    assert not check or process.returncode == 0, err
    return subprocess.CompletedProcess(command, process.returncode, out, err)


_ASKING = threading.Lock()


@cache
def _started() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start the process that is forked, whose own streams cannot seek, as pipes."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-c", "from forked import served\nexec(served())"]
    process = subprocess.Popen(
        [*command, str(theirs.fileno())], pass_fds=[theirs.fileno()], env=environment,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    theirs.close()
    atexit.register(_end, process, ours)
    return process, ours


def _end(process: subprocess.Popen[bytes], asking: socket.socket) -> None:
    asking.close()
    process.communicate()


def served() -> CodeType:
    """Fork for each request, and return in the child, with the code that it is to run."""
    for module in _IMPORTED:
        import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that mind
    gc.collect()
    gc.freeze()
    asked = socket.socket(fileno=int(sys.argv[1]))
    sys.path.remove(str(Path(__file__).parent))
    while True:
        request, streams, _, _ = socket.recv_fds(asked, 1 << 20, 4)
        if not request:
            os._exit(0)
        if os.fork() == 0 and not _minded(asked, streams):
            break
        for stream in streams:
            os.close(stream)
    asked.close()
    given = json.loads(request)
    for number, stream in enumerate(streams[:3]):
        os.dup2(stream, number)
    for stream in streams:
        os.close(stream)
    os.chdir(given["cwd"])
    os.environ.clear()
    os.environ.update(given["env"])
    sys.argv = given["argv"]
    return compile(given["code"], "<string>", "exec")


def _minded(asked: socket.socket, streams: list[int]) -> bool:
    """Fork once more, to False in the child; its parent tells its id, and how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        return False
    asked.send(str(pid).encode())
    *pipes, status = streams
    for stream in pipes:
        os.close(stream)
    os.write(status, str(os.waitpid(pid, 0)[1]).encode())
    os._exit(0)


_IMPORTED = [
    "openai",
    *(
        f"rag_eval_integrations.{name}"
        for name in (
            "cli.run", "cli.worker", "cli.report", "cli.compare", "dataset", "evaluations",
            "judges.embedded", "judges.llm", "metrics", "models.openai", "models.throttling",
            "report.html", "sentences", "sinks", "store",
        )
    ),
]  # fmt: skip
"""What most commands import."""
