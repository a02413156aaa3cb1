"""How soon `rag-eval view` lists many runs and shows a page of a long one, and what it holds.

    python benchmarks/view.py EVALS.jsonl [--runs 300] [--calls 100000]

The lines of EVALS are repeated: 100 in each of the runs, and as many as wanted in a long one. The
list is asked for by HTTP from a process of its own, at its start (before figures are read) and
again; the page is one in the middle of the long run. `wall` is the clock's time; `ms of CPU` is
the server's own, which other work on the machine does not change much.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from http.client import HTTPConnection
from itertools import cycle, islice
from pathlib import Path

PER_RUN = 100
COMMAND = "from rag_eval_integrations.cli import main; main()"


def fill(folder: Path, lines: list[str], runs: int, calls: int) -> None:
    """Write the runs."""
    rows = cycle(lines)
    for number in range(runs):
        (folder / f"{number:04}.jsonl").write_text("".join(islice(rows, PER_RUN)))
    with (folder / "long.jsonl").open("w") as file:
        file.writelines(islice(rows, calls))
    os.utime(folder / "long.jsonl", (0, 0))  # the oldest, so that the others are read first


class Server:
    """The command in a process of its own."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-c", COMMAND, "view", str(folder), "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        lines = [self.process.stdout.readline() for _ in range(3)]
        found = re.search(r":(\d+)/\?token=(\S+)", lines[1])
        assert found is not None
        self.port, self.token = int(found[1]), found[2]

    def ask(self, target: str) -> str:
        """Return a page, and print what it took."""
        began, used = time.perf_counter(), self.cpu()
        connection = HTTPConnection("127.0.0.1", self.port)
        cookie = f"rag-eval-view-{self.port}={sha256(self.token.encode()).hexdigest()}"
        connection.request("GET", target, headers={"Cookie": cookie})
        page = connection.getresponse().read().decode()
        wall, cpu = time.perf_counter() - began, self.cpu() - used
        print(f"{target}: {wall:.2f} s wall, {cpu * 1000:.0f} ms of CPU, {len(page) / 1e6:.2f} MB")
        return page

    def cpu(self) -> float:
        """Seconds of CPU that the process has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Megabytes that the process holds."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("evals", type=Path)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--calls", type=int, default=100_000)
    options = parser.parse_args()
    lines = options.evals.read_text().splitlines(keepends=True)
    with tempfile.TemporaryDirectory() as name:
        fill(Path(name), lines, options.runs, options.calls)
        server = Server(Path(name))
        try:
            print(f"{server.memory():.0f} MB, {server.cpu():.2f} s of CPU until it listens")
            server.ask("/")
            server.ask(f"/run/long.jsonl?page={options.calls // 2_000}")
            for _ in range(120):
                time.sleep(5)
                if "read so far" not in server.ask("/"):
                    break
            print(f"{server.memory():.0f} MB, {server.cpu():.1f} s of CPU once all is read")
            server.ask(f"/run/long.jsonl?page={options.calls // 2_000}")
            print(f"{server.memory():.0f} MB in the end")
        finally:
            server.process.kill()


if __name__ == "__main__":
    main()
