"""Parquet with lines of EVALS, by whatever program: read as the lines that it holds, in order."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from by_hand import ScriptedJudge, labels_of

from rag_eval_integrations import Evaluations
from rag_eval_integrations.dataset._evaluation_table import table_of
from rag_eval_integrations.dataset._input import lines_of, open_evaluations, read_evaluations
from rag_eval_integrations.dataset._parquet_lines import PartLines, buffered
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations._pairing import EvaluationsFile
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
from rag_eval_integrations.report import compare

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

EVALUATOR = RagEvaluator(ScriptedJudge(labels_of(["0a"], ["0a"], {"a": (["0a"], True)})))


@pytest.fixture(scope="module")
def made() -> list[Evaluation]:
    async def evaluate() -> list[Evaluation]:
        calls = [RagCall(question=f"q{n}", documents=["A b."], response="A b.") for n in range(30)]
        return [await EVALUATOR.evaluate(each) for each in calls]

    return asyncio.run(evaluate())


def column(texts: list[str | None], kind: Any = None) -> Any:
    return pa.table({"evaluation": pa.array(texts, kind or pa.string())})


# --- The table


def test_a_table_has_what_queries_ask_for(made: list[Evaluation]) -> None:
    """Numbers as in the evaluation, null where there is none; a name is that of one column."""
    error = EvaluationError(type="E", message="m", stage="judge")
    usage = Usage(requests=2, prompt_tokens=30, completion_tokens=4, cost_usd=0.5)
    odd = {
        "id": made[1].scores["adherence"].model_copy(update={"name": "id"}),
        "adherence": Score(name="adherence", status="error", reason="r"),
    }
    rows = [
        made[0].model_copy(update={"usage": usage}),
        made[1].model_copy(update={"error": error, "scores": odd, "usage": Usage()}),
    ]

    table = table_of(map(to_line, rows), ["adherence", "none"])

    assert table.column_names[:9] == [
        "row_key", "id", "failed", "requests", "prompt_tokens", "completion_tokens", "cost_usd",
        "adherence", "none",
    ]  # fmt: skip
    assert table.column_names[-2:] == ["score:id", "evaluation"]
    first, second = table.to_pylist()
    assert [from_line(Evaluation, row["evaluation"]) for row in (first, second)] == rows
    assert (first["row_key"], first["id"]) == (rows[0].row_key, rows[0].id)
    assert (first["requests"], first["prompt_tokens"], first["completion_tokens"]) == (2, 30, 4)
    assert (first["cost_usd"], first["failed"], second["failed"]) == (0.5, False, True)
    assert (second["requests"], second["cost_usd"]) == (0, None)
    assert (first["adherence"], second["adherence"], first["none"]) == (1.0, None, None)
    assert (first["score:id"], second["score:id"]) == (None, 1.0)


@pytest.mark.parametrize(
    "line",
    [
        "", "[]", "null", "no JSON", '{"id": 3}', '{"scores": [], "usage": 7, "id": "x"}',
        '{"usage": {"requests": 1e400}}', '{"scores": {"a": {"value": "high"}}}',
        '{"usage": {"requests": 99999999999999999999999}}', "[" * 100_000,
    ],
)  # fmt: skip
def test_lines_that_were_edited_are_rows_with_their_text(made: list[Evaluation], line: str) -> None:
    """And take nothing from the rows beside them."""
    good = to_line(made[0])

    table = table_of([good, line, good])

    assert table["evaluation"].to_pylist() == [good, line, good]
    assert table["id"].to_pylist()[::2] == [made[0].id] * 2
    assert table["adherence"].to_pylist() == [1.0, None, 1.0]


# --- Reading


def test_a_folder_of_another_program_is_read_in_order(
    tmp_path: Path, made: list[Evaluation]
) -> None:
    """By the numbers in the names of its files, whatever else lies beside them."""
    texts = [to_line(one) for one in made]
    for number, name in ((0, "7_000000.parquet"), (1, "7_000009.parquet"), (2, "10_000001.pq")):
        kind = pa.large_string() if number == 1 else pa.string()
        part = column(list(texts[10 * number : 10 * number + 10]), kind)
        pq.write_table(part, tmp_path / name, row_group_size=3)
    for name in ("_SUCCESS", ".7_000000.parquet.crc", "_metadata", "notes.txt"):
        (tmp_path / name).write_text("not Parquet")

    assert Evaluations.load(tmp_path) == made
    assert Evaluations.load(tmp_path / "10_000001.pq") == made[20:]


def test_lines_are_found_again_in_any_order(
    tmp_path: Path, made: list[Evaluation], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By their offsets, in the parts and behind them, also when they are new."""
    monkeypatch.setattr("rag_eval_integrations.dataset._parquet_lines._BATCH", 4)
    texts = [to_line(one) for one in made]
    starts = [sum(len(text) + 1 for text in texts[:number]) for number in range(30)]
    for number in range(2):
        part = column(list(texts[11 * number : 11 * number + 11]))
        pq.write_table(part, tmp_path / f"{number}.parquet", row_group_size=7)
    rows = tmp_path / "_rows.jsonl"
    rows.write_text("".join(f"{text}\n" for text in texts[22:]))
    lines = PartLines(tmp_path, [tmp_path / "0.parquet"], None)
    lines.add(tmp_path / "1.parquet", starts[22])
    lines.following = rows
    with buffered(lines) as stream:
        for number in (29, 0, 21, 22, 7, 6, 1, 28, 11, 10, 12, 21, 0):
            stream.seek(starts[number])
            assert stream.readline().decode() == f"{texts[number]}\n"
        stream.seek(0)
        assert stream.read().decode().splitlines() == texts

    with open_evaluations(tmp_path) as stream:
        assert [line for _, _, line in lines_of(stream, 1 << 20)] == [
            f"{text}\n".encode() for text in texts
        ]


