"""What an agreement says in words, and the calls in which judge and people differ."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from by_hand import labels_of

from rag_eval_integrations import Evaluation, Score
from rag_eval_integrations.agreement import Agreement, Pair, agree
from rag_eval_integrations.records import By, JudgeInfo, Sentence, Sentences
from rag_eval_integrations.report import _agreement_figures as figures
from rag_eval_integrations.report._agreement_page import agreement_pieces

BY = By(judge="j", formulas="gpt-labeling")


def answer(number: int, verdicts: str, relevant: str = "", *, model: str | None = None,
           chances: Sequence[float] | None = None) -> Evaluation:  # fmt: skip
    """A call whose sentences have these verdicts, `y` or `n`; documents of two sentences.

    The answer of a higher number is longer.
    """
    keys = "abcdefgh"[: len(verdicts)]
    support = {key: (["0a"], said == "y") for key, said in zip(keys, verdicts, strict=True)}
    estimates = None if chances is None else dict(zip(keys, chances, strict=True))
    return Evaluation(
        id=f"call {number}", row_key=f"key {number:03}", question=f"Question {number}?",
        response="x" * (number + 1), judge=JudgeInfo(name="j", model=model),
        scores={"adherence": Score(name="adherence", status="scored", by=BY, method="labels",
                                   value=float("n" not in verdicts))},
        labels=labels_of(relevant.split(), [], support, supported_probabilities=estimates),
        sentences=Sentences(
            documents=(Sentence("0a", "One."), Sentence("0b", "Another one.")),
            response=tuple(Sentence(key, f"Said {key}.") for key in keys),
        ),
    )  # fmt: skip


def said(found: Agreement) -> list[str]:
    return figures.first_sentences(found, figures.gold_of(found))


def test_the_sentences_are_as_counted_by_hand() -> None:
    """Six answers: people call 1, 2, 4 unsupported, the judge 2, 3; both agree on 2 alone.

    Sentences: people call five unsupported (1b, 2a, 2b, 4a, 4b), the judge 2a and 3b. Of the
    documents, people call four relevant, the judge three, two of them rightly. The longest two
    answers are 4 and 5.
    """
    rows = [("yy", "yy", "0a", "0a"), ("yy", "yn", "", "0a"), ("ny", "nn", "0a", "0a"),
            ("yn", "yy", "0b", ""), ("yy", "nn", "", "0b"), ("y", "y", "", "")]  # fmt: skip
    pairs = [
        Pair(answer(number, judge, own), answer(number, gold, theirs))
        for number, (judge, gold, own, theirs) in enumerate(rows)
    ]

    assert said(agree(pairs, resamples=0)) == [
        "Of 3 answers that people call unsupported, the judge flags 1; of its 2 alarms, 1 is right.",
        "Of all 6 answers, people call 3 unsupported; of the 2 longest, 1.",
        "Of 5 answer sentences that people call unsupported, the judge flags 1; of its 2 alarms, "
        "1 is right.",
        "Of 4 document sentences that people call relevant, the judge finds 2; of its 3 finds, "
        "2 are right.",
        "The judge and people differ on the answer in 4 calls of 6.",
    ]


def test_both_sides_have_their_names() -> None:
    """Two people; and labels of a model are not said to be people's."""
    pairs = [Pair(answer(0, "n"), answer(0, "n", model="m"))]
    found = agree(pairs, resamples=0)

    assert figures.first_sentences(found, "Anna", "Ben")[0] == (
        "Of 1 answer that Anna calls unsupported, Ben flags 1; of Ben's 1 alarm, 1 is right."
    )
    assert figures.first_sentences(found, "Anna", "Ben")[-1].startswith("Ben and Anna differ on")
    assert "that gold calls unsupported, the judge flags" in said(found)[0]


def test_the_sentences_count_as_a_loop_over_rows_does() -> None:
    """A hundred answers whose verdicts are drawn: every number is counted once more, row by row."""
    chance = random.Random(7)
    sides = [
        ["".join(chance.choice("yyn") for _ in range(3)) for _ in range(100)] for _ in range(2)
    ]
    pairs = [
        Pair(answer(number, judge), answer(number, gold))
        for number, (judge, gold) in enumerate(zip(*sides, strict=True))
    ]

    words = said(agree(pairs, resamples=0))

    flagged = [number for number in range(100) if "n" in sides[0][number]]
    bad = [number for number in range(100) if "n" in sides[1][number]]
    both = [number for number in bad if number in flagged]
    longest = [number for number in bad if number >= 100 - len(flagged)]
    differing = [number for number in range(100) if sides[0][number] != sides[1][number]]
    numbers = [[int(number) for number in re.findall(r"\d+", line)] for line in words]
    assert numbers[0] == [len(bad), len(both), len(flagged), len(both)]
    assert numbers[1] == [100, len(bad), len(flagged), len(longest)]
    told, found = ("".join(side) for side in sides)
    right = sum(a == b == "n" for a, b in zip(told, found, strict=True))
    assert numbers[2] == [found.count("n"), right, told.count("n"), right]
    assert numbers[-1] == [len(differing), 100]


def test_the_gravest_differences_are_kept_and_all_are_counted() -> None:
    """Of seventy the fifty of which the judge was surest; without a probability it was sure.

    Where the sentences are not the same, the verdicts on the whole answer are compared.
    """
    pairs = [
        Pair(answer(number, "yy", chances=[0.99, 0.3 + number / 100]), answer(number, "yn"))
        for number in range(68)
    ]
    alarm = Pair(answer(68, "ny"), answer(68, "yy"))
    other = Pair(answer(69, "yn", chances=[0.9, 0.2]), answer(69, "y"))
    same = Pair(answer(70, "yn"), answer(70, "yn"))

    found = agree([*pairs, same, alarm, other], resamples=0)

    assert found.differing == found.to_json()["differing"] == 70
    names = [difference.row.id for difference in found.gravest]
    assert len(names) == 50
    assert names[:3] == ["call 68", "call 69", "call 67"]
    assert "call 70" not in names
    first, second, third = found.gravest[:3]
    assert (first.supported, first.adherent) == ({0: True}, True)
    assert (second.supported, second.adherent) == ({}, True)
    assert (third.supported, third.adherent) == ({1: False}, False)
    assert found.to_json()["gravest"] == [difference.row.row_key for difference in found.gravest]


def test_the_page_shows_both_verdicts_of_the_calls_that_it_is_given() -> None:
    """In the line of a call and beside the judge's words; others are counted, not shown."""
    pairs = [Pair(answer(number, "yyn"), answer(number, "yny")) for number in range(60)]
    found = agree(pairs, resamples=0)
    calls = {difference.row.number: pairs[0].predicted for difference in found.gravest}

    text = "".join(agreement_pieces(found, title="t", curves={}, calls=calls))
    less = "".join(agreement_pieces(found, title="t", curves={}))

    assert text.count('<details class="worst"') == 50
    assert "The 50 gravest of 60 calls" in text
    assert text.count("people: <b>✗ not supported</b>; the judge:") == 50
    assert text.count("people: <b>✓ supported</b>; the judge:") == 50
    assert text.count("people: ✗ not supported. ") == 50
    assert 'class="worst"' not in less
    assert "differ on the answer in 60 calls of 60" in less
