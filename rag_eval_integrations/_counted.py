"""`counted`: a number of things as a sentence has it, "1 call" and "1,234 calls"."""

from __future__ import annotations


def counted(count: int, singular: str, many: str | None = None) -> str:
    """Write a number of things.

    Args:
        count: how many.
        singular: the word for one of them, with its verb where the sentence needs it ("call was").
        many: the word for several; by default `singular` with an "s".
    """
    return f"{count:,} {singular if count == 1 else many or f'{singular}s'}"
