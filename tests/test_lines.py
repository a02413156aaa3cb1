"""LineFile: lines whole or not at all, whoever writes, and whatever a killed process left."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from forked import forked

from rag_eval_integrations._lines import LineFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lines.jsonl"


def test_a_file_that_is_removed_while_it_is_waited_for_is_made_anew(path: Path) -> None:
    """Lines in a file without a name would be lost."""

    def write() -> None:
        with LineFile(path) as other:
            other.append(b"second")

    file = LineFile(path)
    waiting = threading.Thread(target=write)
    waiting.start()
    time.sleep(0.2)  # until it waits; if it does not yet, it makes the file anew by itself
    file.append(b"first")
    path.unlink()
    for _ in range(2):  # the second does nothing
        file.close()
    waiting.join(30)

    assert path.read_bytes() == b"second\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of any fork
def test_a_child_forked_meanwhile_does_not_keep_the_file_locked(path: Path) -> None:
    """It has the same open file, and lives on after the parent has closed its own."""
    go_on, end = os.pipe()
    with LineFile(path) as file:
        file.append(b"parent")

        def child() -> bytes:
            os.close(end)
            return os.read(go_on, 1)

        running = forked(child)
    with LineFile(path, wait=False) as file:
        file.append(b"again")
    os.close(end)
    os.close(go_on)
    running.printed()

    assert path.read_bytes() == b"parent\nagain\n"
