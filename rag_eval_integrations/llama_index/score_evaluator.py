"""One score of a `RagEvaluator` as a LlamaIndex evaluator: what all our evaluators are."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from llama_index.core.evaluation.base import BaseEvaluator, EvaluationResult
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.schema import MetadataMode
from pydantic import Field

from rag_eval_integrations import _loop
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.llama_index._answers import (
    Answer,
    UnreadableError,
    aanswer_from,
    answer_from,
    document_of,
)
from rag_eval_integrations.records import Capture, Evaluation, RagCall

# --- A table of `BatchEvalRunner`'s results in which an unscored item is not a zero


@dataclass(frozen=True)
class MetricRow:
    """One evaluator's results over all items."""

    metric: str
    n: int
    """Items."""
    scored: int
    """Items with a score."""
    mean: float | None
    """Mean over the scored items; None when none is."""
    passed: int | None
    """Items that passed; None when the evaluator gave no verdict on any."""
    unscored: Mapping[str, int] = field(default_factory=dict)
    """Why items have no score → how many."""


def results_table(results: Mapping[str, Sequence[EvaluationResult]]) -> list[MetricRow]:
    """Sum up the results of each evaluator; `pandas.DataFrame(rows)` makes a data frame of it.

    Args:
        results: evaluator name → results, as `BatchEvalRunner` returns them; of any evaluators.
    """
    return [_row(name, items) for name, items in results.items()]


def _row(name: str, items: Sequence[EvaluationResult]) -> MetricRow:
    scores = [item.score for item in items if item.score is not None]
    verdicts = [item.passing for item in items if item.passing is not None]
    reasons = Counter(_reason(item) for item in items if item.score is None)
    return MetricRow(
        metric=name,
        n=len(items),
        scored=len(scores),
        mean=sum(scores) / len(scores) if scores else None,
        passed=sum(verdicts) if verdicts else None,
        unscored=dict(reasons.most_common()),
    )


def _reason(item: EvaluationResult) -> str:
    # Ours begin with a code; the words after it differ from item to item.
    return (item.invalid_reason or "no score").partition(":")[0]


_RETRIEVAL = Capture(framework="llama_index", documents_from="retriever")
"""A question with contexts and no response: only the retrieval is there to be scored."""


class RagEvaluationResult(EvaluationResult):
    """LlamaIndex's result, with what it rests on."""

    evaluation: Evaluation | None = Field(default=None, exclude=True, repr=False)
    """Labels, evidence, usage and flags; None when nothing could be evaluated. Not dumped."""


