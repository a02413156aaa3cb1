"""`rag-eval run` and `score` with files: nothing is lost, odd targets are refused, input is told."""

from __future__ import annotations

import gzip
import io
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ferries import Command

from rag_eval_integrations import _target
from rag_eval_integrations.records import Evaluation, from_line

CALL: dict[str, Any] = {
    "id": "1",
    "question": "When does the ferry leave?",
    "documents": ["The ferry leaves at nine."],
    "response": "The ferry leaves at nine.",
}
LABELS = {
    "all_relevant_sentence_keys": ["0a"],
    "all_utilized_sentence_keys": ["0a"],
    "sentence_support_information": [
        {"response_sentence_key": "a", "supporting_sentence_keys": ["0a"], "fully_supported": True}
    ],
}
BOTH = pytest.mark.parametrize("command", ["run", "score"])


def rows(count: int, start: int = 0) -> bytes:
    made = ({**CALL, "id": str(n), "labels": LABELS} for n in range(start, start + count))
    return b"".join(json.dumps(row).encode() + b"\n" for row in made)


def ids(lines: bytes | str) -> list[str]:
    return [from_line(Evaluation, line).id for line in lines.splitlines()]


def snapshot(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    path = tmp_path / "calls.jsonl"
    path.write_bytes(rows(3))
    return path


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    def give(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return give


# --- What is there is not lost


@BOTH
def test_an_existing_file_is_replaced_only_on_request(
    rag_eval: Command, calls: Path, tmp_path: Path, command: str
) -> None:
    """Without `--overwrite` nothing changes; with it, the new file stands alone in the end."""
    out = tmp_path / "out.jsonl"
    out.write_text("hours of work\n")
    out.chmod(0o640)
    before = snapshot(tmp_path)

    refused = rag_eval(command, calls, "-o", out)
    assert refused.code == 2
    assert f"`--out` = {str(out)!r}: exists; use another name, " in refused.err
    assert "--overwrite to replace it" in refused.err
    assert ("--resume" in refused.err) == (command == "run")  # `score` has none
    assert snapshot(tmp_path) == before

    assert rag_eval(command, calls, "-o", out, "--overwrite").code == 0
    assert ids(out.read_bytes()) == ["0", "1", "2"]
    assert out.stat().st_mode & 0o777 == 0o640
    assert sorted(snapshot(tmp_path)) == ["calls.jsonl", "out.jsonl"]


@BOTH
@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (b"", 2, "has no rows"),
        (b"\n \n", 2, "has no rows"),
        (b"\xef\xbb\xbf", 2, "has no rows"),
        (b"no\nno\n", 2, "has 2 invalid lines and no"),
        (b'{"id": 1}\n', 2, "has 1 invalid line and no"),
    ],
)
def test_without_a_row_nothing_is_replaced(
    rag_eval: Command, tmp_path: Path, command: str, content: bytes, code: int, said: str
) -> None:
    """It is said instead, and no table of nothing is printed; bad lines that are skipped are 1."""
    calls, out = tmp_path / "calls.jsonl", tmp_path / "out.jsonl"
    calls.write_bytes(content)

    fresh = rag_eval(command, calls, "-o", out)
    assert (fresh.code, fresh.out) == (code, "")
    assert f"{calls}: {said}" in fresh.err
    skipped = rag_eval(command, calls, "-o", out, "--skip-invalid")
    assert skipped.code == (1 if "invalid" in said else code)
    assert list(tmp_path.iterdir()) == [calls]

    out.write_text("hours of work\n")
    again = rag_eval(command, calls, "-o", out, "--overwrite")
    assert again.code == code
    assert snapshot(tmp_path) == {"calls.jsonl": content, "out.jsonl": b"hours of work\n"}


