"""Budgets: what may be spent, and what becomes of the calls beyond."""

from __future__ import annotations

import math
from typing import Any

import pytest
from by_hand import ScriptedJudge

from rag_eval_integrations.background import BackgroundEvaluator, Budget
from rag_eval_integrations.background.budget import Meter
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.records import Labelling, SentencizedCall, Usage

from .conftest import LABELS, WAIT, Kept, judged, submit


class Priced(ScriptedJudge):
    """Costs a quarter of a dollar a call, or nobody knows what."""

    def __init__(self, cost: float | None) -> None:
        super().__init__(LABELS)
        self.cost = cost

    async def label(self, call: SentencizedCall) -> Labelling:
        labelling = await super().label(call)
        return labelling.model_copy(update={"usage": Usage(requests=1, cost_usd=self.cost)})


@pytest.mark.parametrize(
    ("limit", "most", "window"), [(3, 3, 60.0), (0.5, 1, 120.0), (2.5, 3, 72.0)]
)
def test_no_window_has_more_starts_than_the_limit(limit: float, most: int, window: float) -> None:
    """Asked every second for an hour, every window of that length holds at most that many."""
    now = [1_000_000.0]
    meter = Meter(Budget(per_minute=limit), monotonic=lambda: now[0])
    starts = []
    for _ in range(3600):
        if meter.start() is None:
            starts += now
        now[0] += 1.0

    for start in starts:
        assert sum(start <= other < start + window for other in starts) <= most
    assert len(starts) == pytest.approx(60 * limit, abs=most)


def test_a_day_ends_at_midnight_utc() -> None:
    """What was spent yesterday is forgotten."""
    now = [1_000_000.0]
    meter = Meter(Budget(per_day_usd=1.0), clock=lambda: now[0])
    for over in (None, "the budget of 1 USD per day is spent"):
        meter.add_cost(Usage(requests=1, cost_usd=0.6))
        assert meter.start() == over
    now[0] += 86_400

    assert meter.start() is None


def test_calls_beyond_the_minutes_budget_are_delivered_unscored(
    log: pytest.LogCaptureFixture,
) -> None:
    """With the code `over_budget`, counted, and without asking the judge."""
    kept = Kept()
    judge = ScriptedJudge(LABELS)
    background = judged(10, RagEvaluator(judge), [kept], budget=Budget(per_minute=3))
    counters, summary = background.counters, background.summary()

    assert (counters.scored, counters.over_budget) == (3, 7)
    assert len(judge.asked) == 3
    unscored = [e for e in kept.evaluations if e.labels is None]
    assert {s.unscored for e in unscored for s in e.scores.values()} == {"over_budget"}
    reason = "the limit of 3 evaluations per minute is reached"
    assert unscored[0].scores["adherence"].reason == reason
    assert list(unscored[0].scores) == list(kept.evaluations[0].scores)
    assert summary.unscored["adherence"] == {"over_budget": 7}
    assert len(log.records) == 1


def test_the_days_dollars_end_judging() -> None:
    """Four calls at a quarter spend one dollar; calls of equal text share one request."""
    budget = Budget(per_day_usd=1.0)
    background = judged(6, RagEvaluator(Priced(0.25)), max_concurrency=1, budget=budget)
    assert (background.counters.scored, background.counters.over_budget) == (4, 2)

    with BackgroundEvaluator(RagEvaluator(Priced(0.25)), max_concurrency=1, budget=budget) as same:
        submit(same, [0] * 6)
        assert same.flush(WAIT)
    assert (same.counters.scored, same.counters.over_budget) == (6, 0)


def test_an_unknown_price_is_not_zero(log: pytest.LogCaptureFixture) -> None:
    """The limit cannot be kept, which is said once; judging goes on."""
    background = judged(5, RagEvaluator(Priced(None)), budget=Budget(per_day_usd=1.0))

    assert background.counters.scored == 5
    assert [r.getMessage() for r in log.records] == [
        "`per_day_usd` cannot be enforced: the price of scripted is not known; "
        "further cases of this kind are counted but not logged"
    ]


@pytest.mark.parametrize("name", ["per_minute", "per_day_usd"])
@pytest.mark.parametrize("value", [0, -1, math.inf, math.nan, True, "3"])
def test_a_limit_that_is_none_is_refused(name: str, value: Any) -> None:
    """Where the budget is made, by name; no limit is None, not infinity."""
    with pytest.raises(ConfigurationError, match=f"`{name}`") as raised:
        Budget(**{name: value})

    assert repr(value) in str(raised.value)
    assert getattr(Budget(**{name: None}), name) is None
    assert getattr(Budget(**{name: 0.5}), name) == 0.5
