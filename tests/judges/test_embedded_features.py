"""Words, overlap, features and coefficients of the embedded judge."""

from __future__ import annotations

import json
import math

import pytest
from by_hand import keyed
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.judges.embedded import _overlap as overlap_module
from rag_eval_integrations.judges.embedded import label_call
from rag_eval_integrations.judges.embedded._features import (
    DOCUMENT_FEATURES,
    RESPONSE_FEATURES,
    call_features,
)
from rag_eval_integrations.judges.embedded._model import (
    ADHERENCE_FEATURES,
    MODEL_FILE,
    adherence_features,
    clipped,
    load_model,
    logit,
    probability_of,
)
from rag_eval_integrations.judges.embedded._overlap import overlap
from rag_eval_integrations.judges.embedded._words import stem
from rag_eval_integrations.judges.embedded.judge import explain_support


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tablets", "tablet"),
        ("batteries", "battery"),
        ("charging", "charged"),
        ("stopped", "stop"),
        ("installed", "install"),
        ("safely", "safe"),
        ("Paris's", "Paris"),
        ("1,250", "1250"),
        ("classes", "class"),
        ("don’t", "don't"),
        ("two", "2"),
    ],
)
def test_forms_of_a_word_have_one_stem(one: str, other: str) -> None:
    """Plural, tense, adverb, possessive, thousands marks, number words make no two words."""
    assert stem(one) == stem(other)


@pytest.mark.parametrize(("one", "other"), [("bus", "bu"), ("1.5", "15"), ("thing", "th")])
def test_different_words_keep_their_stems(one: str, other: str) -> None:
    """The stemmer takes no ending that belongs to the word."""
    assert stem(one) != stem(other)


def test_above_the_budget_the_rarest_words_still_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    """A common word stops making pairs first."""
    documents = [[f"common word{i}" for i in range(50)]]
    monkeypatch.setattr(overlap_module, "PAIR_BUDGET", 10)

    o = overlap("", documents, ["common word7"])

    assert [match.sentence for match in o.matches[0]] == [7]


@pytest.mark.parametrize(
    ("documents", "response", "supporting"),
    [
        ("red green blue|red green|yellow", "red green blue yellow", ("0a", "0c")),
        ("red green blue|red green|blue", "red green blue pink", ("0a",)),  # adds nothing
        ("red green blue|red green yellow|red green yellow", "red green blue yellow", ("0a", "0b")),
        ("red|green|blue|pink|grey", "red green blue pink grey", ("0a", "0b", "0c", "0d")),
        ("red|one|two", "red green blue pink grey white black", ()),  # less than a fifth
    ],
)
def test_supporting_sentences_each_add_words(
    documents: str, response: str, supporting: tuple[str, ...]
) -> None:
    """At most four, the one that adds most first, the earlier of two that add the same."""
    labels = label_call(keyed([documents.split("|")], [response], question="q")).labels

    assert labels is not None
    assert labels.sentence_support_information[0].supporting_sentence_keys == supporting


def test_the_model_file_fits_the_features() -> None:
    """Names and order are those of the code; the file is small and says what it is made from."""
    model = load_model()

    assert model.relevant.names == model.utilized.names == DOCUMENT_FEATURES
    assert model.supported.names == RESPONSE_FEATURES
    assert model.adherent.names == ADHERENCE_FEATURES
    assert model.relevant_alone.names == DOCUMENT_FEATURES
    assert model.relevant.bounds == model.utilized.bounds  # both are clipped at once
    assert MODEL_FILE.stat().st_size < 200_000
    assert all(weight > 0 for weight in model.adherent.weights)
    content = json.loads(MODEL_FILE.read_text())
    assert "RAGTruth" in content["data"]
    assert "CC-BY-4.0" in content["licence"]
    assert all(" " not in word for word in (*model.present, *model.new))


TEXT = st.text(alphabet="ab1 .A'", max_size=25)


@given(st.lists(st.lists(TEXT, max_size=3), max_size=3), st.lists(TEXT, max_size=3), TEXT)
def test_features_are_finite_and_complete(
    documents: list[list[str]], response: list[str], question: str
) -> None:
    """One row a sentence, one number a feature, whatever the text."""
    features = call_features(question, documents, response)
    found = [
        own + document.shared
        for document in features.documents
        for own in zip(*document.columns, strict=True)
    ]

    assert len(found) == sum(map(len, documents))
    assert len(features.response) == len(response)
    for rows, names in (
        (found, DOCUMENT_FEATURES),
        ([row.features for row in features.response], RESPONSE_FEATURES),
    ):
        for row in rows:
            assert len(row) == len(names)
            assert all(map(math.isfinite, row))


def test_small_formulas() -> None:
    """The logistic and its inverse, limits, the level of responses by hand; empty cases."""
    assert probability_of(logit(0.3)) == pytest.approx(0.3)
    assert 0 < probability_of(-1e9) < probability_of(1e9) < 1
    assert clipped([5.0, -1.0, 7.0], ((0, 0.0, 2.0), (1, 0.0, 1.0))) == [2.0, 0.0, 7.0]
    assert adherence_features([0.5, 0.5]) == pytest.approx((0, 0, 2 * math.log(0.5) / math.sqrt(2)))
    assert adherence_features([]) == (logit(1.0), logit(1.0), 0.0)


def test_weights_add_up_exactly() -> None:
    """The order of words changes no bit: sums of floats differ between Python versions."""
    o = overlap("", [[f"word{i} word{i % 7} word{i % 3}" for i in range(40)]], ["word1 word2"])

    weights = [*o.idf.values(), *(w * w for w in o.idf.values())]
    assert sum(weights) == sum(reversed(weights)) == math.fsum(weights)


def support_explained(documents: list[str], response: str, cited: list[str]) -> str:
    return explain_support(call_features("", [documents], [response]), 0, response, cited, 0.5)


def test_explanations_of_support_in_full() -> None:
    """Share, keys and missing words; without a cited sentence no share."""
    documents = ["The pump may run dry."]

    assert support_explained(documents, "The pump may not run dry.", ["0a"]) == (
        "Lexical estimate 0.50: 100% of its word weight is in 0a; all its words are in the "
        "documents."
    )
    assert support_explained(documents, "The pump may not run dry.", []) == (
        "Lexical estimate 0.50: no document sentence shares enough of its words; all its words are "
        "in the documents."
    )
    assert support_explained(documents, "It is.", []) == (
        "Lexical estimate 0.50: no document sentence shares enough of its words; it has no word to "
        "look for."
    )


def test_explanations_show_five_and_count_the_rest() -> None:
    """Of five all are shown, of more the others are counted."""
    five = support_explained([], "Red green blue pink grey.", [])
    seven = support_explained([], "Red green blue pink grey white black.", [])

    shown = '; in no document: "Red", "green", "blue", "pink", "grey"'
    assert five.endswith(shown + ".")
    assert seven.endswith(shown + " and 2 more.")
    assert support_explained([], "x" * 41, []).endswith(f'"{"x" * 39}…".')