def test_a_run_is_not_resumed_with_other_calls(
    rag_eval: Command, calls: Path, tmp_path: Path
) -> None:
    """Neither with fewer nor with others; more are fine."""
    out, other = tmp_path / "out.jsonl", tmp_path / "other.jsonl"
    rag_eval("run", calls, "-o", out)
    other.write_bytes(rows(1, start=7))
    before = snapshot(tmp_path)

    for words in ([other], [calls, "--limit", 2]):
        refused = rag_eval("run", *words, "-o", out, "--resume")
        assert refused.code == 2
        assert "not among the calls of this run" in refused.err
    assert snapshot(tmp_path) == before

    calls.write_bytes(rows(1, start=7) + rows(3))
    assert rag_eval("run", calls, "-o", out, "--resume").code == 0
    assert ids(out.read_bytes()) == ["7", "0", "1", "2"]


def test_the_input_is_not_the_output_under_any_name(
    rag_eval: Command, calls: Path, tmp_path: Path
) -> None:
    """Not through links, hard or symbolic, even to overwrite."""
    before = calls.read_bytes()
    (tmp_path / "soft").symlink_to(calls)
    os.link(calls, tmp_path / "hard")

    for name in ("calls.jsonl", "soft", "hard"):
        for command in ("run", "score"):
            done = rag_eval(command, calls, "-o", tmp_path / name, "--overwrite")
            assert (done.code, "is the input file" in done.err) == (2, True)

    assert calls.read_bytes() == before


# --- Targets that are no files


def special(path: Path, kind: str) -> None:
    if kind == "a FIFO":
        os.mkfifo(path)
    elif kind == "a folder":
        path.mkdir()
    elif kind == "a device":
        try:
            os.mknod(path, 0o20600, os.makedev(1, 3))
        except OSError:
            pytest.skip("may make no devices")
    else:
        import socket

        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))


@BOTH
@pytest.mark.parametrize("kind", ["a FIFO", "a folder", "a device", "a socket"])
def test_odd_targets_are_refused_and_stay(
    rag_eval: Command,
    calls: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    kind: str,
) -> None:
    """Also behind a link and with `--overwrite` or `--resume`; what they are is said."""
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    special(Path("odd"), kind)
    Path("link").symlink_to("odd")
    before = Path("odd").lstat()

    for name in ("odd", "link"):
        for words in ([], ["--overwrite"], ["--resume"] * (command == "run")):
            done = rag_eval(command, calls, "-o", name, *words)
            assert done.code == 2
            assert f"`--out` = '{name}': is {kind}; use a regular file" in done.err

    assert os.path.samestat(Path("odd").lstat(), before)
    assert Path("link").is_symlink()
    assert sorted(os.listdir()) == ["calls.jsonl", "link", "odd"]


@BOTH
def test_a_missing_folder_is_named(
    rag_eval: Command, calls: Path, tmp_path: Path, command: str
) -> None:
    """By the name that the user gave, not by that of a temporary file; no errno."""
    out = tmp_path / "none" / "at" / "out.jsonl"

    done = rag_eval(command, calls, "-o", out)

    assert done.code == 2
    assert done.err == f"rag-eval: {out}: the folder {out.parent} does not exist\n"


@BOTH
def test_links_are_followed(rag_eval: Command, calls: Path, tmp_path: Path, command: str) -> None:
    """The link stays a link, to a file that is there or not; a circle is told.

    New files are private, since they hold the texts of users.
    """
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (tmp_path / "out.jsonl").symlink_to(folder / "real.jsonl")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")

    for words in ([], ["--overwrite"]):
        assert rag_eval(command, calls, "-o", tmp_path / "out.jsonl", *words).code == 0
        assert (tmp_path / "out.jsonl").is_symlink()
        assert list(snapshot(folder)) == ["real.jsonl"]
        assert ids((folder / "real.jsonl").read_bytes()) == ["0", "1", "2"]
        assert (folder / "real.jsonl").stat().st_mode & 0o777 == 0o600
    circle = rag_eval(command, calls, "-o", tmp_path / "circle")
    assert (circle.code, "is a link that is not followed" in circle.err) == (2, True)


