"""`--judge onnx:PATH[+RELEVANCE]`: a local model by its folder; mistakes are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tiny_readers as tiny
from by_hand import labels_of
from ferries import CALL, Command, read, write

from rag_eval_integrations.judges import Calibration

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
    """`--workers 2` gives the rows of one process, but for the run that they name."""
    write(Path("calls.jsonl"), *({**CALL, "id": str(number)} for number in range(5)))
    rows = []
    for workers in (1, 2):
        rag_eval(*RUN, "onnx:nli", "--workers", workers, "--overwrite", code=0)
        rows.append([json.loads(line) for line in EVALS.read_text().splitlines()])
        assert len({row.pop("run")["id"] for row in rows[-1]}) == 1
    assert rows[0] == rows[1]
    assert len(rows[0]) == 5


def test_a_run_with_another_model_is_not_resumed(rag_eval: Command) -> None:
    """The models' content is part of what made the file."""
    rag_eval(*RUN, "onnx:nli", code=0)
    tiny.pair_model(Path("nli"), tiny.vocabulary(CALL["documents"]))
    assert "evaluator" in rag_eval(*RUN, "onnx:nli", "--resume", code=2).err


LIES = (
    ("It leaves at nine.", True),
    ("A famous admiral painted it.", False),  # of its words, the model knows none that tells
    ("It was leaving at nines.", False),  # the words are the same, but for their ends
)


def labelled(number: int) -> dict[str, Any]:
    """A row with labels: an answer of the documents, or one of two kinds of lie."""
    response, true = LIES[number % 3]
    support: dict[str, tuple[list[str], bool | None]] = {"a": (["0a"] if true else [], true)}
    return {
        "id": str(number),
        "question": f"When does ferry {number} leave?",
        "documents": [f"Ferry {number} is green. It leaves at nine. Tickets cost two coins."],
        "response": response,
        "labels": labels_of(["0b"], ["0b"], support).model_dump(exclude_unset=True),
    }


def test_the_words_join_a_local_model_where_labels_say_so(rag_eval: Command) -> None:
    """Fitted to labels, from rows or evaluations alike, and applied by a run; values stay."""
    rows = [labelled(number) for number in range(240)]
    gold = write(Path("gold.jsonl"), *rows)
    known = [rows[0]["documents"][0], "was it leaving at nines."]
    tiny.pair_model(Path("nli"), tiny.vocabulary(known))
    judge = ("--judge", "onnx:nli")
    out, other, used = map(Path, ("c.json", "d.json", "used.jsonl"))

    done = rag_eval("calibrate", gold, "-o", out, "--name", "mine", *judge, code=0)
    rag_eval("run", gold, "-o", EVALS, *judge, code=0)
    rag_eval("calibrate", EVALS, gold, "-o", other, "--name", "mine", code=0)
    rag_eval("run", gold, "-o", used, "--calibration", out, *judge, code=0)

    assert "mixture: model " in done.out
    assert out.read_text() == other.read_text()
    fitted = Calibration.read(out).judges[0].scores["adherence"]
    assert fitted.method == "mixture"
    assert min(fitted.slope, fitted.words) > 0.1
    alone, mixed = (
        [evaluation.scores["adherence"] for evaluation in read(path)[:3]] for path in (EVALS, used)
    )
    assert [score.value for score in alone] == [score.value for score in mixed] == [1, 1, 0]
    chances = [score.probability or 0 for score in mixed]
    assert chances[0] > 0.9 > 0.1 > max(chances[1:])
    assert [
        any("not measured" in said for said in score.warnings) for score in (*alone, *mixed)
    ] == [True] * 3 + [False] * 3


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
