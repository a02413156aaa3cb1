"""What judges write becomes a score with its place, or says why not: shapes seen."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from fuzz import disturbed, fuzz, mangled, written

from rag_eval_integrations.metrics.geval._reply import paper_score, read_reply


def test_shapes_with_a_score() -> None:
    """Bare, labelled, in a list, decorated, in prose, as JSON of all kinds."""
    shapes: list[tuple[str, float, str | None]] = [
        ('{"reason": "Good.", "score": 4}', 4, "4"),
        ('{"score": 4, "reason": "5 of 5 facts, 3 late"}', 4, "4"),
        ('{"reason": "He said \\"score\\": 1.", "score": 4}', 4, "4"),
        ('Sure! {"reason": "Good.", "score": 4} Anything else?', 4, "4"),
        ('{"reason": "Good.", "score": "4"}', 4, "4"),
        ('{"reason": "Good.", "score": 4.5}', 4.5, None),
        ('{"reason": "Good.", "score": ４}', 4, "４"),
        ('{"reason": "Good.", "Score": 4,}', 4, "4"),
        ('{"reason": "Good.", "score": 4', 4, "4"),
        ("{'reason': 'It\\'s good', 'score': 4}", 4, "4"),
        ('{"evaluation": {"reason": "Good.", "score": 4}}', 4, "4"),
        ('{"reason": "x", "coherence": 4}', 4, "4"),
        ('{"reason": "The "best" of 3", "score": 4}', 4, "4"),
        ('Format: {"reason": "…", "score": 1}. Mine: {"reason": "Good.", "score": 4}', 4, "4"),
        ('<think>{"score": 1}</think>{"reason": "Good.", "score": 4}', 4, "4"),
        ('{\n "reason": "Free of\n   charge, "score": 9 aside.",\n "score": 4\n}', 4, "4"),
        ("4", 4, "4"),
        ("4/5", 4, "4"),
        ("4 out of 5", 4, "4"),
        ("**4**", 4, "4"),
        (":\n2", 2, "2"),
        ("1.3", 1.3, None),
        ("- Coherence: 2", 2, "2"),
        ("Coherence Score: 3/5", 3, "3"),
        ("1. Engagingness: 2", 2, "2"),
        ("Consistence: 3", 3, "3"),
        ("Reasons: two of 3 facts.\nCoherence: 4", 4, "4"),
        ("4 - The summary is fine, 2 slips.", 4, "4"),
        ("1SemExtrche", 1, "1"),
        ("On a scale of 1-5, I would rate it 4.", 4, "4"),
        ("I would rate it 2. A 5 would be complete. Hence I rate it 2 out of 5.", 2, "2"),
        ('{"score": 4, "details": {"grammar": {"score": 2}}}', 4, "4"),
        ('{"Coherence": {"reason": "x", "score": 4}}', 4, "4"),
        ('{"reason": "x", "coherence_score": 4}', 4, "4"),
    ]

    found = [(text, read_reply(text, "coherence", (1, 5))) for text, *_ in shapes]
    spans = [None if it.span is None else text[slice(*it.span)] for text, it in found]
    assert [(text, it.score, at) for (text, it), at in zip(found, spans, strict=True)] == shapes


@pytest.mark.parametrize("text", ["0", "Groundedness: 0", '{"reason": "None.", "score": 0}', "0/1"])
def test_a_legitimate_zero(text: str) -> None:
    """0 on a scale from 0 is a score, not a failure."""
    assert read_reply(text, "groundedness", (0, 1)).score == 0


OUT_OF_RANGE = (
    "7", "0", "22", "323Assignmentsphen", "-4", "8/10", "80%", "4/10", "Coherence: 9", "−1", "-0.5", "5.5",
    '{"reason": "x", "score": 7}', '{"reason": "x", "score": 5.01}', "99999999999999999999",
)  # fmt: skip
NO_SCORE = (
    "", "  ", "- Coherence: ", "Please provide the news article.", "There were 3 murders.",
    "5th paragraph is odd", '{"reason": "It is goo', '{"reason": "x", "score": null}',
    '{"reason": "x", "score": "high"}', '{"reason": "x", "score": true}',
    '{"reason": "x", "score": [4, 5]}', '{"reason": "a "score": 1" b", "score": 4}',
    "<think>4", "1-5", "{", "{}", '{"reason": "x"}', '{"score": 2, "reason": "x", "Score": 4}',
    "I would rate this response a 3. To deserve a 5 it should cite its sources.",
)  # fmt: skip
"""Cut off, empty, prose, digits in copied text, a range, several scores: no number is given."""


@pytest.mark.parametrize(
    ("text", "problem"),
    [(text, "out_of_range") for text in OUT_OF_RANGE]
    + [(text, "judge_output_invalid") for text in NO_SCORE],
)
def test_what_is_no_score_of_the_scale_is_said_and_never_bent(text: str, problem: str) -> None:
    """Neither clamped nor normalised nor made up."""
    reading = read_reply(text, "coherence", (1, 5))

    assert (reading.score, reading.problem) == (None, problem), reading
    assert reading.reason or problem == "out_of_range"


@pytest.mark.parametrize(
    "piece", ["{", '"', " ", "*", "1-", "score ", "a: ", "a (", "a" * 60 + "\n"]
)
def test_a_runaway_reply_takes_no_quadratic_time(piece: str) -> None:
    """100,000 characters of what the patterns look for; quadratic, this would not end."""
    reading = read_reply((piece * (100_000 // len(piece)))[:-1] + "x", "x", (1, 5))

    assert reading.score is None


@pytest.mark.parametrize(
    ("text", "g_eval", "chiang_lee"),
    [
        ("4", 4, 4),
        (" 4.5", 4.5, 4),
        ("- Coherence: 2", 0, 2),
        ("1. Engagingness: 2", 1, 1),
        ("22", 22, 2),
        ("Rating: 3", 0, 3),
        ("On 1-3: 2. Rating: 3", 0, 3),
        ("1.2.3", 0, 1),
        ("...", 0, 0),
        ("Please provide", 0, 0),
    ],
)
def test_the_parsers_of_published_tables(text: str, g_eval: float, chiang_lee: float) -> None:
    """Their own readings, mistakes included: a reply that they cannot read is 0."""
    assert paper_score(text, "g-eval") == g_eval
    assert paper_score(text, "chiang-lee") == chiang_lee


def test_recorded_replies(data: Path) -> None:
    """1,200 replies at temperature 2: none without a leading number is read as a score by chance.

    Replies without a leading number: 135 of 200 (gpt-4o), 103, 62, 46, 2 and 0, as counted by
    others before us.
    """
    without, read = Counter[str](), Counter[str]()
    with gzip.open(data / "geval" / "raw_replies.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            for text in row["all_responses"]:
                model = row["model"]
                without[model] += re.match(" ?[0-9]", text) is None
                read[model] += read_reply(text, "consistency", (1, 5)).score is not None

    assert sorted(without.values(), reverse=True) == [135, 103, 62, 46, 2, 0]
    assert read == {
        "gpt-4-0613": 200, "gpt-4.1-2025-04-14": 198, "gpt-4.1-mini-2025-04-14": 163,
        "gpt-4.1-nano-2025-04-14": 110, "gpt-4o-2024-08-06": 68, "gpt-4o-mini-2024-07-18": 171,
    }  # fmt: skip


def check_reply(text: str) -> None:
    """A score on the scale with its place, or a problem."""
    for scale in ((1, 5), (0, 10)):
        reading = read_reply(text, "Coherence", scale)
        assert (reading.score is None) == (reading.problem is not None)
        if reading.score is not None:
            assert scale[0] <= reading.score <= scale[1]
        if reading.span is not None:
            assert int(text[slice(*reading.span)]) == reading.score


def test_fuzz_replies() -> None:
    """Any reply has a score or a problem."""
    replies = ("Coherence: 4", "I rate it 4/5.", "It is fine.\n3", "**4**", "Score: 4 out of 5")
    content = {"reason": "It is fine.", "score": 4}

    def reply(rng: Random) -> str:
        hostile = [written(mangled(rng, content)) for _ in range(2)]
        return disturbed(rng, rng.choice((*replies, *hostile)))

    fuzz("geval", reply, check_reply)


def test_percent_are_points_of_a_scale_to_a_hundred() -> None:
    """And of no other scale."""
    assert read_reply("Reasons: fine.\nTone: 85%", "tone", (0, 100)).score == 85
    assert read_reply("Reasons: fine.\nTone: 85%", "tone", (1, 5)).problem == "out_of_range"


def test_a_list_below_a_score_is_no_range_and_a_scale_with_any_dash_is_one() -> None:
    """Reasons often follow as a list, and models write hyphens that break no line."""
    for reply in (
        "Score: 4\n- 2 gaps",
        "I rate it 4\n\u2013 2 gaps",
        "1\u20115 scale: 4",
        "1 to\n5: 4",
    ):
        assert read_reply(reply, "tone", (1, 5)).score == 4, reply
