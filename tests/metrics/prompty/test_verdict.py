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
    ("text", "outcome"),
    [
        ("Names one tag.\nOK", "ok"),
        ("Adds a sentence.\n\nERR  \n", "err"),
        ("OK", "ok"),
        ("It adds words. ERR", "err"),
        ("Therefore I return ERR.", "err"),
        ("ERR\n\nThere are two tags, the prompt asks for one.", "err"),
        ("`OK`", "ok"),
        ("OK\nOn second thought it has two tags.\nERR", "err"),
        ("The output is not bad.\nVerdict: OK", "ok"),
    ],
)
def test_a_verdict_is_the_last_word_or_the_first_line(text: str, outcome: str) -> None:
    """Also decorated, in other case where it stands alone, and when a reason follows."""
    assert read_verdict(text).outcome == outcome


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


def test_the_reason_is_what_the_judge_said_before_the_verdict() -> None:
    """Without the verdict itself, wherever it stands."""
    assert read_verdict("One tag only.\nOK").reason == "One tag only."
    assert read_verdict("Two tags. Verdict: **ERR**").reason == "Two tags."
    assert read_verdict("ERR\nTwo tags.").reason == "Two tags."


def test_recorded_verdicts_keep_their_labels(data: Path) -> None:
    """PromptPex's own labels of 1,024 replies: none changes, 6 of its unknown ones are told."""
    changed, told = [], 0
    for name in ("odd", "regular_sample"):
        with (data / "promptpex" / "verdicts" / f"{name}.jsonl").open(encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                outcome = read_verdict(row["text"]).outcome
                if outcome != row["recorded"]:
                    told += row["recorded"] == "unknown"
                    if row["recorded"] != "unknown":
                        changed.append(row["text"])

    assert changed == []
    assert told == 6


def test_recorded_results_keep_their_labels(data: Path) -> None:
    """Every compliance, validity, agreement and groundedness verdict of v7 and the paper's runs."""
    read = 0
    for text, label in _labelled(data / "promptpex"):
        assert read_verdict(text).outcome == label, text
        read += 1

    assert read == 4053


def _labelled(folder: Path) -> Iterator[tuple[str, str]]:
    fields = {
        "complianceText": "compliance",
        "validityText": "validity",
        "coverageEvalText": "coverage",
        "groundedText": "grounded",
    }
    csv.field_size_limit(10_000_000)
    for path in sorted(folder.glob("v7/*/*.csv*")):
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        yield from _of(rows, fields)
    for path in sorted(folder.glob("paper_2025/*/test_*.json.gz")):
        yield from _of(json.loads(gzip.decompress(path.read_bytes())), fields)


def _of(rows: list[dict[str, str]], fields: dict[str, str]) -> Iterator[tuple[str, str]]:
    for row in rows:
        for text, label in fields.items():
            if row.get(label) and text in row:
                yield row[text], row[label]
