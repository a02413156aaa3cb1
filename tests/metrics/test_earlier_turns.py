"""Documents of earlier turns: what counts this turn's documents, and what counts all."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from by_hand import ScriptedJudge, labels_of

from rag_eval_integrations import Capture, Document, RagCall, RagEvaluator
from rag_eval_integrations.judges import EmbeddedJudge
from rag_eval_integrations.metrics import ContextRecall, LabelRetrieval, Retrieval, Trace
from rag_eval_integrations.records import Evaluation, Labels, SentencizedCall

QUESTION = "How long is the warranty of the kettle?"
ANSWER = "The warranty of the kettle lasts two years."
OWN = [
    Document("Shipping to the islands is slow. Parcels are blue.", id="ship"),
    Document("The warranty of the kettle lasts two years. It starts on delivery.", id="term"),
]
OLD = [
    Document("The kettle boils a litre in four minutes. The warranty card is green.", id="fast"),
    Document("Wash the filter of the kettle by hand.", id="wash"),
]
METRICS = [Trace(), LabelRetrieval(), Retrieval(k=(1, 2)), ContextRecall()]
BY_TURN = (
    "context_relevance", "context_utilization", "completeness", "document_precision",
    "reciprocal_rank", "label_ndcg",
)  # fmt: skip


def labelled(call: SentencizedCall) -> Labels:
    """Relevant: what says warranty; used: what says two years; supported by what was used."""
    relevant = [s.key for s in call.documents if "warranty" in s.text]
    used = [s.key for s in call.documents if "two years" in s.text or "litre" in s.text]
    verdicts = {sentence.key: (used, bool(used)) for sentence in call.response}
    return labels_of(relevant, used, verdicts)


def evaluated(
    documents: list[Document], earlier: Any = (), judge: Any = None, **fields: Any
) -> Evaluation:
    call = RagCall(
        QUESTION, documents, ANSWER, earlier=earlier, reference=ANSWER, relevant_ids=["term"],
        **fields,
    )  # fmt: skip
    return RagEvaluator(judge or ScriptedJudge(labelled), METRICS).evaluate_sync(call)


def values(evaluation: Evaluation) -> dict[str, float | None]:
    return {name: score.value for name, score in evaluation.scores.items()}


def states(evaluation: Evaluation, *names: str) -> set[tuple[str | None, str | None]]:
    return {(evaluation.scores[name].unscored, evaluation.scores[name].reason) for name in names}


@pytest.mark.parametrize(
    ("documents", "earlier"), [(OWN + OLD, [2, 3]), (OLD + OWN, [0, 1])], ids=["behind", "in front"]
)
def test_turn_5_is_turn_1(documents: list[Document], earlier: list[int]) -> None:
    """What a turn retrieved has the scores that it has alone, all of them, wherever it stands."""
    first, fifth = evaluated(OWN), evaluated(documents, earlier)

    assert values(fifth) == values(first)
    # Of four sentences one is relevant and used, in the second of two documents.
    assert values(first) == {
        "context_relevance": 1 / 4, "context_utilization": 1, "completeness": 1, "adherence": 1,
        "supported_fraction": 1, "trace_average": 0.8125, "document_precision": 1 / 2,
        "reciprocal_rank": 1 / 2, "label_ndcg": pytest.approx(0.6309297535714575),
        "hit_rate@1": 0, "hit_rate@2": 1, "precision@1": 0, "precision@2": 1 / 2, "recall@1": 0,
        "recall@2": 1, "mrr@1": 0, "mrr@2": 1 / 2, "map@1": 0, "map@2": 1 / 2, "ndcg@1": 0,
        "ndcg@2": pytest.approx(0.6309297535714575), "context_recall": 1,
    }  # fmt: skip
    assert values(evaluated(documents))["context_relevance"] == 2 / 7
    assert fifth.earlier == tuple(earlier)


def test_reasons_and_evidence_say_the_same() -> None:
    """They count this turn's sentences, and name no other."""
    scores = evaluated(OWN + OLD, [2, 3]).scores

    relevance = scores["context_relevance"]
    assert relevance.reason == (
        "1 of 4 document sentences of this turn is relevant to the question (1a); nothing relevant "
        "in document 0."
    )
    assert relevance.n == 4
    assert (relevance.evidence or {})["documents_without_relevant"] == [0]
    assert (scores["context_utilization"].evidence or {})["utilized_keys"] == ["1a"]
    assert "1 of 2 documents of this turn" in (scores["document_precision"].reason or "")