@BOTH
def test_planted_links_beside_the_target_are_not_written_through(
    rag_eval: Command, calls: Path, tmp_path: Path, command: str
) -> None:
    """Whatever name a temporary file might have."""
    precious = tmp_path / "precious"
    precious.write_text("mine\n")
    for name in ("partial", "ordered", "unfinished", "bak", "tmp"):
        (tmp_path / f"out.jsonl.{name}").symlink_to(precious)

    rag_eval(command, calls, "-o", tmp_path / "out.jsonl")
    rag_eval(command, calls, "-o", tmp_path / "out.jsonl", "--overwrite")

    assert precious.read_text() == "mine\n"


# --- Standard input and output


@BOTH
def test_a_dash_is_standard_input_and_output(
    rag_eval: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stdin: Callable[[bytes], None],
    command: str,
) -> None:
    """Rows on stdout and nothing else, in order; the summary on stderr; no file named `-`."""
    monkeypatch.chdir(tmp_path)
    stdin(gzip.compress(rows(40) + b"bad\n"))

    done = rag_eval(command, "-", "-o", "-")

    assert done.code == 2
    assert ids(done.out) == [str(n) for n in range(40)]
    assert "standard input: line 41: not JSON" in done.err
    assert "40 calls in" in done.err
    assert os.listdir() == []


def test_standard_input_is_read_twice_where_needed(
    rag_eval: Command, tmp_path: Path, stdin: Callable[[bytes], None]
) -> None:
    """To resume, all calls are looked at first; the copy that this takes is removed."""
    out = tmp_path / "out.jsonl"
    stdin(rows(2))
    assert rag_eval("run", "-", "-o", out).code == 0
    stdin(rows(3))
    assert rag_eval("run", "-", "-o", out, "--resume").code == 0
    stdin(rows(1))
    assert rag_eval("run", "-", "-o", out, "--resume").code == 2

    assert ids(out.read_bytes()) == ["0", "1", "2"]
    refused = rag_eval("run", "-", "-o", "-", "--resume")
    assert "`--resume` = True: needs a file to go on with" in refused.err


def shell(words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    console = f"{sys.executable} -c 'from rag_eval_integrations.cli import main; main()'"
    script = words.replace("rag-eval", console)
    command = ["bash", "-c", script]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)


@pytest.mark.slow
def test_in_a_shell(calls: Path, tmp_path: Path) -> None:
    """Process substitution, pipes on both sides, a reader that leaves early, the device names."""
    done = shell("rag-eval run <(sleep 0.3; cat calls.jsonl) -o - | cat > out.jsonl", tmp_path)
    assert (done.returncode, ids((tmp_path / "out.jsonl").read_bytes())) == (0, ["0", "1", "2"])

    (tmp_path / "many.jsonl").write_bytes(rows(3000))
    early = shell(
        "set -o pipefail; cat many.jsonl | rag-eval score - -o - | head -n 1 > one", tmp_path
    )
    assert early.returncode == 2
    assert "standard output was closed by its reader" in early.stderr
    assert "Traceback" not in early.stderr
    assert "Exception ignored" not in early.stderr
    assert ids((tmp_path / "one").read_bytes()) == ["0"]

    pipe = shell("rag-eval run calls.jsonl -o /dev/stdout | cat", tmp_path)
    assert "`-` is standard output" in pipe.stderr


# --- Input that is damaged, endless or no file


