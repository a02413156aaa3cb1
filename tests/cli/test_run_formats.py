"""`rag-eval run` takes the files of other tools, and `report` writes files for them."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ferries import Command

from rag_eval_integrations import Evaluations, RagCall

QUESTION, ANSWER = "When does the ferry leave?", "The ferry leaves at nine."
DOCUMENTS = ["The ferry leaves at nine.", "It carries forty passengers."]
KEY = RagCall(QUESTION, DOCUMENTS, ANSWER).row_key

RAGAS = {"user_input": QUESTION, "retrieved_contexts": DOCUMENTS, "response": ANSWER}
DEEPEVAL = {"input": QUESTION, "actual_output": ANSWER, "retrieval_context": DOCUMENTS,
            "expected_output": None}  # fmt: skip
RUN = {
    "id": "7", "inputs": {"question": QUESTION},
    "outputs": {"answer": ANSWER, "documents": [{"page_content": one} for one in DOCUMENTS]},
}  # fmt: skip
MESSAGES = {
    "messages": [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": ANSWER}],
    "contexts": DOCUMENTS,
}
COMMON = {"query": QUESTION, "contexts": DOCUMENTS, "answer": ANSWER}


def lines(row: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for _ in range(3))


def as_csv(row: dict[str, Any], cell: Callable[[object], str] = json.dumps) -> bytes:
    out = io.StringIO(newline="")
    table = csv.writer(out)
    table.writerow(row)
    for _ in range(3):
        table.writerow(cell(one) if isinstance(one, list) else one for one in row.values())
    return out.getvalue().encode()


def as_parquet(row: dict[str, Any]) -> bytes:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([row] * 3), out)
    return out.getvalue()


FILES: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "ragas": ("ragas.jsonl", lambda: lines(RAGAS), "read as ragas: user_input → question"),
    "ragas frame": ("ragas.csv", lambda: as_csv(RAGAS, str), "read as ragas"),
    "deepeval": ("cases.json", lambda: json.dumps([DEEPEVAL] * 3, indent=1).encode(),
                 "read as deepeval: input → question"),
    "langsmith": ("runs.jsonl.gz", lambda: gzip.compress(lines(RUN)), "read as langsmith"),
    "messages": ("chats.parquet", lambda: as_parquet(MESSAGES), "messages → question"),
    "common": ("rows.csv", lambda: as_csv(COMMON), "read as calls: query → question"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_files_of_other_tools_need_one_command(
    rag_eval: Command, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No mapping: the one that was used is told once; standard input is told by its first bytes."""
    file, content, told = FILES[name]
    path, out = tmp_path / file, tmp_path / "evals.jsonl"
    path.write_bytes(content())

    done = rag_eval("run", path, "-o", out)

    assert done.code == 0, done.err
    assert done.err.count(told) == 1
    assert [one.row_key for one in Evaluations.load(out)] == [KEY] * 3
    again = rag_eval("run", path, "-o", out, "--resume")
    assert "3 reused" in again.out
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content())))
    piped = rag_eval("run", "-", "-o", tmp_path / "piped.jsonl")
    assert "standard input: read as" in piped.err
    assert (piped.code, len(Evaluations.load(tmp_path / "piped.jsonl"))) == (0, 3)


def test_our_own_names_are_not_told(rag_eval: Command, tmp_path: Path) -> None:
    """There is no mapping to check."""
    path = tmp_path / "calls.jsonl"
    path.write_bytes(lines({"question": QUESTION, "documents": DOCUMENTS, "response": ANSWER}))
    assert rag_eval("run", path, "-o", tmp_path / "evals.jsonl").err == ""


