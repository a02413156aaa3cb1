"""EVALS files: order, single appends, resuming after a kill, never mixing what was made otherwise."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from by_hand import ScriptedJudge, labels_of

from rag_eval_integrations.dataset import EvaluationFile
from rag_eval_integrations.dataset._input import read_evaluations
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.records import (
    Evaluation,
    EvaluationError,
    RagCall,
    Score,
    Usage,
    from_line,
    to_line,
)
from rag_eval_integrations.report import Evaluations

EVALUATOR = RagEvaluator(ScriptedJudge(labels_of(["0a"], ["0a"], {"a": (["0a"], True)})))

FAILURE = EvaluationError(type="E", message="m", stage="judge")


def call(number: int, **more: object) -> RagCall:
    return RagCall(question=f"q{number}", documents=["A b."], response="A b.", **more)  # type: ignore[arg-type]


def evaluated(number: int, **more: object) -> Evaluation:
    return asyncio.run(EVALUATOR.evaluate(call(number, **more)))


def questions(path: Path) -> list[str]:
    return [from_line(Evaluation, line).question for line in path.read_bytes().splitlines()]


def test_rows_in_input_order_are_not_copied(tmp_path: Path) -> None:
    """OUT.partial becomes OUT: the disk never holds the rows twice."""
    out = tmp_path / "evals.jsonl"

    with EvaluationFile(out, EVALUATOR.fingerprint) as file:
        for number in (0, 2, 5):
            file.add(number, evaluated(number))
        written = (tmp_path / "evals.jsonl.partial").stat().st_ino
        assert file.finish() == 3

    assert out.stat().st_ino == written
    assert questions(out) == ["q0", "q2", "q5"]
    assert [path.name for path in tmp_path.iterdir()] == ["evals.jsonl"]


def test_rows_that_failed_are_made_again(tmp_path: Path) -> None:
    """They are counted, not taken over, and OUT has each row once."""
    out = tmp_path / "evals.jsonl"
    with EvaluationFile(out, EVALUATOR.fingerprint) as file:
        for number in (0, 1):
            file.add(number, evaluated(number).model_copy(update={"error": FAILURE}))

    with EvaluationFile(out, EVALUATOR.fingerprint, resume=True) as file:
        assert file.stale == 2
        for number in (0, 1):
            assert file.take(number, call(number)) is None
            file.add(number, evaluated(number))
        assert file.finish() == 2

    assert questions(out) == ["q0", "q1"]


def test_resuming_takes_over_and_orders(tmp_path: Path) -> None:
    """Rows of the killed run keep their place; a torn last row is made again."""
    out = tmp_path / "evals.jsonl"
    with EvaluationFile(out, EVALUATOR.fingerprint) as file:
        file.add(2, evaluated(2))
        file.add(0, evaluated(0))
        file.add(1, evaluated(1))
    partial = tmp_path / "evals.jsonl.partial"
    partial.write_bytes(partial.read_bytes()[:-20])

    with EvaluationFile(out, EVALUATOR.fingerprint, resume=True) as file:
        taken = [file.take(number, call(number)) for number in range(4)]
        file.add(3, evaluated(3))
        file.add(1, evaluated(1))
        file.finish()

    assert [t.question if t else None for t in taken] == ["q0", None, "q2", None]
    assert questions(out) == ["q0", "q1", "q2", "q3"]


def snapshot(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("finished", [False, True])
def test_rows_of_another_evaluator_are_not_resumed(tmp_path: Path, finished: bool) -> None:
    """Refused by name, whether the run ended or not; all stays as it was, and no file is added."""
    out = tmp_path / "evals.jsonl"
    with EvaluationFile(out, EVALUATOR.fingerprint) as file:
        file.add(0, evaluated(0))
        if finished:
            file.finish()
    before = snapshot(tmp_path)

    with pytest.raises(ConfigurationError, match="was made by another evaluator \\(judge scripted"):
        EvaluationFile(out, "another", resume=True)

    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("finished", [False, True])
def test_rows_of_other_calls_are_not_resumed(tmp_path: Path, finished: bool) -> None:
    """They would be lost, failed ones included; more calls than rows are fine."""
    out = tmp_path / "evals.jsonl"
    failed = evaluated(1).model_copy(update={"error": FAILURE})
    with EvaluationFile(out, EVALUATOR.fingerprint) as file:
        file.add(0, evaluated(0))
        file.add(1, failed)
        if finished:
            file.finish()
    before = snapshot(tmp_path)

    single, two = "1 call that is", "2 calls that are"
    some: list[tuple[list[RagCall | None], str]] = [
        ([call(1), call(2)], single), ([call(0), None], single), ([], two),
    ]  # fmt: skip
    for calls, others in some:
        with (
            pytest.raises(ConfigurationError, match=f"evaluations of {others} not among"),
            EvaluationFile(out, EVALUATOR.fingerprint, resume=True) as file,
        ):
            file.refuse_other_calls(calls)
    with EvaluationFile(out, EVALUATOR.fingerprint, resume=True) as file:
        file.refuse_other_calls(iter([call(2), call(1), call(0), call(3)]))

    assert snapshot(tmp_path) == before


def test_an_out_that_exists_is_refused(tmp_path: Path) -> None:
    """Whatever it holds, unless it may be overwritten; both options at once are a mistake."""
    out = tmp_path / "evals.jsonl"
    out.write_text("mine\n")

    with pytest.raises(
        ConfigurationError,
        match="exists; use another name, overwrite=True to replace it, or resume=True",
    ):
        EvaluationFile(out, EVALUATOR.fingerprint)
    with pytest.raises(ConfigurationError, match="do not overwrite it"):
        EvaluationFile(out, EVALUATOR.fingerprint, resume=True, overwrite=True)

    assert snapshot(tmp_path) == {"evals.jsonl": b"mine\n"}


def test_overwriting_keeps_the_old_file_until_the_new_one_is_whole(tmp_path: Path) -> None:
    """As OUT.bak, and at its own name; it is there again if the run is given up."""
    out = tmp_path / "evals.jsonl"
    out.write_text("mine\n")

    with EvaluationFile(out, EVALUATOR.fingerprint, overwrite=True):
        assert snapshot(tmp_path) == {
            "evals.jsonl": b"mine\n", "evals.jsonl.bak": b"mine\n", "evals.jsonl.partial": b"",
        }  # fmt: skip
    assert snapshot(tmp_path) == {"evals.jsonl": b"mine\n"}
    with EvaluationFile(out, EVALUATOR.fingerprint, overwrite=True) as file:
        file.add(0, evaluated(0))
        assert out.read_text() == "mine\n"
        assert file.finish() == 1

    assert questions(out) == ["q0"]
    assert list(tmp_path.iterdir()) == [out]


def test_a_killed_run_that_overwrites_is_resumed(tmp_path: Path) -> None:
    """From its own rows alone: the old file, of whatever content, is not taken for its own."""
    out = tmp_path / "evals.jsonl"
    out.write_text("mine\n")
    with EvaluationFile(out, EVALUATOR.fingerprint, overwrite=True) as file:
        file.add(0, evaluated(0))
    assert sorted(snapshot(tmp_path)) == ["evals.jsonl", "evals.jsonl.bak", "evals.jsonl.partial"]
    with pytest.raises(ConfigurationError, match="go on with resume=True"):
        EvaluationFile(out, EVALUATOR.fingerprint, overwrite=True)

    with EvaluationFile(out, EVALUATOR.fingerprint, resume=True) as file:
        file.refuse_other_calls([call(0), call(1)])
        assert file.take(0, call(0)) is not None
        file.add(1, evaluated(1))
        file.finish()

    assert questions(out) == ["q0", "q1"]
    assert list(tmp_path.iterdir()) == [out]


def test_a_backup_of_the_users_own_is_not_replaced(tmp_path: Path) -> None:
    """Named, and left alone."""
    out = tmp_path / "evals.jsonl"
    out.write_text("mine\n")
    (tmp_path / "evals.jsonl.bak").write_text("older\n")
    before = snapshot(tmp_path)

    with pytest.raises(ConfigurationError, match="move it away"):
        EvaluationFile(out, EVALUATOR.fingerprint, overwrite=True)

    assert snapshot(tmp_path) == before


def test_a_file_that_appears_during_the_run_is_not_replaced(tmp_path: Path) -> None:
    """The rows stay in OUT.partial, which the message names."""
    out = tmp_path / "evals.jsonl"
    with EvaluationFile(out, EVALUATOR.fingerprint) as file:
        file.add(0, evaluated(0))
        out.write_text("somebody's\n")
        with pytest.raises(ConfigurationError, match=r"appeared .* evals\.jsonl\.partial|appeared"):
            file.finish()

    assert out.read_text() == "somebody's\n"
    assert questions(tmp_path / "evals.jsonl.partial") == ["q0"]


def test_links_are_followed_and_stay_links(tmp_path: Path) -> None:
    """Everything is made beside the target; the target keeps its mode."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "real.jsonl").write_text("mine\n")
    (elsewhere / "real.jsonl").chmod(0o640)
    out = tmp_path / "evals.jsonl"
    out.symlink_to(elsewhere / "real.jsonl")

    with EvaluationFile(out, EVALUATOR.fingerprint, overwrite=True) as file:
        file.add(0, evaluated(0))
        assert sorted(snapshot(elsewhere)) == [
            "real.jsonl", "real.jsonl.bak", "real.jsonl.partial",
        ]  # fmt: skip
        file.finish()

    assert out.is_symlink()
    assert questions(elsewhere / "real.jsonl") == ["q0"]
    assert (elsewhere / "real.jsonl").stat().st_mode & 0o777 == 0o640
    assert list(elsewhere.iterdir()) == [elsewhere / "real.jsonl"]


