"""EVALS files: order, single appends, resuming after a kill, never mixing what was made otherwise.

What a command line shows of them (files that exist, links, planted links) is in
`tests/cli/test_run_files.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from by_hand import ScriptedJudge, labels_of
from runs import call as evaluation_of

from rag_eval_integrations import Evaluation, Evaluations, RagCall, RagEvaluator
from rag_eval_integrations.dataset import EvaluationFile
from rag_eval_integrations.dataset._evals import read_evaluations
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import EvaluationError, Usage, from_line, to_line

EVALUATOR = RagEvaluator(ScriptedJudge(labels_of(["0a"], ["0a"], {"a": (["0a"], True)})))

FAILURE = EvaluationError(type="E", message="m", stage="judge")


def call(number: int, **more: Any) -> RagCall:
    return RagCall(question=f"q{number}", documents=["A b."], response="A b.", **more)


def evaluated(number: int, *, failed: bool = False, **more: Any) -> Evaluation:
    evaluation = asyncio.run(EVALUATOR.evaluate(call(number, **more)))
    return evaluation.model_copy(update={"error": FAILURE}) if failed else evaluation


def opened(path: Path, **options: Any) -> EvaluationFile:
    return EvaluationFile(path, EVALUATOR.fingerprint, **options)


def write(path: Path, *rows: int | Evaluation, finish: bool = True) -> None:
    """Write rows in this order, by a run that ends or is killed."""
    with opened(path) as file:
        for number, row in enumerate(rows):
            index, row = (row, evaluated(row)) if isinstance(row, int) else (number, row)
            file.add(index, row)
        if finish:
            assert file.finish() == len(rows)


def questions(path: Path) -> list[str]:
    return [from_line(Evaluation, line).question for line in path.read_bytes().splitlines()]


def snapshot(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_rows_in_input_order_are_not_copied(tmp_path: Path) -> None:
    """OUT.partial becomes OUT: the disk never holds the rows twice."""
    out = tmp_path / "evals.jsonl"

    with opened(out) as file:
        for number in (0, 2, 5):
            file.add(number, evaluated(number))
        written = (tmp_path / "evals.jsonl.partial").stat().st_ino
        assert file.finish() == 3

    assert out.stat().st_ino == written
    assert questions(out) == ["q0", "q2", "q5"]
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("finished", [False, True])
@pytest.mark.parametrize(
    ("change", "fingerprint", "why"),
    [
        (bytes, "another", r"was made by another evaluator \(judge scripted"),
        (lambda rows: rows.replace(b'"schema":2', b'"schema":1'), EVALUATOR.fingerprint,
         "schema 1, this version reads 2: make it anew"),
        (lambda rows: b"my notes\n", EVALUATOR.fingerprint, "holds no evaluations"),
    ],
)  # fmt: skip
def test_what_is_not_of_this_evaluator_is_not_resumed(
    tmp_path: Path, change: Callable[[bytes], bytes], fingerprint: str, why: str, finished: bool
) -> None:
    """Refused by name, whether the run ended or not; all stays as it was, and no file is added."""
    out = tmp_path / "evals.jsonl"
    write(out, 0, finish=finished)
    ((name, rows),) = snapshot(tmp_path).items()
    (tmp_path / name).write_bytes(change(rows))
    before = snapshot(tmp_path)

    with pytest.raises(ConfigurationError, match=why):
        EvaluationFile(out, fingerprint, resume=True)

    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("finished", [False, True])
def test_rows_of_other_calls_are_not_resumed(tmp_path: Path, finished: bool) -> None:
    """They would be lost, failed ones included; more calls than rows are fine."""
    out = tmp_path / "evals.jsonl"
    write(out, evaluated(0), evaluated(1, failed=True), finish=finished)
    before = snapshot(tmp_path)

    refused, one, two = ConfigurationError, "of 1 call that is not", "of 2 calls that are not"
    for calls, others in (([call(1), call(2)], one), ([call(0), None], one), ([], two)):
        with pytest.raises(refused, match=others), opened(out, resume=True) as file:
            file.refuse_other_calls(calls)
    with opened(out, resume=True) as file:
        file.refuse_other_calls(iter([call(2), call(1), call(0), call(3)]))

    assert snapshot(tmp_path) == before


def test_overwriting_keeps_the_old_file_until_the_new_one_is_whole(tmp_path: Path) -> None:
    """As OUT.bak, which must be free, and at its own name; it is there again after a failure."""
    out, backup = tmp_path / "evals.jsonl", tmp_path / "evals.jsonl.bak"
    out.write_text("mine\n")
    backup.write_text("older\n")
    for resume, why in ((True, "do not overwrite it"), (False, "move it away")):
        with pytest.raises(ConfigurationError, match=why):
            opened(out, resume=resume, overwrite=True)
        assert snapshot(tmp_path) == {out.name: b"mine\n", backup.name: b"older\n"}
    backup.unlink()

    with opened(out, overwrite=True):
        assert snapshot(tmp_path) == {
            out.name: b"mine\n", backup.name: b"mine\n", "evals.jsonl.partial": b"",
        }  # fmt: skip
    assert snapshot(tmp_path) == {"evals.jsonl": b"mine\n"}


def test_a_file_that_appears_during_the_run_is_not_replaced(tmp_path: Path) -> None:
    """The rows stay in OUT.partial, which the message names."""
    out = tmp_path / "evals.jsonl"
    with opened(out) as file:
        file.add(0, evaluated(0))
        out.write_text("somebody's\n")
        with pytest.raises(ConfigurationError, match=r"has appeared .*evals\.jsonl\.partial"):
            file.finish()

    assert out.read_text() == "somebody's\n"
    assert questions(tmp_path / "evals.jsonl.partial") == ["q0"]


def test_two_runs_cannot_write_one_file(tmp_path: Path) -> None:
    """The second is told, and nothing is torn."""
    out = tmp_path / "evals.jsonl"
    with opened(out), pytest.raises(ConfigurationError, match="is being written by another run"):
        opened(out, resume=True)


def test_a_row_that_lacks_only_its_line_end_is_made_again(tmp_path: Path) -> None:
    """It would run into the next one; unfinished lines that are no rows are ended instead."""
    out, partial = tmp_path / "evals.jsonl", tmp_path / "evals.jsonl.partial"
    write(out, 0, 1, finish=False)
    rows = partial.read_bytes()
    for left in (rows[:-1], rows + b"\0\0\0"):
        partial.write_bytes(left)
        with opened(out, resume=True) as file:
            file.add(1, evaluated(1))
        lines = partial.read_bytes().splitlines()
        assert lines.count(rows.splitlines()[1]) == (1 if left == rows[:-1] else 2)


@pytest.mark.parametrize("other", [{"id": "x"}, {"metadata": {"a": 1}}, {"relevant_ids": ["0"]}])
def test_the_same_row_twice_is_taken_over_twice(tmp_path: Path, other: dict[str, Any]) -> None:
    """As often as it is there; one with another id, other metadata or gold ids is another row."""
    out = tmp_path / "evals.jsonl"
    write(out, evaluated(0), evaluated(0, **other), evaluated(0), finish=False)
    again = [call(0, **other), call(0, **other), call(0), call(0), call(0)]

    with opened(out, resume=True) as file:
        taken = [file.take(index, each) for index, each in enumerate(again)]

    assert [row is not None for row in taken] == [True, False, True, True, False]


@pytest.mark.parametrize("finished", [False, True])
def test_rows_between_other_lines_are_taken_over(tmp_path: Path, finished: bool) -> None:
    """Lines that are no rows are counted; an editor's mark and lost line end do no harm."""
    out = tmp_path / "evals.jsonl"
    write(out, 0, 1, finish=finished)
    (file,) = tmp_path.iterdir()
    file.write_bytes(b'\xef\xbb\xbf{"a": 1}\n' + file.read_bytes() + b"no JSON")

    with opened(out, resume=True) as resumed:
        assert resumed.stale == 2
        assert resumed.take(0, call(0)) is not None
        resumed.add(1, evaluated(1))
        resumed.finish()

    assert list(tmp_path.iterdir()) == [out]
    out.write_bytes(b"\xef\xbb\xbf" + out.read_bytes().rstrip())
    with opened(out, resume=True) as resumed:
        assert [resumed.take(number, call(number)) is None for number in (0, 1)] == [False] * 2
        resumed.add(2, evaluated(2))
        resumed.finish()
    assert questions(out) == ["q0", "q1", "q2"]


