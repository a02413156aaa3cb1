"""The evaluation of a call that there was no budget for: unscored, and delivered all the same."""

from __future__ import annotations

from collections.abc import Sequence

from rag_eval_integrations.records import By, Evaluation, JudgeInfo, RagCall, Score, Sentences


def over_budget(
    call: RagCall, names: Sequence[str], judge: JudgeInfo, fingerprint: str, reason: str
) -> Evaluation:
    """Make the evaluation of a call whose judge was not asked.

    Args:
        call: what was captured.
        names: of the scores that there would be.
        judge: who would have been asked.
        fingerprint: of the evaluator.
        reason: which limit was reached, in words.
    """
    by = By(judge=judge.name, judge_version=judge.version)
    scores = {
        name: Score(name=name, status="unscored", unscored="over_budget", reason=reason, by=by)
        for name in names
    }
    return Evaluation(
        id=call.id, row_key=call.row_key, question=call.question, response=call.response,
        reference=call.reference, metadata=call.metadata, capture=call.capture,
        scores=scores, labels=None, sentences=Sentences(),
        document_ids=tuple(document.id for document in call.documents),
        judge=judge, fingerprint=fingerprint,
    )  # fmt: skip
