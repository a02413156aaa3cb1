"""The two numbers of a machine that figures depend on: its cores, and the time of a fixed loop.

    python benchmarks/machine.py

The loop adds up the numbers below ten million; the best of five is printed, in seconds of CPU.
"""

from __future__ import annotations

import os
import platform
import time


def loop() -> float:
    """Return the seconds of CPU that the loop takes."""
    began = time.process_time()
    total = 0
    for number in range(10_000_000):
        total += number
    return time.process_time() - began


def main() -> None:
    best = min(loop() for _ in range(5))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"{cores} cores, Python {platform.python_version()}: the loop takes {best:.3f} s")


if __name__ == "__main__":
    main()