def test_bad_rows_are_told_in_their_place(tmp_path: Path, made: list[Evaluation]) -> None:
    """A null, text over several lines that is none, bytes that are no text; the others are read."""
    good = to_line(made[0])
    pretty = good.replace(',"', ',\r\n "')
    pq.write_table(column([good, None, "a\nb", pretty, good]), tmp_path / "a.parquet")
    raw = pa.array([b"\xff", good.encode()], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"evaluation": raw}), tmp_path / "b.parquet")

    found = list(read_evaluations(tmp_path))

    assert [line.value for line in found] == [
        made[0], None, None, made[0], made[0], None, made[0]
    ]  # fmt: skip
    assert [line.number for line in found] == [1, 2, 3, 4, 5, 6, 7]
    assert "not UTF-8" in str(found[5].error)


def test_a_damaged_part_ends_what_can_be_read(tmp_path: Path, made: list[Evaluation]) -> None:
    """The rows before it are read, and the damage is told as a bad row."""
    texts: list[str | None] = [to_line(one) for one in made]
    pq.write_table(column(texts[:10]), tmp_path / "0.parquet")
    pq.write_table(column(texts[10:]), tmp_path / "1.parquet", compression="zstd")
    whole = (tmp_path / "1.parquet").read_bytes()

    for damaged in (whole[:-9], whole[:4] + b"\0" * 400 + whole[404:], b"PAR1"):
        (tmp_path / "1.parquet").write_bytes(damaged)
        found = list(read_evaluations(tmp_path))
        assert [line.value for line in found] == [*made[:10], None]
        assert "the Parquet data is damaged (1.parquet: " in str(found[-1].error)


def test_other_parquet_and_other_folders_are_refused(tmp_path: Path) -> None:
    """And it is said which column is missing, or that there is no Parquet."""
    pq.write_table(pa.table({"adherence": [1.0]}), tmp_path / "scores.parquet")
    pq.write_table(pa.table({"evaluation": [1.0]}), tmp_path / "number.parquet")
    (tmp_path / "empty").mkdir()
    (tmp_path / "deep" / "part=1").mkdir(parents=True)
    for name, why in (
        ("scores.parquet", "without a text column `evaluation`"),
        ("number.parquet", "without a text column `evaluation`"),
        ("empty", "is a folder, not a file of rows"),
        ("deep", "holds the folder part=1"),
        (".", "holds the folder"),
    ):
        with pytest.raises(ConfigurationError, match=why):
            Evaluations.load(tmp_path / name)


def test_runs_in_parquet_are_compared(tmp_path: Path, made: list[Evaluation]) -> None:
    """A changed call is looked up again in its file, as in a file of lines."""
    score = made[0].scores["adherence"].model_copy(update={"value": 0.0})
    changed = made[3].model_copy(update={"scores": {**made[3].scores, "adherence": score}})
    runs = {"a": made, "b": [*made[:3], changed, *made[4:]]}
    for name, rows in runs.items():
        for form in ("parquet", "jsonl"):
            Evaluations(rows).save(tmp_path / f"{name}.{form}")

    of_parquet = compare(tmp_path / "a.parquet", tmp_path / "b.parquet")
    of_lines = compare(tmp_path / "a.jsonl", tmp_path / "b.jsonl")

    assert str(of_parquet).replace(".parquet", "") == str(of_lines).replace(".jsonl", "")
    looked_up = EvaluationsFile(tmp_path / "b.parquet")
    assert list(looked_up) == runs["b"]
    assert looked_up.at([29, 3]) == {3: changed, 29: made[29]}
