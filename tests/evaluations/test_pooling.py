"""Pools: calls with equal question, history and documents share their relevant sentences."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from by_hand import ScriptedJudge, labels_of
from runs import write

from rag_eval_integrations import Evaluations, RagCall, RagEvaluator, Trace, evaluate_calls
from rag_eval_integrations.cli.demo.corpus import SECTIONS
from rag_eval_integrations.dataset import read_calls
from rag_eval_integrations.dataset.rows import labelled_from_evaluation, score_labelled
from rag_eval_integrations.metrics import TRACE_SCORES, LabelMetric, LabelRetrieval
from rag_eval_integrations.records import Evaluation, Turn
from rag_eval_integrations.report import compare
from rag_eval_integrations.sentences import Punkt
from rag_eval_integrations.testing import assert_no_regression

DOCUMENTS = ("It leaves at nine. It is green.", "Tickets cost two coins. Dogs travel free.")


def judged(
    relevant: list[str],
    used: list[str],
    *,
    trace: Trace | None = None,
    splitter: Any = None,
    by: str | None = None,
    **call: Any,
) -> Evaluation:
    """A call of four document sentences (0a, 0b, 1a, 1b) with these labels, which is adherent."""
    fields: dict[str, Any] = {"question": "When?", "documents": DOCUMENTS, "response": "At nine."}
    judge = ScriptedJudge(labels_of(relevant, used, {"a": (used, True)}))
    judge.name = by or judge.name
    metrics: list[LabelMetric] = [trace or Trace(), LabelRetrieval()]
    evaluator = RagEvaluator(judge, metrics, splitter=splitter)
    return evaluator.evaluate_sync(RagCall(**{**fields, "id": "q", **call}))


def means(before: Evaluation, after: Evaluation) -> dict[str, tuple[float | None, float | None]]:
    """The values of a comparison of two calls."""
    scores = compare([before], [after]).scores.values()
    return {score.name: (score.mean_a, score.mean_b) for score in scores}


# --- What is pooled


BEFORE = judged(["1a"], ["1a"])
AFTER = judged(["0a"], ["0b"], response="It is green.")


def test_a_sentence_that_one_run_labels_relevant_is_relevant_in_both() -> None:
    """And every score that rests on relevant sentences follows from the union, by hand here."""
    assert means(BEFORE, AFTER) == {
        "context_relevance": (0.5, 0.5),  # 0a and 1a of four
        "context_utilization": (0.5, 0.5),
        "completeness": (0.5, 0.0),
        "adherence": (1.0, 1.0),
        "supported_fraction": (1.0, 1.0),
        "trace_average": (0.625, 0.5),
        "document_precision": (1.0, 1.0),
        "reciprocal_rank": (1.0, 1.0),
        "label_ndcg": (1.0, 1.0),
    }
    assert BEFORE.scores["context_relevance"].value == 0.25  # evaluations stay as they are
    assert BEFORE.scores["reciprocal_rank"].value == 0.5


@pytest.mark.parametrize(
    ("trace", "relevance", "utilization"),
    [
        (Trace(relevance_baseline=10), 0.2, 0.5),
        (Trace("ragbench"), 0.5, 0.25),
    ],
)
def test_pooled_values_follow_the_formulas_of_the_scores(
    trace: Trace, relevance: float, utilization: float
) -> None:
    """Those that the evaluations name, not the default ones."""
    values = means(judged(["1a"], ["1a"], trace=trace), judged(["0a"], ["0b"], trace=trace))

    assert values["context_relevance"] == (relevance, relevance)
    assert values["context_utilization"] == (utilization, utilization)


def test_all_runs_of_a_comparison_share_a_pool() -> None:
    """The first two agree, and count what the third found."""
    first, third = compare([BEFORE], [BEFORE], [judged(["0a", "0b"], ["1a"])]).all

    for run in (first, third):
        relevance = run.scores["context_relevance"]
        assert (relevance.mean_a, relevance.mean_b) == (0.75, 0.75)
        assert (relevance.own_mean_a, relevance.same_documents) == (0.25, True)
    assert (first.pooled, third.pooled) == ((1, 1, 1), (1, 0, 3))


@pytest.mark.parametrize(
    "other",
    [
        {"question": "When, please?"},
        {"documents": (DOCUMENTS[0], "Tickets cost two coins. Cats travel free.")},
        {"documents": DOCUMENTS[::-1]},
        {"history": (Turn(role="user", content="Which ferry?"),)},
    ],
)
def test_another_question_history_or_document_is_another_retrieval(other: dict[str, Any]) -> None:
    """Each call keeps the relevant sentences of its own labels, and nothing is said of pools."""
    comparison = compare([BEFORE], [judged(["0a", "0b"], ["0a"], **other)])

    relevance = comparison.scores["context_relevance"]
    assert (relevance.mean_a, relevance.mean_b) == (0.25, 0.5)
    assert (relevance.same_documents, relevance.own_mean_a) == (False, None)
    assert "ooled" not in str(comparison)
    tie = compare([BEFORE], [judged(["1a"], ["1a"], **other)]).scores["context_relevance"]
    assert (tie.difference, tie.same_documents) == (0, False)


def test_documents_of_earlier_turns_are_left_out_of_pooled_values() -> None:
    """And a call in which the same documents are of this turn is another retrieval."""
    before, after = judged(["1a"], ["1a"], earlier=[1]), judged(["0a"], ["0b"], earlier=[1])

    assert before.scores["context_relevance"].value == 0
    assert means(before, after)["context_relevance"] == (0.5, 0.5)  # 0a of 0a and 0b
    assert means(before, after)["document_precision"] == (1.0, 1.0)
    assert means(BEFORE, after)["context_relevance"] == (0.25, 0.5)


def test_unscored_sides_stay_unscored() -> None:
    """A call without labels has no pool, and nothing relevant has no order, whatever others say."""
    nothing = judged([], [])
    failed = judged(["0a"], ["0a"]).model_copy(
        update={"labels": None, "scores": judged([], [], documents=()).scores}
    )

    comparison = compare([BEFORE], [nothing])
    without = compare([BEFORE], [failed])

    assert comparison.scores["context_relevance"].mean_b == 0.25
    order = comparison.scores["label_ndcg"]
    assert (order.n, order.became_unscored) == (0, {"no_relevant": 1})
    assert without.scores["context_relevance"].became_unscored == {"no_context": 1}
    assert (without.pooled.calls, without.scores["context_relevance"].same_documents) == (0, False)


# --- What is not pooled, and said to be


class Other(Punkt):
    """The same sentences by another name."""

    name = "other"


class Whole(Punkt):
    """A document is one sentence, so that the texts of sentences are others, too."""

    name = "whole"

    def spans(self, text: str) -> list[tuple[int, int]]:
        return [(0, len(text))]


def with_raw_keys() -> Evaluation:
    """Recorded labels that name one sentence twice, counted as they stand."""
    twice = labels_of(["0a", "0a"], ["0b"], {"a": ([], True)})
    row = labelled_from_evaluation(AFTER.model_copy(update={"labels": twice}))
    return score_labelled(row, [Trace(), LabelRetrieval()], raw_keys=True)


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (lambda: judged(["0a"], ["0b"], trace=Trace("ragbench")), "other formulas"),
        (
            lambda: judged(["0a"], ["0b"], trace=Trace(relevance_baseline=8)),
            "another relevance baseline",
        ),
        (lambda: judged(["0a"], ["0b"], splitter=Other()), "another splitter"),
        (lambda: judged(["0a"], ["0b"], by="people"), "another judge"),
        (with_raw_keys, "keys as recorded, by `--raw-keys`"),
    ],
)
def test_labels_that_are_counted_otherwise_are_not_pooled(
    after: Callable[[], Evaluation], why: str
) -> None:
    """One line says so, and how many calls it concerns; a third run does not pool half of them."""
    for runs in (([BEFORE], [after()]), ([BEFORE], [after()], [AFTER])):
        comparison = compare(*runs, allow_mixed=True)

        relevance = comparison.scores["context_relevance"]
        assert relevance.mean_a == BEFORE.scores["context_relevance"].value
        assert not relevance.same_documents
        line = f"Not pooled: 1 call ({why}); there, relevance can differ by the judge's noise."
        assert line in comparison.notes


def test_sentences_of_another_splitter_are_not_the_same_documents() -> None:
    """Their texts are others, and the reason is said all the same."""
    comparison = compare([BEFORE], [judged(["0a"], ["1a"], splitter=Whole())])

    assert comparison.pooled.calls == 0
    assert "Not pooled: 1 call (another splitter);" in str(comparison)


# --- How it is shown


def many(evaluation: Evaluation) -> list[Evaluation]:
    """Twelve calls with one content."""
    return [evaluation.model_copy(update={"id": f"q{number}"}) for number in range(12)]


def test_the_text_says_what_is_pooled_and_how_far_the_labels_agree() -> None:
    """The line of a score says that the documents are the same; nothing is tested."""
    comparison = compare(many(judged(["0a", "1a"], ["1a"])), many(AFTER))

    relevance = comparison.scores["context_relevance"]
    assert relevance.same_documents
    assert (relevance.interval, relevance.p, relevance.p_holm) == (None, None, None)
    assert not comparison.scores["completeness"].same_documents
    text = str(comparison)
    rows = [line.split() for line in text.splitlines() if "context_relevance" in line[:40]]
    assert rows[0][:3] == ["same", "documents", "context_relevance"]
    assert rows[1][4:] + rows[2][1:] == ["–", "–", "–", "–"]
    assert "same documents" in comparison._repr_html_()
    assert "Pooled: in 12 calls with the same question, history and documents" in text
    assert "`report` shows each run's own values, which can differ." in text
    assert (
        "Of 24 sentences there that either run labels relevant, both label 12 (50%); the rest is "
        "the judge's own noise."
    ) in text
    run = comparison.to_json()["runs"][0]
    assert run["pooled"] == {"calls": 12, "both": 12, "either": 24}
    score = run["scores"][0]
    assert (score["mean_a"], score["mean_b"], score["same_documents"]) == (0.5, 0.5, True)
    assert (score["own_mean_a"], score["own_mean_b"]) == (0.5, 0.25)
    assert run["scores"][3]["own_mean_a"] is None  # adherence


def test_changed_calls_show_pooled_values(tmp_path: Path) -> None:
    """Relevance is not among what changed; from files, which are read again, as from lists."""
    before, after = many(BEFORE), many(AFTER)
    paths = [write(tmp_path / f"{n}.jsonl", run) for n, run in enumerate((before, after))]

    for comparison in (compare(before, after), compare(*paths)):
        (change, *_) = comparison.changed("completeness")
        assert list(change.scores(comparison.scores)) == [
            ("completeness", 0.5, 0.0),
            ("trace_average", 0.625, 0.5),
        ]
        assert comparison.changed("context_relevance") == []
        assert change.before.scores["completeness"].value == 1.0


def test_the_gate_takes_pooled_values_and_passes_the_same_documents() -> None:
    """Also where so few calls could tell nothing of a retriever that did change."""
    worse = many(judged(["0a"], ["0a"], response="It is green."))
    comparison = compare(many(judged(["0a", "0b"], ["0a"])), worse)

    verdict = comparison.scores["context_relevance"].verdict(0.0)
    assert verdict == (
        "fine",
        "12 calls with the same documents in both runs, so there is no difference",
    )
    assert_no_regression(comparison, unclear="fail", context_relevance=0.0)
    with pytest.raises(AssertionError, match=r"worse: completeness: 12 of 12 calls fell"):
        assert_no_regression(many(BEFORE), many(AFTER), completeness=0.1)


# --- With the default judge, whose relevance reads the answer


def with_response(call: RagCall, response: str) -> RagCall:
    """The same call with another answer; a copy would keep the key of the first one."""
    fields = {name: getattr(call, name) for name in RagCall.model_fields}
    return RagCall(**{**fields, "response": response, "sentences": None})


def judged_twice(calls: list[RagCall], changed: range) -> tuple[Evaluations, Evaluations]:
    """Judge calls by the default judge, as they are, and with some answers changed.

    In turns, a lie is added, or all but the first words are cut.
    """
    after = list(calls)
    for place in changed:
        text = calls[place].response or ""
        lie = f"{text} A famous admiral painted it green in 1731."
        short = " ".join(text.split()[:6])
        after[place] = with_response(calls[place], lie if place % 4 else short)
    evaluator = RagEvaluator(metrics=["trace", "label_retrieval"])
    before, then = (evaluate_calls(run, evaluator).collect_sync() for run in (calls, after))
    return before, then


def check_pooled(before: Evaluations, after: Evaluations) -> None:
    """Relevance differs in the evaluations, and not at all where they are compared."""
    own = [
        one.scores["context_relevance"].value != two.scores["context_relevance"].value
        for one, two in zip(before, after, strict=True)
    ]
    assert any(own)
    comparison = before.compare(after)
    for name in ("context_relevance", "document_precision", "reciprocal_rank"):
        score = comparison.scores[name]
        assert (score.difference, score.wins, score.losses) == (0, 0, 0)
        assert score.same_documents
    relevance = comparison.scores["context_relevance"]
    assert relevance.own_mean_a != relevance.own_mean_b
    assert comparison.pooled.calls == len(before)
    assert 0 < comparison.pooled.both < comparison.pooled.either


def test_a_changed_answer_is_not_a_changed_retriever() -> None:
    """Answers get a lie or lose their end, and the documents stay."""
    calls = [
        RagCall(
            f"How is meter {number} reset?",
            [
                f"Hold the blue button of meter {number} for eight seconds. It then restarts.",
                "The reset erases all stored readings. The screen shows the last reading.",
            ],
            f"Hold the blue button of meter {number} for eight seconds. The reset erases readings.",
            id=f"q{number}",
        )
        for number in range(30)
    ]

    check_pooled(*judged_twice(calls, range(0, 30, 2)))


def test_the_table_of_the_page_is_what_the_default_judge_says(root: Path) -> None:
    """The values of each run alone, and below them those of the comparison of all five."""
    page = (root / "docs/concepts.md").read_text(encoding="utf-8")
    table = page.split("| answer | relevance |")[1].split("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    manual = {section.id: section.text for section in SECTIONS}
    documents = [manual["reset"], manual["care"]]
    evaluator = RagEvaluator()
    runs = []
    for answer, *values in rows:
        call = RagCall(
            "How do I reset the station?", documents, answer.replace("…", rows[0][0]), id="q"
        )
        evaluation = evaluator.evaluate_sync(call)
        own = [evaluation.scores[name].value or 0 for name in (*TRACE_SCORES[:4], "trace_average")]
        assert [f"{value:.2f}".removeprefix("0") for value in own] == values
        runs.append([evaluation])

    pooled = [run.scores for run in compare(*runs).all]

    assert len(rows) == 5
    assert {scores["context_relevance"].mean_b for scores in pooled} == {0.6}
    for name in ("context_utilization", "completeness"):
        assert [scores[name].mean_b for scores in pooled] == [1 / 3, 1 / 3, 1 / 3, 0.0]
        assert pooled[0][name].mean_a == 1 / 3


@pytest.mark.slow
def test_changed_answers_of_real_rows_leave_relevance(ragbench: list[Path]) -> None:
    """Of 200 rows of covidqa, 43 with another answer."""
    (path,) = [path for path in ragbench if "covidqa" in path.name]
    lines = [line.value for line in islice(read_calls(path), 200)]
    calls = [with_response(call, call.response or "") for call in lines if call]

    check_pooled(*judged_twice(calls, range(0, 86, 2)))