def test_a_planted_link_is_not_written_through(tmp_path: Path) -> None:
    """A link where OUT.partial goes is refused, and its target is left alone."""
    (tmp_path / "precious").write_text("")
    (tmp_path / "evals.jsonl.partial").symlink_to(tmp_path / "precious")

    for resume in (False, True):
        with pytest.raises(OSError, match=r"evals\.jsonl\.partial: is a link"):
            EvaluationFile(tmp_path / "evals.jsonl", EVALUATOR.fingerprint, resume=resume)

    assert (tmp_path / "precious").read_text() == ""
    assert (tmp_path / "evals.jsonl.partial").is_symlink()


def test_what_a_killed_finish_left_is_removed(tmp_path: Path) -> None:
    """The unfinished copy of a run that died as it ordered its rows; files of other names stay."""
    (tmp_path / "evals.jsonl.0123abcd.unfinished").write_text("half")
    (tmp_path / "evals.jsonl.notes.unfinished").write_text("mine")

    with EvaluationFile(tmp_path / "evals.jsonl", EVALUATOR.fingerprint) as file:
        file.add(0, evaluated(0))
        file.finish()

    assert sorted(snapshot(tmp_path)) == ["evals.jsonl", "evals.jsonl.notes.unfinished"]


def test_a_row_that_lacks_only_its_line_end_is_made_again(tmp_path: Path) -> None:
    """It would run into the next one; unfinished lines that are no rows are ended instead."""
    out, partial = tmp_path / "evals.jsonl", tmp_path / "evals.jsonl.partial"
    with EvaluationFile(out, EVALUATOR.fingerprint) as file:
        file.add(0, evaluated(0))
        file.add(1, evaluated(1))
    rows = partial.read_bytes()
    for left in (rows[:-1], rows + b"\0\0\0"):
        partial.write_bytes(left)
        with EvaluationFile(out, EVALUATOR.fingerprint, resume=True) as file:
            file.add(1, evaluated(1))
        lines = partial.read_bytes().splitlines()
        assert lines.count(rows.splitlines()[1]) == (1 if left == rows[:-1] else 2)


