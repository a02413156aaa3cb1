"""Calls, evaluators and sinks for tests of background evaluation."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from by_hand import ScriptedJudge, labels_of
from processes import python as python
from processes import until as until

from rag_eval_integrations import BackgroundEvaluator, Capture, Evaluation, RagCall, RagEvaluator
from rag_eval_integrations.records import Labelling, SentencizedCall

LABELS = labels_of(["0a"], ["0a"], {"a": (["0a"], True)})
WAIT = 20.0
"""Seconds after which a test gives up."""


def call(number: int = 0, status: str | None = None) -> RagCall:
    """A call of one document and one sentence; no two share labels."""
    capture = None if status is None else Capture(framework="plain", status=status)  # type: ignore[arg-type]
    return RagCall(
        question=f"Question {number}?", documents=["It is so."], response="It is so.",
        id=str(number), capture=capture,
    )  # fmt: skip


def evaluator() -> RagEvaluator:
    """Finds everything relevant, used and supported."""
    return RagEvaluator(ScriptedJudge(LABELS))


class Gate:
    """A judge that answers when it is let."""

    name, version = "gated", "1"

    def __init__(self) -> None:
        self.open = threading.Event()
        self.asked: list[str] = []

    async def label(self, call: SentencizedCall) -> Labelling:
        self.asked.append(call.call.id)
        while not self.open.is_set():  # noqa: ASYNC110 -- set by another thread
            await asyncio.sleep(0.005)
        return await ScriptedJudge(LABELS).label(call)


class Kept:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.evaluations: list[Evaluation] = []
        self.threads: set[int] = set()

    def write(self, batch: Sequence[Evaluation]) -> None:
        self.threads.add(threading.get_ident())
        self.evaluations += batch
        self.ids += [evaluation.id for evaluation in batch]


class Stuck:
    """A sink that takes its first batch and writes nothing until it is let."""

    def __init__(self) -> None:
        self.go, self.began = threading.Event(), threading.Event()

    def write(self, batch: Sequence[Evaluation]) -> None:
        self.began.set()
        assert self.go.wait(WAIT)


def submit(background: BackgroundEvaluator, numbers: Iterable[int]) -> None:
    """Hand in the calls of these numbers."""
    for number in numbers:
        background(call(number))


def judged(
    calls: int, evaluator: RagEvaluator, sinks: Any = (), **options: Any
) -> BackgroundEvaluator:
    """Submit so many calls, wait until all of them are done, and close."""
    with BackgroundEvaluator(evaluator, sinks, **options) as background:
        submit(background, range(calls))
        assert background.flush(WAIT)
    return background


def busy(**options: Any) -> tuple[Gate, Kept, BackgroundEvaluator]:
    """A judge that has been asked about call 0 and does not answer yet, and its evaluator."""
    gate, kept = Gate(), Kept()
    background = BackgroundEvaluator(RagEvaluator(gate), [kept], max_concurrency=1, **options)
    background(call(0))
    until(lambda: gate.asked == ["0"])
    return gate, kept, background


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What the background logs."""
    caplog.set_level(logging.WARNING, logger="rag_eval_integrations.background")
    return caplog
