"""Scores as judges write them, and the recorded ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random

import pytest
from fuzz import disturbed, fuzz, mangled, written
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_eval_integrations.metrics.prompty import read_score


@pytest.mark.parametrize(
    ("text", "score"),
    [
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
    ],
)
def test_a_score_is_read(text: str, score: float) -> None:
    """JSON, a number alone, or the last "score … N" that is no range, in this order."""
    reading = read_score(text)

    assert (reading.score, reading.problem) == (score, None)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "judge_output_invalid"),
        ("I cannot say.", "judge_output_invalid"),
        ('{"score": null}', "judge_output_invalid"),
        ('{"score": "high"}', "judge_output_invalid"),
        ('{"explanation": "it was cut", "score": 8', "judge_output_invalid"),
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


@settings(deadline=None)  # on a busy machine the first example takes longer
@given(st.integers(), st.text(alphabet="abc {}\n", max_size=40))
def test_the_json_decides_whatever_stands_around_it(score: int, around: str) -> None:
    """Text before and after an object with a score does not change what it says."""
    reading = read_score(f"{around}\n{json.dumps({'score': score})}\n{around.replace('{', '')}")

    assert reading.score == (score if 0 <= score <= 100 else None)


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
