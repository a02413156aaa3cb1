"""EVALS as Parquet parts: as safe as lines, never doubled on the disk, and the same rows."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from by_hand import ScriptedJudge, labels_of

from rag_eval_integrations import Evaluations
from rag_eval_integrations.dataset import EvaluationFile, _parquet_folder
from rag_eval_integrations.errors import ConfigurationError, MissingDependencyError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.metrics import Trace
from rag_eval_integrations.records import Evaluation, EvaluationError, RagCall, to_line

pq = pytest.importorskip("pyarrow.parquet")

EVALUATOR = RagEvaluator(ScriptedJudge(labels_of(["0a"], ["0a"], {"a": (["0a"], True)})))
FAILURE = EvaluationError(type="E", message="m", stage="judge")


def call(number: int) -> RagCall:
    return RagCall(question=f"q{number}", documents=["A b."], response="A b.")


CALLS = [call(number) for number in range(40)]


@pytest.fixture(scope="module")
def made() -> list[Evaluation]:
    async def evaluate() -> list[Evaluation]:
        return [await EVALUATOR.evaluate(each) for each in CALLS]

    return asyncio.run(evaluate())


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven rows are a part, three of them a group."""
    monkeypatch.setattr(_parquet_folder, "MOST_ROWS", 7)
    monkeypatch.setattr(_parquet_folder, "_GROUP", 3)


def opened(out: Path, *, resume: bool = False, overwrite: bool = False) -> EvaluationFile:
    return EvaluationFile(out, EVALUATOR.fingerprint, resume=resume, overwrite=overwrite)


def lines(out: Path) -> list[str]:
    found: list[str] = pq.read_table(out)["evaluation"].to_pylist()
    return found


def wanted(made: list[Evaluation], count: int) -> list[str]:
    return [to_line(one) for one in made[:count]]


def failed(evaluation: Evaluation) -> Evaluation:
    return evaluation.model_copy(update={"error": FAILURE})


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def parts(count: int) -> list[str]:
    return [f"part-{number:05}.parquet" for number in range(count)]


def write(
    out: Path, rows: list[Evaluation], *, added: set[int] | None = None, overwrite: bool = False
) -> None:
    """Write rows, noting each when it has been added."""
    with opened(out, overwrite=overwrite) as file:
        for number, row in enumerate(rows):
            file.add_in_turn(number, number, row)
            if added is not None:
                added.add(number)
        file.finish()


def resumed(
    out: Path, made: list[Evaluation], count: int, added: set[int] | None = None
) -> list[int]:
    """Go on with a run of the first calls; return the numbers of those that were made again."""
    with opened(out, resume=True) as file:
        file.refuse_other_calls(CALLS[:count])
        missing = [number for number in range(count) if file.take(number, CALLS[number]) is None]
        for turn, number in enumerate(missing):
            file.add_in_turn(turn, number, made[number])
            if added is not None:
                added.add(number)
        assert file.finish() == count
    return missing


# --- A run


def test_out_is_the_partial_folder_with_the_rows_of_lines(
    tmp_path: Path, made: list[Evaluation]
) -> None:
    """Parts appear while the run lasts, all private; at the end nothing was copied."""
    out, plain = tmp_path / "e.parquet", tmp_path / "e.jsonl"
    with opened(out) as file, opened(plain) as other:
        for number, evaluation in enumerate(made):
            file.add_in_turn(number, number, evaluation)
            other.add_in_turn(number, number, evaluation)
        assert not out.exists()
        assert names(file.partial) == ["_rows.jsonl", *parts(5)]
        assert (file.partial / "_rows.jsonl").read_bytes().count(b"\n") == 5
        assert file.partial.stat().st_mode & 0o777 == 0o700
        assert {path.stat().st_mode & 0o777 for path in file.partial.iterdir()} == {0o600}
        written = [path.stat().st_ino for path in (file.partial, file.partial / parts(1)[0])]
        assert file.finish() == other.finish() == 40

    assert names(tmp_path) == ["e.jsonl", "e.parquet"]
    assert names(out) == parts(6)
    assert [path.stat().st_ino for path in (out, out / parts(1)[0])] == written
    assert lines(out) == plain.read_text().splitlines()
    assert Evaluations.load(out) == Evaluations.load(plain) == made