def test_damaged_lines_are_counted_and_lose_no_other(
    rag_eval: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line that is too long, NUL bytes, another encoding, a torn end, a BOM at the beginning."""
    monkeypatch.setattr("rag_eval_integrations.dataset._input.LONGEST_CALL", 2000)
    calls = tmp_path / "calls.jsonl"
    bad = [b"x" * 5000, b"\0" * 10, "{ü}".encode("utf-16"), '{"a": "ü"}'.encode("latin-1")]
    calls.write_bytes(
        b"\xef\xbb\xbf" + rows(1) + b"\n".join(bad) + b"\n" + rows(1, start=1) + rows(1)[:30]
    )

    done = rag_eval("run", calls, "-o", tmp_path / "out.jsonl")

    assert done.code == 2
    told = [line.partition("calls.jsonl: ")[2] for line in done.err.splitlines()]
    assert told[0] == "line 2: is 5,001 bytes long; the limit is 2,000"
    assert [line.partition(":")[0] for line in told] == [
        "line 2", "line 3", "line 4", "1 more like 3 (not JSON)", "1 more like 4 (not UTF-8 at byte)",
        "5 invalid lines left out of the output",
    ]  # fmt: skip
    assert ids((tmp_path / "out.jsonl").read_bytes()) == ["0", "1"]


@BOTH
def test_of_many_bad_rows_one_of_each_kind_is_told_and_all_are_counted(
    rag_eval: Command, tmp_path: Path, command: str
) -> None:
    """With the places of ten more; another kind behind them is told as well."""
    calls, out = tmp_path / "calls.jsonl", tmp_path / "out.jsonl"
    odd = json.dumps({"question": "Q", "documents": 5, "response": "r"}).encode()
    calls.write_bytes(
        rows(1) + b"no\n" * 1_200 + b"{}\n" * 5 + (odd + b"\n") * 3 + rows(1, start=1)
    )

    done = rag_eval(command, calls, "-o", out)

    told = done.err.replace(f"{calls}: ", "").splitlines()
    assert done.code == 2
    assert told[0] == "line 2: not JSON: Expecting value at column 1"
    assert told[1].startswith("line 1202: field `question`: is missing")
    assert told[2].startswith("line 1207: field `documents`: ")
    assert told[3] == (
        "1,199 more like 2 (not JSON): 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 1,189 more"
    )
    assert told[4] == "4 more like 1202 (`question` is missing): 1203, 1204, 1205, 1206"
    assert told[5].startswith("2 more like 1207 (`documents` ")
    assert told[6:7] == ["1,208 invalid lines left out of the output"]
    assert ids(out.read_bytes()) == ["0", "1"]


@BOTH
@pytest.mark.parametrize("damage", ["cut", "changed", "checksum"])
def test_a_damaged_gzip_file_gives_what_can_be_read(
    rag_eval: Command, tmp_path: Path, command: str, damage: str
) -> None:
    """And one bad line for the rest, which says so; never a traceback."""
    calls = tmp_path / "calls.jsonl.gz"
    whole = bytearray(gzip.compress(rows(600), compresslevel=1))
    if damage == "cut":
        whole = whole[: len(whole) // 2]
    elif damage == "changed":
        middle = len(whole) // 2
        whole[middle : middle + 50] = b"\xff" * 50
    else:
        whole[-8] ^= 1
    calls.write_bytes(whole)

    done = rag_eval(command, calls, "-o", tmp_path / "out.jsonl")

    found = ids((tmp_path / "out.jsonl").read_bytes())
    told = [line for line in done.err.splitlines() if ": line " in line]
    assert done.code == 2
    assert len(found) == 600 if damage == "checksum" else 150 < len(found) < 600
    assert found[:150] == [str(n) for n in range(150)]
    assert f"{calls}: {len(told)} invalid line" in done.err
    assert "the gzip data is damaged (" in told[-1]
    if damage == "cut":
        assert len(told) == 1
        assert told[0].startswith(f"{calls}: line {len(found) + 1}: ")
        assert told[0].endswith("this line and all after it are lost")


@BOTH
@pytest.mark.parametrize("kind", ["a folder", "a device", "a socket"])
def test_input_that_is_no_file_is_refused(
    rag_eval: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, kind: str
) -> None:
    """Before anything is written, and in words."""
    monkeypatch.chdir(tmp_path)
    special(Path("odd"), kind)

    done = rag_eval(command, "odd", "-o", "out.jsonl")

    assert done.code == 2
    assert f"odd: is {kind}, not a file of rows" in done.err
    assert os.listdir() == ["odd"]


@pytest.mark.skipif(os.geteuid() == 0, reason="an administrator may read everything")
def test_a_file_that_may_not_be_read(rag_eval: Command, calls: Path, tmp_path: Path) -> None:
    """Its name and why, without errno."""
    calls.chmod(0)

    done = rag_eval("run", calls, "-o", tmp_path / "out.jsonl")

    assert (done.code, done.err) == (2, f"rag-eval: {calls}: permission denied\n")


# --- Killed at any moment


SLOW = """
import sys, time
from rag_eval_integrations.dataset.files import EvaluationFile
from rag_eval_integrations.cli import main

add_row = EvaluationFile.add_row
def slow_add_row(self, index, line, **more):
    add_row(self, index, line, **more)
    time.sleep(0.004)
EvaluationFile.add_row = slow_add_row
main()
"""
OLD = b"hours of work\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "workers", "overwrite"),
    [("e.jsonl", "1", True), ("e.jsonl", "2", False), ("e.jsonl.gz", "2", False), ("e.parquet", "1", False)],
)  # fmt: skip
def test_killed_at_any_moment(
    rag_eval: Command, tmp_path: Path, name: str, workers: str, overwrite: bool
) -> None:
    """By SIGKILL, again and again: the old OUT is whole, no row that was written is made again.

    In the end OUT has the rows of a run that was not killed, in its form, and nothing else is left.
    """
    parquet = pytest.importorskip("pyarrow.parquet")
    calls, out, plain = (tmp_path / one for one in ("calls.jsonl", name, "plain.jsonl"))
    calls.write_bytes(rows(150))
    if overwrite:
        out.write_bytes(OLD)
    partial = tmp_path / f"{name}.partial"
    words, written = ["run", str(calls), "-o", str(out), "--workers", workers], 0

    for more in (["--overwrite"] * overwrite, ["--resume"]):
        process = subprocess.Popen(
            [sys.executable, "-c", SLOW, *words, *more],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        while process.poll() is None and lines_in(partial) < written + 20:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert (out.read_bytes() if out.exists() else OLD) == OLD
        written = lines_in(partial)

    refused = rag_eval(*words)
    assert (refused.code, "--resume" in refused.err) == (2, True)
    done = rag_eval(*words, "--resume")
    assert done.code == 0, done.err
    assert f"{written} reused from an earlier run" in done.out
    assert rag_eval("run", calls, "-o", plain).code == 0
    content = (
        parquet.read_table(out)["evaluation"].to_pylist()
        if name.endswith("parquet")
        else (gzip.decompress if name.endswith("gz") else bytes)(out.read_bytes()).decode().splitlines()
    )  # fmt: skip
    assert content == plain.read_text().splitlines()
    assert ids(plain.read_bytes()) == [str(n) for n in range(150)]
    assert sorted(os.listdir(tmp_path)) == sorted(["calls.jsonl", "plain.jsonl", name])


def lines_in(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


DYING = """
import os, pathlib, signal, sys
from rag_eval_integrations import _target
from rag_eval_integrations.cli import main
from rag_eval_integrations.dataset.files import EvaluationFile

def die(*arguments, **more):
    os.kill(os.getpid(), signal.SIGKILL)

moment = sys.argv.pop(1)
if moment == "writing":
    os.fsync = die
elif moment == "before":
    pathlib.Path.replace = die
else:
    EvaluationFile.discard = die
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_killed_as_out_is_replaced(
    rag_eval: Command, calls: Path, tmp_path: Path, moment: str, overwrite: bool
) -> None:
    """Just before and just after the renaming: OUT is old or new, and `--resume` tidies up."""
    out = tmp_path / "out.jsonl"
    if overwrite:
        out.write_text("hours of work\n")
    words = ["run", str(calls), "-o", str(out), *["--overwrite"] * overwrite]

    killed = subprocess.run([sys.executable, "-c", DYING, moment, *words], capture_output=True)

    assert killed.returncode == -signal.SIGKILL
    if moment == "after":
        assert ids(out.read_bytes()) == ["0", "1", "2"]
    elif overwrite:
        assert out.read_text() == (tmp_path / "out.jsonl.bak").read_text() == "hours of work\n"
    else:
        assert not out.exists()
    again = rag_eval("run", calls, "-o", out, "--resume")
    assert (again.code, "3 reused from an earlier run" in again.out) == (0, True)
    assert ids(out.read_bytes()) == ["0", "1", "2"]
    left = ["out.jsonl.bak"] if overwrite and moment == "after" else []
    assert sorted(os.listdir(tmp_path)) == ["calls.jsonl", "out.jsonl", *left]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="this system names every file")
