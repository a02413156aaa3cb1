"""Several references: rows of Natural Questions, TriviaQA and SQuAD, lists, and one text split."""

from __future__ import annotations

from typing import Any

import pytest

from rag_eval_integrations.dataset import read_calls

APP = {"documents": ["d"], "response": "r"}
ROWS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "Natural Questions": (
        {"question": "q", "answer": ["Röntgen", "W. Röntgen"]},
        ("Röntgen", "W. Röntgen"),
    ),
    "TriviaQA": (
        {
            "question": "q",
            "answer": {"value": "Paris", "aliases": ["Paris", "Paname"], "type": "x"},
        },
        ("Paris", "Paname"),
    ),
    "SQuAD": (
        {"question": "q", "answers": {"text": ["in 1901", "1901"], "answer_start": [1, 4]}},
        ("in 1901", "1901"),
    ),
    "SQuAD without an answer": ({"question": "q", "answers": {"text": [], "answer_start": []}}, ()),
    "a list": ({"question": "q", "reference": ["a", "", "b"]}, ("a", "b")),
    "ground truths in a cell": ({"question": "q", "ground_truths": "['a', 'b']"}, ("a", "b")),
    "one": ({"question": "q", "reference": "a/b"}, ("a/b",)),
}


@pytest.mark.parametrize("name", ROWS)
def test_references_of_a_row(name: str) -> None:
    """Beside the documents and the response of an app."""
    row, references = ROWS[name]
    (line,) = read_calls([{**row, **APP}])
    assert line.value is not None, line.error
    assert line.value.references == references


def test_a_text_is_split_where_the_user_says() -> None:
    """As EVOUNA writes several."""
    row = {"question": "q", "reference": "a / b/", **APP}
    (line,) = read_calls([row], split_reference="/")
    assert line.value is not None
    assert line.value.references == ("a", "b")
