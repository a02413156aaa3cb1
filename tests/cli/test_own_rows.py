"""`rag-eval score` and `agreement` on our own rows, held to a naive second implementation."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import naive
import pytest
from ferries import Command, read
from naive import GPT_LABELING, RAGBENCH, SIX, Worth, estimates
from naive_agreement import Both, agreement
from own_rows import HAND_MADE, made_rows, second_opinion

from rag_eval_integrations import Evaluation

HAND = [made.row for made in HAND_MADE]
MADE = made_rows(45)
BOTH = pytest.mark.parametrize("formulas", [GPT_LABELING, RAGBENCH])


def write(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(lines) if path.suffix == ".gz" else lines)
    return path


def assert_same(evaluation: Evaluation, worths: Mapping[str, Worth]) -> None:
    for name, worth in worths.items():
        score = evaluation.scores[name]
        if isinstance(worth, str):
            assert (name, score.value, score.unscored) == (name, None, worth)
        else:
            assert (name, score.value) == (name, pytest.approx(float(worth), abs=1e-12))


@BOTH
@pytest.mark.parametrize("raw_keys", [False, True], ids=["cleaned", "raw"])
def test_a_file_of_recorded_labels_is_scored_as_worked_out(
    rag_eval: Command, formulas: str, raw_keys: bool
) -> None:
    """Rows and scores of the file, and on the screen the mean, the counts and the reasons."""
    # By one annotator, so that there is one table of means.
    rows = [{**row, "annotating_model_name": "one"} for row in HAND + MADE]
    source, out = write(Path("labelled.jsonl.gz"), rows), Path("evals.jsonl")
    words = ("--raw-keys",) if raw_keys else ()

    done = rag_eval("score", source, "-o", out, "--formulas", formulas, *words, code=0)

    worths = [naive.trace(row, formulas, raw_keys=raw_keys) for row in rows]
    for evaluation, expected in zip(read(out), worths, strict=True):
        assert_same(evaluation, expected)
    lines = {line.split()[0]: line for line in done.out.splitlines() if line.strip()}
    for name in SIX:
        mean, scored, total, reasons = naive.totals(worth[name] for worth in worths)
        assert f" {mean:.3f} " in lines[name]
        assert f" {scored}/{total} " in lines[name]
        assert all(f"{reason} {count}" in lines[name] for reason, count in reasons.items())


def test_agreement_of_two_files_is_as_worked_out(rag_eval: Command) -> None:
    """Every figure of the JSON, in whatever order the rows come, some of them in one file only."""
    source = random.Random(5)
    said = [second_opinion(source, row, probabilities=True) for row in MADE]
    words = ("--formulas", RAGBENCH)
    rag_eval("score", write(Path("said.jsonl"), said), "-o", "evals.jsonl", *words)
    gold = write(Path("gold.jsonl"), MADE)
    # Under these formulas gold is worth what its lists are as they were recorded.
    rag_eval("score", gold, "-o", "gold_evals.jsonl", *words, "--raw-keys")
    ours, theirs = read(Path("evals.jsonl")), read(Path("gold_evals.jsonl"))
    both = [
        Both(
            predicted,
            row,
            {name: score.value for name, score in mine.scores.items()},
            {name: score.value for name, score in other.scores.items()},
            {name: float(worth) for name, worth in estimates(predicted, RAGBENCH).items()},
        )
        for predicted, row, mine, other in zip(said, MADE, ours, theirs, strict=True)
    ]
    evals = Path("shown.jsonl")
    lines = Path("evals.jsonl").read_text().splitlines(keepends=True)
    evals.write_text("".join([lines[0], lines[1], *lines[:2:-1]]))  # all but the third, turned
    write(gold, MADE[2:])

    done = rag_eval("agreement", evals, gold, "--baselines", "--human", "rating", "--json", code=0)

    found = json.loads(done.out)
    expected = agreement(both[3:], of_all_sentences=True, human="rating")
    assert (found["unmatched_predicted"], found["unmatched_gold"]) == (2, 1)
    assert_same_figures({name: found[name] for name in expected}, expected)


def assert_same_figures(
    found: Mapping[str, Any], expected: Mapping[str, Any], at: str = ""
) -> None:
    """Every figure and count is the naive one and there is no other; intervals hold theirs."""
    assert found.keys() - {"ci95"} == expected.keys(), at
    for name, value in expected.items():
        if isinstance(value, Mapping):
            assert_same_figures(found[name], value, f"{at}/{name}")
        else:
            same = value if value is None else pytest.approx(value, abs=1e-9)
            assert (at, name, found[name]) == (at, name, same)
    for name, (low, high) in found.get("ci95", {}).items():
        assert low - 1e-9 <= expected[name] <= high + 1e-9


@pytest.mark.parametrize(
    "words",
    [("--formulas", GPT_LABELING), ("--formulas", RAGBENCH, "--raw-keys")],
    ids=["labels", "columns"],
)
def test_gold_against_itself_agrees(rag_eval: Command, words: tuple[str, ...]) -> None:
    """Recorded labels against the rows they come from: no error at all."""
    gold, evals = write(Path("gold.jsonl"), MADE), Path("evals.jsonl")
    rag_eval("score", gold, "-o", evals, *words)

    found = json.loads(rag_eval("agreement", evals, gold, "--json").out)

    assert (found["n"], found["unmatched"]) == (len(MADE), 0)
    for name in SIX:
        assert found["scores"][name]["rmse"] == 0
    assert found["scores"]["adherence"]["auroc"] == found["scores"]["adherence"]["kappa"] == 1
    for kind in ("supporting", "supported", "unsupported"):
        assert found["keys"][kind]["f1"] == found["keys"][kind]["kappa"] == 1
