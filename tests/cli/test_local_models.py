"""`--judge onnx:PATH[+RELEVANCE]`: a local model by its folder; mistakes are named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tiny_readers as tiny
from ferries import Command

CALL = {
    "question": "When does the ferry leave?",
    "documents": ["The ferry leaves at nine.", "It carries forty passengers."],
    "response": "The ferry leaves at nine every day. It carries forty passengers.",
}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with calls and two models."""
    for package in ("onnx", "onnxruntime", "tokenizers"):
        pytest.importorskip(package)
    words = tiny.vocabulary([CALL["question"], *CALL["documents"], CALL["response"]])  # type: ignore[list-item]
    tiny.pair_model(tmp_path / "nli", words)
    tiny.cross_encoder(tmp_path / "rank+er", words)
    (tmp_path / "calls.jsonl").write_text(json.dumps(CALL) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


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
    rag_eval: Command, work: Path, judge: str, by: str | None
) -> None:
    """Every score has a value, and says which models it is from."""
    ran = rag_eval("run", "calls.jsonl", "-o", "e.jsonl", "--judge", judge)

    assert ran.code == 0, ran.err
    row = json.loads((work / "e.jsonl").read_text())
    assert all(score["status"] == "scored" for score in row["scores"].values())
    if by is not None:
        assert row["scores"]["adherence"]["value"] == 0.0
        assert row["by"]["judge"] == "onnx"
        name, _, relevance = row["by"]["model"].partition(" + ")
        assert name.startswith("nli@")
        assert relevance.startswith(by)
        assert str(work) not in (work / "e.jsonl").read_text()


@pytest.mark.parametrize("judge", ["onnx:nli", "cascade:embedded,onnx:nli"])
def test_a_dry_run_knows_that_a_local_model_costs_nothing(
    rag_eval: Command, work: Path, judge: str
) -> None:
    """No request is sent by it, alone or as the last of a cascade."""
    ran = rag_eval("run", "calls.jsonl", "-o", "e.jsonl", "--judge", judge, "--dry-run")

    assert ran.code == 0, ran.err
    assert "no requests, no cost" in ran.out
    assert not (work / "e.jsonl").exists()


def test_workers_load_the_model_themselves(rag_eval: Command, work: Path) -> None:
    """`--workers 2` gives the rows of one process."""
    calls = [json.dumps({**CALL, "id": str(number)}) for number in range(5)]
    (work / "calls.jsonl").write_text("\n".join(calls) + "\n")
    rows = []
    for workers in (1, 2):
        words = ("--judge", "onnx:nli", "--workers", workers, "--overwrite")
        assert rag_eval("run", "calls.jsonl", "-o", "e.jsonl", *words).code == 0
        rows.append((work / "e.jsonl").read_text())

    assert rows[0] == rows[1]
    assert rows[0].count("\n") == 5


def test_a_run_with_another_model_is_not_resumed(rag_eval: Command, work: Path) -> None:
    """The models' content is part of what made the file."""
    words = tiny.vocabulary(CALL["documents"])
    assert rag_eval("run", "calls.jsonl", "-o", "e.jsonl", "--judge", "onnx:nli").code == 0
    tiny.pair_model(work / "nli", words)

    ran = rag_eval("run", "calls.jsonl", "-o", "e.jsonl", "--judge", "onnx:nli", "--resume")

    assert ran.code == 2
    assert "evaluator" in ran.err


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ("onnx:nowhere", "no such folder or file"),
        ("onnx:", "name a model"),
        ("onnx:nli+", "name a model, and behind a + one for relevance"),
        ("onnx:nli+nowhere", "`relevance` = 'nowhere': no such folder or file"),
        ("onnx:calls.jsonl", "ends in .onnx"),
        ("cascade:embedded,onnx:nowhere", "`model` = 'nowhere': no such folder or file"),
    ],
)
def test_a_mistake_names_what_was_looked_for(
    rag_eval: Command, work: Path, judge: str, said: str
) -> None:
    """Option, value, and what is not there; nothing is written."""
    ran = rag_eval("run", "calls.jsonl", "-o", "e.jsonl", "--judge", judge)

    assert ran.code == 2
    assert f"`--judge` = {judge!r}: " in ran.err
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert not (work / "e.jsonl").exists()


def test_doctor_shows_the_models_card(rag_eval: Command, work: Path) -> None:
    """What it is, and that its probabilities are not calibrated."""
    ran = rag_eval("doctor", "--judge", "onnx:nli")

    assert ran.code == 0, ran.err
    assert "not calibrated" in " ".join(ran.out.split())
