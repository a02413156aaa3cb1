"""`Recent`: the latest answers of a function of texts, held by an object and gone with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """Remembers the answers about the latest texts, for as long as its owner lives.

    An `lru_cache` of a module would keep users' documents in memory after the last evaluator is
    gone. A copy remembers nothing, so that what holds one can be pickled. May be called from any
    thread.

    Args:
        function: answers about one text; should not refer to the owner, so that both go at once.
        size: how many texts are remembered, from 1.
        longest: how many characters of a text are remembered at most.
    """

    def __init__(self, function: Callable[[str], T], size: int, longest: int) -> None:
        self._function, self._size, self._longest = function, size, longest
        self._known = lru_cache(size)(function)

    def __call__(self, text: str) -> T:
        """Return the function's value for a text; it is remembered unless the text is long."""
        return self._known(text) if len(text) <= self._longest else self._function(text)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._function, self._size, self._longest)