def test_the_same_row_twice_is_taken_over_twice(tmp_path: Path) -> None:
    """Repeated rows are matched in order of appearance; other labels or metadata are other rows."""
    out = tmp_path / "evals.jsonl"
    with EvaluationFile(out, EVALUATOR.fingerprint) as file:
        file.add(0, evaluated(0))
        file.add(1, evaluated(0))
        file.add(2, evaluated(0, id="x"))

    with EvaluationFile(out, EVALUATOR.fingerprint, resume=True) as file:
        result = [
            file.take(0, call(0)),
            file.take(1, call(0)),
            file.take(2, call(0)),
            file.take(3, call(0, metadata={"a": 1})),
            file.take(4, call(0, id="x")),
        ]

    assert [f is not None for f in result] == [True, True, False, False, True]


def test_what_holds_no_evaluations_is_refused_and_left_alone(tmp_path: Path) -> None:
    """Resuming into some other file is a mistake, not an overwrite."""
    out = tmp_path / "notes.txt"
    out.write_text("my notes\n")

    with pytest.raises(ConfigurationError, match="holds no evaluations"):
        EvaluationFile(out, EVALUATOR.fingerprint, resume=True)

    assert out.read_text() == "my notes\n"


def test_an_older_file_is_not_resumed(tmp_path: Path) -> None:
    """The message says how to make it anew; it is left alone, and nothing is left beside it."""
    out = tmp_path / "evals.jsonl"
    with EvaluationFile(out, EVALUATOR.fingerprint) as file:
        file.add(0, evaluated(0))
        file.finish()
    older = out.read_bytes().replace(b'"schema":2', b'"schema":1')
    out.write_bytes(older)

    with pytest.raises(ConfigurationError, match="schema 1, this version reads 2: make it anew"):
        EvaluationFile(out, EVALUATOR.fingerprint, resume=True)

    assert out.read_bytes() == older
    assert list(tmp_path.iterdir()) == [out]


