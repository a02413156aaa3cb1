"""`rag-eval run` and `score` with files: nothing is lost, odd targets are refused, input is told."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from by_hand import labels_of
from ferries import CALL, Command
from forked import WarmPopen, finished

from rag_eval_integrations import _target
from rag_eval_integrations.records import Evaluation, from_line

from .conftest import shell, snapshot

LABELS = labels_of(["0a"], ["0a"], {"a": (["0a"], True)}).model_dump(exclude_unset=True)
BOTH = pytest.mark.parametrize("command", ["run", "score"])
CALLS, OUT, PLAIN = Path("calls.jsonl"), Path("out.jsonl"), Path("plain.jsonl")
OLD = b"hours of work\n"


def rows(count: int, start: int = 0) -> bytes:
    made = ({**CALL, "id": str(n), "labels": LABELS} for n in range(start, start + count))
    return b"".join(json.dumps(row).encode() + b"\n" for row in made)


def ids(lines: bytes | str | Path = OUT) -> list[str]:
    lines = lines.read_bytes() if isinstance(lines, Path) else lines
    return [from_line(Evaluation, line).id for line in lines.splitlines()]


@pytest.fixture(autouse=True)
def _calls() -> None:
    CALLS.write_bytes(rows(3))


# --- What is there is not lost


@BOTH
def test_an_existing_file_is_replaced_only_on_request(rag_eval: Command, command: str) -> None:
    """Without `--overwrite` nothing changes; with it, the new file stands alone in the end."""
    OUT.write_bytes(OLD)
    OUT.chmod(0o640)
    before = snapshot()

    refused = rag_eval(command, CALLS, "-o", OUT, code=2)
    assert "`--out` = 'out.jsonl': exists; use another name, " in refused.err
    assert "--overwrite to replace it" in refused.err
    assert ("--resume" in refused.err) == (command == "run")  # `score` has none
    assert snapshot() == before

    rag_eval(command, CALLS, "-o", OUT, "--overwrite", code=0)
    assert ids() == ["0", "1", "2"]
    assert OUT.stat().st_mode & 0o777 == 0o640
    assert sorted(snapshot()) == ["calls.jsonl", "out.jsonl"]


@BOTH
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "has no rows"),
        (b"\xef\xbb\xbf", "has no rows"),
        (b"no\nno\n", "has 2 invalid lines and no"),
        (b'{"id": 1}\n', "has 1 invalid line and no"),
    ],
)
def test_no_rows_change_nothing(rag_eval: Command, command: str, content: bytes, said: str) -> None:
    """It is said instead, and no table of nothing is printed; bad lines that are skipped are 1."""
    CALLS.write_bytes(content)

    fresh = rag_eval(command, CALLS, "-o", OUT, code=2)
    assert fresh.out == ""
    assert f"{CALLS}: {said}" in fresh.err
    rag_eval(command, CALLS, "-o", OUT, "--skip-invalid", code=1 if "invalid" in said else 2)
    assert os.listdir() == ["calls.jsonl"]

    OUT.write_bytes(OLD)
    rag_eval(command, CALLS, "-o", OUT, "--overwrite", code=2)
    assert snapshot() == {"calls.jsonl": content, "out.jsonl": OLD}


def test_a_run_is_not_resumed_with_other_calls(rag_eval: Command) -> None:
    """Neither with fewer nor with others; more are fine."""
    rag_eval("run", CALLS, "-o", OUT)
    Path("other.jsonl").write_bytes(rows(1, start=7))
    before = snapshot()

    for words in (["other.jsonl"], [CALLS, "--limit", 2]):
        refused = rag_eval("run", *words, "-o", OUT, "--resume", code=2)
        assert "not among the calls of this run" in refused.err
    assert snapshot() == before

    CALLS.write_bytes(rows(1, start=7) + rows(3))
    rag_eval("run", CALLS, "-o", OUT, "--resume", code=0)
    assert ids() == ["7", "0", "1", "2"]


@BOTH
def test_the_input_is_not_the_output_under_any_name(rag_eval: Command, command: str) -> None:
    """Not through links, hard or symbolic, even to overwrite."""
    before = CALLS.read_bytes()
    Path("soft").symlink_to(CALLS)
    os.link(CALLS, "hard")
    for name in ("calls.jsonl", "soft", "hard"):
        done = rag_eval(command, CALLS, "-o", name, "--overwrite", code=2)
        assert "is the input file" in done.err
    assert CALLS.read_bytes() == before


# --- Targets that are no files


def special(path: Path, kind: str) -> None:
    if kind == "a FIFO":
        os.mkfifo(path)
    elif kind == "a folder":
        path.mkdir()
    elif kind == "a device":
        path.symlink_to("/dev/null")
    else:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))


@BOTH
@pytest.mark.parametrize("kind", ["a FIFO", "a folder", "a device", "a socket"])
def test_odd_targets_are_refused_and_stay(rag_eval: Command, command: str, kind: str) -> None:
    """Also behind a link and with `--overwrite` or `--resume`; what they are is said."""
    special(Path("odd"), kind)
    Path("link").symlink_to("odd")
    before = Path("odd").lstat()

    for name in ("odd", "link"):
        for words in ([], ["--overwrite"], ["--resume"] * (command == "run")):
            done = rag_eval(command, CALLS, "-o", name, *words, code=2)
            assert f"`--out` = '{name}': is {kind}; use a regular file" in done.err

    assert os.path.samestat(Path("odd").lstat(), before)
    assert Path("link").is_symlink()
    assert sorted(os.listdir()) == ["calls.jsonl", "link", "odd"]


@BOTH
def test_an_impossible_name_is_told(rag_eval: Command, tmp_path: Path, command: str) -> None:
    """A folder that is not there, by the name that the user gave, not by that of a temporary file.

    Gzipped Parquet is refused before the first row.
    """
    out = tmp_path / "none" / "at" / "out.jsonl"
    done = rag_eval(command, CALLS, "-o", out, code=2)
    assert done.err == f"rag-eval: {out}: the folder {out.parent} does not exist\n"
    assert "leave out the `.gz`" in rag_eval(command, CALLS, "-o", "o.parquet.gz", code=2).err
    assert os.listdir() == ["calls.jsonl"]


@BOTH
def test_links_are_followed(rag_eval: Command, command: str) -> None:
    """The link stays a link, to a file that is there or not; a circle is told.

    New files are private, since they hold the texts of users.
    """
    real = Path("elsewhere/real.jsonl")
    real.parent.mkdir()
    OUT.symlink_to(real)
    Path("circle").symlink_to("circle")

    for words in ([], ["--overwrite"]):
        rag_eval(command, CALLS, "-o", OUT, *words, code=0)
        assert OUT.is_symlink()
        assert list(snapshot(real.parent)) == ["real.jsonl"]
        assert ids(real) == ["0", "1", "2"]
        assert real.stat().st_mode & 0o777 == 0o600
    circle = rag_eval(command, CALLS, "-o", "circle", code=2)
    assert "is a link that is not followed" in circle.err


@BOTH
def test_planted_links_beside_out_are_not_written_through(rag_eval: Command, command: str) -> None:
    """Whatever name a temporary file might have."""
    precious = Path("precious")
    precious.write_text("mine\n")
    for name in ("partial", "ordered", "unfinished", "bak", "tmp"):
        Path(f"out.jsonl.{name}").symlink_to(precious)
    for words in ([], ["--overwrite"]):
        rag_eval(command, CALLS, "-o", OUT, *words)
    assert precious.read_text() == "mine\n"


# --- Standard input and output


@BOTH
def test_a_dash_is_standard_input_and_output(
    rag_eval: Command, stdin: Callable[[bytes], None], command: str
) -> None:
    """Rows on stdout and nothing else, in order; the summary on stderr; no file named `-`."""
    stdin(gzip.compress(rows(40) + b"bad\n"))

    done = rag_eval(command, "-", "-o", "-", code=2)

    assert ids(done.out) == [str(n) for n in range(40)]
    assert "standard input: line 41: not JSON" in done.err
    assert "40 calls in" in done.err
    assert os.listdir() == ["calls.jsonl"]


def test_stdin_can_be_read_twice(rag_eval: Command, stdin: Callable[[bytes], None]) -> None:
    """To resume, all calls are looked at first; the copy that this takes is removed."""
    for count, words, code in ((2, [], 0), (3, ["--resume"], 0), (1, ["--resume"], 2)):
        stdin(rows(count))
        rag_eval("run", "-", "-o", OUT, *words, code=code)

    assert ids() == ["0", "1", "2"]
    refused = rag_eval("run", "-", "-o", "-", "--resume")
    assert "`--resume` = True: needs a file to go on with" in refused.err


@pytest.mark.slow
def test_in_a_shell() -> None:
    """Process substitution, pipes on both sides, a reader that leaves early, the device names."""
    done = shell("rag-eval run <(sleep 0.3; cat calls.jsonl) -o - | cat > out.jsonl")
    assert (done.returncode, ids()) == (0, ["0", "1", "2"])

    Path("many.jsonl").write_bytes(rows(3000))
    early = shell("set -o pipefail; cat many.jsonl | rag-eval score - -o - | head -n 1 > first")
    assert early.returncode == 2
    assert "standard output was closed by its reader" in early.stderr
    assert "Traceback" not in early.stderr
    assert "Exception ignored" not in early.stderr
    assert ids(Path("first")) == ["0"]

    pipe = shell("rag-eval run calls.jsonl -o /dev/stdout | cat")
    assert "`-` is standard output" in pipe.stderr


# --- Input that is damaged, endless or no file


@BOTH
def test_bad_rows_are_told_by_kind_and_counted(rag_eval: Command, command: str) -> None:
    """With the places of ten more; another kind behind them is told as well."""
    odd = json.dumps({"question": "Q", "documents": 5, "response": "r"}).encode() + b"\n"
    bad = b"no\n" * 1_200 + b"{}\n" * 5 + odd * 3
    CALLS.write_bytes(rows(1) + bad + rows(1, start=1))

    done = rag_eval(command, CALLS, "-o", OUT, code=2)

    told = done.err.replace(f"{CALLS}: ", "").splitlines()
    assert told[0] == "line 2: not JSON: Expecting value at column 1"
    assert told[1].startswith("line 1202: field `question`: is missing")
    assert told[2].startswith("line 1207: field `documents`: ")
    more = "1,199 more like 2 (not JSON): 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 1,189 more"
    assert told[3] == more
    assert told[4] == "4 more like 1202 (`question` is missing): 1203, 1204, 1205, 1206"
    assert told[5].startswith("2 more like 1207 (`documents` ")
    assert told[6:7] == ["1,208 invalid lines left out of the output"]
    assert ids() == ["0", "1"]


@BOTH
@pytest.mark.parametrize("damage", ["cut", "checksum"])
def test_damaged_gzip_gives_what_can_be_read(rag_eval: Command, command: str, damage: str) -> None:
    """And one bad line for the rest, which says so; never a traceback."""
    calls = Path("calls.jsonl.gz")
    whole = bytearray(gzip.compress(rows(600), compresslevel=1))
    if damage == "cut":
        whole = whole[: len(whole) // 2]
    else:
        whole[-8] ^= 1
    calls.write_bytes(whole)

    done = rag_eval(command, calls, "-o", OUT, code=2)

    told = [line for line in done.err.splitlines() if ": line " in line]
    count = len(ids())
    assert count == 600 if damage == "checksum" else 150 < count < 600
    assert ids()[:150] == [str(n) for n in range(150)]
    assert "the gzip data is damaged (" in told[-1]
    if damage == "cut":
        assert f"{calls}: 1 invalid line left out" in done.err
        assert told[0].startswith(f"{calls}: line {count + 1}: ")
        assert told[0].endswith("this line and all after it are lost")


@BOTH
@pytest.mark.parametrize("kind", ["a folder", "a device", "a socket"])
def test_input_that_is_no_file_is_refused(rag_eval: Command, command: str, kind: str) -> None:
    """Before anything is written, and in words."""
    special(Path("odd"), kind)
    done = rag_eval(command, "odd", "-o", OUT, code=2)
    assert f"odd: is {kind}, not a file of rows" in done.err
    assert sorted(os.listdir()) == ["calls.jsonl", "odd"]


@pytest.mark.skipif(os.geteuid() == 0, reason="an administrator may read everything")
def test_a_file_that_may_not_be_read(rag_eval: Command) -> None:
    """Its name and why, without errno."""
    CALLS.chmod(0)
    done = rag_eval("run", CALLS, "-o", OUT, code=2)
    assert done.err == f"rag-eval: {CALLS}: permission denied\n"


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


def content_of(path: Path) -> list[str]:
    """The lines of evaluations, whatever the form of the file, without their run."""
    if path.suffix == ".parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        lines: list[str] = parquet.read_table(path)["evaluation"].to_pylist()
    else:
        content = path.read_bytes()
        text = gzip.decompress(content) if path.suffix == ".gz" else content
        lines = text.decode().splitlines()
    return list(map(without_run, lines))


def without_run(line: str) -> str:
    """A row without the run that it ends with, which is another one in every file."""
    return re.sub(r',"run":\{"id":.*', "}", line)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "workers", "overwrite"),
    [
        ("e.jsonl", "1", True),
        ("e.jsonl", "2", False),
        ("e.jsonl.gz", "2", False),
        ("e.parquet", "1", False),
    ],
)
def test_killed_at_any_moment(rag_eval: Command, name: str, workers: str, overwrite: bool) -> None:
    """By SIGKILL, again and again: the old OUT is whole, no row that was written is made again.

    In the end OUT has the rows of a run that was not killed, in its form, and nothing else is left.
    """
    pytest.importorskip("pyarrow")
    out, partial = Path(name), Path(f"{name}.partial")
    CALLS.write_bytes(rows(150))
    if overwrite:
        out.write_bytes(OLD)
    words, written = ["run", "calls.jsonl", "-o", name, "--workers", workers], 0

    for more in (["--overwrite"] * overwrite, ["--resume"]):
        command = [sys.executable, "-c", SLOW, *words, *more]
        with WarmPopen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            while process.poll() is None and lines_in(partial) < written + 20:
                time.sleep(0.002)
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
        assert (out.read_bytes() if out.exists() else OLD) == OLD
        written = lines_in(partial)

    assert "--resume" in rag_eval(*words, code=2).err
    done = rag_eval(*words, "--resume", code=0)
    assert f"{written} reused from an earlier run" in done.out
    rag_eval("run", CALLS, "-o", PLAIN, code=0)
    assert content_of(out) == content_of(PLAIN)
    assert ids(PLAIN) == [str(n) for n in range(150)]
    assert sorted(os.listdir()) == sorted(["calls.jsonl", "plain.jsonl", name])


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


def killed(moment: str, *words: str) -> None:
    """Run a command that a SIGKILL ends as it writes, before OUT is replaced, or after it."""
    done = finished([sys.executable, "-c", DYING, moment, *words])
    assert done.returncode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_killed_as_out_is_replaced(rag_eval: Command, moment: str, overwrite: bool) -> None:
    """Just before and just after the renaming: OUT is old or new, and `--resume` tidies up."""
    if overwrite:
        OUT.write_bytes(OLD)

    killed(moment, "run", "calls.jsonl", "-o", "out.jsonl", *["--overwrite"] * overwrite)

    if moment == "after":
        assert ids() == ["0", "1", "2"]
    elif overwrite:
        assert OUT.read_bytes() == Path("out.jsonl.bak").read_bytes() == OLD
    else:
        assert not OUT.exists()
    again = rag_eval("run", CALLS, "-o", OUT, "--resume", code=0)
    assert "3 reused from an earlier run" in again.out
    assert ids() == ["0", "1", "2"]
    left = ["out.jsonl.bak"] if overwrite and moment == "after" else []
    assert sorted(os.listdir()) == ["calls.jsonl", "out.jsonl", *left]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="this system names every file")
def test_a_score_that_is_killed_leaves_nothing() -> None:
    """Its rows hold texts of users."""
    killed("writing", "score", "calls.jsonl", "-o", "out.jsonl")
    assert os.listdir() == ["calls.jsonl"]


@pytest.mark.slow
def test_what_a_killed_score_left_goes_with_the_next(
    rag_eval: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If its file had a name at all; while a process lives, its own are not removed."""
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    words = ["score", "calls.jsonl", "-o", "out.jsonl"]
    killed("before", *words)
    assert list(Path().glob("*.unfinished"))

    with _target.replacing(OUT) as living:  # another process's, as far as the lock says
        rag_eval(*words, code=0)
        assert ids() == ["0", "1", "2"]
        assert len(list(Path().glob("*.unfinished"))) == 1
        living.write(b"later\n")

    assert sorted(os.listdir()) == ["calls.jsonl", "out.jsonl"]


