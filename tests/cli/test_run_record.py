"""`run` in a row of EVALS: which invocation made it, at which revision, with which tags."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from ferries import CALL, Command, ferries, read, write

from rag_eval_integrations import Evaluations, RagEvaluator
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.records import Run, to_line

CALLS = Path("calls.jsonl")
WORDS = ("--name", "nightly", "--tag", "model=small", "--tag", "url=a=b")
MADE = Run(id="7", name="by hand", start=datetime(2026, 11, 29, tzinfo=UTC), tags={"k": "v"})


def runs(path: Path) -> set[str]:
    """The runs that the rows of a file name, as JSON."""
    rows = Evaluations.load(path)
    return {"" if row.run is None else to_line(row.run) for row in rows}


@pytest.mark.parametrize("name", ["evals.jsonl", "evals.jsonl.gz", "evals.parquet"])
def test_every_row_names_its_run(rag_eval: Command, name: str) -> None:
    """The same in each; a second invocation is another run."""
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    out = Path(name)
    rag_eval("run", ferries(CALLS, 3), "-o", out, *WORDS, code=0)

    (first,) = runs(out)
    run = Evaluations.load(out)[0].run
    assert run is not None
    assert (run.name, run.tags, run.revision) == (
        "nightly", {"model": "small", "url": "a=b"}, None,
    )  # fmt: skip
    rag_eval("run", CALLS, "-o", out, *WORDS, "--overwrite", code=0)
    assert len(runs(out) | {first}) == 2


def test_the_line_is_the_evaluation(rag_eval: Command, out: Path) -> None:
    """The command adds the run to lines that are rendered already: it gives the same bytes."""
    rag_eval("run", ferries(CALLS, 2), "-o", out, "--tag", "place=Ærø\x7f", code=0)
    assert out.read_text() == "".join(row.model_dump_json() + "\n" for row in read(out))


@pytest.mark.slow  # it starts processes
def test_in_several_processes(rag_eval: Command, out: Path) -> None:
    """Rows of other processes name the same run as those of the first one."""
    rag_eval("run", ferries(CALLS, 300), "-o", out, "--workers", 2, code=0)
    assert len(runs(out)) == 1
    assert runs(out) != {""}


def test_a_resumed_run_keeps_the_first(rag_eval: Command, out: Path) -> None:
    """Rows that are made later name it, too; another name is told not to be kept."""
    rag_eval("run", ferries(CALLS, 2), "-o", out, *WORDS, code=0)
    first = runs(out)
    ferries(CALLS, 4)

    done = rag_eval("run", CALLS, "-o", out, "--resume", *WORDS, code=0)
    assert done.err == ""
    assert runs(out) == first
    ferries(CALLS, 5)
    done = rag_eval("run", CALLS, "-o", out, "--resume", "--name", "other", code=0)
    assert "keep the name and the tags of the earlier run" in done.err
    assert runs(out) == first


def test_a_file_without_a_run_is_resumed(rag_eval: Command, out: Path) -> None:
    """Its rows are taken over as they are; only new rows name the new run."""
    rag_eval("run", ferries(CALLS, 1), "-o", "first.jsonl", code=0)
    write(out, *(row.model_copy(update={"run": None}).model_dump_json().encode()
                 for row in read(Path("first.jsonl"))))  # fmt: skip
    ferries(CALLS, 2)
    done = rag_eval("run", CALLS, "-o", out, "--resume", "--name", "second", code=0)
    assert "1 reused" in done.out
    assert [row.run and row.run.name for row in read(out)] == [None, "second"]


def test_rows_of_two_runs_are_pairs(rag_eval: Command) -> None:
    """Comparing pairs them as before: no key and no fingerprint depends on the run."""
    ferries(CALLS, 3)
    for name in ("a", "b"):
        rag_eval("run", CALLS, "-o", f"{name}.jsonl", "--name", name, code=0)
    a, b = (read(Path(f"{name}.jsonl")) for name in ("a", "b"))
    assert [(row.row_key, row.fingerprint) for row in a] == [
        (row.row_key, row.fingerprint) for row in b
    ]
    assert Evaluations(a).compare(b).pairs == 3


def test_score_names_its_run(rag_eval: Command, out: Path) -> None:
    """Its own, also where the evaluations that it scores again name another one."""
    rag_eval("run", ferries(CALLS, 2), "-o", out, "--name", "judged", code=0)
    rag_eval("score", out, "-o", "again.jsonl", "--name", "scored", code=0)
    assert [row.run and row.run.name for row in read(Path("again.jsonl"))] == ["scored"] * 2


def test_the_revision_is_that_of_the_folder(rag_eval: Command) -> None:
    """Of a repository with a commit; `-dirty` where a file was changed since; none if unwanted."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    out, notes = Path("out.jsonl"), Path("notes.txt")
    write(CALLS, CALL)

    def git(*words: str) -> str:
        command = ("git", "-c", "user.name=n", "-c", "user.email=e@example.org", *words)
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def revision(*words: str) -> str | None:
        rag_eval("run", CALLS, "-o", out, "--overwrite", *words, code=0)
        (row,) = read(out)
        assert row.run is not None
        return row.run.revision

    git("init", "-q")
    assert revision() is None
    notes.write_text("one\n")
    git("add", "notes.txt")
    git("commit", "-q", "-m", "one")
    git("tag", "-a", "v1", "-m", "v1")
    head = git("rev-parse", "HEAD")
    assert revision() == head
    notes.write_text("two\n")
    assert revision() == f"{head}-dirty"
    assert revision("--no-revision") is None


def test_without_git(rag_eval: Command, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no revision, and not a word about it."""
    monkeypatch.setenv("PATH", "")
    done = rag_eval("run", write(CALLS, CALL), "-o", out, code=0)
    assert done.err == ""
    assert read(out)[0].run is not None


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--tag", "small"), "use KEY=VALUE"),
        (("--tag", "=small"), "use KEY=VALUE"),
        (("--name", "x" * 3_000), "at most 2,000 bytes of JSON in all"),
    ],
)
def test_what_cannot_be_written(rag_eval: Command, out: Path, words: list[str], why: str) -> None:
    """It is refused before the first row."""
    done = rag_eval("run", write(CALLS, CALL), "-o", out, *words, code=2)
    assert why in " ".join(done.err.split())
    assert not out.exists()


def test_saved_by_a_program() -> None:
    """`Evaluations.save` names a run where it is given one, and keeps that of each row elsewhere."""
    evaluation = RagEvaluator().evaluate_sync(**CALL)
    plain = Evaluations([evaluation]).save("plain.jsonl")
    assert '"run"' not in plain.read_text()
    named = Evaluations([evaluation]).save("named.jsonl", run=MADE)
    assert Evaluations.load(named)[0].run == MADE
    again = Evaluations.load(named).save("again.jsonl")
    assert again.read_bytes() == named.read_bytes()
    with pytest.raises(ConfigurationError, match="should be a `Run`"):
        Evaluations([evaluation]).save("other.jsonl", run=MADE.model_dump())  # type: ignore[arg-type]
    assert not Path("other.jsonl").exists()


def test_a_time_has_a_zone() -> None:
    """Else runs of two machines have no order."""
    with pytest.raises(InputError, match="start"):
        Run(id="7", start=datetime(2026, 11, 29))
