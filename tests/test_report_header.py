"""A test run says which labelled rows it had."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest


def test_the_header_says_what_the_run_has(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    """Recorded rows with their number; without them, that parity is not shown and what shows it."""
    config = request.config
    conftest = config.pluginmanager.get_plugin(str(root / "tests" / "conftest.py"))
    monkeypatch.setattr(conftest, "DATA", tmp_path)

    def labelled() -> str:
        header = config.hook.pytest_report_header(config=config, start_path=root)
        (line,) = (line for line in header if str(line).startswith("labelled data: "))
        return str(line)

    assert "own rows only" in labelled()
    assert "benchmarks/ragbench_parity.py" in labelled()
    assert (root / "benchmarks" / "ragbench_parity.py").is_file()

    (tmp_path / "ragbench").mkdir()
    for name in ("a", "b"):
        (tmp_path / "ragbench" / f"{name}.jsonl.gz").write_bytes(gzip.compress(b"{}\n" * 700))
    assert "1,400 RAGBench rows in 2 files" in labelled()
