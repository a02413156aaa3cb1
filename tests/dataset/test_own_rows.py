"""Recorded labels of our own rows, scored by the library and by a naive second implementation."""

from __future__ import annotations

import random
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import naive
import pytest
from by_hand import ScriptedJudge
from hypothesis import given, settings
from naive import COLUMNS, GPT_LABELING, RAGBENCH, SIX, Worth
from own_rows import HAND_MADE, HandMade, any_rows, made_rows, second_opinion

from rag_eval_integrations import Evaluation, Labels, RagEvaluator, Trace
from rag_eval_integrations.dataset import labelled_from, score_labelled
from rag_eval_integrations.dataset.rows import call_from, score_gold
from rag_eval_integrations.sentences import Punkt

BOTH = pytest.mark.parametrize("formulas", [GPT_LABELING, RAGBENCH])
MADE = made_rows(250)
SOME = [made.row for made in HAND_MADE] + MADE[:60]


def scored(
    row: dict[str, Any], formulas: str, *, raw_keys: bool = False, baseline: int | None = None
) -> Evaluation:
    """Score a row, as its published columns say, and as the formulas alone do for gold rows."""
    labelled, trace = labelled_from(row, Punkt()), Trace(formulas, baseline)  # type: ignore[arg-type]
    evaluation = score_labelled(labelled, [trace], raw_keys=raw_keys)
    if raw_keys and formulas == RAGBENCH and "relevance_score" in row:
        for name, column in COLUMNS.items():
            assert labelled.published[column] == row[column]
            assert evaluation.scores[name].value == pytest.approx(float(row[column]), abs=1e-12)
    if raw_keys == (formulas == RAGBENCH):
        gold = score_gold(labelled, trace)
        assert numbers(gold) == numbers(evaluation)
        assert gold.labels == score_labelled(labelled, [trace]).labels
        if gold.labels is not None:
            assert (gold.scores["context_relevance"].reason, gold.flags) == (None, ())
    return evaluation


def numbers(evaluation: Evaluation) -> object:
    scores = {
        name: (score.status, score.value, score.probability, score.estimate, score.by)
        for name, score in evaluation.scores.items()
    }
    return evaluation.id, evaluation.row_key, evaluation.response, evaluation.judge, scores


def assert_same(evaluation: Evaluation, worths: Mapping[str, Worth]) -> None:
    """Each score has the naive value, or none for the naive reason."""
    for name, worth in worths.items():
        score = evaluation.scores[name]
        if isinstance(worth, str):
            assert (name, score.value, score.unscored) == (name, None, worth)
        else:
            assert (name, score.value) == (name, pytest.approx(float(worth), abs=1e-12))


