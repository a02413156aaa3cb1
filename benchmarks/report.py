"""The report's time, memory and size for 1,000 and 10,000 calls, and how soon a browser shows it.

    python benchmarks/report.py [--data ../shared/data/ragbench] [--calls 1000 10000]

The calls are RAGBench rows, scored and then repeated. Each size is written in a process of its own,
from a file of evaluations as `rag-eval report` reads it. `read` is the time to read that file
alone, the baseline; `write` is what the report takes on top; both are seconds of CPU, `wall` is
the clock's time of both together. With playwright and a chromium on PATH, the load event, the
opening of a call and a search of all texts are measured too, in a page that is opened from disk.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rag_eval_integrations.dataset import labelled_from, score_labelled
from rag_eval_integrations.metrics import Trace
from rag_eval_integrations.records import Evaluation, from_line, to_line
from rag_eval_integrations.report import write_report
from rag_eval_integrations.sentences import Punkt

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def scored(data: Path) -> list[str]:
    """Score the rows of all files, one line of EVALS each."""
    lines = []
    for path in sorted(data.glob("*.jsonl.gz")):
        with gzip.open(path) as rows:
            for row in rows:
                labelled = labelled_from(json.loads(row), Punkt())
                lines.append(to_line(score_labelled(labelled, [Trace()])))
    return lines


def read(path: Path) -> Iterator[Evaluation]:
    with path.open("rb") as lines:
        for line in lines:
            yield from_line(Evaluation, line)


def measure(evals: Path, page: Path) -> dict[str, float]:
    """Read the file, then write its report; figures of this process."""
    started = time.process_time()
    calls = sum(1 for _ in read(evals))
    reading = time.process_time() - started
    began, started = time.perf_counter(), time.process_time()
    write_report(read(evals), page)
    return {
        "calls": calls,
        "read": reading,
        "write": time.process_time() - started - reading,
        "wall": time.perf_counter() - began,
        "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "bytes": page.stat().st_size,
    }


def in_browser(pages: list[Path]) -> None:
    """Print the load event of each page, and the time to open and to search its calls."""
    chromium = next(filter(None, map(shutil.which, BROWSERS)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        print("no playwright or no chromium on PATH: load times were not measured")
        return
    print(f"\n{'calls':>8} {'load event':>11} {'open a call':>12} {'search all texts':>17}")
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        for path in pages:
            loads, opens, searches = [], [], []
            for _ in range(3):
                page = browser.new_page()
                page.goto(path.as_uri())
                timing = "performance.getEntriesByType('navigation')[0].loadEventEnd"
                loads.append(page.evaluate(timing))
                opens.append(page.evaluate(OPEN))
                page.keyboard.press("Escape")
                searches.append(page.evaluate(SEARCH))
                page.close()
            figures = [f"{min(times):.0f} ms" for times in (loads, opens, searches)]
            print(f"{path.stem:>8} {figures[0]:>11} {figures[1]:>12} {figures[2]:>17}")
        browser.close()


_UNTIL = """
const until = (done) => new Promise((resolve) => {
  const look = () => (done() ? resolve() : setTimeout(look, 1));
  look();
});
const started = performance.now();
"""
OPEN = f"""async () => {{{_UNTIL}
  document.querySelector('.body .row a').click();
  await until(() => document.querySelector('#one article'));
  return performance.now() - started;
}}"""
SEARCH = f"""async () => {{{_UNTIL}
  await until(() => !document.querySelector('#one article'));
  const count = document.getElementById('count');
  document.getElementById('full').click();
  const search = document.getElementById('q');
  search.value = 'never written anywhere';
  search.dispatchEvent(new Event('input'));
  await until(() => count.textContent.startsWith('0 of'));
  return performance.now() - started;
}}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    here = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "ragbench"
    parser.add_argument("--data", type=Path, default=here, help="folder of RAGBench rows")
    parser.add_argument("--calls", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--one", type=Path, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one)))
        return
    lines = scored(options.data)
    if not lines:
        sys.exit(f"no rows in {options.data}")
    print(f"{len(lines):,} rows of {options.data.name}, repeated")
    header = ("calls", "read s", "write s", "x read", "wall s", "RSS MB", "MB")
    print("".join(f"{name:>10}" for name in header))
    with tempfile.TemporaryDirectory() as folder:
        pages = []
        for calls in options.calls:
            evals, page = Path(folder, f"{calls}.jsonl"), Path(folder, f"{calls}.html")
            with evals.open("w") as file:
                for line in itertools.islice(itertools.cycle(lines), calls):
                    file.write(f"{line}\n")
            command = [sys.executable, __file__, "--one", str(evals), str(page)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            took = json.loads(done.stdout)
            write = took["write"]
            print(
                f"{calls:>10,}{took['read']:>10.2f}{write:>10.2f}{write / took['read']:>10.2f}"
                f"{took['wall']:>10.2f}{took['rss']:>10.0f}{took['bytes'] / 1e6:>10.2f}"
            )
            pages.append(page)
        in_browser(pages)


if __name__ == "__main__":
    main()
