"""`rag-eval run --metrics retrieval,…`: options, costs, resuming, a judge that is not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ferries import Command, read, write

from rag_eval_integrations.metrics.retrieval import MEASURES

ROWS: list[dict[str, Any]] = [
    {
        "id": "1",
        "question": "When does the ferry leave?",
        "documents": [
            {"text": "Bicycles pay a fee.", "id": "fees", "metadata": {"page": 7}},
            {"text": "The ferry leaves at nine.", "id": "times", "metadata": {"page": 3}},
        ],
        "response": "The ferry leaves at nine.",
        "reference": "The ferry leaves at nine. Zebras compute nonsense.",
        "relevant_ids": ["times"],
    },
    {"id": "2", "question": "Why?", "documents": [], "response": "So.", "relevant_ids": ["x"]},
]


OTHER_GOLD = {**ROWS[0], "relevant_ids": ["fees"]}


@pytest.fixture
def calls() -> Path:
    return write(Path("calls.jsonl"), *ROWS)


def test_all_retrieval_metrics(rag_eval: Command, calls: Path, out: Path) -> None:
    """By name and k; the gold ids stand in the row, and thresholds know the names."""
    done = rag_eval(
        "run", calls, "-o", out, "--metrics", "retrieval,label_retrieval,context_recall",
        "--k", "1, 5", "--fail-under", "mrr@5=0.25", "--fail-under", "hit_rate@1=0.1", code=1,
    )  # fmt: skip

    assert "FAILED hit_rate@1: mean 0.0000 is below 0.1" in done.err
    assert "mrr@5" not in done.err
    first, second = read(out)
    assert list(first.scores)[:12] == [f"{name}@{k}" for name in MEASURES for k in (1, 5)]
    assert [first.scores[f"mrr@{k}"].value for k in (1, 5)] == [0, 1 / 2]
    assert first.scores["context_recall"].value == 1 / 2
    assert first.scores["document_precision"].value is not None
    assert (first.relevant_ids, first.document_ids) == (("times",), ("fees", "times"))
    assert second.scores["recall@5"].value == 0
    assert second.scores["label_ndcg"].unscored == "no_context"
    assert "recall@5" in done.out


@pytest.mark.parametrize(
    ("gold", "options"),
    [(["3"], ("--id-key", "page")), (["the FERRY leaves at nine."], ("--match", "text"))],
)
def test_matching(rag_eval: Command, out: Path, gold: list[str], options: tuple[str, ...]) -> None:
    """Metadata, or texts."""
    calls = write(Path("calls.jsonl"), {**ROWS[0], "relevant_ids": gold})
    rag_eval("run", calls, "-o", out, "--metrics", "retrieval", *options, code=0)
    assert read(out)[0].scores["mrr@3"].value == 1 / 2


def test_a_dry_run_counts_requests(
    rag_eval: Command, calls: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One for each text that is labelled; gold costs nothing. Row 2 has nothing to be judged by.

    It needs no key and writes nothing, the cache neither.
    """
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for metrics, said in {
        "retrieval": "no requests, no cost",
        "label_retrieval": "about 1 request ",
        "context_recall": "about 1 request ",
        "trace,label_retrieval,context_recall,retrieval": "about 2 requests",
    }.items():
        words = ("--judge", "openai:m", "--cache", "c.db", "--metrics", metrics)
        assert said in rag_eval("run", calls, "-o", out, "--dry-run", *words, code=0).out, metrics
    assert list(Path().iterdir()) == [calls]


def test_a_run_is_resumed_with_its_own_gold(rag_eval: Command, calls: Path, out: Path) -> None:
    """Scores by other gold ids are other scores, though question and documents are the same."""
    run = ("run", calls, "-o", out, "--metrics", "retrieval")
    rag_eval(*run, code=0)
    assert "2 reused" in rag_eval(*run, "--resume").out

    write(calls, OTHER_GOLD, ROWS[1])
    done = rag_eval(*run, "--resume", code=2)
    assert "holds evaluations of 1 call that is not among the calls" in done.err
    write(calls, *ROWS, OTHER_GOLD)
    assert "2 reused" in rag_eval(*run, "--resume").out
    assert [row.scores["mrr@1"].value for row in read(out)] == [0, 0, 1]


def test_a_judge_that_is_not_there_leaves_the_gold_scores(rag_eval: Command, out: Path) -> None:
    """It is told at once, all rows are written, and the run fails."""
    rows = ({**ROWS[0], "id": str(n), "question": f"Question {n}?"} for n in range(5))
    calls = write(Path("calls.jsonl"), *rows)
    judge = ("--judge", "openai:m", "--base-url", "http://127.0.0.1:9/v1", "--max-concurrency", 1)
    done = rag_eval("run", calls, "-o", out, *judge, "--metrics", "trace,retrieval", code=1)

    evaluated = read(out)
    assert [row.id for row in evaluated] == ["0", "1", "2", "3", "4"]
    assert {row.scores["mrr@3"].value for row in evaluated} == {1 / 2}
    assert {row.scores["adherence"].status for row in evaluated} == {"error"}
    assert "connection refused: nothing listens there" in done.err
