"""`rag-eval run` takes the files of other tools, and `report` writes files for them."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ferries import Command
from tables import as_csv, as_parquet

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
OWN = {"question": QUESTION, "documents": DOCUMENTS, "response": ANSWER}
COMMON = {"query": QUESTION, "contexts": DOCUMENTS, "answer": ANSWER}


def lines(row: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for _ in range(3))


FILES: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "ragas": ("ragas.jsonl", lambda: lines(RAGAS), "read as ragas: user_input → question"),
    "ragas frame": ("ragas.csv", lambda: as_csv([RAGAS] * 3, str), "read as ragas"),
    "deepeval": ("cases.json", lambda: json.dumps([DEEPEVAL] * 3, indent=1).encode(),
                 "read as deepeval: input → question"),
    "langsmith": ("runs.jsonl.gz", lambda: gzip.compress(lines(RUN)), "read as langsmith"),
    "messages": ("chats.parquet", lambda: as_parquet([MESSAGES] * 3), "messages → question"),
    "common": ("rows.csv", lambda: as_csv([COMMON] * 3), "read as calls: query → question"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_files_of_other_tools_need_one_command(
    rag_eval: Command, out: Path, name: str, stdin: Callable[[bytes], None]
) -> None:
    """No mapping: the one that was used is told once; standard input is told by its first bytes."""
    file, content, told = FILES[name]
    Path(file).write_bytes(content())

    assert rag_eval("run", file, "-o", out, code=0).err.count(told) == 1
    assert [row.row_key for row in Evaluations.load(out)] == [KEY] * 3
    assert "3 reused" in rag_eval("run", file, "-o", out, "--resume").out
    stdin(content())
    piped = rag_eval("run", "-", "-o", "piped.jsonl", code=0)
    assert "standard input: read as" in piped.err
    assert len(Evaluations.load(Path("piped.jsonl"))) == 3


def test_a_map_reads_any_other_names(rag_eval: Command, out: Path) -> None:
    """Repeatable, also inside of objects; bad rows are counted, and exit 2.

    Of our own names nothing is told: there is no mapping to check.
    """
    path = Path("calls.jsonl")
    row = {"q": QUESTION, "search": {"hits": DOCUMENTS}, "said": ANSWER}
    path.write_bytes(lines(row) + b'{"q": "x"}\n')
    fields = ("question=q", "documents=search.hits", "response=said")
    names = [word for field in fields for word in ("--map", field)]

    done = rag_eval("run", path, "-o", out, *names, code=2)

    assert "line 4: field `search.hits`: is missing; the row has `q`" in done.err
    assert [row.row_key for row in Evaluations.load(out)] == [KEY] * 3
    assert "3 calls" in rag_eval("run", path, "-o", out, *names, "--dry-run").out
    path.write_bytes(lines(OWN))
    assert rag_eval("run", path, "-o", "own.jsonl").err == ""


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ("question", "`--map` = 'question': use FIELD=NAME"),
        ("=q", "use FIELD=NAME"),
        ("quest=q", "`--map` = 'quest=q': is not a field of a call; did you mean `question`?"),
        ("question=q --map question=x", "is a second name for `question`"),
        ("question=qq", "the first row has `q`, and no field `qq`; did you mean `q`?"),
    ],
)
def test_a_wrong_map_ends_the_command(rag_eval: Command, out: Path, given: str, fault: str) -> None:
    """Before anything is written."""
    Path("calls.jsonl").write_bytes(b'{"q": "x"}\n')
    assert fault in rag_eval("run", "calls.jsonl", "-o", out, "--map", *given.split(), code=2).err
    assert list(Path().iterdir()) == [Path("calls.jsonl")]


PAGES = [{"page_content": text, "metadata": {"source": f"s{number}"}}
         for number, text in enumerate(DOCUMENTS)]  # fmt: skip
LOGGED = json.dumps({"input": QUESTION, "context": PAGES, "answer": ANSWER})
SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "traces of MLflow": ("traces.jsonl", {"info": {
        "response_preview": LOGGED, "trace_metadata": {
            "mlflow.traceInputs": json.dumps({"input": QUESTION}), "mlflow.traceOutputs": LOGGED,
        }}, "data": {"spans": [{"name": "chain"}]}}),
    "traces in a table": ("traces.csv", {"trace_id": "t1", "request": json.dumps({"input": QUESTION}),
                                         "response": LOGGED, "state": "OK"}),
    "MS MARCO": ("marco.parquet", {"query": QUESTION, "answers": [ANSWER], "query_id": 5, "passages": {
        "passage_text": DOCUMENTS, "is_selected": [1, 0], "url": ["https://a.b/c"] * 2}}),
    "a table": ("rows.csv", {"Q": QUESTION, "context_precision": "0.9", "Context 1": DOCUMENTS[0],
                             "Context 2": DOCUMENTS[1], "final answer": ANSWER}),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_the_map_that_is_proposed_reads_the_file(rag_eval: Command, out: Path, name: str) -> None:
    """Followed to the letter, as a shell reads it."""
    file, row = SHAPES[name]
    rows = lines(row) if file.endswith("jsonl") else as_csv([row] * 3)
    Path(file).write_bytes(as_parquet([row] * 3) if file.endswith("parquet") else rows)

    said = rag_eval("run", file, "-o", out, code=2).err

    (tried,) = re.findall(r"try (--map .*)$", said, re.M)
    rag_eval("run", file, "-o", out, *shlex.split(tried), code=0)
    assert [row.row_key for row in Evaluations.load(out)] == [KEY] * 3


@pytest.mark.parametrize(
    ("row", "tried"),
    [
        ({"user_input": QUESTION, "context_precision": 0.9, "answer_relevancy": 0.8},
         "--map documents=NAME --map response=NAME"),
        ({"topic": QUESTION, "references": ["msmarco_1#2"], "answer": [{"text": ANSWER, "citations": [0]}]},
         "--map question=NAME --map documents=NAME"),
    ],
)  # fmt: skip
def test_scores_and_ids_are_not_proposed(
    rag_eval: Command, out: Path, row: dict[str, Any], tried: str
) -> None:
    """Of ragas' scores and of TREC RAG, also in a file of one row; a map that gives ids is told."""
    Path("rows.jsonl").write_bytes(json.dumps(row).encode())
    said = rag_eval("run", "rows.jsonl", "-o", out, code=2).err
    assert f"; try {tried}\n" in said
    assert "rows are read from" not in said
    if "topic" in row:
        names = ("--map", "question=topic", "--map", "documents=references")
        told = rag_eval("run", "rows.jsonl", "-o", out, *names, code=0).err
        assert "`references` holds no sentences, but 'msmarco_1#2': are these ids?" in told


