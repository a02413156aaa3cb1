"""`--judge onnx:PATH[+RELEVANCE]`: a local model by its folder; mistakes are named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tiny_readers as tiny
from ferries import CALL, Command, write

RUN = ("run", "calls.jsonl", "-o", "e.jsonl", "--judge")
EVALS = Path("e.jsonl")


@pytest.fixture(autouse=True)
def _models() -> None:
    """Two models, and calls."""
    for package in ("onnx", "onnxruntime", "tokenizers"):
        pytest.importorskip(package)
    words = tiny.vocabulary([CALL["question"], *CALL["documents"], CALL["response"]])
    tiny.pair_model(Path("nli"), words)
    tiny.cross_encoder(Path("rank+er"), words)
    write(Path("calls.jsonl"), CALL)


@pytest.mark.parametrize(
    ("judge", "by"),
    [
        ("onnx:nli", "embedded"),
        ("onnx:nli+rank+er", "rank+er@"),
        ("onnx:nli/model.onnx", "embedded"),
        ("cascade:embedded,onnx:nli", None),
    ],
)
def test_a_run_is_judged_by_the_models_that_are_named(
    rag_eval: Command, tmp_path: Path, judge: str, by: str | None
) -> None:
    """Every score has a value, and says which models it is from; a dry run knows no cost."""
    assert "no requests, no cost" in rag_eval(*RUN, judge, "--dry-run", code=0).out
    assert not EVALS.exists()
    rag_eval(*RUN, judge, code=0)
    row = json.loads(EVALS.read_text())
    assert all(score["status"] == "scored" for score in row["scores"].values())
    if by is not None:
        assert row["by"]["judge"] == "onnx"
        name, _, relevance = row["by"]["model"].partition(" + ")
        assert name.startswith("nli@")
        assert relevance.startswith(by)
        assert str(tmp_path) not in EVALS.read_text()


def test_workers_load_the_model_themselves(rag_eval: Command) -> None:
    """`--workers 2` gives the rows of one process."""
    write(Path("calls.jsonl"), *({**CALL, "id": str(number)} for number in range(5)))
    rows = []
    for workers in (1, 2):
        rag_eval(*RUN, "onnx:nli", "--workers", workers, "--overwrite", code=0)
        rows.append(EVALS.read_text())
    assert rows[0] == rows[1]
    assert rows[0].count("\n") == 5


def test_a_run_with_another_model_is_not_resumed(rag_eval: Command) -> None:
    """The models' content is part of what made the file."""
    rag_eval(*RUN, "onnx:nli", code=0)
    tiny.pair_model(Path("nli"), tiny.vocabulary(CALL["documents"]))
    assert "evaluator" in rag_eval(*RUN, "onnx:nli", "--resume", code=2).err


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ("onnx:nowhere", "no such folder or file"),
        ("onnx:", "name a model"),
        ("onnx:nli+", "name a model, and behind a + one for relevance"),
        ("onnx:nli+nowhere", "`relevance` = 'nowhere': no such folder or file"),
        ("onnx:calls.jsonl", "ends in .onnx"),
    ],
)
def test_a_mistake_names_what_was_looked_for(rag_eval: Command, judge: str, said: str) -> None:
    """Option, value, and what is not there; nothing is written."""
    ran = rag_eval(*RUN, judge, code=2)
    assert f"`--judge` = {judge!r}: " in ran.err
    assert said in ran.err
    assert not EVALS.exists()


def test_doctor_shows_the_models_card(rag_eval: Command) -> None:
    """What it is, and that its probabilities are not calibrated."""
    shown = rag_eval("doctor", "--judge", "onnx:nli", code=0).out
    assert "not calibrated" in " ".join(shown.split())
