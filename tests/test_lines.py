"""LineFile: lines whole or not at all, whoever writes, and whatever a killed process left."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from forked import forked

from rag_eval_integrations._lines import LineFile
from rag_eval_integrations.errors import ConfigurationError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lines.jsonl"


def test_lines_are_appended_and_say_where_they_begin(path: Path) -> None:
    """Also after what is there."""
    with LineFile(path) as file:
        assert [file.append(b"one"), file.append(b"")] == [0, 4]
    with LineFile(path) as file:
        assert file.append(b"three") == 5

    assert path.read_bytes() == b"one\n\nthree\n"


def test_an_unfinished_line_is_ended_once(path: Path) -> None:
    """What a killed process left; a whole last line, or an empty file, stays as it is."""
    for before, after in ((b"", b""), (b"a\n", b"a\n"), (b"a\nb", b"a\nb\n")):
        path.write_bytes(before)
        with LineFile(path) as file:
            file.end_last_line()
            file.end_last_line()
        assert path.read_bytes() == after
    with LineFile(path) as file:
        file.truncate(2)  # cut off: the next line begins in its place
        assert file.append(b"c") == 2
    assert path.read_bytes() == b"a\nc\n"


def test_a_new_file_does_not_replace_one(path: Path) -> None:
    """It is refused and stays as it is, private as it was made."""
    with LineFile(path, new=True) as file:
        file.append(b"mine")
    with pytest.raises(FileExistsError):
        LineFile(path, new=True)

    assert path.read_bytes() == b"mine\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    """A link is not followed, and a FIFO is not waited for."""
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "fifo")

    with pytest.raises(OSError, match="is a link that is not followed"):
        LineFile(tmp_path / "link")
    with pytest.raises(ConfigurationError, match="is a FIFO"):
        LineFile(tmp_path / "fifo")


_WRITE = """
import sys
from rag_eval_integrations._lines import LineFile
print("opening", flush=True)
with LineFile(sys.argv[1]) as file:
    file.append(b"second")
"""


def waiting_for(path: Path) -> subprocess.Popen[str]:
    """A process that is about to open the file and append a line."""
    waiting = subprocess.Popen(
        [sys.executable, "-c", _WRITE, path], stdout=subprocess.PIPE, text=True
    )
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == "opening\n"
    return waiting


def test_a_file_that_is_removed_while_it_is_waited_for_is_made_anew(path: Path) -> None:
    """Lines in a file without a name would be lost."""
    with LineFile(path) as file:
        waiting = waiting_for(path)
        time.sleep(0.2)  # until it waits; if it does not yet, it makes the file anew by itself
        file.append(b"first")
        path.unlink()
    waiting.communicate(timeout=30)

    assert path.read_bytes() == b"second\n"


def test_one_writer_at_a_time(path: Path) -> None:
    """Another one is refused, or waits until the first has closed the file."""
    with LineFile(path) as file:
        with pytest.raises(BlockingIOError):
            LineFile(path, wait=False)
        waiting = waiting_for(path)
        file.append(b"first")
    waiting.communicate(timeout=30)

    assert path.read_bytes() == b"first\nsecond\n"
    with LineFile(path, wait=False) as file:
        file.close()
        file.close()


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
