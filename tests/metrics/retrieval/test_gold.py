"""`Retrieval`: equal to trec_eval, right by hand, and never a number where there is none."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.metrics import Retrieval
from rag_eval_integrations.metrics.retrieval import MEASURES
from rag_eval_integrations.records import By, Capture, Document, Evaluation, RagCall, Score

TREC = dict(hit_rate="success", precision="P", recall="recall", map="map_cut", ndcg="ndcg_cut")


def call_of(ranking: Sequence[str], gold: Sequence[str] | None, **more: Any) -> RagCall:
    """A call that retrieved documents of these ids."""
    documents = [Document(f"text of {name}", id=name) for name in ranking]
    return RagCall("q", documents, None, relevant_ids=gold, **more)


def scores_of(metric: Retrieval, call: RagCall) -> dict[str, Score]:
    return {score.name: score for score in metric.score(call, By())}


def values(metric: Retrieval, call: RagCall) -> dict[str, float | None]:
    return {name: score.value for name, score in scores_of(metric, call).items()}


def by_trec(
    rankings: Sequence[Sequence[str]], golds: Sequence[Sequence[str]], ks: Sequence[int]
) -> list[dict[str, float]]:
    """The reference implementation's values, under our names."""
    import pytrec_eval

    cuts = ",".join(map(str, ks))
    qrels = {str(at): dict.fromkeys(gold, 1) for at, gold in enumerate(golds)}

    def run(k: int | None) -> dict[str, dict[str, float]]:
        # trec_eval sorts by score; ties would be sorted by id.
        ranked = [{name: float(-rank) for rank, name in enumerate(of[:k])} for of in rankings]
        return {str(at): ranks for at, ranks in enumerate(ranked)}

    measures = {f"{theirs}.{cuts}" for theirs in TREC.values()}
    whole = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run(None))
    # It has no reciprocal rank at k: that of a ranking that ends there.
    reciprocal = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"})
    cut = {k: reciprocal.evaluate(run(k)) for k in ks}
    names = [(f"{ours}@{k}", f"{theirs}_{k}") for ours, theirs in TREC.items() for k in ks]
    return [
        {ours: whole[number][theirs] for ours, theirs in names}
        | {f"mrr@{k}": cut[k][number]["recip_rank"] for k in ks}
        for number in map(str, range(len(rankings)))
    ]


def test_equal_to_trec_eval_on_random_rankings() -> None:
    """600 rankings of 0 to 15 documents, 1 to 12 relevant ones, every measure, to 1e-12."""
    chance = random.Random(20240607)
    pool = [f"d{number}" for number in range(40)]
    rankings = [chance.sample(pool, chance.randint(0, 15)) for _ in range(600)]
    golds = [chance.sample(pool, chance.randint(1, 12)) for _ in rankings]
    ks = (chance.randint(1, 4), chance.randint(5, 20))
    between = Counter[str]()  # values that are neither 0 nor 1

    for ranking, gold, theirs in zip(rankings, golds, by_trec(rankings, golds, ks), strict=True):
        ours = values(Retrieval(k=ks), call_of(ranking, gold))
        assert ours == {name: pytest.approx(value, abs=1e-12) for name, value in theirs.items()}
        between.update(name.partition("@")[0] for name, value in theirs.items() if 0 < value < 1)

    assert all(between[measure] > 60 for measure in set(MEASURES) - {"hit_rate"})


def test_the_facts_stand_beside_the_value() -> None:
    """Ranks, ids, numbers, and the same in words; the way of matching is the method."""
    score = scores_of(Retrieval(k=5), call_of(["x", "a", "y", "b"], ["a", "b", "c"]))["recall@5"]

    places = {"relevant_ranks": [2, 4], "found": ["a", "b"]}
    assert score.evidence == {**places, "relevant": 3, "retrieved": 4}
    assert score.reason == "2 of 3 relevant documents in the first 5, at rank 2, 4; 4 retrieved."
    assert (score.method, score.by, score.raw) == ("gold_ids", By(), score.value)


