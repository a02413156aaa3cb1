"""`rag-eval calibrate`, and `run --calibration` with what it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ferries import Command, write

from rag_eval_integrations.judges import Calibration

from .test_agreement_tables import row


@pytest.fixture
def gold() -> Path:
    """Sixty labelled rows with different questions; a third of the responses is not adherent."""
    return write(Path("gold.jsonl"), *(row(number, "harbour") for number in range(60)))


def test_a_judge_is_calibrated_and_applied(rag_eval: Command, gold: Path) -> None:
    """From gold rows or from evaluations the same; every score of a run is stamped."""
    out, other, evals, used = map(Path, ("c.json", "d.json", "e.jsonl", "used.jsonl"))

    done = rag_eval("calibrate", gold, "-o", out, "--target-error", "0.1", "--name", "mine", code=0)
    assert rag_eval("run", gold, "-o", evals).code == 0
    rag_eval("calibrate", evals, gold, "-o", other, "--target-error", 0.1, "--name", "mine", code=0)
    rag_eval("run", gold, "-o", used, "--calibration", out, code=0)

    for words in ("Calibration of embedded", "adherence", "RMSE", "60 gold rows, 60 questions"):
        assert words in done.out
    assert "60 calls labelled, 0 judge requests" in done.err
    assert out.read_text() == other.read_text()
    found = Calibration.read(out)
    assert (found.name, found.n) == ("mine", 60)
    assert found.judges[0].scores["adherence"].method != "identity"
    content = json.loads(used.read_text().splitlines()[0])
    assert content["by"]["calibration"] == found.stamp
    assert content["scores"]["adherence"]["estimate"]["method"] == "calibration"
    compared, plain = (
        json.loads(rag_eval("agreement", path, gold, "--json").out)["scores"]["adherence"]["rmse"]
        for path in (used, evals)
    )
    assert compared == plain
    assert "already" in rag_eval("calibrate", used, gold, "-o", "x.json", code=2).err
    # Rows that were made in two ways do not stand in one file.
    resumed = rag_eval("run", gold, "-o", evals, "--resume", "--calibration", out, code=2)
    assert "another evaluator" in resumed.err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("gold.jsonl gold.jsonl gold.jsonl", "GOLD.jsonl"),
        ("gold.jsonl gold.jsonl --judge embedded", "holds its evaluations already"),
        ("gold.jsonl --judge nothing", "no such judge"),
        ("gold.jsonl --target-error 2", "`--target-error`"),
        ("missing.jsonl", "missing.jsonl"),
        ("few.jsonl", "20 questions, and "),
        ("-", "is read more than once"),
    ],
)
def test_mistakes_are_named(rag_eval: Command, gold: Path, words: str, why: str) -> None:
    """With exit code 2 and no file. Too few rows are counted before the judge is asked."""
    Path("few.jsonl").write_text("".join(gold.read_text().splitlines(keepends=True)[:20]))
    assert why in rag_eval("calibrate", *words.split(), "-o", "c.json", code=2).err
    assert not Path("c.json").exists()


def test_a_file_is_not_lost(rag_eval: Command, gold: Path) -> None:
    """One that exists is refused, unless it is to be replaced; input never is."""
    out, words = Path("c.json"), ("calibrate", gold, "--target-error", "0.1", "-o")
    out.write_text("mine")
    refused = rag_eval(*words, out, code=2).err
    assert out.read_text() == "mine"
    assert "--overwrite" in refused
    assert "--resume" not in refused
    assert "is an input file" in rag_eval(*words, gold, "--overwrite", code=2).err
    rag_eval(*words, out, "--overwrite", code=0)
    assert Calibration.read(out).n == 60


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("empty.json", "is not a calibration file"),
        ("gold.jsonl", "not JSON"),
        ("c.json --formulas ragbench", "was fitted with formulas"),
        ("c.json --metrics retrieval", "does not name trace"),
        ("c.json --judge cascade:embedded,openai:m", "was fitted on the judge embedded"),
    ],
)
def test_a_calibration_of_something_else_is_refused(
    rag_eval: Command, gold: Path, monkeypatch: pytest.MonkeyPatch, words: str, why: str
) -> None:
    """Before the first row, in plain words."""
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    Path("empty.json").write_text("{}")
    rag_eval("calibrate", gold, "-o", "c.json", "--target-error", "0.1", code=0)

    run = ("run", gold, "-o", "e.jsonl", "--calibration")
    assert why in rag_eval(*run, *words.split(), code=2).err
    assert not Path("e.jsonl").exists()