READ: dict[str, tuple[dict[str, Any], str]] = {
    "HotpotQA": (
        {"question": QUESTION, "answer": ANSWER, "context": {
            "title": ["A", "B"], "sentences": [[DOCUMENTS[0]], [DOCUMENTS[1]]]}}, "context → documents"),
    "HotpotQA as published": (
        {"question": QUESTION, "answer": ANSWER,
         "context": [["A", [DOCUMENTS[0]]], ["B", [DOCUMENTS[1]]]]}, "context → documents"),
    "a table of MLflow": (
        {"inputs": QUESTION, "outputs": ANSWER, "expectations": {"expected_response": "At nine."},
         "retrieved_context": [{"content": text, "doc_uri": "u"} for text in DOCUMENTS]},
        "expectations.expected_response → reference"),
    "a table of MLflow 3": (
        {"inputs": {"question": QUESTION}, "outputs": ANSWER, "retrieved_context": DOCUMENTS},
        "read as mlflow: inputs.question → question, retrieved_context → documents, outputs → response"),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_more_shapes_need_no_map(rag_eval: Command, out: Path, name: str) -> None:
    """Sentences in lists, and texts where LangSmith has objects."""
    row, told = READ[name]
    Path("rows.jsonl").write_bytes(lines(row))
    assert told in rag_eval("run", "rows.jsonl", "-o", out, code=0).err
    loaded = Evaluations.load(out)
    reference = "At nine." if "expectations" in row else None
    assert {row.row_key for row in loaded} == {
        RagCall(QUESTION, DOCUMENTS, ANSWER, reference=reference).row_key
    }


def test_one_text_of_several_documents_is_told(rag_eval: Command, out: Path) -> None:
    """Once; scores of its documents are left out, and others are made."""
    Path("rows.jsonl").write_bytes(
        lines({"input": QUESTION, "output": ANSWER, "context": "\n\n".join(DOCUMENTS)})
    )
    said = rag_eval(
        "run", "rows.jsonl", "-o", out, "--metrics", "trace,label_retrieval", code=0
    ).err
    told = "`context` is one text: documents cannot be told apart; scores of documents are left out"
    assert said.count(told) == 1
    for row in Evaluations.load(out):
        assert row.scores["document_precision"].unscored == "missing_param"
        assert row.scores["adherence"].value is not None


# --- Files for others


@pytest.fixture
def evals(rag_eval: Command, out: Path) -> Path:
    path = Path("calls.jsonl")
    path.write_bytes(lines(OWN) + lines({**OWN, "documents": []}))
    rag_eval("run", path, "-o", out, code=0)
    return out


def test_parquet_has_a_row_per_call(rag_eval: Command, evals: Path) -> None:
    """And cannot be shown on a terminal."""
    pd = pytest.importorskip("pandas")
    out = Path("rows.parquet")
    assert rag_eval("report", evals, "-o", out, "--format", "parquet").code == 0
    frame = pd.read_parquet(out)
    assert list(frame["adherence"].isna()) == [False] * 3 + [True] * 3
    assert list(frame["adherence:unscored"][3:]) == ["no_context"] * 3
    done = rag_eval("report", evals, "-o", "-", "--format", "parquet", code=2)
    assert done.out == ""
    assert "a Parquet file cannot be shown" in done.err


def test_ragbench_rows_can_be_scored_again(rag_eval: Command, evals: Path) -> None:
    """And compared with; what has no labels has no row, and is counted. They may be Parquet."""
    out, again, parquet = map(Path, ("rows.jsonl", "again.jsonl", "test-00000-of-00001.parquet"))
    done = rag_eval("report", evals, "-o", out, "--format", "ragbench", code=0)
    assert "3 evaluations have no labels" in done.err
    rag_eval("score", out, "-o", again, code=0)
    ours, theirs = (
        [(row.row_key, row.scores["adherence"].value) for row in Evaluations.load(path)]
        for path in (evals, again)
    )
    assert theirs == ours[:3]
    parquet.write_bytes(as_parquet([*map(json.loads, out.read_text().splitlines())]))
    rag_eval("score", parquet, "-o", again, "--overwrite", "--formulas", "ragbench", code=0)
    assert len(Evaluations.load(again)) == 3
    rag_eval("agreement", evals, out, code=0)