def test_a_repeated_document_counts_once() -> None:
    """At its first rank; later documents move up."""
    metric = Retrieval(k=(2, 3))

    repeated = values(metric, call_of(["x", "x", "a", "a", "b"], ["a", "b", "b"]))

    assert repeated == values(metric, call_of(["x", "a", "b"], ["b", "a"]))
    assert repeated["precision@2"] == 1 / 2


def test_nothing_retrieved_is_zero() -> None:
    """Whoever writes a call down says that there was nothing; so does a retriever that ran."""
    ran = Capture(framework="plain", documents_from="retriever")
    named = Capture(framework="langchain", retrievers=("Store",))

    for capture in (None, ran, named):
        call = call_of([], ["a"], capture=capture)
        assert set(values(Retrieval(k=3), call).values()) == {0.0}


FAILED = Capture(framework="plain", documents_from="retriever", status="error")


@pytest.mark.parametrize(
    ("call", "code", "reason"),
    [
        (call_of(["a"], None), "missing_param", "the call has no relevant_ids"),
        (call_of(["a"], []), "no_relevant", "relevant_ids names no document"),
        (call_of([], ["a"], capture=Capture(framework="plain")), "no_context", "did not see"),
        (call_of([], ["a"], capture=FAILED), "no_context", "did not see"),
        (RagCall("q", ["text"], "r", relevant_ids=["a"]), "missing_param", "document 0 has no id"),
    ],
    ids=["no gold", "nothing relevant", "not seen", "failed", "no id"],
)  # fmt: skip
def test_no_number_where_there_is_none(call: RagCall, code: str, reason: str) -> None:
    """Unscored with its reason, never 0."""
    for score in Retrieval().score(call, By()):
        assert (score.status, score.value, score.unscored) == ("unscored", None, code)
        assert reason in (score.reason or "")


def test_only_the_documents_that_a_score_needs_need_an_id() -> None:
    """A document without one at rank 3 leaves the scores at 1 and 2 what they are."""
    documents = [Document("x", id="x"), Document("a", id="a"), "b"]
    call = RagCall("q", documents, None, relevant_ids=["a"])

    found = scores_of(Retrieval(k=(1, 2, 3)), call)

    assert found["mrr@2"].value == 1 / 2
    assert {found[f"{measure}@3"].unscored for measure in MEASURES} == {"missing_param"}
    assert found["mrr@3"].reason == "document 2 has no id"


# --- What documents are matched by


@pytest.mark.parametrize(
    ("gold", "text"),
    [
        ("Bees  live\nin hives.", " bees live in HIVES. "),
        ("straße", "STRASSE"),
        ("ﬁne ½", "fine 1⁄2"),
        ("caf\u00e9", "cafe\u0301"),
        ("a\u00a0b\u3000c", "a b c"),
        ("a" + "\u0315\u0300" * 200_000,) * 2,  # normalised as a whole it would take minutes
    ],
    ids=["space", "case", "form", "accent", "blanks", "many marks"],
)
def test_texts_match_but_for_case_space_and_form(gold: str, text: str) -> None:
    """In either direction; ids play no part, and another text is another one."""
    for one, other in ((gold, text), (text, gold)):
        call = RagCall("q", [Document("x y", id=one), other], None, relevant_ids=[one])
        assert values(Retrieval(k=2, match="text"), call)["mrr@2"] == 1 / 2

    call = RagCall("q", [f"{text} more"], None, relevant_ids=[gold])
    assert values(Retrieval(k=1, match="text"), call)["mrr@1"] == 0


