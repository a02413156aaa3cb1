"""A retrieval that is a call by itself."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from rag_eval_integrations.capture import _retrieval as retrieval
from rag_eval_integrations.capture._delivery import delivery_to
from rag_eval_integrations.capture._traces import CallTraces


def test_a_retrieval_takes_as_long_as_its_clock_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """From its beginning to the record, in seconds."""
    monkeypatch.setattr(retrieval, "time", SimpleNamespace(monotonic=lambda: 12.5))
    traces = CallTraces(delivery_to(print, logging.getLogger("test")))

    call = retrieval.OpenRetrieval("q", traces, began=10.0).record("r", [], framework="host")

    assert (call.capture and call.capture.latency_s) == 2.5
