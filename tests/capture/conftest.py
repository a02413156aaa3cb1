"""Where captured calls go, and a failure count that starts at zero."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from captured_calls import CapturedCalls

from rag_eval_integrations.capture._delivery import PROCESS_FAILURES
from rag_eval_integrations.records import RagCall


class Captured(CapturedCalls):
    """A target that keeps what it is given."""

    def __call__(self, call: RagCall) -> None:
        self.calls.append(call)


@pytest.fixture
def captured() -> Captured:
    return Captured()


@pytest.fixture(autouse=True)
def failures_from_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures are counted, and their tracebacks logged once, for the process."""
    monkeypatch.setattr(PROCESS_FAILURES, "count", 0)
    monkeypatch.setattr(PROCESS_FAILURES, "_kinds", set())


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO, logger="rag_eval_integrations.capture"):
        yield caplog
