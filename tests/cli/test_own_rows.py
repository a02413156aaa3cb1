"""`rag-eval score` and `agreement` on our own rows, held to a naive second implementation."""

from __future__ import annotations

import json
from pathlib import Path

import naive
import pytest
from ferries import Command, write
from naive import GPT_LABELING, RAGBENCH, SIX
from own_rows import HAND_MADE, made_rows

HAND, MADE = [made.row for made in HAND_MADE], made_rows(45)


@pytest.mark.parametrize("formulas", [GPT_LABELING, RAGBENCH])
@pytest.mark.parametrize("raw_keys", [False, True], ids=["cleaned", "raw"])
def test_the_figures_are_as_worked_out(rag_eval: Command, formulas: str, raw_keys: bool) -> None:
    """On the screen stand the mean of each score, the counts and the reasons."""
    # By one annotator, so that there is one table of means.
    rows = [{**row, "annotating_model_name": "one"} for row in HAND + MADE]
    source, more = write(Path("labelled.jsonl"), *rows), ["--raw-keys"] * raw_keys

    done = rag_eval("score", source, "-o", "e", "--formulas", formulas, *more, code=0)

    worths = [naive.trace(row, formulas, raw_keys=raw_keys) for row in rows]
    lines = {line.split()[0]: line for line in done.out.splitlines() if line.strip()}
    for name in SIX:
        mean, scored, total, reasons = naive.totals(worth[name] for worth in worths)
        assert f" {mean:.3f} " in lines[name]
        assert f" {scored}/{total} " in lines[name]
        assert all(f"{reason} {count}" in lines[name] for reason, count in reasons.items())


@pytest.mark.parametrize(
    "words",
    [("--formulas", GPT_LABELING), ("--formulas", RAGBENCH, "--raw-keys")],
    ids=["labels", "columns"],
)
def test_gold_against_itself_agrees(rag_eval: Command, words: tuple[str, ...]) -> None:
    """Recorded labels against the rows they come from, in whatever order: no error at all."""
    gold, evals = write(Path("gold.jsonl"), *MADE), Path("evals.jsonl")
    rag_eval("score", gold, "-o", evals, *words)
    lines = evals.read_text().splitlines(keepends=True)
    evals.write_text("".join([*lines[:2], *lines[:2:-1]]))  # all but the third, turned

    found = json.loads(rag_eval("agreement", evals, gold, "--json").out)

    assert (found["n"], found["unmatched"]) == (len(MADE) - 1, 1)
    for name in SIX:
        assert found["scores"][name]["rmse"] == 0
    assert found["scores"]["adherence"]["auroc"] == found["scores"]["adherence"]["kappa"] == 1
    for kind in ("supporting", "supported", "unsupported"):
        assert found["keys"][kind]["f1"] == found["keys"][kind]["kappa"] == 1
