"""Numbers of things, as a person reads them."""

from __future__ import annotations

import pytest

from rag_eval_integrations._counted import counted


@pytest.mark.parametrize(
    ("count", "words", "shown"),
    [
        (0, ("call",), "0 calls"),
        (1, ("call",), "1 call"),
        (2, ("call",), "2 calls"),
        (1_234, ("call",), "1,234 calls"),
        (1, ("call was", "calls were"), "1 call was"),
        (0, ("call was", "calls were"), "0 calls were"),
    ],
)
def test_one_is_no_plural(count: int, words: tuple[str, ...], shown: str) -> None:
    """Neither "1 calls" nor "1 call were"; thousands are parted."""
    assert counted(count, *words) == shown
