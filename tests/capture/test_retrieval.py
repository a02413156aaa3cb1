"""A retrieval that is a call by itself."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from rag_eval_integrations.capture import _retrieval as retrieval
from rag_eval_integrations.capture._delivery import delivery_to
from rag_eval_integrations.capture._retrieval import OpenRetrieval, retrieving
from rag_eval_integrations.capture._traces import CallTraces

from .conftest import Captured


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
    captured: Captured, raised: type[BaseException] | None, status: str
) -> None:
    """The app gets its exception; where nothing is made of it nothing is delivered."""
    delivery = delivery_to(captured, logging.getLogger("test"))

    for made in (
        lambda retrieval: retrieval.record("r", [], framework="host"),
        lambda retrieval: None,
    ):
        with pytest.raises(raised) if raised else nullcontext(), retrieving("q", delivery, made):
            if raised:
                raise raised

    assert captured.statuses == [status]


def test_what_cannot_be_recorded_is_counted_and_not_felt(captured: Captured) -> None:
    """A failure in making the call is the capture's, not the app's."""
    delivery = delivery_to(captured, logging.getLogger("test"))

    with retrieving("q", delivery, lambda one: 1 // 0):  # type: ignore[arg-type,return-value]
        pass

    assert (captured.calls, delivery.failures.count) == ([], 1)
