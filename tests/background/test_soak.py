"""A short soak: memory stays flat and every call is accounted for, whatever becomes of it."""

from __future__ import annotations

import gc
import resource
from pathlib import Path

import pytest
from by_hand import ScriptedJudge

from rag_eval_integrations import BackgroundEvaluator, RagEvaluator
from rag_eval_integrations.records import Labelling, SentencizedCall

from .conftest import LABELS, WAIT, call

STATM = Path("/proc/self/statm")
ROUND, ROUNDS = 400, 6
MOST_GROWTH = 4.0
"""MB over all rounds but the first two: a leak of 3 kB a call, half of what one leaves, shows."""


class Mixed(ScriptedJudge):
    """Fails every fifth call, and keeps nothing."""

    async def label(self, call: SentencizedCall) -> Labelling:
        self.asked.clear()
        if int(call.call.id) % 5 == 0:
            raise ValueError(f"call {call.call.id}")
        return await super().label(call)


def resident_mb() -> float:
    gc.collect()
    return int(STATM.read_text().split()[1]) * resource.getpagesize() / 1e6


@pytest.mark.slow
@pytest.mark.skipif(not STATM.exists(), reason="resident memory is read from /proc")
def test_a_short_soak() -> None:
    """Thousands of calls, some skipped, sampled out, failed or dropped: the sums are exact."""
    statuses = (None, "ok", "error")
    seen: list[float] = []
    with BackgroundEvaluator(
        RagEvaluator(Mixed(LABELS)), sample_rate=0.8, max_pending=200
    ) as background:
        for turn in range(ROUNDS):
            for number in range(turn * ROUND, (turn + 1) * ROUND):
                background(call(number, statuses[number % 3]))
            assert background.flush(WAIT)
            seen.append(resident_mb())
        counters = background.counters

    assert seen[-1] - seen[1] < MOST_GROWTH, seen
    assert counters.captured == ROUND * ROUNDS
    assert counters.pending == 0
    assert counters.captured == (
        counters.sampled_out + counters.skipped + counters.dropped + counters.over_budget
        + counters.failed + counters.scored + counters.unscored
    )  # fmt: skip
    assert min(counters.sampled_out, counters.skipped, counters.failed, counters.scored) > 0
