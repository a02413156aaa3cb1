"""`Sink`, the protocol: what every sink has, and what some declare."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from rag_eval_integrations.records import Evaluation


@runtime_checkable
class Sink(Protocol):
    """Receives evaluations and writes them to one place.

    A sink that declares `repeatable = True` is given the evaluations of a failed batch again; a
    repeat must do no harm there, as where the place knows a score by its id.
    """

    def write(self, batch: Sequence[Evaluation]) -> None:
        """Write a batch of at least one evaluation, in the order in which they were finished.

        The method may block: the background evaluator calls it from one thread, one batch at a
        time. An exception is logged and counted there, and the batch is not written again, unless
        the sink is `repeatable`.

        Args:
            batch: the evaluations, at least one.

        Raises:
            PartlyWrittenError: some of the evaluations are not written, and it says which.
            Exception: none of them is, and no other would be now.
        """
        ...


@runtime_checkable
class RepeatableSink(Sink, Protocol):
    """A sink that says whether a failed batch may be given to it again."""

    repeatable: bool


@runtime_checkable
class WatchingSink(Sink, Protocol):
    """A sink that also reports calls which are not judged, and so never reach `write`."""

    def watch_not_judged(self, counts: Callable[[], Mapping[str, int]]) -> None:
        """Remember a function that counts the calls not judged so far, by reason.

        Args:
            counts: a bound method of the object that counts; the sink does not keep that alive.
        """
        ...


class PartlyWrittenError(OSError):
    """A failure after which some evaluations of a batch are written, and the others are not.

    Args:
        left: the evaluations that are not written.
        first: the first failure.
    """

    def __init__(self, left: Sequence[Evaluation], first: BaseException) -> None:
        super().__init__(f"{len(left)} not written: {type(first).__name__}: {first}")
        self.left = tuple(left)
        """The evaluations that are not written."""