def test_a_score_that_is_killed_leaves_nothing(calls: Path, tmp_path: Path) -> None:
    """Its rows hold texts of users."""
    words = ["score", str(calls), "-o", str(tmp_path / "out.jsonl")]
    killed = subprocess.run([sys.executable, "-c", DYING, "writing", *words], capture_output=True)

    assert (killed.returncode, os.listdir(tmp_path)) == (-signal.SIGKILL, ["calls.jsonl"])


@pytest.mark.slow
@pytest.mark.parametrize("overwrite", [False, True])
def test_what_a_killed_score_left_goes_with_the_next(
    rag_eval: Command,
    calls: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    overwrite: bool,
) -> None:
    """If its file had a name at all; while a process lives, its own are not removed."""
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    out = tmp_path / "out.jsonl"
    if overwrite:
        out.write_text("hours of work\n")
    words = ["score", str(calls), "-o", str(out), *["--overwrite"] * overwrite]
    killed = subprocess.run([sys.executable, "-c", DYING, "before", *words], capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    assert [name for name in os.listdir(tmp_path) if name.endswith(".unfinished")]

    with _target.replacing(out) as living:  # another process's, as far as the lock says
        assert rag_eval(*words).code == 0
        assert ids(out.read_bytes()) == ["0", "1", "2"]
        assert len([name for name in os.listdir(tmp_path) if name.endswith(".unfinished")]) == 1
        living.write(b"later\n")

    assert sorted(os.listdir(tmp_path)) == ["calls.jsonl", "out.jsonl"]


@pytest.mark.parametrize("content", ["When? At nine.\n", "\x89PNG\r\n\x1a\n" * 9])
def test_what_is_no_file_of_rows_is_answered_with_a_line_to_copy(
    rag_eval: Command, tmp_path: Path, content: str
) -> None:
    """The message shows what a line looks like, and that a page or a table is another option."""
    calls = tmp_path / "calls"
    calls.write_text(content, "latin-1", newline="")

    done = rag_eval("run", calls, "-o", tmp_path / "evals.jsonl")

    assert done.code == 2
    assert 'one JSON object per line: {"question": "…", "documents": ["…"], "response"' in done.err
    assert len(done.err.splitlines()) <= 6


@pytest.mark.parametrize(
    ("content", "tried"),
    [
        (
            "Q,C,A\n" + "q,c,a\n" * 300,
            "the row has `A`, `C`, `Q`; try --map question=Q --map documents=C --map response=A",
        ),
        (
            "Frage an Bot;Kontext 1;Kontext 2;Antwort\n" + "q;c;d;a\n" * 30,
            "try --map question=NAME --map 'documents=Kontext 1' --map 'documents=Kontext 2' "
            "--map response=NAME",
        ),
    ],
)
def test_a_table_without_the_columns_is_one_message(
    rag_eval: Command, tmp_path: Path, content: str, tried: str
) -> None:
    """All missing fields, the names that the file has, the option to try, and the number of rows."""
    calls = tmp_path / "calls.csv"
    calls.write_text(content, "utf-8")

    done = rag_eval("run", calls, "-o", tmp_path / "evals.jsonl")

    assert done.code == 2
    *_, message, count = done.err.splitlines()
    assert "`question`: is missing, and so are `documents` and `response`; the row has" in message
    assert message.endswith(tried)
    assert f"has {content.count(chr(10)) - 1} invalid line" in count
    assert done.err.count("is missing") == 1
    mapping = shlex.split(tried.partition("try ")[2].replace("NAME", "Antwort"))
    assert rag_eval("run", calls, "-o", tmp_path / "evals.jsonl", *mapping).code == 0


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["run", "{evals}", "-o", "x.jsonl"], "an evaluation, not a call: `rag-eval report` shows"),
        (["report", "{calls}", "-o", "x.html"], "a call, not an evaluation: `rag-eval run CALLS"),
        (["compare", "{calls}", "{evals}"], "a call, not an evaluation: `rag-eval run CALLS"),
        (["agreement", "{calls}", "{evals}"], "a call, not an evaluation: `rag-eval run CALLS"),
        (["score", "bare.jsonl", "-o", "x.jsonl"], "`rag-eval run` has a judge label calls"),
        (["run", "{calls}", "-o", "y.html"], "a page is --report y.html"),
        (["run", "{calls}", "-o", "y.csv"], "`rag-eval report EVALS -o` makes tables"),
        (["score", "{evals}", "-o", "y.md"], "use a name such as evals.jsonl"),
    ],
)
def test_files_in_each_others_place_are_told(
    rag_eval: Command, calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    words: list[str], hint: str,
) -> None:  # fmt: skip
    """Calls where evaluations belong, and a page where evaluations go; nothing is written."""
    monkeypatch.chdir(tmp_path)
    evals = tmp_path / "evals.jsonl"
    assert rag_eval("run", calls, "-o", evals).code == 0
    (tmp_path / "bare.jsonl").write_text(json.dumps(CALL))
    before = snapshot(tmp_path)

    done = rag_eval(*(word.format(calls=calls, evals=evals) for word in words))

    assert done.code == 2
    assert hint in done.err
    assert snapshot(tmp_path) == before