def test_a_map_reads_any_other_names(rag_eval: Command, tmp_path: Path) -> None:
    """Repeatable, also inside of objects; bad rows are counted, and exit 2."""
    path, out = tmp_path / "calls.jsonl", tmp_path / "evals.jsonl"
    row = {"q": QUESTION, "search": {"hits": DOCUMENTS}, "said": ANSWER}
    path.write_bytes(lines(row) + b'{"q": "x"}\n')
    names = [
        "--map", "question=q", "--map", "documents=search.hits", "--map", "response=said",
    ]  # fmt: skip

    done = rag_eval("run", path, "-o", out, *names)

    assert done.code == 2
    assert "line 4: field `search.hits`: is missing; the row has `q`" in done.err
    assert [one.row_key for one in Evaluations.load(out)] == [KEY] * 3
    assert "3 calls" in rag_eval("run", path, "-o", out, *names, "--dry-run").out


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (["question"], "`--map` = 'question': use FIELD=NAME"),
        (["=q"], "use FIELD=NAME"),
        (["quest=q"], "`--map` = 'quest=q': is not a field of a call; did you mean `question`?"),
        (["question=q", "question=x"], "is a second name for `question`"),
        (["question=qq"], "the first row has `q`, and no field `qq`; did you mean `q`?"),
    ],
)
def test_mistakes_in_a_map_end_the_command(
    rag_eval: Command, tmp_path: Path, given: list[str], fault: str
) -> None:
    """Before anything is written."""
    path = tmp_path / "calls.jsonl"
    path.write_bytes(b'{"q": "x"}\n')
    words = [word for one in given for word in ("--map", one)]

    done = rag_eval("run", path, "-o", tmp_path / "evals.jsonl", *words)

    assert done.code == 2
    assert fault in done.err
    assert [one.name for one in tmp_path.iterdir()] == ["calls.jsonl"]


# --- Files for others


@pytest.fixture
def evals(rag_eval: Command, tmp_path: Path) -> Path:
    path = tmp_path / "calls.jsonl"
    row = {"question": QUESTION, "documents": DOCUMENTS, "response": ANSWER}
    path.write_bytes(lines(row) + lines({**row, "documents": []}))
    assert rag_eval("run", path, "-o", tmp_path / "evals.jsonl").code == 0
    return tmp_path / "evals.jsonl"


def test_parquet_has_a_row_per_call(rag_eval: Command, evals: Path, tmp_path: Path) -> None:
    """And cannot be shown on a terminal."""
    pd = pytest.importorskip("pandas")
    out = tmp_path / "rows.parquet"
    assert rag_eval("report", evals, "-o", out, "--format", "parquet").code == 0
    frame = pd.read_parquet(out)
    assert list(frame["adherence"].isna()) == [False] * 3 + [True] * 3
    assert list(frame["adherence:unscored"][3:]) == ["no_context"] * 3
    done = rag_eval("report", evals, "-o", "-", "--format", "parquet")
    assert (done.code, done.out) == (2, "")
    assert "a Parquet file cannot be shown" in done.err


def test_ragbench_rows_can_be_scored_again(rag_eval: Command, evals: Path, tmp_path: Path) -> None:
    """And compared with; what has no labels has no row, and is counted."""
    out, again = tmp_path / "rows.jsonl", tmp_path / "again.jsonl"
    done = rag_eval("report", evals, "-o", out, "--format", "ragbench")
    assert done.code == 0
    assert "3 evaluations have no labels" in done.err
    assert rag_eval("score", out, "-o", again).code == 0
    ours, theirs = Evaluations.load(evals)[:3], Evaluations.load(again)
    for one, other in zip(ours, theirs, strict=True):
        assert other.scores["adherence"].value == one.scores["adherence"].value
        assert other.row_key == one.row_key
    assert rag_eval("agreement", evals, out).code == 0


def test_published_parquet_is_scored(rag_eval: Command, evals: Path, tmp_path: Path) -> None:
    """RAGBench is published as Parquet."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    from rag_eval_integrations.dataset.rows import ragbench_row

    rows = [row for one in Evaluations.load(evals) if (row := ragbench_row(one))]
    path = tmp_path / "test-00000-of-00001.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    done = rag_eval("score", path, "-o", tmp_path / "scored.jsonl", "--formulas", "ragbench")
    assert done.code == 0, done.err
    assert len(Evaluations.load(tmp_path / "scored.jsonl")) == 3