def labelled_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row as LABELLED writes it: no recorded sentences, labels in a field of their own."""
    kept = {name: row[name] for name in ("id", "question", "documents", "response")}
    names = [name for name in Labels.model_fields if name in row]
    return {**kept, "labels": {name: row[name] for name in names}}


@pytest.mark.parametrize("made", HAND_MADE, ids=lambda made: made.row["id"])
def test_the_naive_scores_are_those_worked_out_on_paper(made: HandMade) -> None:
    """The second implementation is itself held to numbers that no program made."""
    worths = naive.trace(made.row, GPT_LABELING)

    on_paper = [word if "_" in word else Fraction(word) for word in made.by_labels]
    assert [worths[name] for name in SIX[:5]] == on_paper
    if "relevance_score" in made.row:
        columns = naive.published(made.row)
        assert {name: made.row[name] for name in columns} == pytest.approx(columns, abs=1e-12)


@BOTH
@pytest.mark.parametrize("raw_keys", [False, True], ids=["cleaned", "raw"])
def test_rows_are_scored_as_worked_out(formulas: str, raw_keys: bool) -> None:
    """Every oddity of labels by hand, and 250 rows with odd keys, lost entries, keys past `z`."""
    for row in [*(made.row for made in HAND_MADE), *MADE]:
        evaluation = scored(row, formulas, raw_keys=raw_keys)
        assert_same(evaluation, naive.trace(row, formulas, raw_keys=raw_keys))
        assert {score.by.formulas for score in evaluation.scores.values()} == {formulas}
        # How many sentences each score is out of.
        if naive.why_not(row) is None:
            total, answers = len(naive.document_keys(row)), len(row["response_sentences"])
            for name, n in zip(naive.FOUR, (total, total, total, answers), strict=True):
                assert evaluation.scores[name].value is None or evaluation.scores[name].n == n


@given(any_rows())
@settings(max_examples=60)
def test_any_row_is_scored_as_worked_out(row: dict[str, Any]) -> None:
    """Labels that nobody would write, under both formula sets and with a fixed divisor."""
    for formulas in (GPT_LABELING, RAGBENCH):
        for raw_keys in (False, True):
            worths = naive.trace(row, formulas, raw_keys=raw_keys)
            assert_same(scored(row, formulas, raw_keys=raw_keys), worths)
    assert_same(scored(row, GPT_LABELING, baseline=3), naive.trace(row, GPT_LABELING, baseline=3))


def test_recorded_sentences_are_found_in_their_texts() -> None:
    """Each in its own document, behind the one before it; those of the response likewise."""
    for row in SOME:
        result = labelled_from(row, Punkt()).call.sentences
        place = dict.fromkeys(range(len(row["documents"])), 0)
        for sentence in result.documents:
            number = int(sentence.key.rstrip("abcdefghijklmnopqrstuvwxyz"))
            assert row["documents"][number].index(sentence.text, place[number]) == sentence.start
            assert sentence.end == (sentence.start or 0) + len(sentence.text)
            place[number] = sentence.end
        texts = [row["response"][sentence.start : sentence.end] for sentence in result.response]
        assert texts == [text for _, text in row["response_sentences"]]
        assert [s.key for s in result.documents] == naive.document_keys(row)


@BOTH
@pytest.mark.parametrize(
    "made", [made for made in HAND_MADE if made.plain], ids=lambda made: made.row["id"]
)
def test_the_same_labels_score_the_same_without_recorded_sentences(
    made: HandMade, formulas: str
) -> None:
    """A LABELLED row, split by the library, is worth what the row with its sentences is worth."""
    evaluation = scored(labelled_row(made.row), formulas)

    assert_same(evaluation, naive.trace(made.row, formulas))
    assert [s.key for s in evaluation.sentences.documents] == naive.document_keys(made.row)


@BOTH
def test_an_evaluation_scored_again_has_the_other_formulas_values(formulas: str) -> None:
    """A row that `score` wrote is a labelled row: cleaned labels are worth what they were."""
    other = RAGBENCH if formulas == GPT_LABELING else GPT_LABELING
    for row in SOME:
        if naive.why_not(row) is None:
            first = scored(row, other)
            again = scored(first.model_dump(mode="json"), formulas)
            assert_same(again, naive.trace(row, formulas))


@BOTH
async def test_a_judge_that_says_the_same_gets_the_same_scores(formulas: str) -> None:
    """Through the evaluator: call, sentences, judge, labels, scores."""
    for row in SOME:
        labels = Labels.model_validate(labelled_row(row)["labels"])
        trace = Trace(formulas)  # type: ignore[arg-type]
        evaluator = RagEvaluator(ScriptedJudge(labels), [trace])

        evaluation = await evaluator.evaluate(call_from(row))

        assert_same(evaluation, naive.trace(row, formulas))


@BOTH
def test_probabilities_are_estimates_beside_the_labels_values(formulas: str) -> None:
    """|R|, |U| and |R∩U| are sums of probabilities; adherence says how likely it is."""
    source = random.Random(11)
    for row in MADE:
        opinion = second_opinion(source, row, probabilities=True)
        evaluation = scored(opinion, formulas)

        assert_same(evaluation, naive.trace(opinion, formulas))
        expected = naive.estimates(opinion, formulas)
        for name in ("context_relevance", "context_utilization", "completeness"):
            estimate = evaluation.scores[name].estimate
            assert (name in expected) == (estimate is not None)
            if estimate is not None:
                assert estimate.method == "expected"
                assert estimate.value == pytest.approx(float(expected[name]), abs=1e-12)
        adherence = evaluation.scores["adherence"]
        if adherence.value is not None:
            assert adherence.probability == float(naive.adherence_probability(opinion) or 0)
        assert evaluation.scores["completeness"].method == "labels"
