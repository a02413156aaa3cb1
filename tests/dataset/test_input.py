"""Reading rows: every line or its fault, in flat memory, from files, FIFOs and standard input."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rag_eval_integrations.dataset import read_calls
from rag_eval_integrations.dataset._input import Input, count_rows, read_lines
from rag_eval_integrations.errors import ConfigurationError

ROW = b'{"question": "q", "documents": ["d"], "response": "r"}\n'


def values(path: Path, longest: int = 100) -> list[tuple[int, str]]:
    """Number of each line, and its value or its fault."""
    return [
        (line.number, str(line.value["a"]) if line.value else str(line.error))
        for line in read_lines(path, lambda content: content, longest=longest)
    ]


def row(value: int) -> bytes:
    return b'{"a": %d}\n' % value


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("size", [101, 1000, (1 << 20) + 101, (2 << 20) + 100])
def test_a_line_that_is_too_long_is_one_bad_line(
    tmp_path: Path, pack: Callable[[bytes], bytes], size: int
) -> None:
    """Whatever its length, and also as the last one without a line end."""
    path = tmp_path / "rows"
    path.write_bytes(pack(row(1) + b"x" * (size - 1) + b"\n" + row(2) + b"y" * size))

    fault = f"is {size:,} bytes long; the limit is 100"
    assert values(path) == [
        (1, "1"), (2, f"line 2: {fault}"), (3, "2"), (4, f"line 4: {fault}"),
    ]  # fmt: skip


WINDOWS = row(1).replace(b"\n", b"\r\n")
FULL = (row(1).strip() + b" " * 100)[:99] + b"\n" + (row(2).strip() + b" " * 100)[:100]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (FULL, [(1, "1"), (2, "2")]),
        (b"\n" * 70_000 + b" \t\r\n\n" + row(1) + b"\n\n  " + row(2) + b"\n" * 10,
         [(70_003, "1"), (70_006, "2")]),
        (b"\xef\xbb\xbf" + WINDOWS, [(1, "1")]),
        (b"\xef\xbb\xbf\n" + row(1), [(2, "1")]),
        (b"\xef\xbb\xbf", []),
    ],
)  # fmt: skip
def test_lines_have_their_numbers(
    tmp_path: Path, content: bytes, rows: list[tuple[int, str]], pack: Callable[[bytes], bytes]
) -> None:
    """Blank ones are counted and skipped; a byte order mark is not part of a row."""
    path = tmp_path / "rows"
    path.write_bytes(pack(content))

    assert values(path) == rows


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("{}\n{}\n".encode("utf-16"), "line 1: not UTF-8, but probably UTF-16; convert the file"),
        (b'{"a": "\xe4"}\n', "line 1: not UTF-8 at byte 7"),
        (b"\0\0\0\n", "line 1: not JSON"),
        (b"PK\x03\x04\n", "line 1: not text, but probably a spreadsheet; save it as CSV"),
        (b'{"a": ' + b"9" * 5000 + b"}\n", "line 1: not usable"),
        (b"[" * 9_000, "line 1: not "),
    ],
)
def test_what_is_no_row_is_said(tmp_path: Path, content: bytes, fault: str) -> None:
    """By line and reason."""
    path = tmp_path / "rows"
    path.write_bytes(content)

    assert values(path, 10_000)[0][1].startswith(fault)


def test_what_a_reader_raises_for_a_number_is_a_bad_line(tmp_path: Path) -> None:
    """JSON holds numbers that no float can; other faults of a reader are its own."""
    path = tmp_path / "rows"
    path.write_bytes(b'{"a": 1' + b"0" * 400 + b"}\n" + row(1))

    lines = list(read_lines(path, lambda content: float(content["a"])))
    assert [line.value for line in lines] == [None, 1.0]
    assert str(lines[0].error) == "line 1: not usable: int too large to convert to float"
    with pytest.raises(KeyError):
        list(read_lines(path, lambda content: content["b"]))


def test_lines_of_a_damaged_file_are_not_counted(tmp_path: Path) -> None:
    """The bar of progress has no end then, nor for other formats; else their number is known."""
    path = tmp_path / "rows.gz"
    whole = gzip.compress(ROW * 5)
    path.write_bytes(whole)
    assert count_rows(path) == 5
    for damaged in (whole[:-9], whole[:-6] + b"\0" * 6, whole[:12] + b"\xff" * 9 + whole[21:]):
        path.write_bytes(damaged)
        assert count_rows(path) is None
    path.write_bytes(b"[{}]")
    assert count_rows(path) is None


def test_files_below_a_gzip_file_are_closed(tmp_path: Path) -> None:
    """Also when it is left in the middle."""
    path = tmp_path / "rows.gz"
    path.write_bytes(gzip.compress(ROW * 5))
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0

    lines = read_calls(path)
    next(lines)
    lines.close()  # type: ignore[attr-defined]  # a generator

    if before:
        assert len(os.listdir("/proc/self/fd")) == before


# --- FIFOs and standard input


def writing(path: Path, *parts: bytes) -> threading.Thread:
    """Write to a FIFO in a thread, with a pause before each part."""

    def write() -> None:
        time.sleep(0.05)
        with path.open("wb", buffering=0) as stream:
            for part in parts:
                time.sleep(0.05)
                stream.write(part)

    thread = threading.Thread(target=write)
    thread.start()
    return thread


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_fifo_is_read_to_its_end(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """However late and slowly it is written."""
    content, fifo = pack(ROW * 3000), tmp_path / "fifo"
    os.mkfifo(fifo)
    thread = writing(fifo, content[:5], content[5:-3], content[-3:])

    assert sum(line.value is not None for line in read_calls(fifo)) == 3000
    thread.join()


def test_a_file_that_is_standard_input_is_known(tmp_path: Path) -> None:
    """By whatever name, so that it is not written as it is read."""
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(ROW)
    code = (
        "from pathlib import Path; from rag_eval_integrations.dataset._input import Input\n"
        "print([Input('-').is_file(Path(name)) for name in 'ab'])"
    )
    with (tmp_path / "a").open("rb") as stdin:
        command = [sys.executable, "-c", code]
        printed = subprocess.check_output(command, stdin=stdin, text=True, cwd=tmp_path)
    assert printed == "[True, False]\n"


def test_input_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In words."""
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ConfigurationError, match="there is no standard input"):
        Input("-").check()
    for name, why in (("none", "no such file"), ("no/ne", "the folder .*no does not exist")):
        with pytest.raises(FileNotFoundError, match=why):
            next(read_calls(tmp_path / name))
        with pytest.raises(FileNotFoundError, match=why):
            Input(tmp_path / name).check()