def test_two_runs_cannot_write_one_file(tmp_path: Path) -> None:
    """The second is told, and nothing is torn."""
    out = tmp_path / "evals.jsonl"
    with (
        EvaluationFile(out, EVALUATOR.fingerprint),
        pytest.raises(ConfigurationError, match="is being written by another run"),
    ):
        EvaluationFile(out, EVALUATOR.fingerprint, resume=True)


def test_lines_that_are_no_evaluations_are_left_out_of_a_file_that_has_some(
    tmp_path: Path,
) -> None:
    """They are counted as rows that are made again."""
    out = tmp_path / "evals.jsonl"
    with EvaluationFile(out, EVALUATOR.fingerprint) as file:
        file.add(0, evaluated(0))
    partial = tmp_path / "evals.jsonl.partial"
    partial.write_bytes(b'{"a": 1}\n' + partial.read_bytes() + b"no JSON\n")

    with EvaluationFile(out, EVALUATOR.fingerprint, resume=True) as file:
        assert file.stale == 2
        assert file.take(0, call(0)) is not None
        file.finish()

    assert questions(out) == ["q0"]


@pytest.mark.skipif(not hasattr(os, "link"), reason="no hard links")
def test_no_row_gets_into_an_empty_file_that_was_planted(tmp_path: Path) -> None:
    """OUT.partial under a second name would hand every row to whoever has that name."""
    planted = tmp_path / "theirs"
    planted.touch(mode=0o666)
    (tmp_path / "e.jsonl.partial").hardlink_to(planted)
    with EvaluationFile(tmp_path / "e.jsonl", "f") as file:
        file.add(0, evaluated(0))
        file.finish()
    assert planted.read_bytes() == b""
    assert (tmp_path / "e.jsonl").stat().st_nlink == 1