# --- Every form of OUT: gzip and Parquet are made from OUT.partial at the end


NAMES = ["evals.jsonl", "evals.jsonl.gz", "evals.parquet"]
EVERY_FORM = pytest.mark.parametrize("name", NAMES)


@EVERY_FORM
def test_rows_are_lines_in_partial_whatever_the_form(tmp_path: Path, name: str) -> None:
    """A killed run is resumed from them, without its torn row; OUT is in order and reads back.

    Also without a row.
    """
    assert Evaluations.load(Evaluations().save(tmp_path / name)) == []
    (tmp_path / name).unlink()
    out, partial = tmp_path / name, tmp_path / f"{name}.partial"
    write(out, 2, 0, 1, finish=False)
    assert questions(partial) == ["q2", "q0", "q1"]
    assert sorted(snapshot(tmp_path)) == [partial.name]
    assert partial.stat().st_mode & 0o777 == 0o600
    partial.write_bytes(partial.read_bytes()[:-20])

    with opened(out, resume=True) as file:
        taken = [file.take(number, call(number)) for number in range(4)]
        assert [row and row.question for row in taken] == ["q0", None, "q2", None]
        for number in (3, 1):
            file.add(number, evaluated(number))
        assert file.finish() == 4

    assert sorted(snapshot(tmp_path)) == [name]
    assert [row.question for row in Evaluations.load(out)] == ["q0", "q1", "q2", "q3"]
    assert out.stat().st_mode & 0o777 == 0o600
    again = tmp_path / f"again-{name}"
    Evaluations.load(out).save(again)
    assert again.read_bytes() == out.read_bytes()


