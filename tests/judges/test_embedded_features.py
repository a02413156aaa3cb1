"""Words, overlap, features and coefficients of the embedded judge."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.judges.embedded import overlap as overlap_module
from rag_eval_integrations.judges.embedded.document_features import DOCUMENT_FEATURES
from rag_eval_integrations.judges.embedded.explain import supporting
from rag_eval_integrations.judges.embedded.features import call_features
from rag_eval_integrations.judges.embedded.model import (
    MODEL_FILE,
    adherence_features,
    expected_completeness,
    load_model,
    logit,
    sigmoid,
)
from rag_eval_integrations.judges.embedded.overlap import overlap
from rag_eval_integrations.judges.embedded.response_features import RESPONSE_FEATURES, Cover
from rag_eval_integrations.judges.embedded.words import stem, words


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
    ],
)
def test_forms_of_a_word_have_one_stem(one: str, other: str) -> None:
    """Plural, tense, adverb, possessive and thousands marks make no two words."""
    assert stem(one) == stem(other)


@pytest.mark.parametrize(("one", "other"), [("bus", "bu"), ("1.5", "15"), ("thing", "th")])
def test_different_words_keep_their_stems(one: str, other: str) -> None:
    """The stemmer takes no ending that belongs to the word."""
    assert stem(one) != stem(other)


def test_words_of_a_sentence() -> None:
    """Content words in order, names, numbers and negation are told apart."""
    cut = words("The Eiffel Tower wasn't finished in 1,889 by Eiffel.")

    assert cut.content == ("eiffel", "tower", "wasn't", "finish", "1889")
    assert cut.names == {"eiffel", "tower"}
    assert cut.numbers == {"1889"}
    assert cut.negated


def test_rare_words_weigh_more_and_unknown_ones_most() -> None:
    """Idf inside the call: a word in every sentence still has a weight above 0."""
    o = overlap("cat", [["A cat sat.", "A cat ran."], ["A cat ate fish."]], ["cat fish bird"])

    assert 0 < o.idf["cat"] < o.idf["fish"] < o.unseen
    assert o.holders == {"cat": [0, 1, 2], "fish": [2]}
    assert [match.sentence for match in o.matches[0]] == [2, 0, 1]


def test_above_the_budget_the_rarest_words_still_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    """A common word stops making pairs first."""
    documents = [[f"common word{i}" for i in range(50)]]
    monkeypatch.setattr(overlap_module, "PAIR_BUDGET", 10)

    o = overlap("", documents, ["common word7"])

    assert [match.sentence for match in o.matches[0]] == [7]


def test_the_cover_takes_the_sentence_that_adds_most() -> None:
    """Greedy by weight: the second sentence covers what the first left."""
    features = call_features(
        "q", [["red green blue", "red green", "yellow"]], ["red green blue yellow"]
    )

    assert features.covers[0].sentences == (0, 2)
    assert sum(features.covers[0].gains) == pytest.approx(1)


def test_a_sentence_that_adds_nothing_is_not_in_the_cover() -> None:
    """What the first sentence holds already does not make a second one support."""
    features = call_features(
        "q", [["red green blue", "red green", "blue"]], ["red green blue pink"]
    )

    assert features.covers[0].sentences == (0,)


def test_a_negligible_match_supports_nothing() -> None:
    """The best match must hold a fifth of the weight, every further one add a tenth."""
    assert supporting(Cover((), ())) == ()
    assert supporting(Cover((3,), (0.19,))) == ()
    assert supporting(Cover((3, 1, 2), (0.5, 0.1, 0.05))) == (3, 1)


def test_the_model_file_fits_the_features() -> None:
    """Names and order are those of the code; the file is small."""
    model = load_model()

    assert model.relevant.names == model.utilized.names == DOCUMENT_FEATURES
    assert model.supported.names == RESPONSE_FEATURES
    assert MODEL_FILE.stat().st_size < 200_000
    assert all(weight > 0 for weight, _, _ in model.adherent.terms)


TEXT = st.text(alphabet="ab1 .A'", max_size=25)


@given(st.lists(st.lists(TEXT, max_size=3), max_size=3), st.lists(TEXT, max_size=3), TEXT)
def test_features_are_finite_and_complete(
    documents: list[list[str]], response: list[str], question: str
) -> None:
    """One row a sentence, one number a feature, whatever the text."""
    features = call_features(question, documents, response)

    assert len(features.documents) == sum(map(len, documents))
    assert len(features.response) == len(response)
    for rows, names in (
        (features.documents, DOCUMENT_FEATURES),
        (features.response, RESPONSE_FEATURES),
    ):
        for row in rows:
            assert len(row) == len(names)
            assert all(map(math.isfinite, row))


def test_small_formulas() -> None:
    """The logistic and its inverse; expected completeness by hand; empty cases."""
    assert sigmoid(logit(0.3)) == pytest.approx(0.3)
    assert 0 < sigmoid(-1e9) < sigmoid(1e9) < 1
    assert expected_completeness([0.8, 0.2], [0.5, 0.4]) == pytest.approx(0.7)
    assert expected_completeness([], []) == 1.0
    assert adherence_features([0.5, 0.5]) == (0.0, 0.0)
    assert adherence_features([]) == (logit(1.0), logit(1.0))
