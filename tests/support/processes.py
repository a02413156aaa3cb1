"""Code in processes of its own, and waits for what other threads and processes do."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from forked import finished


def python(code: str, *words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, in which the command line has been imported."""
    return finished([sys.executable, "-c", code, *map(str, words)], **options)


def fresh_python(code: str, *words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run code in an interpreter that has imported nothing."""
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, **options)


def until(claim: Callable[[], object]) -> None:
    """Wait until a claim is true; fail after a bounded time."""
    pause = threading.Event()
    for _ in range(20_000):
        if claim():
            return
        pause.wait(0.005)
    pytest.fail("it did not become true in time")