@pytest.mark.parametrize("content", ["When? At nine.\n", "\x89PNG\r\n\x1a\n" * 9])
def test_no_file_of_rows_is_answered_with_a_line_to_copy(rag_eval: Command, content: str) -> None:
    """The message shows what a line looks like, and that a page or a table is another option."""
    Path("calls").write_text(content, "latin-1", newline="")
    said = rag_eval("run", "calls", "-o", OUT, code=2).err
    assert 'one JSON object per line: {"question": "…", "documents": ["…"], "response"' in said
    assert len(said.splitlines()) <= 6


@pytest.mark.parametrize(
    ("content", "tried"),
    [
        ("Q,C,A\n" + "q,c,a\n" * 300, "question=Q --map documents=C --map response=A"),
        (
            "Frage an Bot;Kontext 1;Kontext 2;Antwort\n" + "q;c;d;a\n" * 30,
            "question=NAME --map 'documents=Kontext 1' --map 'documents=Kontext 2' "
            "--map response=NAME",
        ),
    ],
)
def test_a_table_of_other_columns_is_one_error(rag_eval: Command, content: str, tried: str) -> None:
    """All missing fields, the names that the file has, the option to try, and the number of rows."""
    Path("calls.csv").write_text(content, "utf-8")

    said = rag_eval("run", "calls.csv", "-o", OUT, code=2).err

    *_, message, count = said.splitlines()
    assert "`question`: is missing, and so are `documents` and `response`; the row has" in message
    assert message.endswith(f"try --map {tried}")
    assert f"has {content.count(chr(10)) - 1} invalid line" in count
    assert said.count("is missing") == 1
    mapping = shlex.split(tried.replace("NAME", "Antwort"))
    rag_eval("run", "calls.csv", "-o", OUT, "--map", *mapping, code=0)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("run evals.jsonl -o x.jsonl", "an evaluation, not a call: `rag-eval report` shows"),
        ("report calls.jsonl -o x.html", "a call, not an evaluation: `rag-eval run CALLS"),
        ("compare calls.jsonl evals.jsonl", "a call, not an evaluation: `rag-eval run CALLS"),
        ("agreement calls.jsonl evals.jsonl", "a call, not an evaluation: `rag-eval run CALLS"),
        ("score bare.jsonl -o x.jsonl", "`rag-eval run` has a judge label calls"),
        ("run calls.jsonl -o y.html", "a page is --report y.html"),
        ("run calls.jsonl -o y.csv", "`rag-eval report EVALS -o` makes tables"),
        ("score evals.jsonl -o y.md", "use a name such as evals.jsonl"),
    ],
)
def test_files_in_each_others_place_are_told(rag_eval: Command, words: str, hint: str) -> None:
    """Calls where evaluations belong, and a page where evaluations go; nothing is written."""
    rag_eval("run", CALLS, "-o", "evals.jsonl", code=0)
    Path("bare.jsonl").write_text(json.dumps(CALL))
    before = snapshot()

    assert hint in rag_eval(*words.split(), code=2).err
    assert snapshot() == before


