"""From the score's characters to its token, whatever stands before, after or in pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.metrics.geval._expectation import TokenPosition, place_of
from rag_eval_integrations.models.completion import Token


def made(pieces: list[str]) -> list[Token]:
    return [Token(text=piece, logprob=-0.1) for piece in pieces]


@pytest.mark.parametrize(
    ("text", "pieces", "place"),
    [
        ("Score: 4", ["Score", ":", " 4"], TokenPosition(2, "4")),
        ("Score: 4", ["<think>", "hm", "</think>", "Score", ":", " 4"], TokenPosition(5, "4")),
        ("Score: 4", ["Score", ":", " 4", "<|im_end|>"], TokenPosition(2, "4")),
        ("ünïcodé 4 end", ["ün", "ïco", "dé", " 4", " end"], TokenPosition(3, "4")),
        ("🙂 4", ["bytes:\\xf0\\x9f", "bytes:\\x99\\x82", " ", "4"], TokenPosition(3, "4")),
        ("4 🙂", ["4", " ", "\ufffd", "\ufffd"], TokenPosition(0, "4")),
        ("score 10.", ["score", " 1", "0", "."], TokenPosition(1, "1")),
        ('{"score": 4}', ['{"score', '":', " 4}"], TokenPosition(2, "4}")),
    ],
)
def test_the_token_is_found(text: str, pieces: list[str], place: TokenPosition) -> None:
    """By bytes, from the end or from the beginning."""
    at = text.index("10" if "10" in text else "4")
    span = (at, at + (2 if "10" in text else 1))

    assert place_of(text, span, made(pieces)) == place


@pytest.mark.parametrize(
    "pieces",
    [
        [],
        ["Score: 5"],
        ["\ufffd", " 4 ", "\ufffd"],  # unknown on both sides
        ["Score", ": 4", " and", " so", " much", " more"],
    ],
)
def test_tokens_that_spell_something_else_give_no_place(pieces: list[str]) -> None:
    """Rather none than that of another token."""
    assert place_of("é 4 é", (2, 3), made(pieces)) is None


@given(st.text(max_size=20), st.text(max_size=20), st.integers(1, 4), st.text(max_size=8))
def test_any_cut_finds_the_digit(before: str, after: str, size: int, reasoning: str) -> None:
    """However the text is cut into pieces, and whatever reasoning is left before it."""
    text = f"{before}7{after}"
    pieces = [text[i : i + size] for i in range(0, len(text), size)]

    found = place_of(text, (len(before), len(before) + 1), made([*reasoning, *pieces]))

    assert found is not None
    index = found.index - len(reasoning)
    assert index * size <= len(before) < (index + 1) * size
    assert found.rest.startswith("7")