class ScoreEvaluator(BaseEvaluator):
    """One score of a `RagEvaluator`, as LlamaIndex's own evaluators give theirs.

    `evaluate` and `evaluate_response` also work where a loop is running. Nothing is raised for a
    call that cannot be scored: the result is then `invalid_result` with `invalid_reason`, without
    a score, neither passing nor failing. A stream that nobody has begun to read is read to its
    end and put back, so that the app still gets every token.

    Args:
        rag_evaluator: what evaluates; shared by any number of views.
        name: the score, as in `rag_evaluator.names`.
        threshold: the score at which a response passes; by default what the metric says, else no
            verdict (`passing` is None).
        metadata_mode: how a source node is shown to the judge; by default with the metadata that
            models are shown. Contexts given as strings are taken as they are.

    Raises:
        ConfigurationError: for a score that the evaluator does not give, or a wrong threshold.
    """

    def __init__(
        self,
        rag_evaluator: RagEvaluator,
        name: str,
        *,
        threshold: float | None = None,
        metadata_mode: MetadataMode = MetadataMode.LLM,
    ) -> None:
        if name not in rag_evaluator.names:
            given = ", ".join(rag_evaluator.names)
            raise ConfigurationError("metric", name, f"no such score; the evaluator gives {given}")
        if threshold is not None and (isinstance(threshold, bool) or not 0 <= threshold <= 1):
            raise ConfigurationError("threshold", threshold, "use a number in [0, 1]")
        self.rag_evaluator = rag_evaluator
        self.name = name
        self.threshold = threshold
        self._mode = metadata_mode

    # --- LlamaIndex's interface -------------------------------------------------------------------

    def evaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> EvaluationResult:
        """Evaluate texts, from code that is not async; see `aevaluate`."""
        try:
            return _loop.run(self.aevaluate(query, response, contexts, **kwargs))
        except Exception as error:  # noqa: BLE001 -- a result says it
            return _invalid(query, response, contexts, error)

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> EvaluationResult:
        """Evaluate texts.

        Args:
            query: the question.
            response: the answer; without one only `context_relevance` can be scored.
            contexts: what the answer rests on: strings, or nodes.
            **kwargs: `reference`, the expected answer, for metrics that compare with one;
                `sleep_time_in_seconds`, to wait before. Anything else is for other evaluators of
                the same batch, and ignored.
        """
        try:
            await asyncio.sleep(kwargs.get("sleep_time_in_seconds") or 0)
            given = [document_of(item, self._mode) for item in _listed(contexts)]
            alone = response is None and self.name == "context_relevance"
            call = RagCall(
                question=query or "", documents=given, response=response,
                reference=kwargs.get("reference"), capture=_RETRIEVAL if alone else None,
            )  # fmt: skip
            return await self._result(call, query)
        except Exception as error:  # noqa: BLE001 -- a result says it
            return _invalid(query, response, contexts, error)

    def evaluate_response(
        self, query: str | None = None, response: Any = None, **kwargs: Any
    ) -> EvaluationResult:
        """Evaluate a response, from code that is not async; see `aevaluate_response`."""
        try:
            answer = answer_from(response, self._mode)
            return _loop.run(self._evaluate_answer(query, answer, kwargs))
        except Exception as error:  # noqa: BLE001 -- a result says it
            return _invalid(query, None, None, error)

    async def aevaluate_response(
        self, query: str | None = None, response: Any = None, **kwargs: Any
    ) -> EvaluationResult:
        """Evaluate a response of a query engine, a chat engine or an agent, streaming or not.

        Args:
            query: the question.
            response: the response; its source nodes are the contexts.
            **kwargs: as of `aevaluate`.
        """
        try:
            answer = await aanswer_from(response, self._mode)
            return await self._evaluate_answer(query, answer, kwargs)
        except Exception as error:  # noqa: BLE001 -- a result says it
            return _invalid(query, None, None, error)

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts_dict: PromptDictType) -> None:
        if prompts_dict:
            why = "the prompts are fixed: every score is stamped with their version"
            raise ConfigurationError("prompts_dict", sorted(prompts_dict), why)

    # --- the score --------------------------------------------------------------------------------

    async def _evaluate_answer(
        self, query: str | None, answer: Answer, kwargs: Mapping[str, Any]
    ) -> EvaluationResult:
        await asyncio.sleep(kwargs.get("sleep_time_in_seconds") or 0)
        call = RagCall(
            question=query or "", documents=answer.documents, response=answer.text,
            reference=kwargs.get("reference"),
        )  # fmt: skip
        return await self._result(call, query)

    async def _result(self, call: RagCall, query: str | None) -> EvaluationResult:
        evaluation = await self.rag_evaluator.evaluate(call, only=[self.name])
        score = evaluation.scores[self.name]
        threshold = score.threshold if self.threshold is None else self.threshold
        known = score.value is not None
        words = score.reason or (f"{self.name} is {score.value:g}" if known else score.status)
        return RagEvaluationResult(
            query=query,
            contexts=[document.text for document in call.documents],
            # A text even for no response: a retry engine raises for None instead of retrying.
            response=call.response or "",
            passing=None if score.value is None or threshold is None else score.value >= threshold,
            feedback=words,
            score=score.value,
            invalid_result=not known,
            invalid_reason=None if known else f"{score.unscored or score.status}: {words}",
            evaluation=evaluation,
        )


# --- What cannot be evaluated -------------------------------------------------------------------


def _listed(contexts: object) -> Sequence[Any]:
    if contexts is None:
        return ()
    if isinstance(contexts, Sequence) and not isinstance(contexts, str | bytes):
        return contexts
    raise TypeError(f"contexts should be a list of strings, not {type(contexts).__name__}")


def _invalid(
    query: object, response: object, contexts: object, error: Exception
) -> EvaluationResult:
    """Say what went wrong, with as much of the input as the result's fields take."""
    words = str(error) or repr(error)
    reason = words if isinstance(error, UnreadableError) else f"{type(error).__name__}: {words}"
    texts = contexts if isinstance(contexts, list | tuple) else ()
    return RagEvaluationResult(
        query=query if isinstance(query, str) else None,
        response=response if isinstance(response, str) else "",
        contexts=[text for text in texts if isinstance(text, str)],
        feedback=reason,
        invalid_result=True,
        invalid_reason=reason,
    )