def test_a_row_without_a_line_end_stays_a_row_of_its_own(tmp_path: Path) -> None:
    """An editor took the last line end of OUT; the rows after it begin on lines of their own."""
    path = tmp_path / "e.jsonl"
    fingerprint = EVALUATOR.fingerprint
    with EvaluationFile(path, fingerprint) as file:
        file.add(0, evaluated(0))
        file.finish()
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().rstrip())

    with EvaluationFile(path, fingerprint, resume=True) as file:
        assert file.take(0, call(0)) is not None
        file.add(1, evaluated(1))
        file.finish()

    assert questions(path) == ["q0", "q1"]
    assert path.read_bytes().startswith(b"{")


# --- Every form of OUT: gzip and Parquet are made from OUT.partial at the end


NAMES = ["evals.jsonl", "evals.jsonl.gz", "evals.parquet"]
EVERY_FORM = pytest.mark.parametrize("name", NAMES)


@EVERY_FORM
def test_rows_are_lines_in_partial_whatever_the_form(tmp_path: Path, name: str) -> None:
    """A killed run is resumed from them; OUT has the rows in order, is private, and reads back."""
    out, partial = tmp_path / name, tmp_path / f"{name}.partial"
    with EvaluationFile(out, EVALUATOR.fingerprint) as file:
        for number in (2, 0):
            file.add(number, evaluated(number))
        assert questions(partial) == ["q2", "q0"]
    assert sorted(snapshot(tmp_path)) == [partial.name]
    assert partial.stat().st_mode & 0o777 == 0o600

    with EvaluationFile(out, EVALUATOR.fingerprint, resume=True) as file:
        assert [file.take(number, call(number)) is not None for number in range(3)] == [
            True, False, True,
        ]  # fmt: skip
        file.add(1, evaluated(1))
        assert file.finish() == 3

    assert sorted(snapshot(tmp_path)) == [name]
    assert [row.question for row in Evaluations.load(out)] == ["q0", "q1", "q2"]
    assert out.stat().st_mode & 0o777 == 0o600
    again = tmp_path / f"again-{name}"
    Evaluations.load(out).save(again)
    assert again.read_bytes() == out.read_bytes()


@EVERY_FORM
def test_a_finished_file_of_any_form_is_resumed(tmp_path: Path, name: str) -> None:
    """What it holds is taken over, and rows that failed are made again."""
    out = tmp_path / name
    with EvaluationFile(out, EVALUATOR.fingerprint) as file:
        file.add(0, evaluated(0))
        file.add(1, evaluated(1).model_copy(update={"error": FAILURE}))
        file.finish()
    before = snapshot(tmp_path)
    with pytest.raises(ConfigurationError, match="exists"):
        EvaluationFile(out, EVALUATOR.fingerprint)
    with pytest.raises(ConfigurationError, match="another evaluator"):
        EvaluationFile(out, "another", resume=True)
    assert snapshot(tmp_path) == before

    with EvaluationFile(out, EVALUATOR.fingerprint, resume=True) as file:
        assert file.stale == 1
        assert [row.question for row in file.earlier()] == ["q0", "q1"]
        assert file.take(0, call(0)) is not None
        for number in (1, 2):
            file.add(number, evaluated(number))
        assert snapshot(tmp_path)[name] == before[name]
        file.finish()

    assert [row.error for row in Evaluations.load(out)] == [None] * 3
    with EvaluationFile(out, EVALUATOR.fingerprint, overwrite=True) as file:
        assert sorted(snapshot(tmp_path)) == [name, f"{name}.bak", f"{name}.partial"]
        file.add(0, evaluated(0))
        file.finish()
    assert sorted(snapshot(tmp_path)) == [name]
    assert len(Evaluations.load(out)) == 1


@pytest.mark.parametrize("name", NAMES[1:])
def test_a_damaged_file_is_refused_and_left(tmp_path: Path, name: str) -> None:
    """Its rows would be lost."""
    out = tmp_path / name
    Evaluations([evaluated(number) for number in range(50)]).save(out)
    out.write_bytes(out.read_bytes()[:-40])
    before = snapshot(tmp_path)

    with pytest.raises(ConfigurationError, match=r"cannot be resumed: the .* data is damaged"):
        EvaluationFile(out, EVALUATOR.fingerprint, resume=True)
    assert snapshot(tmp_path) == before