def test_every_part_has_the_columns_of_the_first(tmp_path: Path, made: list[Evaluation]) -> None:
    """A row that lacks scores, or has others, is a row with nulls; its line has them all."""
    out = tmp_path / "e.parquet"
    rows = [one.model_copy(update={"scores": {}}) for one in made[:3]] + made[3:20]
    rows[9] = made[9].model_copy(update={"scores": {"trace_average": made[9].scores["adherence"]}})
    write(out, rows)

    table = pq.read_table(out)
    assert table["adherence"].null_count == 4
    assert table["adherence"].to_pylist()[10:12] == [1.0, 1.0]
    assert table["trace_average"].to_pylist()[9] == 1.0
    assert lines(out) == [to_line(one) for one in rows]
    assert len({tuple(pq.read_schema(part).names) for part in out.iterdir()}) == 1


def test_the_disk_holds_the_rows_once(
    tmp_path: Path, made: list[Evaluation], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At no time more than the result and the rows of one part."""
    out = tmp_path / "e.parquet"
    sizes, tails = [0], [0]

    def measured(file: int) -> None:  # a part is whole now, and its rows are there, too
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        sizes.append(sum(path.stat().st_size for path in files))
        tails.append((tmp_path / "e.parquet.partial" / "_rows.jsonl").stat().st_size)

    monkeypatch.setattr(os, "fsync", measured)
    write(out, made)

    result = sum(path.stat().st_size for path in out.iterdir())
    assert len(sizes) == 7
    assert result < max(sizes) <= result * 1.1 + max(tails)


def test_rows_in_any_order_are_put_in_order(tmp_path: Path, made: list[Evaluation]) -> None:
    """Those of OUT, of an earlier OUT.partial, and those that failed and are made again."""
    out = tmp_path / "e.parquet"
    Evaluations(made[25:34]).save(out)
    shuffled = list(range(25))
    random.Random(7).shuffle(shuffled)
    with opened(out, resume=True) as file:
        for number in shuffled:
            file.add(number, failed(made[number]) if number % 3 == 0 else made[number])

    assert resumed(out, made, 40) == [*range(0, 25, 3), *range(34, 40)]
    assert lines(out) == wanted(made, 40)
    assert names(tmp_path) == ["e.parquet"]


def test_rows_that_failed_are_made_again(tmp_path: Path, made: list[Evaluation]) -> None:
    """Of a finished folder, which keeps its modes; the others are taken over."""
    out = tmp_path / "e.parquet"
    write(out, [failed(one) if number in (0, 9) else one for number, one in enumerate(made[:12])])
    assert pq.read_table(out)["failed"].to_pylist().index(True) == 0
    out.chmod(0o750)

    assert resumed(out, made, 12) == [0, 9]

    assert lines(out) == wanted(made, 12)
    assert out.stat().st_mode & 0o777 == 0o750
    assert {path.stat().st_mode & 0o777 for path in out.iterdir()} == {0o640}
    assert names(tmp_path) == ["e.parquet"]


def test_a_resumed_run_in_order_is_not_copied(tmp_path: Path, made: list[Evaluation]) -> None:
    """Its rows follow those of the killed run in the same folder."""
    out = tmp_path / "e.parquet"
    with opened(out) as file:
        for number in range(17):
            file.add_in_turn(number, number, made[number])
        first = (file.partial / parts(1)[0]).stat().st_ino
    with pytest.raises(ConfigurationError, match="go on with --resume, or delete it"):
        opened(out)

    assert resumed(out, made, 40) == list(range(17, 40))
    assert (out / parts(1)[0]).stat().st_ino == first
    assert lines(out) == wanted(made, 40)


# --- Kills


class Killed(BaseException):
    """The process has died: nothing more reaches the disk."""


CALLS_OF_THE_SYSTEM = (
    "write", "ftruncate", "rename", "replace", "link", "unlink", "rmdir", "mkdir", "fsync", "chmod",
)  # fmt: skip


def until(moment: int, monkeypatch: pytest.MonkeyPatch, run: Callable[[], None]) -> bool:
    """Run until a number of calls of the system were made; return whether it has ended before."""
    made = 0

    def counted(name: str) -> Callable[..., Any]:
        function = getattr(os, name)

        def called(*arguments: Any, **more: Any) -> Any:
            nonlocal made
            made += 1
            if made > moment:
                raise Killed
            return function(*arguments, **more)

        return called

    with monkeypatch.context() as patched:
        for name in CALLS_OF_THE_SYSTEM:
            patched.setattr(os, name, counted(name))
        try:
            run()
        except Killed:
            return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["new", "overwrite", "merge"])
def test_killed_at_any_moment(
    tmp_path: Path, made: list[Evaluation], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Before every call of the system that changes the disk: no row is missing or there twice."""
    monkeypatch.setattr(_parquet_folder, "MOST_ROWS", 3)
    other = RagEvaluator(EVALUATOR.judge, [Trace("ragbench")])
    moment, ended, again = 0, False, set()
    while not ended:
        folder = tmp_path / str(moment)
        folder.mkdir()
        out = folder / "e.parquet"
        if kind == "overwrite":
            old = asyncio.run(other.evaluate(CALLS[0]))
            write(out, [])
            Evaluations([old]).save(out)
        elif kind == "merge":
            write(out, made[4:6])

        added = {4, 5} if kind == "merge" else set()

        def run(out: Path = out, added: set[int] = added) -> None:
            if kind == "merge":
                resumed(out, made, 8, added)
            else:
                write(out, made[:8], added=added, overwrite=kind == "overwrite")

        ended = until(moment, monkeypatch, run)
        partial = folder / "e.parquet.partial"
        kept = partial.exists() and any(
            path.stat().st_size
            for path in partial.iterdir()
            if path.name not in ("_replaces",) and not path.name.endswith("unfinished")
        )
        if kind == "overwrite" and not kept and out.exists() and len(lines(out)) == 1:
            assert not added
            write(out, made[:8], overwrite=True)  # it had done nothing
        else:
            missing = resumed(out, made, 8)
            assert added.isdisjoint(missing), moment
            again.add(len(missing))
        assert lines(out) == wanted(made, 8)
        left = {"e.parquet.bak"} if kind == "overwrite" else set()
        assert set(names(folder)) - left == {"e.parquet"}, moment
        moment += 1

    assert moment > 30
    assert again >= ({0, 3, 6} if kind == "merge" else {0, 2, 5, 7})


def test_rows_of_a_part_are_not_there_twice(tmp_path: Path, made: list[Evaluation]) -> None:
    """A run that was killed after it had written a part, and before it had cut its rows off."""
    out = tmp_path / "e.parquet"
    with opened(out) as file:
        for number in range(14):
            file.add_in_turn(number, number, made[number])
    rows = out.with_name("e.parquet.partial") / "_rows.jsonl"
    rows.write_text("".join(f"{line}\n" for line in wanted(made, 14)[7:]))

    assert [one.question for one in Evaluations.load(rows.parent)] == [
        f"q{number}" for number in range(14)
    ]
    with opened(out, resume=True) as file:
        assert file.in_partial == 14
    assert resumed(out, made, 15) == [14]
    assert lines(out) == wanted(made, 15)


def test_equal_calls_are_not_taken_for_one(tmp_path: Path, made: list[Evaluation]) -> None:
    """Rows that repeat those of the last part in part are rows of their own."""
    out = tmp_path / "e.parquet"
    with opened(out) as file:
        for number in range(12):
            file.add_in_turn(number, number, made[0])

    with opened(out, resume=True) as file:
        assert sum(file.take(number, CALLS[0]) is not None for number in range(13)) == 12
        file.add_in_turn(0, 12, made[0])
        file.finish()
    assert lines(out) == wanted(made, 1) * 13


def test_half_a_row_is_made_again(tmp_path: Path, made: list[Evaluation]) -> None:
    """And rows that waited for their turn are kept, and parts that were not finished removed."""
    out = tmp_path / "e.parquet"
    with opened(out) as file:
        for number in range(10):
            file.add_in_turn(number, number, made[number])
    rows = file.partial / "_rows.jsonl"
    rows.write_bytes(rows.read_bytes()[:-9])
    (file.partial / "part-00001.parquet.01234567.unfinished").write_bytes(b"PAR1")
    (tmp_path / "e.parquet.waiting").write_text(f"{to_line(made[20])}\n")
    (tmp_path / "e.parquet.waiting").chmod(0o600)

    assert resumed(out, made, 21) == list(range(9, 20))
    assert lines(out) == wanted(made, 21)
    assert names(tmp_path) == ["e.parquet"]


# --- Replacing


def test_overwriting_replaces_at_the_end(tmp_path: Path, made: list[Evaluation]) -> None:
    """Until then the earlier folder is at its place, also for a run that resumes."""
    out = tmp_path / "e.parquet"
    write(out, made[:2])
    with pytest.raises(ConfigurationError, match="--overwrite"):
        opened(out)
    with opened(out, overwrite=True) as file:
        file.add_in_turn(0, 5, made[5])
        assert lines(out) == wanted(made, 2)
    assert lines(out) == wanted(made, 2)

    with opened(out, resume=True) as file:
        assert file.take(0, CALLS[0]) is None  # it is of the folder that is being replaced
        assert file.take(5, CALLS[5]) is not None
        file.finish()

    assert lines(out) == wanted(made, 6)[5:]
    assert names(tmp_path) == ["e.parquet"]


def test_a_backup_of_the_users_own_is_not_replaced(tmp_path: Path, made: list[Evaluation]) -> None:
    """It is refused before the first row."""
    out = tmp_path / "e.parquet"
    write(out, made[:2])
    (tmp_path / "e.parquet.bak").write_text("mine")

    for options in ({"overwrite": True}, {"resume": True}):
        with pytest.raises(ConfigurationError, match="move it away"):
            opened(out, **options)
    with pytest.raises(ConfigurationError, match="move it away"):
        Evaluations(made).save(out, overwrite=True)
    assert names(tmp_path) == ["e.parquet", "e.parquet.bak"]
    assert lines(out) == wanted(made, 2)


def test_a_folder_that_appears_during_the_run_is_not_replaced(
    tmp_path: Path, made: list[Evaluation]
) -> None:
    """Not even an empty one; the rows stay where they are."""
    out = tmp_path / "e.parquet"
    with opened(out) as file:
        file.add_in_turn(0, 0, made[0])
        out.mkdir()
        with pytest.raises(ConfigurationError, match="has appeared since the run began"):
            file.finish()

    out.rmdir()
    assert resumed(out, made, 1) == []


def test_without_a_row_nothing_is_left(tmp_path: Path, made: list[Evaluation]) -> None:
    """OUT stays as it was, or absent."""
    out = tmp_path / "e.parquet"
    write(out, [])
    assert names(tmp_path) == []
    write(out, made[:1])
    write(out, [], overwrite=True)
    assert lines(out) == wanted(made, 1)
    assert names(tmp_path) == ["e.parquet"]


# --- Refusals


def test_two_runs_cannot_write_one_folder(tmp_path: Path, made: list[Evaluation]) -> None:
    """The second one is told; the first one ends as if nothing had been."""
    out = tmp_path / "e.parquet"
    with opened(out) as file:
        file.add_in_turn(0, 0, made[0])
        for resume in (False, True):
            with pytest.raises(ConfigurationError, match="is being written by another run"):
                opened(out, resume=resume)
        file.finish()
    assert lines(out) == wanted(made, 1)


def test_rows_of_another_run_are_not_resumed(tmp_path: Path, made: list[Evaluation]) -> None:
    """By another evaluator, or of other calls; nothing is changed."""
    out = tmp_path / "e.parquet"
    write(out, made[:9])
    before = {path.name: path.read_bytes() for path in out.iterdir()}

    with pytest.raises(ConfigurationError, match="was made by another evaluator"):
        EvaluationFile(out, "0" * 16, resume=True)
    with (
        pytest.raises(ConfigurationError, match="9 calls that are not among the calls of this run"),
        opened(out, resume=True) as file,
    ):
        file.refuse_other_calls([RagCall(question="?", documents=[], response="")])

    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert names(tmp_path) == ["e.parquet"]


def planted(folder: Path) -> Iterator[tuple[Path, str]]:
    (folder / "precious").mkdir()
    link = folder / "link.parquet.partial"
    link.symlink_to(folder / "precious")
    yield link, "is a link that is not followed"
    file = folder / "file.parquet.partial"
    file.write_text("mine")
    yield file, "is a file, where a folder would be"
    notes = folder / "notes.parquet.partial"
    notes.mkdir()
    (notes / "notes.txt").write_text("mine")
    yield notes, "holds notes.txt, which is not a part of evaluations"


def test_what_was_planted_is_refused_and_left(tmp_path: Path) -> None:
    """At the place of OUT.partial."""
    for path, why in planted(tmp_path):
        for resume in (False, True):
            with pytest.raises((OSError, ConfigurationError), match=why):
                opened(path.with_suffix(""), resume=resume)
        assert os.path.lexists(path)
    assert names(tmp_path / "precious") == []


def test_a_damaged_part_is_refused_and_left(tmp_path: Path, made: list[Evaluation]) -> None:
    """Nothing of a run is thrown away because some of it cannot be read."""
    out = tmp_path / "e.parquet"
    with opened(out) as file:
        for number in range(9):
            file.add_in_turn(number, number, made[number])
    part = file.partial / parts(1)[0]
    whole = part.read_bytes()
    for content in (whole[:-5], b"", b"PAR1 and no more"):
        part.write_bytes(content)
        with pytest.raises(ConfigurationError, match="holds damaged Parquet"):
            opened(out, resume=True)
    part.write_bytes(whole)
    assert resumed(out, made, 9) == []


def test_without_pyarrow_it_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is made."""
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(MissingDependencyError, match="parquet"):
        opened(tmp_path / "e.parquet")
    assert names(tmp_path) == []
