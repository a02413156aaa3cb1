"""A retrieval that is a call by itself."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from rag_eval_integrations.capture import _retrieval as retrieval
from rag_eval_integrations.capture._delivery import delivery_to
from rag_eval_integrations.capture._retrieval import OpenRetrieval, retrieving
from rag_eval_integrations.capture._traces import CallTraces
from rag_eval_integrations.records import RagCall


def test_a_retrieval_takes_as_long_as_its_clock_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """From its beginning to the record, in seconds; named after the retriever."""
    monkeypatch.setattr(retrieval, "time", SimpleNamespace(monotonic=lambda: 12.5))

    traces = CallTraces(delivery_to(print, logging.getLogger("test")))
    retrieved = OpenRetrieval("q", traces, began=10.0)
    call = retrieved.record("sections", [], framework="host", tags=("t",))

    assert (call.question, call.response, call.documents) == ("q", None, ())
    assert call.capture is not None
    assert (call.capture.latency_s, call.capture.retrievers) == (2.5, ("sections",))
    assert (call.capture.framework, call.capture.status) == ("host", "ok")


@pytest.mark.parametrize(
    ("raised", "status"), [(None, "ok"), (ValueError, "error"), (KeyboardInterrupt, "aborted")]
)
def test_a_retrieval_that_ends_badly_is_delivered_as_that(
    raised: type[BaseException] | None, status: str
) -> None:
    """The app gets its exception; where nothing is made of it nothing is delivered."""
    calls: list[RagCall] = []
    delivery = delivery_to(calls.append, logging.getLogger("test"))

    def fail(made: bool) -> None:
        with retrieving(
            "q", delivery, lambda one: one.record("r", [], framework="host") if made else None
        ):
            if raised is not None:
                raise raised

    for made in (True, False):
        if raised is None:
            fail(made)
        else:
            with pytest.raises(raised):
                fail(made)

    assert [call.capture.status for call in calls if call.capture] == [status]


def test_what_cannot_be_recorded_is_counted_and_not_felt() -> None:
    """A failure in making the call is the capture's, not the app's."""
    calls: list[RagCall] = []
    delivery = delivery_to(calls.append, logging.getLogger("test"))

    with retrieving("q", delivery, lambda one: 1 // 0):  # type: ignore[arg-type,return-value]
        pass

    assert (calls, delivery.failures.count) == ([], 1)
