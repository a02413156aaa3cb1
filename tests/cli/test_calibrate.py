"""`rag-eval calibrate`, and `run --calibration` with what it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ferries import Command

from rag_eval_integrations.judges import Calibration

from .test_agreement_tables import row


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    """Sixty labelled rows with different questions; a third of the responses is not adherent."""
    path = tmp_path / "gold.jsonl"
    rows = [row(number, "harbour") for number in range(60)]
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


def test_a_judge_is_calibrated_and_applied(rag_eval: Command, gold: Path, tmp_path: Path) -> None:
    """From gold rows or from evaluations the same; every score of a run is stamped."""
    out, other, evals = (tmp_path / name for name in ("c.json", "d.json", "e.jsonl"))

    done = rag_eval("calibrate", gold, "-o", out, "--target-error", "0.1", "--name", "mine")
    assert rag_eval("run", gold, "-o", evals).code == 0
    again = rag_eval("calibrate", evals, gold, "-o", other, "--target-error", 0.1, "--name", "mine")
    used = tmp_path / "used.jsonl"
    ran = rag_eval("run", gold, "-o", used, "--calibration", out)

    assert (done.code, again.code, ran.code) == (0, 0, 0), done.err + again.err + ran.err
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
    compared = json.loads(rag_eval("agreement", used, gold, "--json").out)
    plain = json.loads(rag_eval("agreement", evals, gold, "--json").out)
    assert compared["scores"]["adherence"]["rmse"] == plain["scores"]["adherence"]["rmse"]
    refused = rag_eval("calibrate", used, gold, "-o", tmp_path / "x.json")
    assert (refused.code, "already" in refused.err) == (2, True)


def test_a_run_is_not_resumed_with_another_calibration(
    rag_eval: Command, gold: Path, tmp_path: Path
) -> None:
    """Nor without: the rows would be made in two ways."""
    out, evals = tmp_path / "c.json", tmp_path / "e.jsonl"
    assert rag_eval("calibrate", gold, "-o", out, "--target-error", "0.1").code == 0
    assert rag_eval("run", gold, "-o", evals).code == 0

    done = rag_eval("run", gold, "-o", evals, "--resume", "--calibration", out)

    assert done.code == 2
    assert "another evaluator" in done.err


def test_too_few_rows_are_refused_before_the_judge_is_asked(
    rag_eval: Command, gold: Path, tmp_path: Path
) -> None:
    """With the number that is needed; nothing is written."""
    few = tmp_path / "few.jsonl"
    few.write_text("".join(gold.read_text().splitlines(keepends=True)[:20]))
    out = tmp_path / "c.json"

    done = rag_eval("calibrate", few, "-o", out)

    assert done.code == 2
    assert "20 questions, and" in done.err
    assert "are needed for a standard error of 0.05" in done.err
    assert "labelled" not in done.err
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("GOLD", "GOLD", "GOLD"), "GOLD.jsonl"),
        (("GOLD", "GOLD", "--judge", "embedded"), "holds its evaluations already"),
        (("GOLD", "--judge", "nothing"), "no such judge"),
        (("GOLD", "--target-error", "2"), "`--target-error`"),
        (("GOLD", "--rpm", "5"), "is for openai:MODEL"),
        (("missing.jsonl",), "missing.jsonl"),
        (("-",), "is read more than once"),
    ],
)
def test_mistakes_are_named(
    rag_eval: Command, gold: Path, tmp_path: Path, words: tuple[str, ...], why: str
) -> None:
    """With exit code 2 and no file."""
    given = [gold if word == "GOLD" else word for word in words]

    done = rag_eval("calibrate", *given, "-o", tmp_path / "c.json")

    assert done.code == 2
    assert why in done.err
    assert not (tmp_path / "c.json").exists()


def test_a_file_is_not_lost(rag_eval: Command, gold: Path, tmp_path: Path) -> None:
    """One that exists is refused, unless it is to be replaced; input never is."""
    out = tmp_path / "c.json"
    out.write_text("mine")

    done = rag_eval("calibrate", gold, "-o", out, "--target-error", "0.1")
    onto = rag_eval("calibrate", gold, "-o", gold, "--overwrite", "--target-error", "0.1")

    assert (done.code, onto.code) == (2, 2)
    assert out.read_text() == "mine"
    assert "--overwrite" in done.err
    assert "--resume" not in done.err
    assert "is an input file" in onto.err
    args = ("calibrate", gold, "-o", out, "--overwrite", "--target-error", "0.1")
    assert rag_eval(*args).code == 0
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
    rag_eval: Command, gold: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    content: str | None, words: tuple[str, ...], why: str,
) -> None:  # fmt: skip
    """Before the first row, in plain words."""
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    path = tmp_path / "c.json"
    if content is None:
        assert rag_eval("calibrate", gold, "-o", path, "--target-error", "0.1").code == 0
    else:
        path.write_text(content)

    done = rag_eval("run", gold, "-o", tmp_path / "e.jsonl", "--calibration", path, *words)

    assert done.code == 2
    assert why in done.err
    assert not (tmp_path / "e.jsonl").exists()
