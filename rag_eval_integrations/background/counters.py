"""What became of every call: counts that add up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SinkCounters:
    """What became of the evaluations for one sink."""

    name: str
    """The sink's class, with its number from 0 where several have one class."""
    written: int
    failed: int
    """In batches that the sink raised on; not written again."""
    dropped: int
    """Not handed over: the sink was slower than the evaluations came, and its queue was full."""
    pending: int


@dataclass(frozen=True)
class Counters:
    """A snapshot of what became of the calls since the start (of this process, after a fork).

    `captured` is the sum of all the others: every call is in exactly one of them.
    """

    captured: int = 0
    """Calls handed in."""
    sampled_out: int = 0
    skipped: int = 0
    """Whose run did not end well (`Capture.status` is not `ok`)."""
    dropped: int = 0
    """The queue was full, or the evaluator closed."""
    over_budget: int = 0
    """Delivered to the sinks unscored, with the code `over_budget`."""
    failed: int = 0
    """Evaluations with an error, and objects that are no calls."""
    scored: int = 0
    """Evaluations with at least one score that has a value."""
    unscored: int = 0
    """Evaluations without an error and without a value."""
    pending: int = 0
    """Waiting or being evaluated."""
    sinks: tuple[SinkCounters, ...] = ()
    """One a sink, in order."""
