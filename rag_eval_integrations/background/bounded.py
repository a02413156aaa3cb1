"""One evaluation within the budget and the time limit, and what becomes of it."""

from __future__ import annotations

import asyncio

from rag_eval_integrations.background.budget import Budget, Meter
from rag_eval_integrations.background.failures import FailureLog, shown
from rag_eval_integrations.background.tally import Fate
from rag_eval_integrations.background.without_judge import over_budget, timed_out
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.records import Evaluation, RagCall


class BoundedEvaluator:
    """Evaluates calls on the worker's loop, none of them for ever.

    Args:
        evaluator: what evaluates.
        budget: what it may spend.
        timeout: seconds that one evaluation may take, above 0.
        failures: says each kind of failure once.
    """

    def __init__(
        self, evaluator: RagEvaluator, budget: Budget, timeout: float, failures: FailureLog
    ) -> None:
        self._evaluator = evaluator
        self._meter = Meter(budget)
        self._timeout = timeout
        self._failures = failures

    async def evaluate(self, call: RagCall) -> tuple[Evaluation, Fate]:
        """Evaluate a call, or say in an evaluation why that did not happen."""
        refusal = self._meter.start()
        if refusal is not None:
            self._failures.say(("over budget",), f"calls are not judged: {refusal}")
            return over_budget(call, self._evaluator, refusal), "over_budget"
        evaluation = await self._evaluated_in_time(call)
        self._meter.spent(evaluation.usage)
        if self._meter.cost_unknown:
            self._failures.say(
                ("unknown cost",),
                f"`per_day_usd` cannot be enforced: {evaluation.judge.name} does not say its price",
            )
        if evaluation.error is not None:
            failure = evaluation.error
            self._failures.say(
                ("evaluation", failure.stage, failure.type),
                f"an evaluation failed ({failure.stage}: {failure.type}: {shown(failure.message)})",
            )
            return evaluation, "failed"
        scored = any(score.value is not None for score in evaluation.scores.values())
        return evaluation, "scored" if scored else "unscored"

    async def _evaluated_in_time(self, call: RagCall) -> Evaluation:
        try:
            async with asyncio.timeout(self._timeout) as limit:
                return await self._evaluator.evaluate(call)
        except TimeoutError:
            if not limit.expired():
                raise
            return timed_out(call, self._evaluator, self._timeout)
