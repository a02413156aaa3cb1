"""Near copies: a document's sentence with one detail changed is unsupported, and the detail named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_eval_integrations import Evaluation, RagCall, RagEvaluator, diagnose

EVALUATOR = RagEvaluator()
QUESTION = "What does the text say?"


def evaluated(document: str, response: str, question: str = QUESTION) -> Evaluation:
    call = RagCall(question=question, documents=[document], response=response)
    return EVALUATOR.evaluate_sync(call)


def details(document: str, response: str, question: str = QUESTION) -> list[str]:
    labels: Any = evaluated(document, response, question).labels
    return [detail for found in labels.contradictions.values() for detail in found]


EVERYDAY = [
    ("Madrid is the seat of the government.", "Seville is the seat of the government.",
     "Seville, Madrid"),
    ("The bus to Lugo departs at six.", "The bus to Lugo departs at seven.", "seven, six"),
    ("The company was sold in March 2019.", "The company was sold in April.", "April, March"),
    ("Ana wrote the report on the harbour.", "Amanda wrote the report on the harbour.",
     "Amanda, Ana"),
    ("The pharmacy is not open on Sunday.", "The pharmacy is open on Sunday.", "open, not open"),
    ("Bern is the capital of Switzerland. Zurich is its largest city.",
     "Zurich is the capital of Switzerland.", "Zurich, Bern"),
    ("The pass is closed in January.", "The pass is open in January.", "open, closed"),
    ("A lift pass costs 30 francs for skiers and 15 francs for walkers.",
     "A lift pass costs 35 francs for skiers.", "35, 30"),
    ("The zip fastener was patented by Gideon Sundback in 1917.",
     "The zip fastener was patented by Walter Hunt in 1917.", "Walter Hunt, Gideon Sundback"),
    ("The soup does not contain milk.", "The soup contains milk.", "contains, not contain"),
    ("Tents are allowed on the meadow.", "Tents are not allowed on the meadow.",
     "not allowed, allowed"),
    ("The drill weighs 1.8 kilograms.", "The drill weighs 1.8 pounds.", "pounds, kilograms"),
    ("Shipping is free below 5 kilograms.", "Shipping is free above 5 kilograms.", "above, below"),
    ("The long pedal starts the loom.", "The long pedal stops the loom.", "stops, starts"),
    ("The rehearsal is on Tuesday.", "The rehearsal is on Thursday.", "Thursday, Tuesday"),
    ("The film starts at 7 pm.", "The film starts at 7 am.", "am, pm"),
    ("A day pass costs 18 dollars.", "A day pass costs $20.", "20, 18"),
    ("A laptop costs US$600 in the shop.", "A laptop costs US$700 in the shop.", "700, 600"),
    ("Ines leads the night shift.", "Oskar leads the night shift.", "Oskar, Ines"),
    ("The pier was built in March 1902.", "The pier was built in May 1902.", "May, March"),
    ("June is the wettest month.", "May is the wettest month.", "May, June"),
    ("The lease ends on 4 June 2026.", "The lease ends on May 4, 2026.", "May, June"),
    ("The last tram leaves at 9.30 a.m.", "The last tram leaves at 9.30 p.m.", "pm, am"),
    ("The last tram leaves at 9.30 p.m.", "The last tram leaves at 9.30 a.m.", "am, pm"),
    ("The bank opens at 8 a.m. and closes at 5 p.m.",
     "The bank opens at 8 p.m. and closes at 5 p.m.", "pm, am"),
    ("Ring between 9 a.m. and 11 a.m.", "Ring between 9 p.m. and 11 p.m.", "pm, am"),
    ("The play begins at 7 p.m.", "The play begins at 7 in the morning.", "am, pm"),
    ("The well is behind the barn.", "The well is in front of the barn.", "front, behind"),
    ("The key is under the mat.", "The key is on the mat.", "on, under"),
    ("Every seal on the pump is damaged.", "Not a single seal on the pump is damaged.",
     "not seal, seal"),
    ("The ticket is valid on Sundays.", "The ticket is no longer valid on Sundays.",
     "not valid, valid"),
    ("The hut has a stove.", "The hut lacks a stove.", "not stove, stove"),
]  # fmt: skip
"""Document, answer, and the two details that the message names."""


@pytest.mark.parametrize(("document", "lie", "pair"), EVERYDAY)
def test_an_everyday_lie_is_unsupported_and_its_detail_named(
    document: str, lie: str, pair: str
) -> None:
    """Adherence 0, the detail in the reason, a flag, no good health; a copy has none of it."""
    own, other = pair.split(", ")
    evaluation = evaluated(document, lie)
    adherence = evaluation.scores["adherence"]

    assert adherence.value == 0
    assert f"{own}, where the document says {other}" in (adherence.reason or "")
    assert "contradiction" in evaluation.flags
    assert "healthy" not in [one.pattern for one in diagnose(evaluation.scores)]
    assert Evaluation.model_validate_json(evaluation.model_dump_json()) == evaluation

    copied = evaluated(document, document)
    assert copied.scores["adherence"].value == 1
    assert "contradiction" not in copied.flags


@pytest.mark.parametrize("half", ["development", "kept aside"])
def test_one_wrong_detail_is_found_and_the_same_in_other_words_passes(half: str) -> None:
    """Of forty pairs with one wrong detail, seven eighths; of their controls none."""
    pairs = json.loads(Path(__file__).with_name("conflict_pairs.json").read_text("utf-8"))["pairs"]
    pairs = [pair for pair in pairs if pair["half"] == half]
    found = {
        kind: [bool(details(pair["document"], pair[kind], pair["question"])) for pair in pairs]
        for kind in ("false", "true")
    }

    assert len(pairs) >= 38
    assert sum(found["false"]) >= 0.875 * len(pairs)
    assert not any(found["true"])


PASS = "A lift pass costs 30 francs for skiers and 15 francs for walkers."
ZIP = "The zip fastener was patented by Gideon Sundback in 1917."
CAPITAL = "Bern is the capital of Switzerland. Zurich is its largest city."
TRUTHS = [
    (CAPITAL, "Zurich is Switzerland's largest city.", "What is the largest city of Switzerland?"),
    (PASS, "Walkers pay 15 francs.", "What do walkers pay?"),
    ("The bus to Lugo departs at six.", "At six.", "When does the bus to Lugo depart?"),
    (ZIP, "It was patented in 1917 by Sundback.", "Who patented the zip fastener, and when?"),
    (PASS, "Skiers pay 30 francs, walkers 15 francs.", "What does a lift pass cost?"),
    ("On Mondays the museum is closed.", "No, the museum does not open on Mondays.",
     "Is the museum open on Mondays?"),
    ("The pool opens at seven.", "The pool opens at 7 a.m.", "When does the pool open?"),
    ("The class starts at 18:00.", "The class starts at 6 pm.", "When does the class start?"),
    ("The museum is not open on Monday.", "No, it is closed on Monday.", "Is the museum open?"),
    ("Replace worn tyres with new ones.", "Change worn tyres with new ones.", "What about tyres?"),
    ("The road is 5 km long.", "The road is 5 kilometres long.", "How long is the road?"),
    ("The lake is 3,987 metres wide.", "The lake is about 4,000 metres wide.", "How wide is it?"),
    ("The walk takes 90 minutes.", "The walk takes 90 min.", "How long does the walk take?"),
    ("The tram costs 2.50 euros.", "The tram costs €2.50.", "What does the tram cost?"),
    ("The trail is not open in winter.", "In winter, the trail is closed.", "Is the trail open?"),
    ("Check whether the cable is not damaged.", "Check the cable.", "What do I check?"),
    ("Julian Paul Berger founded the club.", "Julian Berger founded the club.", "Who founded it?"),
    ("The shop opens at 9 on weekdays. The shop opens at 10 on Sunday.",
     "The shop opens at 10 on Sunday.", "When does the shop open?"),
    ("Is the pool heated?\nNo.", "The pool is not heated.", "Is the pool heated?"),
    ("Does the bus leave at six?\nNo, at seven.", "At seven.", "When does the bus leave?"),
    ("Oslo's population is 1.2 million.", "Oslo's population is 1,200,000.", "What is it?"),
    ("The minimum age for drivers is twenty-five.", "The minimum age for drivers is 25.", "Age?"),
    ("The crew of the ship numbered two hundred.", "The crew of the ship numbered 200.", "Crew?"),
    ("60 minutes is the limit for a swim.", "One hour is the limit for a swim.", "What limit?"),
    ("You must not open the lid during a wash.", "You mustn't open the lid during a wash.", "Lid?"),
    ("Children need not buy a ticket for the museum.",
     "Children needn't buy a ticket for the museum.", "Do I need a ticket?"),
    ("No one was injured on the bridge.", "Nobody was injured on the bridge.", "Who was injured?"),
    ("The lamp is nowhere fixed to the wall.", "The lamp is not fixed to the wall.", "Is it?"),
    ("The p-value was .05 in the group.", "The p-value was 0.05 in the group.", "What was it?"),
    ("The kit is sold in the United States.", "The kit is sold in the USA.", "Where?"),
    ("He was born in St. Petersburg in 1901.", "He was born in Saint Petersburg in 1901.", "Who?"),
    ("The pier was built in May 1902.", "In May 1902 the pier was built.", "When?"),
    ("The pier was built in March 1902.", "The pier may have been built in March 1902.", "When?"),
    ("The lease ends on 4 May 2026.", "The lease ends on May 4th, 2026.", "When does it end?"),
    ("The last tram leaves at 9.30 p.m.", "The last tram leaves at 9:30 pm.", "When?"),
    ("The play begins at 7 p.m.", "The play begins at 7 in the evening.", "When?"),
    ("The bank opens at 8 a.m. and closes at 5 p.m.", "The bank closes at 5 p.m.", "When?"),
    ("The well is in front of the barn.", "In front of the barn is the well.", "Where?"),
    ("The fuse is behind the panel.", "The fuse is behind the front panel.", "Where?"),
    ("Not a single seal on the pump is damaged.", "None of the seals on the pump is damaged.", "?"),
    ("The ticket is no longer valid on Sundays.",
     "The ticket is not valid on Sundays any more.", "Is it valid?"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "truth", "question"), TRUTHS)
def test_the_same_in_other_words_is_not_contradicted(
    document: str, truth: str, question: str
) -> None:
    """Numerals, units, dates, names, negations in another form; another order; a part; a question.

    A question in a document states nothing.
    """
    assert details(document, truth, question) == []


def test_answers_of_one_word_and_turned_sentences_are_compared() -> None:
    """The question completes the answer; parts of a sentence may change places."""
    lies = [
        ("The bus to Lugo departs at six.", "At seven.", "When does the bus to Lugo depart?"),
        ("Bern is the capital of Switzerland.", "Basel.", "What is the capital of Switzerland?"),
        ("The pharmacy is not open on Sunday.", "Yes, the pharmacy is open on Sunday.",
         "Is the pharmacy open on Sunday?"),
        ("The pass is closed in January.", "In January, the pass is open.", "Is the pass open?"),
        ("Bern is the capital of Switzerland.", "The capital of Switzerland is Basel.",
         "What is it?"),
    ]  # fmt: skip

    assert [lie for document, lie, question in lies if not details(document, lie, question)] == []


def test_only_the_contradicted_sentence_loses_its_support() -> None:
    """The others of the response keep theirs; the probability stays below the threshold."""
    said = "The ferry to Kos leaves at nine. Tickets cost"
    evaluation = evaluated(f"{said} 12 euros.", f"{said} 19 euros.", "When does the ferry leave?")

    labels: Any = evaluation.labels
    assert [labels.support(key) for key in "ab"] == ["full", "partial"]
    assert labels.contradictions == {"b": ("19, where the document says 12",)}
    assert labels.adherence_probability() < 0.9
    assert "conflict: 19, where the document says 12; " in labels.entry("b").explanation


def test_a_long_sentence_costs_no_more_than_its_length() -> None:
    """A response and documents of half a megabyte without a full stop are read to a limit."""
    text = "Paris 12 not Monday metres " * 20_000

    assert isinstance(details(text, text + "Lyon"), list)
