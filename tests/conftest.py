"""Where things are that tests need: the checkout, the development data."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"

# No test asserts on time: a busy machine is no bug.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture
def data() -> Path:
    """Development data, which is not part of the project."""
    if not DATA.is_dir():
        pytest.skip("needs the labelled development data in ../shared/data, which is not here")
    return DATA


@pytest.fixture
def ragbench(data: Path) -> list[Path]:
    """All RAGBench files of the development data."""
    return sorted((data / "ragbench").glob("*.jsonl.gz"))


def pytest_report_header() -> str:
    """Say which labelled rows this run has, and what it cannot show without the recorded ones."""
    files = sorted((DATA / "ragbench").glob("*.jsonl.gz"))
    if not files:
        return (
            "labelled data: own rows only (../shared/data is not there): row-by-row parity with "
            "published columns is not shown by this run; see benchmarks/ragbench_parity.py"
        )
    rows = 0
    for path in files:
        with gzip.open(path) as lines:
            rows += sum(1 for _ in lines)
    return f"labelled data: own rows, and ../shared/data ({rows:,} RAGBench rows in {len(files)} files)"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it at the end of a run that shows no header (`-q`)."""
    if terminalreporter.verbosity < 0:
        terminalreporter.write_line(pytest_report_header())