@EVERY_FORM
def test_a_finished_file_of_any_form_is_resumed(tmp_path: Path, name: str) -> None:
    """What it holds is taken over, and rows that failed are made again."""
    out = tmp_path / name
    write(out, evaluated(0), evaluated(1, failed=True))
    before = snapshot(tmp_path)
    with pytest.raises(ConfigurationError, match="exists; use another name, overwrite=True to"):
        opened(out)
    assert snapshot(tmp_path) == before

    with opened(out, resume=True) as file:
        assert file.stale == 1
        assert [row.question for row in file.earlier()] == ["q0", "q1"]
        assert file.take(0, call(0)) is not None
        assert file.take(1, call(1)) is None
        for number in (1, 2):
            file.add(number, evaluated(number))
        assert snapshot(tmp_path)[name] == before[name]
        file.finish()

    assert [row.error for row in Evaluations.load(out)] == [None] * 3
    with opened(out, overwrite=True) as file:
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
        opened(out, resume=True)
    assert snapshot(tmp_path) == before


# --- EVALS in Parquet


def test_a_parquet_file_has_what_queries_ask_for(tmp_path: Path) -> None:
    """Numbers as in the evaluation, null where there is none; a name is that of one column."""
    pq = pytest.importorskip("pyarrow.parquet")
    usage = Usage(requests=2, prompt_tokens=30, completion_tokens=4, cost_usd=0.5)
    whole = evaluation_of("1", {"adherence": 1.0}, usage=usage)
    rows = [whole, evaluation_of("2", {"id": 1.0, "adherence": None}, error=FAILURE)]
    Evaluations(rows).save(tmp_path / "e.parquet")

    table = pq.read_table(tmp_path / "e.parquet")

    first, second = table.to_pylist()
    expected = {"row_key": whole.row_key, "id": "1", "failed": False, **usage.model_dump()}
    assert [*first.items()][:7] == [*expected.items()][:7]
    assert table.column_names[-2:] == ["score:id", "evaluation"]
    assert [first["evaluation"], second["evaluation"]] == [to_line(row) for row in rows]
    assert (second["failed"], second["requests"], second["cost_usd"]) == (True, 0, None)
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
    with pytest.raises(ConfigurationError, match="a column that this Parquet lacks"):
        Evaluations.load(tmp_path / "scores.parquet")
    with pytest.raises(ConfigurationError, match="is a folder, not a file of rows"):
        Evaluations.load(tmp_path / "empty")
