"""Scores and verdicts as judges write them, and the recorded ones."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from fuzz import disturbed, fuzz, mangled, written

from rag_eval_integrations.metrics.prompty._reply import read_score, read_verdict


def test_a_score_is_read() -> None:
    """JSON, a number alone, or the last "score … N" that is no range, in this order."""
    rows: list[tuple[str, float]] = [
        ('{"explanation": "fits", "score": 85}', 85),
        ('```json\n{"score": 85, "explanation": "fits"}\n```', 85),
        ('I looked at it.\n\n{"Score": "85"}\n\nThat is why.', 85),
        ('{"rule": 1} and {"score": 40} and then {"score": 60}', 60),
        ('{"explanation": "uses "x" here", "score": 80}', 80),
        ("85", 85),
        ("**85/100**", 85),
        ("**Compliance Score: 85**", 85),
        ("Score\n\n85", 85),
        ("The final score is 85 out of 100.", 85),
        ("Score: 40\nafter a second look\nScore: 60", 60),
        ("I give a score of 85. A perfect score would need 2 more rules.", 85),
        ("score: 0", 0),
        ("Score: 85 - 2 of the rules are broken", 85),
        ("Score: 85\n- 100% of the rules are met", 85),
        ("**Score (out of 100):** 85", 85),
        ("Score (/100): 85", 85),
        ("Overall score out of 100: 85", 85),
        ("Score (85): 2 rules are broken", 85),
    ]

    assert [(text, read_score(text).score) for text, _ in rows] == rows


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "judge_output_invalid"),
        ("I cannot say.", "judge_output_invalid"),
        ('{"score": null}', "judge_output_invalid"),
        ('{"score": "high"}', "judge_output_invalid"),
        ('{"explanation": "it was cut", "score": 8', "judge_output_invalid"),
        ('{"score": 80, "score": 20}', "judge_output_invalid"),
        ('{"score": 150}', "out_of_range"),
        ('{"score": -1}', "out_of_range"),
        ('{"score": ' + "9" * 400 + "}", "out_of_range"),
        ("-5", "out_of_range"),
        ("Score: 4/5", "out_of_range"),
        ("Score: **8**/10", "out_of_range"),
        ("Score: 8 points out of 10", "out_of_range"),
    ],
)
def test_what_is_no_score_has_a_problem_and_never_a_value(text: str, problem: str) -> None:
    """What upstream takes for 0, or passes on, is no score."""
    reading = read_score(text)

    assert (reading.score, reading.outcome, reading.problem) == (None, None, problem)
    assert reading.reason


def test_the_reason_is_what_the_judge_wrote() -> None:
    """Of a verdict, read where there is no score; of JSON, under any usual name; else all of it."""
    for text, outcome, reason in (
        ("One tag.\nOK", "ok", "One tag."),
        ("Two tags.\nERR", "err", "Two tags."),
        ('{"explanation": "a", "score": 1}', None, "a"),
        ('{"reason": ["a"], "score": 1}', None, '["a"]'),
        ("Score: 3", None, "Score: 3"),
    ):
        reading = read_score(text)
        assert (reading.outcome, reading.reason) == (outcome, reason)


def test_recorded_scores_read_the_same(data: Path) -> None:
    """The odd ones, and every metric reply of the paper's runs."""
    folder = data / "promptpex"
    lines = (folder / "verdicts" / "scores_odd.jsonl").read_text("utf-8").splitlines()
    recorded = [(row["text"], row["recorded_score"]) for row in map(json.loads, lines)]
    for path in sorted(folder.glob("paper_2025/*/test_[rg]*.json.gz")):
        for row in json.loads(gzip.decompress(path.read_bytes())):
            recorded += [(it["content"], it.get("score")) for it in row["metrics"].values()]

    for text, score in recorded:
        assert read_score(text).score == score
    assert len(recorded) == 24 + 560


def check_reply(text: str) -> None:
    """A score of 0 to 100, a verdict, or a problem; never two of them."""
    reading = read_score(text)
    assert [reading.score, reading.outcome, reading.problem].count(None) == 2
    assert reading.score is None or 0 <= reading.score <= 100
    assert isinstance(reading.reason, str)


def test_fuzz_replies() -> None:
    """Any reply has a score, a verdict or a problem."""
    replies = ("score: 85", "The score is 85 out of 100.", "It is fine. OK", "ERR", "85/100")
    content = {"explanation": "It is fine.", "score": 80}

    def reply(rng: Random) -> str:
        hostile = [written(mangled(rng, content)) for _ in range(2)]
        return disturbed(rng, rng.choice((*replies, *hostile)))

    fuzz("prompty", reply, check_reply)


# --- Verdicts


def test_a_verdict_is_the_last_word_or_the_first_line() -> None:
    """Also decorated, in other case where it stands alone; the reason is the rest."""
    rows = [
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
    ]  # fmt: skip

    found = [(text, read_verdict(text)) for text, *_ in rows]
    assert [(text, verdict.outcome, verdict.reason) for text, verdict in found] == rows


@pytest.mark.parametrize(
    "text",
    ["", "It looks ok", "The output is not OK", "It isn't quite OK.", "Answer with OK or ERR", "OK/ERR",
     "ERROR", "The token ERR comes first, and then reasons follow without an end"],
)  # fmt: skip
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

    changed = [recorded for recorded, text in rows if read_verdict(text).outcome != recorded]
    assert changed == ["unknown"] * 6


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


@pytest.mark.parametrize(
    "scale",
    [
        "0-100",
        "0\u2011100",
        "0\u202f\u2013\u202f100",
        "0\u00a0to\u00a0100",
        "0\u2212100",
        "0 to\n100",
    ],
)
def test_a_scale_in_front_of_a_score_is_not_the_score(scale: str) -> None:
    """With any dash and any space in it."""
    assert read_score(f"Score ({scale}): 72").score == 72
