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


def test_too_few_rows_are_refused_before_the_judge_is_asked(rag_eval: Command, gold: Path) -> None:
    """With the number that is needed; nothing is written."""
    few = Path("few.jsonl")
    few.write_text("".join(gold.read_text().splitlines(keepends=True)[:20]))
    said = rag_eval("calibrate", few, "-o", "c.json", code=2).err
    assert "20 questions, and" in said
    assert "are needed for a standard error of 0.05" in said
    assert "labelled" not in said
    assert not Path("c.json").exists()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("gold.jsonl gold.jsonl gold.jsonl", "GOLD.jsonl"),
        ("gold.jsonl gold.jsonl --judge embedded", "holds its evaluations already"),
        ("gold.jsonl --judge nothing", "no such judge"),
        ("gold.jsonl --target-error 2", "`--target-error`"),
        ("gold.jsonl --rpm 5", "is for openai:MODEL"),
        ("missing.jsonl", "missing.jsonl"),
        ("-", "is read more than once"),
    ],
)
def test_mistakes_are_named(rag_eval: Command, gold: Path, words: str, why: str) -> None:
    """With exit code 2 and no file."""
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
    ("content", "words", "why"),
    [
        ("{}", (), "is not a calibration file"),
        ("no JSON", (), "not JSON"),
        (None, ("--formulas", "ragbench"), "was fitted with formulas"),
        (None, ("--metrics", "retrieval"), "does not name trace"),
        (None, ("--judge", "cascade:embedded,openai:m"), "was fitted on the judge embedded"),
    ],
)
def test_a_calibration_of_something_else_is_refused(
    rag_eval: Command, gold: Path, monkeypatch: pytest.MonkeyPatch,
    content: str | None, words: tuple[str, ...], why: str,
) -> None:  # fmt: skip
    """Before the first row, in plain words."""
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    path = Path("c.json")
    if content is None:
        assert rag_eval("calibrate", gold, "-o", path, "--target-error", "0.1").code == 0
    else:
        path.write_text(content)

    done = rag_eval("run", gold, "-o", "e.jsonl", "--calibration", path, *words, code=2)

    assert why in done.err
    assert not Path("e.jsonl").exists()
