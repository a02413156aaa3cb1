"""Verdicts as judges write them, and the recorded ones."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_eval_integrations.metrics.prompty import read_verdict


@pytest.mark.parametrize(
    ("text", "outcome", "reason"),
    [
        ("Names one tag.\nOK", "ok", "Names one tag."),
        ("Adds a sentence.\n\nERR  \n", "err", "Adds a sentence."),
        ("OK", "ok", ""),
        ("It adds words. ERR", "err", "It adds words."),
        ("Therefore I return ERR.", "err", "Therefore I return"),
        ("ERR\n\nThere are two tags, the prompt asks for one.", "err",
         "There are two tags, the prompt asks for one."),
        ("`OK`", "ok", ""),
        ("OK\nOn second thought it has two.\nERR", "err", "OK\nOn second thought it has two."),
        ("The output is not bad.\nVerdict: OK", "ok", "The output is not bad."),
        ("Two tags. Verdict: **ERR**", "err", "Two tags."),
    ],
)  # fmt: skip
def test_a_verdict_is_the_last_word_or_the_first_line(text: str, outcome: str, reason: str) -> None:
    """Also decorated, in other case where it stands alone; the reason is the rest."""
    verdict = read_verdict(text)

    assert (verdict.outcome, verdict.reason) == (outcome, reason)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "It looks ok",  # in lower case a word like any other
        "The output is not OK",
        "It isn't quite OK.",
        "Answer with OK or ERR",
        "OK/ERR",
        "ERROR",
        "The token ERR comes first, and then reasons follow without an end",
    ],
)
def test_anything_else_is_unknown_with_the_reason(text: str) -> None:
    """A reply that only holds a verdict word, denies it or offers both is no verdict."""
    verdict = read_verdict(text)

    assert verdict.outcome == "unknown"
    assert verdict.reason


def test_recorded_verdicts_keep_their_labels(data: Path) -> None:
    """PromptPex's own labels of 1,024 replies: none changes, 6 of its unknown ones are told."""
    folder = data / "promptpex" / "verdicts"
    lines = [
        line
        for name in ("odd", "regular_sample")
        for line in (folder / f"{name}.jsonl").read_text("utf-8").splitlines()
    ]
    rows = [(row["recorded"], row["text"]) for row in map(json.loads, lines)]
    changed = [row for row in rows if read_verdict(row[1]).outcome != row[0]]

    assert [recorded for recorded, _ in changed] == ["unknown"] * 6


def test_recorded_results_keep_their_labels(data: Path) -> None:
    """Every compliance, validity, agreement and groundedness verdict of v7 and the paper's runs."""
    labelled = list(_labelled(data / "promptpex"))

    for text, label in labelled:
        assert read_verdict(text).outcome == label, text
    assert len(labelled) == 4053


def _labelled(folder: Path) -> Iterator[tuple[str, str]]:
    csv.field_size_limit(10_000_000)
    rows: list[dict[str, str]] = []
    for path in sorted(folder.glob("v7/*/*.csv*")):
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
        rows += csv.DictReader(io.StringIO(text, newline=""))
    for path in sorted(folder.glob("paper_2025/*/test_*.json.gz")):
        rows += json.loads(gzip.decompress(path.read_bytes()))
    for row in rows:
        for label in ("compliance", "validity", "coverage", "grounded"):
            name = "coverageEvalText" if label == "coverage" else f"{label}Text"
            if row.get(label) and name in row:
                yield row[name], row[label]
