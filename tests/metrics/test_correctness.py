"""Correctness both ways: identities, refusals, replies that cannot be used, and words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations import RagCall, RagEvaluator
from rag_eval_integrations.metrics import AnswerCorrectness
from rag_eval_integrations.metrics.correctness import token_recall
from rag_eval_integrations.records import Evaluation, Score
from rag_eval_integrations.testing import ScriptedModel

SENTENCES = [
    "The ferry leaves at nine.", "It carries forty passengers.", "Tickets cost six euros.",
    "Dogs travel free of charge.", "The office closes at noon.", "Bicycles need a reservation.",
]  # fmt: skip


def scores(call: RagCall, judge: Any = "embedded") -> Mapping[str, Score]:
    return evaluation(call, judge).scores


def evaluation(call: RagCall, judge: Any = "embedded") -> Evaluation:
    return RagEvaluator(judge, [AnswerCorrectness()]).evaluate_sync(call)


def asked(response: str | None, reference: Any = "It leaves at nine.", **more: Any) -> RagCall:
    return RagCall("When does the ferry leave?", [], response, reference=reference, **more)


def values(of: Mapping[str, Score]) -> list[float | None]:
    return [of[name].value for name in ("answer_precision", "answer_recall", "answer_f1")]


SOME = st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=6, unique=True)


@given(SOME, st.randoms(use_true_random=False))
def test_the_same_sentences_in_any_order_are_right(some: list[str], random: Random) -> None:
    """Without a request, whoever judges."""
    other = random.sample(some, len(some))
    silent = ScriptedModel([])
    for judge in ("embedded", silent):
        assert values(scores(asked(" ".join(other), " ".join(some)), judge)) == [1.0, 1.0, 1.0]
    assert silent.requests == []


@given(st.permutations(SENTENCES), st.integers(2, 6))
def test_a_dropped_sentence_lowers_recall_by_its_share(some: list[str], count: int) -> None:
    """By exactly 1/n; and what is missing is named."""
    kept = some[:count]
    found = scores(asked(" ".join(kept[1:]), " ".join(kept)))
    assert found["answer_recall"].value == (count - 1) / count
    assert found["answer_precision"].value == 1.0
    assert found["answer_recall"].evidence == {"added": [], "missing": {"a": kept[0]}}


def test_a_judge_without_a_model_labels_each_text_beside_the_other() -> None:
    """The embedded judge's scores say that they are estimates."""
    found = scores(
        asked("The ferry leaves at nine sharp. Pigs fly over the harbour.", SENTENCES[0])
    )
    recall = found["answer_recall"]
    assert recall.evidence is not None
    assert recall.evidence["added"] == ["b"]
    assert recall.method == "labels"
    assert "an estimate" in recall.warnings[0]
    assert found["answer_token_recall"].warnings == ()


# --- A model


def entries(request: Any, stated: bool = True) -> list[dict[str, Any]]:
    """An entry per keyed sentence of the request, in order."""
    lines = request.messages[1].content.splitlines()
    keys = [line.partition(":")[0] for line in lines if line[:1] in "01" and ":" in line[:5]]
    other = {
        "0": [key for key in keys if key[0] == "1"],
        "1": [key for key in keys if key[0] == "0"],
    }
    return [{"key": key, "stated_by": other[key[0]][:1], "stated": stated} for key in keys]


def reply(request: Any, **changes: Any) -> str:
    return json.dumps({"abstains": [], "sentences": entries(request), **changes})


PARAPHRASED = asked("At nine it departs. Pigs fly.", "It leaves at nine.")


def test_a_model_is_asked_once_and_not_told_which_text_is_expected() -> None:
    """The texts stand in an order that follows from them alone, whichever is the response."""
    model = ScriptedModel(reply)
    found = scores(PARAPHRASED, model)
    assert values(found) == [1.0, 1.0, 1.0]
    (request,) = model.requests
    swapped = ScriptedModel(reply)
    scores(asked("It leaves at nine.", "At nine it departs. Pigs fly."), swapped)
    assert swapped.requests[0].messages == request.messages
    text = "\n".join(message.content for message in request.messages)
    assert "reference" not in text
    assert "response" not in text
    assert found["answer_f1"].by.prompt_version == "correctness-1"


def test_markers_of_citations_are_not_shown() -> None:
    """A marker that names a document is spaces for whoever compares the texts."""
    model = ScriptedModel(reply)
    call = RagCall("When?", ["It leaves at nine."], "It leaves at nine [1].", reference="At nine.")
    scores(call, model)

    assert "[1]" not in model.requests[0].messages[1].content
    assert "It leaves at nine    ." in model.requests[0].messages[1].content


def test_verdicts_count_for_their_own_side() -> None:
    """A sentence that is not stated is named by its key in the text where it stands."""

    def pigs_fly(request: Any) -> str:
        lines = request.messages[1].content.splitlines()
        (key,) = (line.partition(":")[0] for line in lines if line.endswith("Pigs fly."))
        verdicts = entries(request)
        for entry in verdicts:
            entry["stated"] = entry["key"] != key
        return reply(request, sentences=verdicts)

    found = scores(PARAPHRASED, ScriptedModel(pigs_fly))
    assert values(found) == [0.5, 1.0, pytest.approx(2 / 3)]
    assert found["answer_precision"].evidence == {"added": ["b"], "missing": {}}


