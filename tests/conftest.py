"""Where things are that tests need, how many examples they try, which of them the matrix runs."""

from __future__ import annotations

import asyncio
import gc
import gzip
import itertools
import os
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from compat import markers_of
from hypothesis import settings
from postgresql import Cluster, cluster, programs

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
DATA = ROOT.parent / "shared" / "data"

# No test asks over TLS, but every client reads all certificates of the machine as it is made, 20 ms
# each; a folder without any is read in none.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = str(TESTS)

# A process that a shell starts in the background ignores SIGINT, under nohup SIGHUP as well, and so
# would the commands that tests start and send these signals to.
for _number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(_number) is signal.SIG_IGN:
        _own = signal.default_int_handler if _number is signal.SIGINT else signal.SIG_DFL
        signal.signal(_number, _own)

# No test asserts on time: a busy machine is not a bug.
settings.register_profile("quick", deadline=None, max_examples=25)
settings.register_profile("thorough", deadline=None, max_examples=100)  # .ci/deep asks for this one
settings.load_profile("quick")


def _markers_of(path: Path) -> list[str]:
    if not path.is_relative_to(TESTS):
        return []
    return markers_of(path.relative_to(TESTS).as_posix())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import, under `-m compat` or `-m floor`, the files that hold no such test."""
    asked = {"compat", "floor"}.intersection(config.option.markexpr.split(" and "))
    if asked and collection_path.suffix == ".py":
        return asked.isdisjoint(_markers_of(collection_path)) or None
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark `compat` and `floor` by file."""
    for item in items:
        for marker in _markers_of(item.path):
            item.add_marker(marker)


def pytest_collection_finish() -> None:
    """Take what the frameworks left in memory out of every later garbage collection."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _close_the_loop_that_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Close the loop that LlamaIndex's synchronous methods make and leave set.

    The next test that sets another would drop it, and the warning that it is not closed would fail
    whatever test runs when it is collected.
    """
    yield
    if request.node.get_closest_marker("asyncio") is not None:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            loop = asyncio.get_event_loop()
    except RuntimeError:  # there is none
        return
    if not loop.is_running():
        loop.close()
        asyncio.set_event_loop(None)


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def data() -> Path:
    """Development data, which is not part of the project."""
    if not DATA.is_dir():
        pytest.skip("needs the labelled development data in ../shared/data, which is not here")
    return DATA


@pytest.fixture(scope="session")
def ragbench(data: Path) -> list[Path]:
    """All RAGBench files of the development data."""
    return sorted((data / "ragbench").glob("*.jsonl.gz"))


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Cluster]:
    """A PostgreSQL of this run's own."""
    if programs() is None:
        if os.environ.get("RAG_EVAL_TEST_POSTGRESQL") == "required":
            pytest.fail("the gate needs Debian's package postgresql, which is not here")
        pytest.skip("needs PostgreSQL's server programs, as in Debian's package postgresql")
    with cluster() as server:
        yield server


_numbers = itertools.count()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty store can be made, on each database."""
    if request.param == "sqlite":
        return str(tmp_path / "evals.db")
    url: str = request.getfixturevalue("postgresql").database(f"store{next(_numbers)}")
    return url


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