# --- EVALS in Parquet


def test_a_parquet_file_has_what_queries_ask_for(tmp_path: Path) -> None:
    """Numbers as in the evaluation, null where there is none; a name is that of one column."""
    pq = pytest.importorskip("pyarrow.parquet")
    first_row, second_row = evaluated(0), evaluated(1)
    usage = Usage(requests=2, prompt_tokens=30, completion_tokens=4, cost_usd=0.5)
    odd = {
        "id": second_row.scores["adherence"].model_copy(update={"name": "id"}),
        "adherence": Score(name="adherence", status="error", reason="r"),
    }
    rows = [
        first_row.model_copy(update={"usage": usage}),
        second_row.model_copy(update={"error": FAILURE, "scores": odd, "usage": Usage()}),
    ]
    Evaluations(rows).save(tmp_path / "e.parquet")

    table = pq.read_table(tmp_path / "e.parquet")

    assert table.column_names[:7] == [
        "row_key", "id", "failed", "requests", "prompt_tokens", "completion_tokens", "cost_usd",
    ]  # fmt: skip
    assert table.column_names[-2:] == ["score:id", "evaluation"]
    first, second = table.to_pylist()
    assert [first["evaluation"], second["evaluation"]] == [to_line(row) for row in rows]
    assert (first["row_key"], first["id"]) == (rows[0].row_key, rows[0].id)
    assert (first["requests"], first["prompt_tokens"], first["completion_tokens"]) == (2, 30, 4)
    assert (first["cost_usd"], first["failed"], second["failed"]) == (0.5, False, True)
    assert (second["requests"], second["cost_usd"]) == (0, None)
    assert (first["adherence"], second["adherence"]) == (1.0, None)
    assert (first["score:id"], second["score:id"]) == (None, 1.0)


def test_a_folder_of_parquet_is_read_in_order(tmp_path: Path) -> None:
    """By the numbers in the names of its files, whatever else lies beside them."""
    pytest.importorskip("pyarrow.parquet")
    rows = [evaluated(number) for number in range(6)]
    for index, name in enumerate(("7_000000.parquet", "7_000009.parquet", "10_000001.pq")):
        Evaluations(rows[2 * index : 2 * index + 2]).save(tmp_path / name)
    for name in ("_SUCCESS", ".7_000000.parquet.crc", "_metadata", "notes.txt"):
        (tmp_path / name).write_text("not Parquet")

    assert list(Evaluations.load(tmp_path)) == rows


def test_bad_rows_of_parquet_are_told_in_their_place(tmp_path: Path) -> None:
    """A null, text over several lines, bytes that are no text, a part that is cut."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    good = to_line(evaluated(0))
    texts = [good, None, "a\nb", good.replace(',"', ',\r\n "'), good]
    pq.write_table(pa.table({"evaluation": texts}), tmp_path / "a.parquet")
    raw = pa.array([b"\xff", good.encode()], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"evaluation": raw}), tmp_path / "b.parquet")
    (tmp_path / "c.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-9])

    lines = list(read_evaluations(tmp_path))

    assert [line.number for line in lines if line.value] == [1, 4, 5, 7]
    assert [line.number for line in lines if line.error] == [2, 3, 6, 8]
    assert "not UTF-8" in str(lines[5].error)
    assert "the Parquet data is damaged (" in str(lines[7].error)


def test_other_parquet_and_other_folders_are_refused(tmp_path: Path) -> None:
    """And it is said which column is missing, or that there is no Parquet."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"adherence": [1.0]}), tmp_path / "scores.parquet")
    (tmp_path / "empty").mkdir()
    for name, why in (
        ("scores.parquet", "a column that this Parquet lacks"),
        ("empty", "is a folder, not a file of rows"),
    ):
        with pytest.raises(ConfigurationError, match=why):
            Evaluations.load(tmp_path / name)
