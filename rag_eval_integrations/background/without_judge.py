"""Evaluations of calls that no judge answered for: delivered to the sinks all the same."""

from __future__ import annotations

from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.records import (
    By,
    Evaluation,
    EvaluationError,
    JudgeInfo,
    RagCall,
    Score,
    Sentences,
)


def over_budget(call: RagCall, evaluator: RagEvaluator, reason: str) -> Evaluation:
    """Make the evaluation of a call whose judge was not asked: unscored, for a reason in words."""
    by = _by(evaluator)
    scores = {
        name: Score(name=name, status="unscored", unscored="over_budget", reason=reason, by=by)
        for name in evaluator.names
    }
    return _evaluation(call, evaluator, scores, None)


def timed_out(call: RagCall, evaluator: RagEvaluator, seconds: float) -> Evaluation:
    """Make the evaluation of a call whose judge did not answer within so many seconds: an error."""
    message = f"no result within {seconds:g} s (`evaluation_timeout`)"
    by = _by(evaluator)
    scores = {
        name: Score(name=name, status="error", reason=f"TimeoutError: {message}", by=by)
        for name in evaluator.names
    }
    error = EvaluationError(type="TimeoutError", message=message, stage="judge")
    return _evaluation(call, evaluator, scores, error)


def _judge(evaluator: RagEvaluator) -> JudgeInfo:
    judge = evaluator.judge
    return JudgeInfo(name=judge.name, version=getattr(judge, "version", None))


def _by(evaluator: RagEvaluator) -> By:
    judge = _judge(evaluator)
    return By(judge=judge.name, judge_version=judge.version)


def _evaluation(
    call: RagCall,
    evaluator: RagEvaluator,
    scores: dict[str, Score],
    error: EvaluationError | None,
) -> Evaluation:
    return Evaluation(
        id=call.id, row_key=call.row_key, question=call.question, response=call.response,
        reference=call.reference, metadata=call.metadata, capture=call.capture,
        scores=scores, labels=None, sentences=Sentences(), error=error,
        document_ids=tuple(document.id for document in call.documents),
        judge=_judge(evaluator), fingerprint=evaluator.fingerprint,
    )  # fmt: skip
