"""The trees that correct the regressions of document sentences."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.judges.embedded._features import (
    DOCUMENT_FEATURES,
    SENTENCE_FEATURES,
    SHARED_FEATURES,
    DocumentRows,
    call_features,
)
from rag_eval_integrations.judges.embedded._model import (
    MODEL_FILE,
    document_probabilities,
    load_model,
    logit,
)
from rag_eval_integrations.judges.embedded._trees import SCALE, corrections, trees_of

OWN, SHARED = len(SENTENCE_FEATURES), len(SHARED_FEATURES)


def walked(content: dict[str, Any], row: tuple[float, ...]) -> tuple[float, float]:
    """Walk the trees one by one: the first question is the highest bit of the leaf."""
    sums = [0, 0]
    for questions, relevant, utilized in zip(
        content["questions"], content["relevant"], content["utilized"], strict=True
    ):
        leaf = 0
        for feature, limit in questions:
            leaf = 2 * leaf + (row[feature] >= limit)
        sums[0] += relevant[leaf]
        sums[1] += utilized[leaf]
    return sums[0] / SCALE, sums[1] / SCALE


def test_a_limit_is_reached_by_its_own_value() -> None:
    """All eight leaves of one tree, on both sides of each limit; negative leaves, too."""
    content = {
        "questions": [[[0, 0.5], [1, 0.25], [OWN, 1.0]]],
        "relevant": [[-4 * SCALE, 1, 2, 3, 4, 5, 6, 7 * SCALE]],
        "utilized": [[7, 6, 5, 4, 3, 2, 1, -SCALE]],
    }
    trees = trees_of(content)
    for a, b, c in product((0.4999, 0.5), (0.2499, 0.25), (0.9999, 1.0)):
        document = DocumentRows(
            (c, *[0.0] * (SHARED - 1)), ((a, 0.0), (b, 0.0), *[(0.0, 0.0)] * (OWN - 2))
        )
        [first, second], used = corrections(trees, [document])

        assert (first, used[0]) == walked(content, document.sentences[0] + document.shared)
        assert (second, used[1]) == walked(content, document.sentences[1] + document.shared)
    assert corrections(trees, []) == ([], [])


@given(st.lists(st.floats(0, 8, width=32), min_size=OWN + SHARED, max_size=OWN + SHARED))
def test_the_shipped_trees_are_the_sum_of_their_leaves(row: list[float]) -> None:
    """Added up by bytes or walked one by one: to the last bit, since leaves are integers."""
    content = json.loads(MODEL_FILE.read_text(encoding="utf-8"))["trees"]
    document = DocumentRows(tuple(row[OWN:]), tuple([[value] for value in row[:OWN]]))

    [relevant], [utilized] = corrections(load_model().trees, [document])

    assert (relevant, utilized) == walked(content, tuple(row))


def test_the_shipped_trees_are_well_formed() -> None:
    """Three questions about features that exist, eight leaves, none of which decides alone."""
    content = json.loads(MODEL_FILE.read_text(encoding="utf-8"))["trees"]

    assert len(content["questions"]) == len(content["relevant"]) == len(content["utilized"])
    for questions in content["questions"]:
        assert [feature in range(len(DOCUMENT_FEATURES)) for feature, _ in questions] == [True] * 3
    for leaves in (*content["relevant"], *content["utilized"]):
        assert len(leaves) == 8
        assert max(map(abs, leaves)) < SCALE


def test_probabilities_are_corrected_in_log_odds() -> None:
    """Each model's log-odds and the trees' sum are added before they become a probability."""
    features = call_features(
        "When does the ferry to Kos leave?",
        [["The ferry to Kos leaves at nine.", "It takes four hours."], ["Bananas grow."]],
        ["It leaves at nine."],
    )
    model = load_model()
    plain = document_probabilities(features.documents, model.relevant, model.utilized)
    both = document_probabilities(
        features.documents, model.relevant, model.utilized, trees=model.trees
    )

    for without, corrected, added in zip(
        plain, both, corrections(model.trees, features.documents), strict=True
    ):
        assert list(map(logit, corrected)) == pytest.approx(
            [logit(p) + more for p, more in zip(without, added, strict=True)], abs=0.01
        )