# --- Gzip, and Parquet


@BOTH
@pytest.mark.parametrize("name", ["out.jsonl.gz", "out.parquet"])
def test_every_command_reads_other_forms_of_out(rag_eval: Command, command: str, name: str) -> None:
    """They have the lines of the plain one, and the figures are equal; a folder of Parquet, too."""
    out = Path(name)
    rag_eval(command, CALLS, "-o", out, code=0)
    rag_eval(command, CALLS, "-o", PLAIN, code=0)
    assert content_of(out) == content_of(PLAIN)
    piped = rag_eval(command, CALLS, "-o", "-").out.splitlines()
    assert list(map(without_run, piped)) == content_of(PLAIN)
    files = [out]
    if name.endswith("parquet"):
        files.append(Path("folder"))
        files[1].mkdir()
        (files[1] / "part-0.parquet").write_bytes(out.read_bytes())
    for evals in files:
        for words in (
            *(f"report EVALS -o - --format {form}" for form in ("json", "csv", "ragbench")),
            "agreement EVALS calls.jsonl --json",
            "compare EVALS EVALS --format json",
            "score EVALS -o -",
        ):
            plain, other = (
                rag_eval(*words.replace("EVALS", str(file)).split(), code=0).out.splitlines()
                for file in (PLAIN, evals)
            )
            renamed = [line.replace(PLAIN.name, evals.name) for line in plain]
            assert list(map(without_run, renamed)) == list(map(without_run, other)), words
