"""Which of the texts of a result is the answer."""

from __future__ import annotations

import pytest

from rag_eval_integrations._answer import answer_among

FOUR = ("md", "Four.")


@pytest.mark.parametrize(
    ("texts", "written", "answer"),
    [
        ([FOUR, ("log", "Four. And so on.")], ["Four.", "yes"], "Four."),
        ([FOUR, ("final_answer", "Five.")], ["Four."], "Five."),
        ([FOUR, ("user_answer", "Five.")], ["Four."], "Four."),
        ([FOUR, ("short_answer", "Five."), ("long_answer", "Six.")], ["Four."], "Four."),
        ([("query", "Four."), ("verdict", "yes")], ["Four.", "yes"], None),
        (
            [("a", "It is so. It takes it."), ("b", "It is so. It takes it. No.")],
            ["It is so. It takes it"],
            None,
        ),
        (
            [("a", "So: it takes four minutes.")],
            ["it takes four minutes."],
            "So: it takes four minutes.",
        ),
        ([FOUR], [], None),
    ],
)
def test_answer_among(texts: list[tuple[str, str]], written: list[str], answer: str | None) -> None:
    """A single name of an answer, else what a model wrote last, else the only text around that."""
    assert answer_among(texts, written) == answer
