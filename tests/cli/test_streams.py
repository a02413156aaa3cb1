"""Standard streams that are closed, full, or whose reader has gone; real processes of the command.

What is scored is written all the same, and the exit code says what it always says.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from ferries import ferries

from .conftest import shell

FULL = Path("/dev/full")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="streams are redirected by a shell"),
]


@pytest.fixture(autouse=True)
def _calls() -> None:
    """Five calls and, in another file, a line among them that is not one."""
    good = ferries(Path("good.jsonl"), 5).read_text()
    Path("calls.jsonl").write_text(good.replace("\n", "\nno call\n", 1))


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_costs_no_row(closed: str) -> None:
    """No file gets the number of a closed stream, and nothing that is printed gets into OUT."""
    done = shell(f"rag-eval run calls.jsonl -o e.jsonl {closed}")
    rows = Path("e.jsonl").read_text().splitlines()
    assert done.returncode == 2  # for the line that is no call
    assert [json.loads(row)["schema"] for row in rows] == [2] * 5
    assert "Traceback" not in done.stderr
    assert not Path("e.jsonl.partial").exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("run calls.jsonl -o -", 2, "rag-eval: `--out` = '-': there is no standard output\n"),
        ("doctor", 0, ""),
    ],
)
def test_rows_need_a_standard_output(words: str, code: int, said: str) -> None:
    """Rows that nobody could read are not made; a check succeeds without anything to print on."""
    done = shell(f"rag-eval {words} >&-")
    assert (done.returncode, done.stderr) == (code, said)


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
def test_a_full_stream_ends_no_run() -> None:
    """A complaint that cannot be written loses no row; the exit code still tells.

    A full standard output is named, with the number of rows that are whole; a summary that is lost
    costs no file.
    """
    last = "rag-eval: standard output: no space left on device"
    for redirected, said in ((f"2>{FULL}", []), (f">{FULL}", [last])):
        done = shell(f"rag-eval run calls.jsonl -o e.jsonl --overwrite {redirected}")
        assert (done.returncode, done.stderr.splitlines()[-1:]) == (2, said)
        assert len(Path("e.jsonl").read_bytes().splitlines()) == 5
    rows = shell(f"rag-eval run calls.jsonl -o - >{FULL}")
    assert rows.returncode == 2
    assert rows.stderr.splitlines()[-1] == f"{last}, after 0 whole evaluations"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("run good.jsonl -o e.jsonl", 0),
        ("run good.jsonl -o e.jsonl --fail-under context_relevance=1", 1),
        ("run calls.jsonl -o e.jsonl", 2),
        ("doctor", 0),
    ],
)
def test_a_reader_that_has_seen_enough_changes_no_exit_code(words: str, code: int) -> None:
    """`| head` is not a failed check, and hides none."""
    done = shell(f"rag-eval {words} | true; echo ${{PIPESTATUS[0]}}")
    assert done.stdout == f"{code}\n"
    assert ("FAILED context_relevance" in done.stderr) == (code == 1)
    assert "Traceback" not in done.stderr