BAD: dict[str, Any] = {
    "a key of none": lambda r: reply(
        r, sentences=[*entries(r), {"key": "7z", "stated_by": [], "stated": True}]
    ),
    "half a list": lambda r: reply(r, sentences=entries(r)[:1]),
    "a key twice": lambda r: reply(r, sentences=[*entries(r), entries(r)[0]]),
    "its own key": lambda r: reply(
        r, sentences=[{**e, "stated_by": [e["key"]]} for e in entries(r)]
    ),
    "no verdict": lambda r: reply(r, sentences=[{**e, "stated": None} for e in entries(r)]),
    "no field": lambda r: json.dumps({"sentences": entries(r)}),
    "prose": lambda r: "Both say the same.",
}


@pytest.mark.parametrize("name", BAD)
def test_a_reply_that_cannot_be_used_is_asked_for_again(name: str) -> None:
    """Once; then the scores of sentences are unscored, never 0, and those of words stay."""
    model = ScriptedModel(BAD[name])
    found = scores(PARAPHRASED, model)
    assert len(model.requests) == 2
    assert values(found) == [None, None, None]
    assert found["answer_f1"].unscored == "judge_output_invalid"
    assert found["answer_token_recall"].value == 0.75
    turns: list[Any] = [BAD[name], reply]
    second = ScriptedModel(lambda request: turns.pop(0)(request))
    assert values(scores(PARAPHRASED, second)) == [1.0, 1.0, 1.0]


def test_a_model_tells_who_gives_no_answer() -> None:
    """Recall and F1 are 0, and precision has no value."""

    def abstaining(request: Any) -> str:
        lines = request.messages[1].content.splitlines()
        (key,) = (line[0] for line in lines if line.endswith("Ask the captain."))
        return reply(request, abstains=[int(key)])

    found = scores(asked("Ask the captain."), ScriptedModel(abstaining))
    assert values(found) == [None, 0.0, 0.0]


# --- Refusals and rows that nothing answers


def test_a_refusal_has_no_recall() -> None:
    """By our rule, where no model is asked."""
    assert values(scores(asked("The documents do not say when it leaves."))) == [None, 0.0, 0.0]


@pytest.mark.parametrize(
    ("response", "right"), [("The documents do not say.", 1.0), ("It leaves at nine.", 0.0)]
)
def test_refusing_is_right_where_the_documents_do_not_answer(response: str, right: float) -> None:
    """Where the row says so and has no reference."""
    found = scores(asked(response, None, metadata={"kind": "unanswerable"}))
    assert found["answer_abstained"].value == right
    assert [score.value for name, score in found.items() if name != "answer_abstained"] == [
        None
    ] * 5


def test_what_lacks_a_text_is_unscored() -> None:
    """No reference, or no response."""
    assert {s.unscored for s in scores(asked("It is.", None)).values()} == {"missing_param"}
    assert {s.unscored for s in scores(asked("", "It is.")).values()} == {"empty_response"}


# --- Words, and several references


@pytest.mark.parametrize(
    ("reference", "response", "share"),
    [
        ("Wilhelm Conrad Röntgen", "It was Wilhelm Röntgen.", 2 / 3),
        ("the 3rd of May", "On May 3", 2 / 3), ("twelve", "12 of them", 1.0),
        ("1,000 euros", "1000 euros", 1.0), ("", "anything", 0.0), ("the", "the", 0.0),
    ],
)  # fmt: skip
def test_words_are_compared_as_in_squad(reference: str, response: str, share: float) -> None:
    """Without articles, case and signs; small and ordinal numbers by value."""
    assert token_recall(reference, response) == pytest.approx(share)


def test_the_best_of_several_references_counts() -> None:
    """It is compared, and evidence names it."""
    found = scores(asked("It leaves at nine.", ["Never.", "It leaves at nine."]))
    assert values(found) == [1.0, 1.0, 1.0]
    assert found["answer_contains"].value == 1.0
    assert found["answer_f1"].evidence is not None
    assert found["answer_f1"].evidence["reference"] == "It leaves at nine."


def test_references_are_kept_and_known_by_the_row() -> None:
    """One in a list is the row that it was; more are another row, and survive a file."""
    one, several = asked("a", "b"), asked("a", ["b", "c", "b"])
    assert asked("a", ["b"]) == one
    assert several.references == ("b", "c")
    assert (several.row_key != one.row_key, several.reference) == (True, "b")
    assert RagCall.model_validate_json(several.model_dump_json()) == several
    assert "alternatives" not in one.model_dump_json()
    scored = evaluation(several)
    assert scored.alternatives == ("c",)
    assert Evaluation.model_validate_json(scored.model_dump_json()).alternatives == ("c",)
