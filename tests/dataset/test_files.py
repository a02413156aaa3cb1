"""EVALS files: order, single appends, resuming after a kill, never mixing what was made otherwise."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from by_hand import ScriptedJudge, labels_of

from rag_eval_integrations.dataset import EvaluationFile
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.records import Evaluation, EvaluationError, RagCall, from_line

EVALUATOR = RagEvaluator(ScriptedJudge(labels_of(["0a"], ["0a"], {"a": (["0a"], True)})))


def call(number: int, **more: object) -> RagCall:
    return RagCall(question=f"q{number}", documents=["A b."], response="A b.", **more)  # type: ignore[arg-type]


def evaluated(number: int, **more: object) -> Evaluation:
    return asyncio.run(EVALUATOR.evaluate(call(number, **more)))


def questions(path: Path) -> list[str]:
    return [from_line(Evaluation, line).question for line in path.read_bytes().splitlines()]


def test_rows_are_put_in_input_order(tmp_path: Path) -> None:
    """They are written as they finish and ordered at the end; gaps are left out."""
    out = tmp_path / "evals.jsonl"

    with EvaluationFile(out, EVALUATOR.fingerprint) as file:
        for number in (4, 0, 2, 1):
            file.add(number, evaluated(number))
        assert not out.exists()
        assert questions(tmp_path / "evals.jsonl.partial") == ["q4", "q0", "q2", "q1"]
        file.finish()

    assert questions(out) == ["q0", "q1", "q2", "q4"]
    assert [path.name for path in tmp_path.iterdir()] == ["evals.jsonl"]


def test_a_run_that_did_not_end_is_not_overwritten(tmp_path: Path) -> None:
    """What was paid for stays until it is resumed or deleted."""
    out = tmp_path / "evals.jsonl"
    with EvaluationFile(out, EVALUATOR.fingerprint) as file:
        file.add(0, evaluated(0))

    with pytest.raises(ConfigurationError, match="go on with --resume, or delete it"):
        EvaluationFile(out, EVALUATOR.fingerprint)

    assert questions(tmp_path / "evals.jsonl.partial") == ["q0"]


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


def test_resuming_reads_the_finished_file_too(tmp_path: Path) -> None:
    """A finished OUT is taken over when the input has grown."""
    out = tmp_path / "evals.jsonl"
    with EvaluationFile(out, EVALUATOR.fingerprint) as file:
        file.add(0, evaluated(0))
        file.finish()

    with EvaluationFile(out, EVALUATOR.fingerprint, resume=True) as file:
        assert file.take(0, call(0)) is not None
        file.add(1, evaluated(1))
        file.finish()

    assert questions(out) == ["q0", "q1"]


def test_rows_made_otherwise_or_failed_are_made_again(tmp_path: Path) -> None:
    """Another judge or formula set, and errors, are not taken over."""
    out = tmp_path / "evals.jsonl"
    failed = evaluated(1).model_copy(
        update={"error": EvaluationError(type="E", message="m", stage="judge")}
    )
    with EvaluationFile(out, "other") as file:
        file.add(0, evaluated(0))
        file.add(1, failed)

    with EvaluationFile(out, EVALUATOR.fingerprint, resume=True) as file:
        assert file.take(0, call(0)) is not None
        assert file.take(1, call(1)) is None
        assert file.stale == 1
    with EvaluationFile(out, "third", resume=True) as file:
        assert file.take(0, call(0)) is None
        assert file.stale == 2


def test_the_same_row_twice_is_taken_over_twice(tmp_path: Path) -> None:
    """Repeated rows are matched in order of appearance; other labels or metadata are other rows."""
    out = tmp_path / "evals.jsonl"
    with EvaluationFile(out, EVALUATOR.fingerprint) as file:
        file.add(0, evaluated(0))
        file.add(1, evaluated(0))
        file.add(2, evaluated(0, id="x"))

    with EvaluationFile(out, EVALUATOR.fingerprint, resume=True) as file:
        found = [
            file.take(0, call(0)),
            file.take(1, call(0)),
            file.take(2, call(0)),
            file.take(3, call(0, metadata={"a": 1})),
            file.take(4, call(0, id="x")),
        ]

    assert [f is not None for f in found] == [True, True, False, False, True]


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