@pytest.mark.parametrize("judge", [None, EmbeddedJudge()], ids=["scripted", "embedded"])
def test_support_counts_all_that_was_shown(judge: Any) -> None:
    """An answer from an earlier turn's document is supported, and not by this turn's."""
    from_old = OLD[0].text.split(".")[0] + "."
    call = RagCall(QUESTION, OWN[:1] + OLD, from_old, earlier=[1, 2])
    evaluation = RagEvaluator(judge or ScriptedJudge(labelled)).evaluate_sync(call)

    assert values(evaluation)["adherence"] == values(evaluation)["supported_fraction"] == 1
    assert values(evaluation)["context_relevance"] == 0
    (support,) = evaluation.labels.sentence_support_information if evaluation.labels else ()
    assert support.supporting_sentence_keys == ("1a",)


@pytest.mark.parametrize("judge", [None, EmbeddedJudge()], ids=["scripted", "embedded"])
@pytest.mark.parametrize("own", [[], [Document("", id="empty")]], ids=["none", "empty"])
def test_nothing_but_earlier_documents(judge: Any, own: list[Document]) -> None:
    """Nothing was retrieved, so that nothing is said of it; support is scored all the same."""
    numbers = [len(own), len(own) + 1]
    evaluation = evaluated([*own, OWN[1], OLD[0]], numbers, judge)

    assert states(evaluation, *BY_TURN, "context_recall") == {
        ("no_context", "nothing was retrieved in this turn")
    }
    assert evaluation.scores["trace_average"].unscored == "no_context"
    assert values(evaluation)["adherence"] == values(evaluation)["supported_fraction"] == 1
    assert [pattern.pattern for pattern in evaluation.diagnosis] == []


def test_no_document_at_all() -> None:
    """All is as without conversations: nothing can be judged."""
    assert states(evaluated([]), *BY_TURN, "adherence") == {
        ("no_context", "the call has no documents")
    }


@pytest.mark.parametrize(
    ("capture", "expected"),
    [
        (None, (0.0, None)),
        (Capture(framework="plain", documents_from="prompt", retrievers=("kb",)), (0.0, None)),
        (Capture(framework="plain", documents_from="prompt"), (None, "no_context")),
    ],
    ids=["no capture", "found nothing", "did not search"],
)
def test_gold_ids_keep_a_zero(capture: Capture | None, expected: Any) -> None:
    """Where the retriever returned nothing; a turn that did not ask it has no score."""
    scores = evaluated([OWN[1]], [0], capture=capture).scores

    gold = [score for name, score in scores.items() if name.endswith(("@1", "@2"))]
    assert {(score.value, score.unscored) for score in gold} == {expected}


async def test_recall_is_a_question_of_its_own() -> None:
    """A call whose response is another one's reference shares no labels with it."""
    judge = ScriptedJudge(labelled)
    evaluator = RagEvaluator(judge, [Trace(), ContextRecall()])
    about, twin = await asyncio.gather(
        evaluator.evaluate(RagCall(QUESTION, OWN, "No.", earlier=[1], reference=ANSWER)),
        evaluator.evaluate(RagCall(QUESTION, OWN, ANSWER, earlier=[1])),
    )

    assert (values(about)["context_recall"], values(twin)["adherence"]) == (0, 1)
    assert len(judge.asked) == 3


@pytest.mark.parametrize("answer", [ANSWER, "It lasts two years, and the card is green."])
def test_weights_of_words_are_of_this_turn(answer: str) -> None:
    """The embedded judge says of a question that can be read alone what it says in the first turn."""
    turns = [
        RagCall(QUESTION, OWN, answer),
        RagCall(QUESTION, OWN + OLD * 2, answer, earlier=[2, 3, 4, 5]),
        RagCall(QUESTION, OWN + OLD * 2, answer),
    ]
    first, fifth, unmarked = map(RagEvaluator(EmbeddedJudge()).evaluate_sync, turns)

    names = ("context_relevance", "context_utilization", "completeness")
    for name in names:
        alone, later = first.scores[name], fifth.scores[name]
        assert (later.value, later.estimate) == (alone.value, alone.estimate)
    assert any(unmarked.scores[name].estimate != first.scores[name].estimate for name in names)
    labels = [evaluation.labels for evaluation in (first, fifth)]
    for part in ("relevant_probabilities", "all_utilized_sentence_keys"):
        assert len({repr(getattr(each, part)) for each in labels}) == 1
