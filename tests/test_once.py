"""LogOnce: every failure is counted, the first of each kind is logged."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

import pytest

from rag_eval_integrations._once import LogOnce

LOGGER = logging.getLogger("test_once")


def test_the_first_of_each_kind_is_logged_and_all_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With its values, its level and its traceback, and as a line of the place that reports it."""
    once = LogOnce(LOGGER, logging.ERROR)
    error = ValueError("down")
    for number in range(3):
        once.log("sink", "sink %s failed", number, error=error)
    once.log(("sink", KeyError), "%d%% are lost", 5)

    assert once.count == 4
    assert [record.getMessage() for record in caplog.records] == ["sink 0 failed", "5% are lost"]
    first = caplog.records[0]
    assert (first.levelno, first.filename) == (logging.ERROR, "test_once.py")
    assert first.exc_info is not None
    assert first.exc_info[1] is error
    assert caplog.records[1].exc_info is None


def test_kinds_without_end_are_counted_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A message with a request id makes every failure a kind of its own."""
    once = LogOnce(LOGGER, max_kinds=3)
    for number in range(10):
        once.log(number, "failed")
        once.log(0, "failed")

    assert once.count == 20
    assert len(caplog.records) == 3


def test_threads_lose_no_count_and_log_no_kind_twice(caplog: pytest.LogCaptureFixture) -> None:
    """Eight of them, all at once."""
    once = LogOnce(LOGGER)

    def fail(number: int) -> None:
        once.log(number % 7, "kind %d failed", number % 7)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(fail, range(7000)))

    assert once.count == 7000
    assert sorted(record.getMessage() for record in caplog.records) == [
        f"kind {number} failed" for number in range(7)
    ]


def test_a_failure_may_be_reported_while_another_is(caplog: pytest.LogCaptureFixture) -> None:
    """A garbage collection can end a stream, and so report, wherever Python runs code."""
    once = LogOnce(LOGGER)

    class Kind:
        def __hash__(self) -> int:
            once.log("inner", "inner")
            return 1

        def __eq__(self, other: object) -> bool:
            return self is other

    once.log(Kind(), "outer")

    assert once.count >= 2
    assert sorted(record.getMessage() for record in caplog.records) == ["inner", "outer"]