def test_blank_texts_match_nothing() -> None:
    """Neither in the gold nor among the documents."""
    blank = RagCall("q", ["", " "], None, relevant_ids=["\n"])
    assert {s.unscored for s in Retrieval(match="text").score(blank, By())} == {"no_relevant"}

    mixed = RagCall("q", ["", "a"], None, relevant_ids=["\n", "A"])
    found = scores_of(Retrieval(k=2, match="text"), mixed)["recall@2"]
    assert (found.value, found.method) == (1.0, "gold_texts")
    assert found.evidence == {"relevant_ranks": [2], "relevant": 1, "retrieved": 2}


def test_ids_match_exactly() -> None:
    """No case, no space, no form of Unicode is folded, and a number in a text stays a text."""
    for name, other in (("A", "a"), ("a", "a "), ("1", "1.0"), ("\u00e9", "e\u0301"), ("0", "00")):
        assert values(Retrieval(k=1), call_of([other], [name]))["mrr@1"] == 0
        assert values(Retrieval(k=1), call_of([name], [name]))["mrr@1"] == 1


@pytest.mark.parametrize(
    "name", ["\x1b[31mred", "x" * 100_000, "\ud800"], ids=["terminal", "long", "surrogate"]
)
def test_hostile_ids_are_ids(name: str) -> None:
    """They match, and survive the file; a lone surrogate is replaced alike on both sides."""
    call = call_of(["x", name], [name])

    evaluation = RagEvaluator(metrics=[Retrieval(k=2)]).evaluate_sync(call)

    line = evaluation.model_dump_json()
    assert (evaluation.scores["mrr@2"].value, line.isascii()) == (1 / 2, True)
    assert Evaluation.model_validate_json(line) == evaluation
    assert "\x1b" not in str(evaluation)


@pytest.mark.parametrize(
    ("held", "found"),
    [("a", 1.0), (7, 0.0), ("", None), (None, None), (True, None), (1.5, None), (["a"], None), ({"a": 1}, None)],
)  # fmt: skip
def test_ids_in_metadata(held: Any, found: float | None) -> None:
    """A string or a whole number; anything else, or nothing, is no id."""
    document = Document("text", id="other", metadata={"source": held})
    metric = Retrieval(k=1, id_key="source")

    score = scores_of(metric, RagCall("q", [document], None, relevant_ids=["a", "other"]))["mrr@1"]

    assert (score.value, score.unscored) == (found, None if found is not None else "missing_param")
    if found is None:
        assert score.reason == "document 0 has no id as 'source' in its metadata"
    else:
        assert score.method == "gold_ids:source"


# --- Settings


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"k": 0}, "k"), ({"k": -1}, "k"), ({"k": True}, "k"), ({"k": 1.0}, "k"), ({"k": "5"}, "k"),
        ({"k": ()}, "k"), ({"k": (1, 1)}, "k"), ({"k": (1, "3")}, "k"), ({"k": None}, "k"),
        ({"k": {5}}, "k"), ({"k": 10**20}, "k"), ({"match": "ID"}, "match"), ({"match": None}, "match"),
        ({"id_key": ""}, "id_key"), ({"id_key": 3}, "id_key"),
        ({"id_key": "source", "match": "text"}, "id_key"),
    ],
)  # fmt: skip
def test_unusable_settings_are_refused(settings: dict[str, Any], field: str) -> None:
    """At construction, with the field's name."""
    with pytest.raises(ConfigurationError, match=f"`{field}` = "):
        Retrieval(**settings)


def test_names_and_identity_say_the_settings() -> None:
    """One number or several; evaluations made by other settings are not reused."""
    assert Retrieval(k=5).names == tuple(f"{measure}@5" for measure in MEASURES)
    assert Retrieval(k=5) == Retrieval(k=[5])
    assert len(Retrieval().names) == 24
    fingerprints = {
        RagEvaluator(metrics=[metric]).fingerprint
        for metric in (Retrieval(), Retrieval(k=1), Retrieval(match="text"), Retrieval(id_key="x"))
    }
    assert len(fingerprints) == 4