# --- Gzip, and Parquet


@BOTH
@pytest.mark.parametrize("name", ["out.jsonl.gz", "out.parquet"])
def test_other_forms_of_out_are_read_by_every_command(
    rag_eval: Command, calls: Path, tmp_path: Path, command: str, name: str
) -> None:
    """They have the lines of the plain one, and the figures are equal; a folder of Parquet, too."""
    parquet = pytest.importorskip("pyarrow.parquet")
    out, plain = tmp_path / name, tmp_path / "out.jsonl"

    def content() -> list[str]:
        if name.endswith("gz"):
            return gzip.decompress(out.read_bytes()).decode().splitlines()
        lines: list[str] = parquet.read_table(out)["evaluation"].to_pylist()
        return lines

    assert rag_eval(command, calls, "-o", out, "--report", tmp_path / "out.html").code == 0
    assert rag_eval(command, calls, "-o", plain).code == 0
    assert content() == plain.read_text().splitlines()
    assert rag_eval(command, calls, "-o", "-").out == plain.read_text()
    assert rag_eval(command, calls, "-o", out).code == 2
    assert rag_eval(command, calls, "-o", out, "--overwrite").code == 0
    assert content() == plain.read_text().splitlines()
    assert not (tmp_path / f"{name}.bak").exists()
    given = [out]
    if name.endswith("parquet"):
        (tmp_path / "folder").mkdir()
        given.append(tmp_path / "folder" / "part-0.parquet")
        given[1].write_bytes(out.read_bytes())
        given[1] = given[1].parent
    for evals in given:
        for words in (
            *(("report", "EVALS", "-o", "-", "--format", form) for form in ("json", "csv", "ragbench")),
            ("agreement", "EVALS", calls, "--json"),
            ("compare", "EVALS", "EVALS", "--format", "json"),
            ("score", "EVALS", "-o", "-"),
        ):  # fmt: skip
            shown = [
                rag_eval(*(file if word == "EVALS" else word for word in words))
                for file in (plain, evals)
            ]
            assert shown[0].code == shown[1].code == 0, words
            assert shown[0].out.replace(plain.name, evals.name) == shown[1].out


@BOTH
def test_a_name_of_gzipped_parquet_is_refused(
    rag_eval: Command, calls: Path, tmp_path: Path, command: str
) -> None:
    """Before the first row."""
    refused = rag_eval(command, calls, "-o", tmp_path / "out.parquet.gz")
    assert refused.code == 2
    assert "leave out the `.gz`" in refused.err
    assert list(tmp_path.iterdir()) == [calls]
